"""Where the official harness is installed: an environment of its own, made on demand below the user's cache.

cab never imports the harness, whose requirements are none of cab's. One that is installed elsewhere is taken
as it is (`at`).
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.errors import EnvironmentFault, InputError
from orchestrator.external.suites import SWEBENCH
from orchestrator.external.tasks import ExternalTask, HarnessLine
from orchestrator.nearest import nearest

REQUIREMENT = "swebench==5.0.2"
LINES: tuple[HarnessLine, ...] = ("5", "4")

_PINNED = re.compile(r"swebench==(\d+(?:\.\d+)*)")
_STAMP = "cab-harness.json"
_PROBE_S, _INSTALL_S = 120, 1800
_PROBE = """
import importlib.metadata, json
found = {"version": importlib.metadata.version("swebench"), "parsers": [], "specs": {}}
import swebench.harness.constants as constants
for repo, versions in getattr(constants, "MAP_REPO_VERSION_TO_SPECS", {}).items():
    found["specs"][repo] = sorted(versions)
if not found["specs"]:
    from swebench.harness.log_parsers import PARSER_REGISTRY
    found["parsers"] = sorted(PARSER_REGISTRY)
print(json.dumps(found))
"""


@dataclass(frozen=True)
class Harness:
    """An installed harness. `parsers` are the names that a 5.x knows for `log_parser`; `specs` the versions
    of each repository that a 4.x can test.
    """

    python: Path
    version: str
    line: HarnessLine
    parsers: frozenset[str] = frozenset()
    specs: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def problem(self, task: ExternalTask) -> str | None:
        """Why this harness cannot grade a task; None where nothing in the row speaks against it."""
        if said := task.harness_problem(self.line):
            return said
        if self.line == "5" and task.log_parser not in self.parsers:
            hint = nearest(str(task.log_parser), self.parsers, otherwise="see its PARSER_REGISTRY")
            return f"log_parser {task.log_parser!r} is none of swebench {self.version}: {hint}"
        versions = dict(self.specs).get(task.repo, ())
        if self.line == "4" and task.version not in versions:
            told = f"it knows {', '.join(versions)}" if versions else "it does not know the repository"
            return f"swebench {self.version} cannot test {task.repo} {task.version!r}: {told}"
        return None


def require_gradable(tasks: tuple[ExternalTask, ...], harness: Harness) -> None:
    """Raises InputError for the first task that the harness cannot grade, with how many more there are."""
    problems = [(task, problem) for task in tasks if (problem := harness.problem(task))]
    if problems:
        task, problem = problems[0]
        more = f" ({len(problems) - 1} more cannot be graded)" if len(problems) > 1 else ""
        raise InputError(
            f"{problem}{more}",
            place=task.instance_id,
            mend="without --run-harness patches are still generated; docs/external.md, Task files",
        )


def cache_root(env: dict[str, str] | None = None) -> Path:
    """Where environments of harnesses are, each in a directory by its version."""
    env = dict(os.environ) if env is None else env
    return Path(env.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cab" / "harness"


def harness_python(
    requirement: str = REQUIREMENT,
    *,
    root: Path | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Harness:
    """The harness of `requirement` (`swebench==VERSION`), installed first where it is not there.

    With all its own requirements by hash where cab carries a lock of that version. Processes that ask at once
    make it once. Raises InputError for another requirement, EnvironmentFault where it cannot be installed.
    """
    match = _PINNED.fullmatch(requirement.replace(" ", ""))
    if match is None:
        raise InputError(f"{requirement!r} pins no version", place="harness", mend=f"such as {REQUIREMENT}")
    version = match[1]
    root = root or cache_root()
    venv, inputs = root / version, _inputs(version)
    with _alone(root, version):
        if (found := _stamped(venv, inputs)) is None:
            say(f"installing swebench {version} into {venv}")
            found = _install(version, venv, inputs)
    return _harness(venv / "bin" / "python", found)


def at(python: Path) -> Harness:
    """The harness that a Python of one's own has installed. Raises EnvironmentFault where it has none."""
    return _harness(python, _probed(python))


def _lock_of(version: str) -> Path:
    return SWEBENCH / "harness" / f"swebench-{version}.lock"


def _inputs(version: str) -> str:
    """What an environment is made of, as a digest."""
    lock = _lock_of(version)
    content = lock.read_bytes() if lock.is_file() else version.encode()
    return hashlib.sha256(content + _PROBE.encode()).hexdigest()


@contextmanager
def _alone(root: Path, version: str) -> Iterator[None]:
    try:
        root.mkdir(parents=True, exist_ok=True)
        with (root / f".{version}.lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
    except OSError as error:
        raise EnvironmentFault(
            f"the harness cannot be installed there: {error}", place=str(root), mend="see XDG_CACHE_HOME"
        ) from error


def _stamped(venv: Path, inputs: str) -> dict[str, Any] | None:
    """What was found out about an environment, if it is there and whole, and made of the same."""
    try:
        stamp = json.loads((venv / _STAMP).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    whole = stamp.get("inputs") == inputs and (venv / "bin" / "python").exists()
    return dict(stamp["found"]) if whole else None


def _install(version: str, venv: Path, inputs: str) -> dict[str, Any]:
    """Make an environment beside its place and move it there when it is whole: `python -m` works anywhere."""
    log = venv.with_suffix(f"{venv.suffix}.log")
    log.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{version}-", dir=venv.parent) as scratch:
        made = Path(scratch, "venv")
        _run([sys.executable, "-m", "venv", str(made)], log)
        pip = [str(made / "bin" / "python"), "-m", "pip", "install", "--disable-pip-version-check"]
        # Compiled when they are first imported, which most modules never are.
        pip += ["--no-compile", "--no-input", "--progress-bar", "off", "--retries", "10"]
        lock = _lock_of(version)
        wanted = ["--require-hashes", "-r", str(lock)] if lock.is_file() else [f"swebench=={version}"]
        _run([*pip, *wanted], log)
        found = _probed(made / "bin" / "python")
        (made / _STAMP).write_text(json.dumps({"inputs": inputs, "found": found}), "utf-8")
        shutil.rmtree(venv, ignore_errors=True)
        made.rename(venv)
    return found


def _run(command: list[str], log: Path) -> None:
    with log.open("a", encoding="utf-8") as file:
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                timeout=_INSTALL_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise _not_installed(f"not done after {_INSTALL_S} s", log) from None
    if done.returncode != 0:
        said = log.read_text("utf-8", "replace").strip().splitlines()
        raise _not_installed(said[-1] if said else f"it ended with {done.returncode}", log)


def _not_installed(said: str, log: Path) -> EnvironmentFault:
    return EnvironmentFault(
        f"the harness cannot be installed: {said}",
        place=str(log),
        mend="see that file, or name a Python that has it with --harness-python",
    )


def _probed(python: Path) -> dict[str, Any]:
    """What the harness of a Python says of itself."""
    command = [str(python), "-c", _PROBE]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PROBE_S, check=False)
        said = done.stdout.strip().splitlines()
        found = json.loads(said[-1]) if done.returncode == 0 and said else None
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise _no_harness(python, str(error)) from None
    if not isinstance(found, dict):
        raise _no_harness(python, next(reversed(done.stderr.strip().splitlines()), "it says nothing"))
    return found


def _no_harness(python: Path, said: str) -> EnvironmentFault:
    return EnvironmentFault(
        f"has no SWE-bench harness: {said}",
        place=str(python),
        mend=f"pip install {REQUIREMENT} there, or leave --harness-python out",
    )


def _harness(python: Path, found: dict[str, Any]) -> Harness:
    version = str(found["version"])
    line = version.partition(".")[0]
    if line not in LINES:
        raise EnvironmentFault(
            f"swebench {version} is of no line that cab knows ({', '.join(LINES)})",
            place=str(python),
            mend=f"install {REQUIREMENT}",
        )
    specs = tuple((repo, tuple(versions)) for repo, versions in found["specs"].items())
    return Harness(python, version, line, frozenset(found["parsers"]), specs)
