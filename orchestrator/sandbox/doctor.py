"""The checks of `cab doctor`. All that they ask of the machine is in `Machine`, so that tests can answer."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from orchestrator.errors import EnvironmentFault
from orchestrator.sandbox.images import Layout, engine, load_lock, not_built, stale
from orchestrator.sandbox.images.recipe import BASE, ROOT

SOCKET = Path("/var/run/docker.sock")
NEEDED_DISK_BYTES = 10 << 30
"""Free space that a build of the images of `make setup` takes at its peak, with room for a few cells."""

_OLDEST_PYTHON = (3, 11)


@dataclass(frozen=True)
class Check:
    """One thing that was looked at. `missing`: sweeps cannot run. `note`: they can, less well."""

    name: str
    state: Literal["ok", "note", "missing"]
    found: str
    mend: str = ""


def _engine_info() -> dict[str, Any]:
    info: dict[str, Any] = engine.connect().info()
    return info


def _has_image(image_id: str) -> bool:
    return engine.find_image(engine.connect(), image_id) is not None


def _git_version() -> str | None:
    git = shutil.which("git")
    return (
        subprocess.run([git, "--version"], capture_output=True, text=True, check=True).stdout.strip()
        if git
        else None
    )


@dataclass(frozen=True)
class Machine:
    """All that the checks ask of this machine. `engine_info` raises EnvironmentFault when none answers;
    `has_image` is only asked where one does.
    """

    env: Mapping[str, str] = field(default_factory=lambda: os.environ)
    layout: Layout = field(default_factory=Layout)
    python: tuple[int, ...] = field(
        default_factory=lambda: tuple(map(int, platform.python_version_tuple()[:2]))
    )
    system: str = field(default_factory=platform.system)
    is_root: bool = field(default_factory=lambda: os.geteuid() == 0)
    engine_info: Callable[[], dict[str, Any]] = _engine_info
    has_image: Callable[[str], bool] = _has_image
    may_use_socket: Callable[[], bool | None] = lambda: (
        os.access(SOCKET, os.R_OK | os.W_OK) if SOCKET.exists() else None
    )
    has_loop_device: Callable[[], bool] = lambda: Path("/dev/loop-control").exists()
    has_command: Callable[[str], bool] = lambda name: shutil.which(name) is not None
    free_bytes: Callable[[Path], int] = lambda path: shutil.disk_usage(path).free
    git_version: Callable[[], str | None] = _git_version


def examine(machine: Machine) -> list[Check]:
    """All checks, in the order in which a person would mend them."""
    engine_check = _engine(machine)
    answers = engine_check.state != "missing"
    return [
        _python(machine),
        _git(machine),
        engine_check,
        _scratch(machine),
        _disk(machine),
        _images(machine) if answers else Check("images", "note", "not checked: no engine answers"),
        _endpoint(machine),
        _telemetry(machine),
    ]


def _python(machine: Machine) -> Check:
    found = ".".join(map(str, machine.python))
    if machine.python < _OLDEST_PYTHON:
        return Check("python", "missing", found, "install Python 3.11 or newer")
    return Check("python", "ok", found)


def _git(machine: Machine) -> Check:
    version = machine.git_version()
    if version is None:
        return Check("git", "missing", "not installed", "install git")
    return Check("git", "ok", version.removeprefix("git version "))


def _engine(machine: Machine) -> Check:
    if machine.system != "Linux":
        return Check(
            "engine", "missing", f"containers of cab's need Linux, not {machine.system}", "use Linux"
        )
    if not machine.env.get("DOCKER_HOST") and machine.may_use_socket() is False:
        mend = "add yourself to the group docker and log in again, or be root"
        return Check("engine", "missing", f"no permission on {SOCKET}", mend)
    try:
        info = machine.engine_info()
    except EnvironmentFault as error:
        return Check("engine", "missing", error.thing, error.mend)
    found = (
        f"{info.get('ServerVersion')}, storage driver {info.get('Driver')}, "
        f"cgroup v{info.get('CgroupVersion', '1')}, {info.get('NCPU')} CPUs"
    )
    lacking = [name for key, name in (("MemoryLimit", "memory"), ("PidsLimit", "pids")) if not info.get(key)]
    if lacking:
        mend = "start the machine with that cgroup controller on"
        return Check("engine", "missing", f"{found}; it cannot limit {', '.join(lacking)}", mend)
    return Check("engine", "ok", found)


def _scratch(machine: Machine) -> Check:
    if not machine.is_root:
        return Check("scratch", "note", "unbounded: not root", "be root to bound what a cell may write")
    if not machine.has_loop_device():
        return Check("scratch", "note", "unbounded: no loop devices", "`modprobe loop`")
    lacking = [name for name in ("mkfs.ext4", "mount", "umount") if not machine.has_command(name)]
    if lacking:
        return Check("scratch", "note", f"unbounded: no {', '.join(lacking)}", "install e2fsprogs and mount")
    return Check("scratch", "ok", "bounded by loop-mounted ext4")


def _disk(machine: Machine) -> Check:
    free = machine.free_bytes(machine.layout.repo)
    found = f"{free / (1 << 30):.0f} GiB free"
    if free < NEEDED_DISK_BYTES:
        return Check("disk", "note", found, f"images and cells want {NEEDED_DISK_BYTES >> 30} GiB")
    return Check("disk", "ok", found)


def _images(machine: Machine) -> Check:
    try:
        lock = load_lock(machine.layout.lock)
    except EnvironmentFault as error:
        return Check("images", "missing", error.thing, error.mend)
    recipes = machine.layout.recipes
    for_sweeps = {ROOT, *(name for name, recipe in recipes.items() if not recipe.for_run_cell)}
    findings = [finding for finding in stale(lock, machine.layout) if finding.image in for_sweeps]
    if findings:
        found = "; ".join(f"{finding.image} {finding.problem}" for finding in findings)
        stale_ones = dict.fromkeys(BASE if it.image == ROOT else it.image for it in findings)
        return Check("images", "missing", found, f"run `cab images build {' '.join(stale_ones)}`")
    # What sweeps run: parents of images, and the image that PID 1 is copied from, may be gone.
    run = [
        name
        for name, recipe in recipes.items()
        if name in lock.images and name in for_sweeps and (recipe.adapter or name == BASE)
    ]
    if gone := [name for name in run if not machine.has_image(lock.image(name).id)]:
        found = f"the engine has not, or no more, what images.lock has as {', '.join(gone)}"
        return Check("images", "missing", found, f"run `cab images build {' '.join(gone)}`")
    found = f"{len(lock.images)} in images.lock, all current; PID 1 is in place"
    if base := lock.images.get(BASE):
        found += f"; base has {base.tools}"
    if names := not_built(lock, machine.layout):
        found += f"; not built: {', '.join(names)}"
    for name, reason in machine.layout.fleet.unavailable.items():
        found += f"; {name} cannot be had: {reason}"
    return Check("images", "ok", found)


def _endpoint(machine: Machine) -> Check:
    lacking = [name for name in ("CAB_ENDPOINT", "CAB_KEY") if not machine.env.get(name)]
    if lacking:
        found = f"{' and '.join(lacking)} not set: hosted models are skipped, embedded ones run"
        return Check("endpoint", "note", found)
    return Check("endpoint", "ok", "CAB_ENDPOINT and CAB_KEY are set")


def _telemetry(machine: Machine) -> Check:
    names = sorted(name for name in machine.env if name.startswith("OTEL_"))
    exporting = any(name.startswith("OTEL_EXPORTER_OTLP") and name.endswith("ENDPOINT") for name in names)
    found = f"spans go to files{' and OTLP' if exporting else ''}"
    return Check("telemetry", "ok", f"{found}; set: {', '.join(names)}" if names else found)
