"""Which images a sweep runs, and digests that decide, on a resume, whether stored cells may stand beside new
ones.

A call needs the images of the CLIs that it is about, the base image and PID 1, and no other: a sweep that was
started for some of its CLIs (`--only`) is pinned to the images of these. The others are pinned by the first
call that is about them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.adapter import Adapter
from orchestrator.errors import EnvironmentFault, PinMismatch
from orchestrator.fleet import Fleet
from orchestrator.paths import IMAGES_LOCK
from orchestrator.store.reproduce import CellImage

if TYPE_CHECKING:
    from orchestrator.sandbox.docker import DockerSandbox
    from orchestrator.sandbox.images import Lock

BASE, INIT = "base", "init"
"""The names of the base image, in which tasks are graded, whatever CLI ran, and of PID 1's."""


def to_build(lock: Lock, adapters: Mapping[str, Adapter], init: Path) -> dict[str, str | None]:
    """Which images cells of these CLIs need and this machine has not, or not fit to run, by name: how it
    differs from its adapter, None where it is not there at all. `init` is where PID 1 is laid out.
    """
    from orchestrator.sandbox.images.lock import version_problem

    found: dict[str, str | None] = {}
    for name in sorted({BASE, *adapters}):
        if name not in lock.images:
            found[name] = None
        elif name in adapters and (problem := version_problem(adapters[name], lock.image(name).versions)):
            found[name] = problem
    return found if init.is_file() else found | {INIT: None}


def resolve(lock: Lock, adapters: Mapping[str, Adapter], init: Path, fleet: Fleet) -> dict[str, str]:
    """The locked ids of these CLIs' images and of the verifier's.

    Raises EnvironmentFault that names each image that is not locked, or told another version than its
    adapter's, and the command that builds them.
    """
    if wanting := to_build(lock, adapters, init):
        gone = [repr(name) for name, problem in wanting.items() if problem is None]
        problems = [f"no image {', '.join(gone)}"] if gone else []
        problems += [problem for problem in wanting.values() if problem is not None]
        one = len(wanting) == 1 and not gone
        raise EnvironmentFault(
            "; ".join(problems),
            place=f"image {next(iter(wanting))}" if one else "images.lock",
            mend=f"run `{fleet.build_command(wanting)}`",
        )
    return {name: lock.image(name).id for name in sorted({BASE, *adapters})}


def with_late(
    pins: Mapping[str, str], lock: Lock, adapters: Mapping[str, Adapter], init: Path, fleet: Fleet
) -> dict[str, str]:
    """The pins of a stored sweep, with those of the CLIs that no call was about before.

    Raises EnvironmentFault as `resolve` does, and for an image that was not built anew on what it stands on;
    PinMismatch where it would stand on another base than the one that the sweep is graded in.
    """
    late = {name: adapter for name, adapter in adapters.items() if name not in pins}
    if not late:
        return dict(pins)
    found = resolve(lock, late, init, fleet)
    for name in late:
        if lock.stands_on(name, pins[BASE]):
            continue
        if found[BASE] == pins[BASE]:
            raise EnvironmentFault(
                f"{found[name]} does not stand on the base image, or on what lies between as it is now",
                place=f"image {name}",
                mend=f"run `{fleet.build_command([name])}`",
            )
        raise PinMismatch(
            f"{found[name]} does not stand on {pins[BASE]}, the base image that the sweep is pinned to; "
            f"images.lock has {found[BASE]}",
            place=f"image {name}",
            mend="start a new sweep with --id",
        )
    return {**pins, **{name: found[name] for name in late}}


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
    from orchestrator.sandbox.images import known_lock
    from orchestrator.sandbox.images.cell import CELL, child_name

    locked = known_lock(lock_file).images
    carrier, found = locked.get(CELL), {}
    for name, pin in pins.items():
        child = locked.get(child_name(name))
        if child is not None and child.parent == pin:
            same = carrier is not None and carrier.id == child.cell
            tasks = carrier.tasks if carrier is not None and same else None
            # Of a child whose tasks are not known the command mounts the task.
            found[name] = CellImage(child.id, tasks or {}, child.manifests)
    return found


def check_images(sandbox: DockerSandbox, pins: Mapping[str, str], fleet: Fleet) -> None:
    """Refuse to run another image than a pinned one.

    Raises PinMismatch that names both ids, or EnvironmentFault that names all that the engine lacks, where
    images.lock has the same.
    """
    from orchestrator.sandbox.images import known_lock

    gone = {name: pin for name, pin in pins.items() if not sandbox.has_image(pin)}
    if not gone:
        return
    lock = known_lock(IMAGES_LOCK)
    for name, pin in gone.items():
        locked = lock.images.get(name)
        if locked is None or locked.id != pin:
            raise PinMismatch(
                f"the sweep is pinned to {pin}, which this engine has no more; images.lock has "
                f"{locked.id if locked else 'none'}",
                place=f"image {name}",
                mend="load the pinned image, or start a new sweep with --id",
            )
    raise EnvironmentFault(
        f"images.lock has {', '.join(gone.values())}, which this engine has not, or no more",
        place=f"image {', '.join(gone)}",
        mend=f"run `{fleet.build_command(gone)}`; an id that comes out otherwise wants a new sweep",
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
