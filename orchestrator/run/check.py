"""What `cab check` has to know before it runs a cell on this machine: the CLI as it is installed, the tools
that the task's tests want, and what holds the CLI back here.
"""

from __future__ import annotations

import grp
import os
import pwd
import random
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from orchestrator.adapter import Adapter, LaunchContext
from orchestrator.errors import EnvironmentFault, NotStarted
from orchestrator.plan.task import Task
from orchestrator.run.alone import Asked, Place, User, machine_place
from orchestrator.run.grader import agent_user
from orchestrator.run.verify import verifier_user
from orchestrator.sandbox.contract import ContainerSpec
from orchestrator.sandbox.inplace.confine import (
    FILES_SINCE,
    PR_SET_CHILD_SUBREAPER,
    TCP_SINCE,
    landlock_version,
    prctl,
)
from orchestrator.sandbox.inplace.sandbox import InPlaceSandbox
from orchestrator.sandbox.inplace.supervisor import descendants, freeze_and_kill

USE_DOCKER = "or run it in its image, with Docker"
NOT_TOLD = "not told"
PROBE_S = 60.0
MAX_TOLD = 4_000
ALWAYS = ("git", "python3")
TOOLS: Mapping[str, tuple[str, ...]] = {
    "python": (),
    "rust": ("rustc", "cargo"),
    "go": ("go",),
    "java": ("javac", "java"),
    "javascript": ("node",),
    "typescript": ("node",),
    "c": ("gcc", "make"),
}
"""What tasks in a language want of a machine, for their tests and for an agent that tries its work out."""

PROGRAM_HOMES = {
    "RUSTUP_HOME": ".rustup",
    "PYENV_ROOT": ".pyenv",
    "VOLTA_HOME": ".volta",
    "ASDF_DATA_DIR": ".asdf",
    "JAVA_HOME": None,
    "GOROOT": None,
}
"""Variables by which a program on PATH finds itself, and where it looks in HOME without them. Nothing that
holds credentials is among them.
"""

TRANSIENT_UIDS = range(61184, 65520)
"""Those that no person and no service is given for good."""

_VERSION = re.compile(r"(?<![\d.])\d+(?:\.\d+)+(?:-[0-9A-Za-z.]+)?")
_ASK_TOOLS = (
    'for tool; do case "$tool" in go) go version;; *) "$tool" --version;; esac'
    ' </dev/null >/dev/null 2>&1 || echo "$tool"; done'
)


@dataclass(frozen=True)
class Installed:
    """A CLI as it is on this machine: its program's path, its version, as it says and as its adapter pins,
    and how a cell of it runs here.
    """

    cli: str
    program: str
    version: str
    pinned: str
    place: Place

    @property
    def difference(self) -> str | None:
        """How its version differs from the pinned one; None: not at all."""
        if self.version == self.pinned:
            return None
        if self.version == NOT_TOLD:
            return f"{self.cli} does not tell its version, cab knows {self.pinned}"
        return f"{self.cli} is {self.version}, cab knows {self.pinned}"


def look(asked: Asked, given: Mapping[str, str], scratch: Path) -> Installed:
    """Find the CLI and the tools of the task, in the environment `given`. `scratch` is an empty directory.

    Nothing is started but `--version`, as the CLI itself will be: without the user's HOME, and held back in
    the same way. Raises InputError for what cannot be asked, EnvironmentFault for what is not installed.
    """
    if sys.platform != "linux":
        raise EnvironmentFault("runs on Linux alone", place="cab check", mend="use Linux, or Docker there")
    matrix = asked.matrix()
    task = matrix.tasks[asked.task]
    adapter = matrix.adapters[asked.cli]
    users = free_users() if os.geteuid() == 0 else (agent_user(), verifier_user())
    launch = adapter.launch(LaunchContext(prompt="", model=asked.model, credential=""))
    name = adapter.program or launch.argv[0]
    found = _found(name, adapter, given, users[0], scratch)
    _check_tools(task, _Probe(found.environment, users[1], scratch))
    version = _version(name, adapter, found)
    installed = Installed(
        adapter.name, found.program, version, adapter.version, machine_place(version, found.environment)
    )
    weaknesses = (*installed.place.weaknesses, *([installed.difference] if installed.difference else ()))
    return replace(installed, place=replace(installed.place, users=users, weaknesses=weaknesses))


def held_back() -> tuple[str, ...]:
    """What keeps a CLI on this machine from what, and what does not, in words."""
    landlock = landlock_version()
    reads = "it can read what its user can, the task's hidden tests among it"
    held = landlock >= FILES_SINCE
    writes = "it writes to its scratch and to /tmp alone" if held else "it can write what its user can"
    reaches = "connects to the model alone (over TCP)" if landlock >= TCP_SINCE else "uses your network"
    missing = () if landlock >= TCP_SINCE else ("this kernel has no Landlock that knows of TCP",)
    return (f"{reads}; {writes}, and {reaches}", *missing)


def check_key() -> None:
    """Raises EnvironmentFault where the CLI could read a key out of the environment of the user's shell."""
    if landlock_version() < FILES_SINCE and os.geteuid() != 0:
        raise EnvironmentFault(
            "this kernel does not keep a CLI from reading the key in your shell's environment",
            place="--key-env",
            mend="use Linux 5.19 or newer with Landlock, or run-cell in Docker",
        )


@contextmanager
def nothing_left() -> Iterator[None]:
    """End, on the way out, every process that this one or a descendant of it started, orphans included."""
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    try:
        yield
    finally:
        while left := descendants():
            freeze_and_kill(left)
            _reap()


def _reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            continue
    except ChildProcessError:
        return


def free_users() -> tuple[User, User]:
    """Two users, with groups of the same numbers, that are nobody's on this machine.

    Which, is chance: two runs at once with the same ones would read and remove each other's files.
    """
    taken = {entry.pw_uid for entry in pwd.getpwall()} | {entry.gr_gid for entry in grp.getgrall()}
    agent, verifier = random.SystemRandom().sample([uid for uid in TRANSIENT_UIDS if uid not in taken], 2)
    return (agent, agent), (verifier, verifier)


def environment(given: Mapping[str, str], *, own: bool = False) -> dict[str, str]:
    """What every command of a run has of the user's environment: where programs are, and no more.

    cab's own virtual environment is no part of that, but at the end with `own`.
    """
    ours = str(Path(sys.prefix) / "bin") if sys.prefix != sys.base_prefix else None
    path = [it for it in given.get("PATH", os.defpath).split(os.pathsep) if it.startswith("/") and it != ours]
    home = Path(given.get("HOME") or "/nonexistent")
    kept = {"PATH": os.pathsep.join([*path, ours] if own and ours else path)}
    for name, usual in PROGRAM_HOMES.items():
        if given.get(name):
            kept[name] = given[name]
        elif usual and (home / usual).is_dir():
            kept[name] = str(home / usual)
    return kept


@dataclass(frozen=True)
class _Probe:
    """Runs short commands as those of a run are run."""

    environment: Mapping[str, str]
    user: User
    scratch: Path

    def ask(self, *argv: str) -> tuple[bool, str]:
        """Whether the command ended well, and what it printed."""
        printed: list[bytes] = []
        run_dir = Path(tempfile.mkdtemp(dir=self.scratch))
        run_dir.chmod(0o755)
        spec = ContainerSpec(
            name=argv[0],
            image_id=None,
            argv=argv,
            env={"HOME": "/tmp", "LANG": "C.UTF-8"},
            workdir="/tmp",
            user=self.user,
            mounts=(),
            run_dir=run_dir,
            time_limit_s=PROBE_S,
        )
        sandbox = InPlaceSandbox(alone=False, port=0, environment=self.environment)
        end = sandbox.run(spec, sink=lambda _stream, _at, data: printed.append(data))
        return end.exit_code == 0, b"".join(printed).decode("utf-8", "replace")


@dataclass(frozen=True)
class _Program:
    program: str
    environment: Mapping[str, str]
    probe: _Probe


def _found(name: str, adapter: Adapter, given: Mapping[str, str], user: User, scratch: Path) -> _Program:
    """The program of that name. Raises EnvironmentFault where PATH has none that `user` can run."""
    for own in (False, True):
        kept = environment(given, own=own)
        probe = _Probe(kept, user, scratch)
        there, program = probe.ask("sh", "-c", 'command -v -- "$1"', "sh", name)
        if there:
            return _Program(program.strip(), kept, probe)
    if hidden := shutil.which(name, path=given.get("PATH")):
        raise _unreadable(hidden, user)
    raise EnvironmentFault(
        f"{name} is not on PATH",
        place=f"--tui {adapter.name}",
        mend=f"install {adapter.name} {adapter.version}, {USE_DOCKER}",
    )


def _version(name: str, adapter: Adapter, found: _Program) -> str:
    """The version that the program tells; of several numbers the pinned one, else the first.

    Raises EnvironmentFault where it cannot be started.
    """
    try:
        _, told = found.probe.ask(name, "--version")
    except NotStarted as fault:
        raise _unreadable(found.program, found.probe.user) from fault
    numbers = _VERSION.findall(told[:MAX_TOLD])
    return adapter.version if adapter.version in numbers else numbers[0] if numbers else NOT_TOLD


def _unreadable(program: str, user: User) -> EnvironmentFault:
    if user[0] == os.geteuid():
        return EnvironmentFault("cannot be started", place=program, mend="install it again")
    return EnvironmentFault(
        f"cannot be started by uid {user[0]}, as which it runs where cab is root",
        place=program,
        mend="run cab as another user than root, or install it, and what it needs, where all may read it",
    )


def _check_tools(task: Task, probe: _Probe) -> None:
    """Raises EnvironmentFault that names the tools of the task that do not run here."""
    _, told = probe.ask("sh", "-c", _ASK_TOOLS, "sh", *ALWAYS, *TOOLS[task.language])
    if missing := told.split():
        raise EnvironmentFault(
            f"the task's tests want {', '.join(missing)}, which does not run here",
            place=task.name,
            mend=f"install {' '.join(missing)} for every user, {USE_DOCKER}",
        )
