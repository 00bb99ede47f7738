"""Whether what images.lock says is still what the engine has and what the repository asks for."""

from __future__ import annotations

from collections.abc import Iterator

import docker

from orchestrator.errors import EnvironmentFault
from orchestrator.sandbox.images import cell, engine
from orchestrator.sandbox.images.builder import Layout, init_is_current
from orchestrator.sandbox.images.lock import Finding, Lock, LockedImage
from orchestrator.sandbox.images.recipe import BASE, INIT, ROOT, with_parents
from orchestrator.sandbox.images.root import load_pin


def verify(
    lock: Lock, *, layout: Layout | None = None, client: docker.DockerClient | None = None
) -> list[Finding]:
    """Compare lock, repository and engine, and run each image's version commands. No finding: all agree.

    Raises EnvironmentFault when no engine answers.
    """
    layout = layout or Layout()
    client = client or engine.connect()
    findings = list(stale(lock, layout))
    for name, locked in lock.images.items():
        findings += _in_engine(client, name, locked, _mend(name, layout))
    return findings


def not_built(lock: Lock, layout: Layout) -> list[str]:
    """The images that could be built here and are not: one who wants one CLI builds no other."""
    return [name for name in layout.recipes if name not in lock.images]


def stale(lock: Lock, layout: Layout) -> Iterator[Finding]:
    """What can be told without an engine: images made from other inputs or of another version than the
    adapter's, and what every cell needs and the lock has not."""
    recipes = layout.recipes
    needed = {it.name for it in with_parents(recipes, [name for name in (BASE, INIT) if name in recipes])}
    root = lock.images.get(ROOT)
    if root is not None and root.inputs_hash != load_pin(layout.pin).inputs_hash():
        yield Finding(ROOT, "images/base/base.pin has changed since it was made", _mend(BASE, layout))
    for name, recipe in recipes.items():
        locked = lock.images.get(name)
        if locked is None:
            if name in needed:
                yield Finding(name, "is not in images.lock", _mend(name, layout))
            continue
        missing = [parent for parent in recipe.parents.values() if parent not in lock.images]
        if missing:
            yield Finding(name, f"stands on {', '.join(missing)}, not in images.lock", _mend(name, layout))
            continue
        parents = {parent: lock.images[parent].id for parent in recipe.parents.values()}
        if locked.inputs_hash != recipe.inputs_hash(parents):
            yield Finding(name, "its files or its parent changed since it was built", _mend(name, layout))
        elif problem := recipe.version_problem(locked.versions):
            yield Finding(name, problem, _mend(name, layout))
        elif name == INIT and not init_is_current(layout, lock):
            yield Finding(name, f"{layout.init} is missing or is not the image's own", _mend(name, layout))


def _in_engine(client: docker.DockerClient, name: str, locked: LockedImage, mend: str) -> list[Finding]:
    if engine.find_image(client, locked.id) is None:
        return [Finding(name, f"the engine has no {locked.id}", mend)]
    found = []
    tagged = engine.find_image(client, locked.tag)
    if tagged is None or tagged.id != locked.id:
        problem = f"{locked.tag} is {tagged.id if tagged else 'gone'}, the lock says {locked.id}"
        found.append(Finding(name, problem, mend))
    try:
        versions = engine.read_versions(client, locked.id, locked.parent)
    except EnvironmentFault as error:
        return [*found, Finding(name, str(error), f"run `cab images build --force {name}`")]
    for tool, version in versions.items():
        if locked.versions.get(tool) != version:
            problem = f"{tool} says {version!r}, the lock {locked.versions.get(tool)!r}"
            found.append(Finding(name, problem, mend))
    return found


def _mend(name: str, layout: Layout) -> str:
    cli = name.removesuffix(cell.SUFFIX)  # which is built along with it
    return f"run `{layout.fleet.build_command([cli])}`"
