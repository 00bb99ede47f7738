"""Runs one command in one hardened container of a Docker engine, to its end."""

from __future__ import annotations

import os
import re
import shutil
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import docker
import docker.errors
import docker.utils
import requests

from orchestrator.errors import CellFault, EnvironmentFault, PinMismatch
from orchestrator.sandbox.config import config_of
from orchestrator.sandbox.contract import ContainerEnd, ContainerSpec, Mount, OutputSink, RunningContainer
from orchestrator.sandbox.control import ControlSocket, Ready, Started
from orchestrator.sandbox.output import OutputReader
from orchestrator.sandbox.steered import LINE_GRACE_S, Steered

ENGINE_TIMEOUT_S = 60.0
START_TIMEOUT_S = 60.0
REMOVAL_TIMEOUT_S = 60.0
# Between creating and starting a container of a living runner lie milliseconds.
STILLBORN_AFTER_S = 600.0

_IMAGE_ID = re.compile(r"sha256:[0-9a-f]{64}")

# Exit codes of images/init where it ends without `end`.
_MODEL_LOST, _KILLED = "11", "137"
_DEATHS = {
    "10": "PID 1 lost the control line",
    "12": "PID 1 found its container unfit to run in",
    _KILLED: "the container was killed from outside",
}


class DockerSandbox:
    """`Sandbox` on a Docker engine. One object serves all threads.

    `init` is the static binary of `images/init`. Raises EnvironmentFault when there is no engine, no
    permission to use it, or no `init`.
    """

    def __init__(self, init: Path) -> None:
        if not init.is_file():
            raise EnvironmentFault(
                "cab's PID 1 is missing", place=str(init), mend="run `cab images build init`"
            )
        self._init = init
        try:
            self._api: Any = docker.APIClient(
                version="auto", timeout=int(ENGINE_TIMEOUT_S), **docker.utils.kwargs_from_env()
            )
        except docker.errors.DockerException as error:
            raise no_engine(error) from error
        # Else each call reads the environment for proxies, which an engine's socket has none of: a third of
        # the processor time of a call.
        self._api.trust_env = False

    def close(self) -> None:
        self._api.close()

    def inside(self, mount: Mount) -> str:
        """What a container calls a mount."""
        return mount.target

    def run(
        self,
        spec: ContainerSpec,
        *,
        sink: OutputSink | None = None,
        on_start: Callable[[RunningContainer], None] | None = None,
    ) -> ContainerEnd:
        """Runs `spec` to its end; all its output was handed to `sink` before this returns.

        `spec.run_dir` exists and the container's uid may enter it. `on_start` gets the container once its
        command runs; the clock of its limit is a state, not a count: two pauses need one resume.

        Raises CellFault("engine" | "gateway"), NotStarted where the command is the cause, PinMismatch,
        EnvironmentFault (no such image, no socket for the uid), and what `sink` or `on_start` raise; then
        nothing of the container runs.
        """
        if not _IMAGE_ID.fullmatch(spec.image_id or ""):
            raise PinMismatch(
                f"{spec.image_id!r} is no image id",
                place=spec.name,
                mend="pin the image by its bare sha256:… id",
            )
        shutil.copyfile(self._init, spec.run_dir / "init")
        (spec.run_dir / "init").chmod(0o555)
        run = _Run(self._api, spec)
        try:
            return run.to_the_end(sink, on_start)
        finally:
            run.close()

    @property
    def answers(self) -> bool:
        """Whether the engine answers at this moment."""
        try:
            with _engine("ping"):
                return bool(self._api.ping())
        except CellFault:
            return False

    @property
    def engine_version(self) -> str:
        with _engine("asking for the version"):
            return str(self._api.version()["Version"])

    def has_image(self, image_id: str) -> bool:
        """Whether the engine holds this image."""
        with _engine(image_id):
            try:
                self._api.inspect_image(image_id)
            except docker.errors.ImageNotFound:
                return False
        return True

    def remove_leftovers(self, labels: dict[str, str]) -> list[str]:
        """Ends and removes all containers with these labels; returns their names once they are gone.

        Raises CellFault("engine") when the engine does not answer or a container will not go.
        """
        if not labels:
            raise ValueError("without a label, every container of the machine would be removed")
        wanted = {"label": [f"{key}={value}" for key, value in labels.items()]}
        names: set[str] = set()
        deadline = time.monotonic() + REMOVAL_TIMEOUT_S
        while True:
            with _engine("removing leftovers"):
                found = self._api.containers(all=True, filters=wanted)
            if not found:
                return sorted(names)
            if time.monotonic() > deadline:
                raise CellFault(
                    "engine", f"{len(found)} containers cannot be removed", place=found[0]["Names"][0]
                )
            for container in found:
                names.add(container["Names"][0].lstrip("/"))
                _remove(self._api, container["Id"])
            # A removal that was under way already can only be waited for.
            time.sleep(0.02)

    def remove_stillborn(self, label: str, older_than_s: float = STILLBORN_AFTER_S) -> None:
        """Removes containers with a label that were created that long ago and never started: their runner
        died between the two, and nothing in them could notice.
        """
        with _engine("removing leftovers"):
            found = self._api.containers(all=True, filters={"label": [label], "status": ["created"]})
            for container in found:
                if time.time() - container["Created"] > older_than_s:
                    _remove(self._api, container["Id"])


class _Run(Steered):
    """One container from its creation to its end. Is its own `RunningContainer`."""

    def __init__(self, api: Any, spec: ContainerSpec) -> None:
        super().__init__(spec)
        self._api = api
        self._container: str | None = None
        self._control: ControlSocket | None = None

    # ---- the run ----

    def to_the_end(
        self, sink: OutputSink | None, on_start: Callable[[RunningContainer], None] | None
    ) -> ContainerEnd:
        self._control = ControlSocket(self._spec.run_dir, self._spec.user)
        self._create()
        self._start(sink)
        deadline = time.monotonic() + START_TIMEOUT_S
        self._accept(self._control, deadline)
        heard = self._expect(Ready, deadline).names
        self._send("go")
        self._started = self._expect(Started, deadline).at
        if on_start is not None:
            on_start(self)
        end = self._ended(heard=heard)
        self._send("bye")
        self._finish_output()
        self._container = None  # the engine removes it
        return end

    def close(self) -> None:
        """Leaves nothing: a container that did not come to its end is removed by force."""
        if self._control is not None:
            self._control.close()
        if self._line is not None:
            self._line.close()
        if self._container is not None:
            _remove(self._api, self._container)
        if self._output is not None:
            self._output.stop(0)
        self._wake.close()

    def _create(self) -> None:
        spec = self._spec
        with _engine(spec.name):
            try:
                created = self._api.create_container_from_config(config_of(spec), spec.name)
            except docker.errors.ImageNotFound as error:
                raise EnvironmentFault(
                    f"the engine has no image {spec.image_id}", place=spec.name, mend="run `make setup`"
                ) from error
            self._container = created["Id"]
            actual = self._api.inspect_container(self._container)["Image"]
        if actual != spec.image_id:
            raise PinMismatch(
                f"the engine would run {actual} instead of the pinned {spec.image_id}",
                place=spec.name,
                mend="run `make setup` to resolve the pins again",
            )

    def _start(self, sink: OutputSink | None) -> None:
        with _engine(self._spec.name):
            attached = self._api.attach_socket(self._container, {"stdout": 1, "stderr": 1, "stream": 1})
            # The SDK's own object carries the SDK's time-out, and an agent may be silent for longer.
            stream = socket.socket(fileno=os.dup(attached.fileno()))
            attached._response.close()  # which the SDK leaves to the garbage collector
            stream.settimeout(None)
            self._output = OutputReader(
                stream, tty=self._spec.tty is not None, sink=sink, notify=self._wake.set
            )
            self._output.start()
            self._api.start(self._container)

    def _accept(self, control: ControlSocket, deadline: float) -> None:
        while self._line is None:
            self._raise_sink_error()
            self._line = control.accept(self._until(deadline), self._wake)
            if self._line is None:
                self._check(deadline)

    def _broken(self) -> CellFault:
        """Why the control line or the output ended before the command did, by the engine's own account."""
        try:
            exit_code, oom = self._obituary()
        except (docker.errors.DockerException, requests.exceptions.RequestException) as error:
            return CellFault("engine", f"the engine went away: {_reason(error)}", place=self._spec.name)
        if exit_code is None:
            return CellFault("engine", "the engine dropped a container that still ran", place=self._spec.name)
        if exit_code == _MODEL_LOST:
            return CellFault(
                "gateway", "the gateway ended its connection to the container", place=self._spec.name
            )
        text = _DEATHS.get(exit_code, f"PID 1 exited with {exit_code}")
        if oom and exit_code == _KILLED:
            text = (
                f"PID 1 was killed: the container's {self._spec.limits.memory_bytes} bytes of memory ran out"
            )
        return CellFault("engine", text, place=self._spec.name)

    def _obituary(self) -> tuple[str | None, bool]:
        """The exit code of the container (None: it runs) and whether the engine saw its memory run out.

        From the engine's recent events, for the container removes itself. A death is told a little later than
        its connections end.
        """
        filters = {"container": self._container, "event": ["oom", "die"]}
        give_up = time.monotonic() + LINE_GRACE_S
        while True:
            events = list(self._api.events(since=1, until=f"{time.time():.9f}", filters=filters, decode=True))
            codes = [e["Actor"]["Attributes"]["exitCode"] for e in events if e["Action"] == "die"]
            if codes or time.monotonic() > give_up:
                return codes[0] if codes else None, any(e["Action"] == "oom" for e in events)
            time.sleep(0.05)


@contextmanager
def _engine(place: str) -> Iterator[None]:
    """Turns what the SDK raises into cab's errors."""
    try:
        yield
    except docker.errors.APIError as error:
        raise CellFault("engine", f"the engine refused: {_reason(error)}", place=place) from error
    except (docker.errors.DockerException, requests.exceptions.RequestException) as error:
        raise CellFault("engine", f"the engine does not answer: {_reason(error)}", place=place) from error


def _remove(api: Any, container: str) -> None:
    """Ends and removes a container; one that is gone or going already is fine."""
    with _engine(container[:12]):
        try:
            api.remove_container(container, force=True, v=True)
        except docker.errors.APIError as error:
            if error.status_code not in {404, 409}:
                raise


def _reason(error: Exception) -> str:
    explanation = getattr(error, "explanation", None)
    return (
        str(explanation or error).strip().splitlines()[0]
        if str(explanation or error).strip()
        else repr(error)
    )


def no_engine(error: Exception) -> EnvironmentFault:
    """What is said, everywhere, where no engine answers."""
    text = str(error)
    if "Permission denied" in text or "PermissionError" in text:
        return EnvironmentFault(
            "no permission to use the Docker engine", mend="run as root or as a member of the group docker"
        )
    host = os.environ.get("DOCKER_HOST")
    return EnvironmentFault(
        f"no Docker engine answers at {host or 'the default socket'}",
        mend="unset DOCKER_HOST, or start the engine it names" if host else "run `make setup`",
    )
