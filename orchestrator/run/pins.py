"""Which images a sweep runs, and digests that decide, on a resume, whether stored cells may stand beside new
ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.adapter import Adapter
from orchestrator.errors import EnvironmentFault, PinMismatch
from orchestrator.paths import IMAGES_LOCK
from orchestrator.store.reproduce import CellImage

if TYPE_CHECKING:
    from orchestrator.sandbox.docker import DockerSandbox
    from orchestrator.sandbox.images import Lock

BASE = "base"
"""The name of the base image: tasks are graded in it, whatever CLI ran."""


def resolve(lock: Lock, adapters: Mapping[str, Adapter]) -> dict[str, str]:
    """The locked ids of these CLIs' images and of the verifier's.

    Raises EnvironmentFault for an image that is not locked, or told another version than its adapter's.
    """
    from orchestrator.sandbox.images.lock import version_problem

    for name, adapter in adapters.items():
        if problem := version_problem(adapter, lock.image(name).versions):
            raise EnvironmentFault(problem, place=f"image {name}", mend=f"run `cab images build {name}`")
    return {name: lock.image(name).id for name in sorted({BASE, *adapters})}


def tags_of(pins: Mapping[str, str], lock_file: Path) -> dict[str, str]:
    """The tag that each pinned image has: the lock's, or its pin's own where the lock has moved on."""
    from orchestrator.sandbox.images.lock import Lock, load_lock, pin_tag

    try:
        locked = load_lock(lock_file).images
    except EnvironmentFault:
        locked = Lock().images
    named = {image.id: image.tag for image in locked.values()}
    return {name: named.get(pin) or pin_tag(pin) for name, pin in pins.items()}


def cell_images(pins: Mapping[str, str], lock_file: Path) -> dict[str, CellImage]:
    """By CLI the image for run-cell that stands on its pinned one; without those that are not built of it."""
    from orchestrator.sandbox.images.cell import CELL, child_name
    from orchestrator.sandbox.images.lock import load_lock

    try:
        locked = load_lock(lock_file).images
    except EnvironmentFault:
        return {}
    carrier, found = locked.get(CELL), {}
    for name, pin in pins.items():
        child = locked.get(child_name(name))
        if child is not None and child.parent == pin:
            same = carrier is not None and carrier.id == child.cell
            tasks = carrier.tasks if carrier is not None and same else None
            # Of a child whose tasks are not known the command mounts the task.
            found[name] = CellImage(child.id, tasks or {}, child.manifests)
    return found


def check_images(sandbox: DockerSandbox, pins: Mapping[str, str]) -> None:
    """Refuse to run another image than a pinned one.

    Raises EnvironmentFault where the engine lacks what images.lock has, else PinMismatch that names both ids.
    """
    from orchestrator.sandbox.images import load_lock

    for name, pin in pins.items():
        if sandbox.has_image(pin):
            continue
        locked = load_lock(IMAGES_LOCK).images.get(name)
        if locked is not None and locked.id == pin:
            raise EnvironmentFault(
                f"images.lock has {pin}, which this engine has not, or no more",
                place=f"image {name}",
                mend=f"run `cab images build {name}`; an id that comes out otherwise wants a new sweep",
            )
        raise PinMismatch(
            f"the sweep is pinned to {pin}, which this engine has no more; images.lock has "
            f"{locked.id if locked else 'none'}",
            place=f"image {name}",
            mend="load the pinned image, or start a new sweep with --id",
        )


def check_same(what: str, stored: Mapping[str, str], now: Mapping[str, str]) -> None:
    """Refuse to go on with a task or adapter that has changed. Raises PinMismatch that names both digests."""
    for name, digest in stored.items():
        if now.get(name) != digest:
            raise PinMismatch(
                f"the sweep was started with {digest}, and it is {now.get(name, 'gone')} now",
                place=f"{what} {name}",
                mend="undo the change, or start a new sweep with --id",
            )
