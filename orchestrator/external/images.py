"""Images of the repositories that cab carries, made on demand from cab's base image.

An image's label tells the digest of all that it is made of; it is built again only when that changed.
"""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path

import docker

from orchestrator.errors import EnvironmentFault
from orchestrator.external.suites import SWEBENCH
from orchestrator.external.tasks import ExternalTask
from orchestrator.paths import IMAGES, IMAGES_LOCK
from orchestrator.sandbox.images import engine, load_lock
from orchestrator.sandbox.images.host import HostAccess, read_host
from orchestrator.sandbox.images.recipe import BASE
from orchestrator.sandbox.images.root import load_pin
from orchestrator.task_files import content_hash, task_files

TESTBED = SWEBENCH / "testbed"
INPUTS_LABEL = "cab.swe.inputs"
_DOWNLOAD_S = 300


def ensure_images(
    tasks: Iterable[ExternalTask], logs: Path, say: Callable[[str], None] = lambda _: None
) -> None:
    """Build the images of carried tasks that are missing or made of something else; others are left alone.

    Logs of builds go to the directory `logs`. Raises EnvironmentFault where no engine answers, the base image
    is not built, or a build fails.
    """
    wanted = {task.image: task for task in tasks if task.source is not None and task.image is not None}
    if not wanted:
        return
    client = engine.connect()
    base = load_lock(IMAGES_LOCK).image(BASE).id
    for name, task in wanted.items():
        inputs = _inputs(task, base)
        found = engine.find_image(client, name)
        if found is None or found.labels.get(INPUTS_LABEL) != inputs:
            say(f"building {name}")
            _build(client, name, task, base, inputs, logs)


def _inputs(task: ExternalTask, base: str) -> str:
    assert task.source is not None
    parts = [base, task.base_commit, content_hash(TESTBED), content_hash(task.source)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _build(
    client: docker.DockerClient, name: str, task: ExternalTask, base: str, inputs: str, logs: Path
) -> None:
    assert task.source is not None
    host = _host()
    files = {"Dockerfile": (TESTBED / "Dockerfile").read_bytes()}
    files |= {f"host/{path}": content for path, content in host.files().items()}
    files |= {f"wheels/{path}": content for path, content in _wheels().items()}
    logs.mkdir(parents=True, exist_ok=True)
    log = logs / f"{task.repo.replace('/', '-')}.log"
    try:
        built = engine.build(
            client,
            _context(files, task.source),
            name=name,
            arguments={"BASE": base, "COMMIT": task.base_commit, **host.proxies},
            labels={INPUTS_LABEL: inputs},
            use_cache=True,
            log=log,
            say=lambda _: None,
            hear=lambda _: None,
        )
    except EnvironmentFault as error:
        raise EnvironmentFault(error.thing, place=str(log), mend="see the end of that file") from error
    client.images.get(built.image_id).tag(name)


def _context(files: Mapping[str, bytes], repo: Path) -> bytes:
    """A build context: files, and the repository's tree below `repo/`. Owners and times are fixed."""
    buffer = io.BytesIO()

    def add(name: str, content: bytes, mode: int = 0o644) -> None:
        member = tarfile.TarInfo(name)
        member.size, member.mode = len(content), mode
        tar.addfile(member, io.BytesIO(content))

    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, content in sorted(files.items()):
            add(name, content)
        for path in task_files(repo):
            executable = path.stat().st_mode & 0o100
            add(f"repo/{path.relative_to(repo)}", path.read_bytes(), 0o755 if executable else 0o644)
    return buffer.getvalue()


@cache
def _host() -> HostAccess:
    return read_host(load_pin(IMAGES / BASE / "base.pin").suite, os.environ)


@cache
def _wheels() -> Mapping[str, bytes]:
    """What runs tests in the images, from the machine's own index, each checked by its hash."""
    with tempfile.TemporaryDirectory(prefix="cab-wheels-") as scratch:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
        command += ["--only-binary=:all:", "--no-deps", "--require-hashes", "--dest", scratch]
        command += ["--requirement", str(TESTBED / "requirements.txt")]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_DOWNLOAD_S, check=False)
        except subprocess.TimeoutExpired:
            raise _no_wheels(f"nothing came for {_DOWNLOAD_S} s") from None
        if done.returncode != 0:
            raise _no_wheels(next(reversed(done.stderr.strip().splitlines()), "pip failed"))
        return {path.name: path.read_bytes() for path in Path(scratch).iterdir()}


def _no_wheels(said: str) -> EnvironmentFault:
    return EnvironmentFault(
        f"what runs the tests of carried repositories cannot be fetched: {said}",
        place=str(TESTBED / "requirements.txt"),
        mend="see that pip reaches its index, then give the same command again",
    )
