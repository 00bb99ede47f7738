"""Runs the official harness on predictions, and goes on where an earlier call was killed.

Each call has a directory of its own below `work`, named by its run id, with the rows, the predictions, and
what the harness wrote. The run id ends in a digest of tasks, patches and settings: what was judged is kept,
and a patch that changed is judged anew under another id.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shlex
import shutil
import signal
import string
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docker.errors import DockerException

from orchestrator.errors import EnvironmentFault, InputError
from orchestrator.external.harness_env import Harness, require_gradable
from orchestrator.external.harness_logs import OUTPUT, clean
from orchestrator.external.harness_reports import REPORTS, Ran, is_final
from orchestrator.external.images import ensure_images
from orchestrator.external.predictions import read_predictions, write_predictions
from orchestrator.external.results import Verdict
from orchestrator.external.tasks import ExternalTask
from orchestrator.nearest import nearest
from orchestrator.sandbox.images import engine
from orchestrator.store.files import make_dirs, store_errors, write_durably

COMMAND = (
    "{python} -m swebench.harness.run_evaluation --dataset_name {dataset_name} --split {split} "
    "--predictions_path {predictions_path} --max_workers {max_workers} --timeout {timeout} "
    "--run_id {run_id} --report_dir {report_dir}"
)
"""What is run, unless `--harness-command` says otherwise: words as in a shell, no shell runs them."""

PLACEHOLDERS = (
    *("python", "dataset_name", "split", "predictions_path", "run_id", "report_dir"),
    *("max_workers", "timeout", "instance_ids"),
)
_NEEDED = ("dataset_name", "predictions_path", "run_id")

_INPUTS = "inputs.json"
_NAME = string.ascii_letters + string.digits + "_.-"
_POLL_S, _GRACE_S = 0.5, 15.0
_PASSED_ON = (
    *(
        "PATH",
        "HOME",
        "USER",
        "LANG",
        "LC_ALL",
        "TMPDIR",
        "XDG_RUNTIME_DIR",
        "XDG_CACHE_HOME",
        "SSL_CERT_FILE",
    ),
    *("DOCKER_HOST", "DOCKER_CONFIG", "DOCKER_CONTEXT", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH"),
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "REQUESTS_CA_BUNDLE"),
)
"""What the harness gets of the environment: no keys are in it."""


@dataclass(frozen=True)
class _Asked:
    """What one call of `evaluate` is about."""

    tasks: Mapping[str, ExternalTask]
    patches: Mapping[str, str]
    condition: str
    run_id: str
    work: Path
    harness: Harness
    max_workers: int
    timeout_s: int
    command: str
    out: Path

    @property
    def runs(self) -> list[Ran]:
        """Where earlier calls ran, in their order: each directory is named by its run id."""
        found = sorted(self.work.glob(f"*/{_INPUTS}"), key=lambda path: path.stat().st_mtime_ns)
        return [Ran(path.parent, self.condition, path.parent.name) for path in found]

    def clean(self, ran: Ran) -> None:
        """Take this machine's directories, and keys, out of the logs of a call that has ended."""
        env = self.harness.python.parent.parent
        clean(ran.directory, {"{out}": self.out, "{harness}": env, "~": Path.home()})

    def key(self, instance_id: str) -> str:
        """All that a verdict rests on."""
        task, patch = self.tasks[instance_id], self.patches[instance_id]
        settings = [self.harness.version, str(self.timeout_s), self.command]
        return hashlib.sha256("\0".join([task.digest, patch, *settings]).encode()).hexdigest()


def evaluate(
    tasks: Sequence[ExternalTask],
    predictions: Path,
    *,
    condition: str,
    run_id: str,
    work: Path,
    harness: Harness,
    max_workers: int = 1,
    timeout_s: int = 1800,
    command: str | None = None,
    progress: Callable[[int, int], None] = lambda _done, _of: None,
    out: Path | None = None,
) -> dict[str, Verdict]:
    """The harness's verdict on each task's prediction; a task without one is incomplete.

    `work` belongs to this condition and run alone, and the same call again goes on there. `timeout_s` is
    for the tests of one instance. `progress` hears how many of how many are judged. Logs tell of `out`, which
    holds `work`, by a name and not by its path. Raises InputError for predictions or a command that are wrong
    and for tasks that this harness cannot grade, EnvironmentFault where there is no engine or docker command,
    StoreError where `work` cannot be written.
    """
    work = work.absolute()
    asked = _asked(
        tasks, predictions, condition, run_id, work, harness, max_workers, timeout_s, command, out or work
    )

    def known() -> tuple[dict[str, Verdict], list[str]]:
        verdicts, pending = _known(asked)
        progress(len(asked.patches) - len(pending), len(asked.patches))
        return verdicts, pending

    verdicts, pending = known()
    if pending:
        require_docker(harness)
        require_gradable(tuple(asked.tasks[name] for name in pending), harness)
    if pending or not all(ran.report() for ran in asked.runs):
        with _alone(asked.work, known) as turn:
            # A runner that was killed left its logs as they are, and a harness that was its containers.
            for ran in asked.runs:
                asked.clean(ran)
            _remove_containers([ran.run_id for ran in asked.runs])
            # What a harness has judged in the meantime that outlived its runner.
            verdicts, pending = known()
            graded = [asked.tasks[name] for name in pending if asked.patches[name]]
            ensure_images(graded, asked.work / "images")
            verdicts |= _run(asked, pending, progress, turn) if pending else {}
    missing = Verdict(outcome="incomplete", reason="there is no prediction")
    return {task.instance_id: verdicts.get(task.instance_id, missing) for task in tasks}


def require_docker(harness: Harness) -> None:
    """Raises EnvironmentFault where no engine answers, or the docker command that 5.x cleans up with is not
    on PATH.
    """
    engine.connect().close()
    if harness.line == "5" and shutil.which("docker") is None:
        raise EnvironmentFault(
            f"swebench {harness.version} ends its containers with the docker command, which is not on PATH",
            place="--run-harness",
            mend="install the docker client (Debian: docker-cli or docker.io)",
        )


def metadata(harness: Harness) -> dict[str, Any]:
    """What is to be told of the harness beside results. Its containers are not cab's."""
    return {
        "harness": f"swebench {harness.version}",
        "container_user": "root",
        "container_network": "on: the engine's default bridge; the harness has no option for it",
        "container_limits": "none of processor, memory or processes",
    }


def _asked(
    tasks: Sequence[ExternalTask],
    predictions: Path,
    condition: str,
    run_id: str,
    work: Path,
    harness: Harness,
    max_workers: int,
    timeout_s: int,
    command: str | None,
    out: Path,
) -> _Asked:
    for told, name in (("run id", run_id), ("condition", condition)):
        if not name or set(name) - set(_NAME) or not name[0].isalnum():
            raise InputError(f"{name!r} is no {told}", place="harness", mend="letters, digits, _, . and -")
    if max_workers < 1 or timeout_s < 1:
        raise InputError("workers and timeout are at least 1", place="harness", mend="")
    by_id = {task.instance_id: task for task in tasks}
    found = read_predictions(predictions)
    if found.condition != condition:
        raise InputError(
            f"is of {found.condition!r}, not {condition!r}", place=str(predictions), mend="give its own file"
        )
    for name in found.patches:
        if name not in by_id:
            raise InputError(f"{name} is none of the tasks", place=str(predictions), mend="remove it")
    template = command or COMMAND
    _check_template(template)
    return _Asked(
        by_id, found.patches, condition, run_id, work, harness, max_workers, timeout_s, template, out
    )


def _is_known(verdicts: Mapping[str, Verdict], name: str) -> bool:
    return name in verdicts and is_final(verdicts[name])


@contextmanager
def _alone(work: Path, waiting: Callable[[], object]) -> Iterator[int]:
    """Wait until no harness works there, and call `waiting` as long as one does; the file descriptor whose
    inheritors keep others waiting.
    """
    with store_errors(work):
        make_dirs(work)
        turn = os.open(work / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        while not _taken(turn):
            waiting()
            time.sleep(_POLL_S)
        yield turn
    finally:
        # Not unlocked: where the harness still runs, the lock is its own.
        os.close(turn)


def _taken(turn: int) -> bool:
    with suppress(BlockingIOError):
        fcntl.flock(turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


def _known(asked: _Asked) -> tuple[dict[str, Verdict], list[str]]:
    """What earlier calls came to, for the patches and settings of this one; and what is to be judged."""
    found: dict[str, Verdict] = {}
    for ran in asked.runs:
        try:
            judged = dict(json.loads((ran.directory / _INPUTS).read_text("utf-8")))
        except (OSError, ValueError, TypeError, RecursionError):
            continue
        same = [name for name in asked.patches if judged.get(name) == asked.key(name)]
        for name, verdict in ran.verdicts(same, "the harness was ended before").items():
            if not _is_known(found, name):
                found[name] = verdict
    return found, sorted(name for name in asked.patches if not _is_known(found, name))


def _run(
    asked: _Asked, pending: list[str], progress: Callable[[int, int], None], turn: int
) -> dict[str, Verdict]:
    keys = {name: asked.key(name) for name in pending}
    # The directory, too: the harness names containers by the run id, and two runs may be under way at once.
    what = [str(asked.work), *(f"{name} {key}" for name, key in keys.items())]
    digest = hashlib.sha256("\n".join(what).encode()).hexdigest()
    run_id = f"{asked.run_id}-{digest[:8]}"
    ran = Ran(asked.work / run_id, asked.condition, run_id)
    rows, predictions = ran.directory / "tasks.json", ran.directory / "predictions.jsonl"
    with store_errors(ran.directory):
        make_dirs(ran.directory / REPORTS)
        write_durably(rows, json.dumps([dict(asked.tasks[name].row) for name in pending]).encode())
        write_predictions(predictions, asked.condition, {name: asked.patches[name] for name in pending})
        # A report of an earlier try would speak of what is judged now.
        for path in (ran.directory / REPORTS, ran.directory):
            (path / f"{asked.condition}.{run_id}.json").unlink(missing_ok=True)
        write_durably(ran.directory / _INPUTS, json.dumps(keys).encode())
    values = {
        "python": str(asked.harness.python),
        "dataset_name": str(rows),
        "split": "test",
        "predictions_path": str(predictions),
        "run_id": run_id,
        "report_dir": str(ran.directory / REPORTS),
        "max_workers": str(asked.max_workers),
        "timeout": str(asked.timeout_s),
    }
    before = len(asked.patches) - len(pending)

    def tell() -> None:
        done = sum(1 for name in pending if not asked.patches[name] or ran.is_graded(name))
        progress(before + done, len(asked.patches))

    try:
        code = _call(_words(asked.command, values, pending), ran, asked.command == COMMAND, tell, turn)
    finally:
        asked.clean(ran)
    found = ran.verdicts(pending, _unsaid(ran, code))
    progress(before + sum(it.outcome != "incomplete" for it in found.values()), len(asked.patches))
    return found


def _call(command: list[str], ran: Ran, ours: bool, tell: Callable[[], None], turn: int) -> int:
    """Run the harness to its end; its exit code. Whatever ends this call ends it and its containers."""
    env = {name: os.environ[name] for name in _PASSED_ON if name in os.environ} if ours else dict(os.environ)
    env |= {"HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "PYTHONUNBUFFERED": "1"}
    with store_errors(ran.directory), (ran.directory / OUTPUT).open("ab") as output:
        try:
            process = subprocess.Popen(
                command,
                cwd=ran.directory,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=(turn,),
            )
        except OSError as error:
            raise EnvironmentFault(
                f"cannot be run: {error.strerror}", place=command[0], mend="see --harness-command"
            ) from None
        try:
            while (code := process.poll()) is None:
                time.sleep(_POLL_S)
                tell()
            return code
        finally:
            _end(process)
            _remove_containers([ran.run_id])


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the harness and what it started."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE_S)
            return


def _remove_containers(run_ids: Sequence[str]) -> None:
    """Those that a harness which was ended has left, by the names that it gives them."""
    if not run_ids:
        return
    with suppress(EnvironmentFault, DockerException):
        client = engine.connect()
        # One that goes by itself meanwhile must not keep the others.
        left = client.containers.list(all=True, filters={"name": list(run_ids)}, ignore_removed=True)
        for container in left:
            with suppress(DockerException):
                container.remove(force=True)
        client.close()


def _check_template(template: str) -> None:
    try:
        words = shlex.split(template)
        parts = [part for word in words for part in string.Formatter().parse(word) if part[1] is not None]
    except ValueError as error:
        raise InputError(
            f"is no command: {error}", place="--harness-command", mend="quotes and braces pair"
        ) from None
    fields = [f"{field}{'!' if conversion else ''}{form}" for _, field, form, conversion in parts]
    for field in fields:
        if field not in PLACEHOLDERS:
            raise InputError(
                f"{{{field}}} is no placeholder", place="--harness-command", mend=nearest(field, PLACEHOLDERS)
            )
    if missing := [name for name in _NEEDED if name not in fields]:
        raise InputError(
            f"lacks {', '.join(f'{{{name}}}' for name in missing)}",
            place="--harness-command",
            mend="without, its report is not of these predictions",
        )


def _words(template: str, values: Mapping[str, str], ids: Sequence[str]) -> list[str]:
    """The command's words; a word that is {instance_ids} alone becomes one for each."""
    found: list[str] = []
    for word in shlex.split(template):
        if word == "{instance_ids}":
            found.extend(ids)
        else:
            found.append(word.format(**values, instance_ids=" ".join(ids)))
    return found


def _unsaid(ran: Ran, code: int) -> str:
    """Why nothing is said of an instance: how the harness ended, and its last words."""
    with suppress(OSError):
        lines = (ran.directory / OUTPUT).read_text("utf-8", "replace").strip().splitlines()
        said = f": {lines[-1].strip()[:200]}" if lines else ""
        return f"the harness ended with {code} and wrote no verdict{said}"
    return f"the harness ended with {code} and wrote no verdict"
