"""Whether what images.lock says is still what the engine has and what the repository asks for."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import docker

from orchestrator.errors import EnvironmentFault
from orchestrator.sandbox.images import cell, differ, engine
from orchestrator.sandbox.images.keep import INPUTS_LABEL, init_is_current
from orchestrator.sandbox.images.layout import Layout
from orchestrator.sandbox.images.lock import Finding, Lock, LockedImage
from orchestrator.sandbox.images.recipe import BASE, INIT, ROOT, Recipe, buildable, with_parents
from orchestrator.sandbox.images.registry import with_root
from orchestrator.sandbox.images.root import load_pin


def verify(
    lock: Lock,
    names: Sequence[str] | None = None,
    *,
    layout: Layout | None = None,
    client: docker.DockerClient | None = None,
) -> list[Finding]:
    """Compare lock, repository and engine, and run each image's version commands; of the named images and
    what they stand on, or of all. No finding: all agree.

    Raises EnvironmentFault when no engine answers, InputError for a name that is not there.
    """
    layout = layout or Layout()
    client = client or engine.connect()
    asked = with_root(layout.recipes, names, lock.images, layout.fleet.unavailable) if names else None
    findings = list(stale(lock, layout, asked))
    for name, locked in lock.images.items():
        if asked is None or name in asked:
            findings += _in_engine(client, name, locked, layout)
    return findings


def not_built(lock: Lock, layout: Layout) -> list[str]:
    """The images that could be built here and are not: one who wants one CLI builds no other."""
    return [name for name in layout.recipes if name not in lock.images]


def stale(lock: Lock, layout: Layout, asked: Collection[str] | None = None) -> Iterator[Finding]:
    """What can be told without an engine, of the images that are asked for or of all: those made from other
    inputs or of another version than the adapter's, and what the lock has not, though it is asked for or
    every cell needs it.
    """
    recipes = layout.recipes
    needed = {it.name for it in with_parents(recipes, [name for name in (BASE, INIT) if name in recipes])}
    if asked is not None:
        needed = set(asked)
        recipes = {name: recipe for name, recipe in recipes.items() if name in needed}
    root = lock.images.get(ROOT)
    if root is not None and root.inputs_hash != (pin := load_pin(layout.pin)).inputs_hash():
        fields = ", ".join(differ.changed_inputs(root.inputs, pin.inputs())) if root.inputs else ""
        problem = "images/base/base.pin has changed since it was made"
        yield Finding(ROOT, f"{problem}: {fields}" if fields else problem, _mend(ROOT, layout))
    for name, recipe in recipes.items():
        locked = lock.images.get(name)
        if locked is None:
            if name in needed:
                yield Finding(name, "is not in images.lock", _mend(name, layout))
            continue
        yield from _stale(lock, layout, recipe, locked)


def _stale(lock: Lock, layout: Layout, recipe: Recipe, locked: LockedImage) -> Iterator[Finding]:
    name, mend = recipe.name, _mend(recipe.name, layout)
    missing = [parent for parent in recipe.parents.values() if parent not in lock.images]
    if missing:
        yield Finding(name, f"stands on {', '.join(missing)}, not in images.lock", mend)
        return
    parents = {parent: lock.images[parent].id for parent in recipe.parents.values()}
    if locked.inputs_hash != recipe.inputs_hash(parents):
        why = differ.of_inputs(locked, recipe.inputs(parents), layout)
        yield Finding(name, why.why, mend, why.packages)
    if problem := recipe.version_problem(locked.versions):
        yield Finding(name, problem, mend)
    if name == INIT and not init_is_current(layout, lock):
        yield Finding(name, f"{layout.init} is missing or is not the image's own", mend)


def _in_engine(client: docker.DockerClient, name: str, locked: LockedImage, layout: Layout) -> list[Finding]:
    mend = _mend(name, layout)
    found = []
    image, tagged = engine.find_image(client, locked.id), engine.find_image(client, locked.tag)
    if image is None:
        pull = f", or `cab images pull {buildable(name)}`" if locked.manifests else ""
        found.append(Finding(name, f"the engine has no {locked.id}", f"{mend}{pull}"))
    if tagged is not None and tagged.id != locked.id:
        other = differ.of_image(layout, client, name, locked, tagged)
        problem = f"{locked.tag} is {tagged.id}, the lock says {locked.id}: {other.why}"
        found.append(Finding(name, problem, mend, other.packages))
    if image is None:
        return found
    if tagged is None:
        found.append(Finding(name, f"{locked.tag} is gone, the lock says {locked.id}", mend))
    made_from = image.labels.get(INPUTS_LABEL, locked.inputs_hash)
    if made_from != locked.inputs_hash:
        problem = f"was made from inputs {made_from[:12]}, the lock says {locked.inputs_hash[:12]}"
        found.append(Finding(name, problem, f"run `cab images lock {name}`"))
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
    # A CLI's image for run-cell is built with the CLI's own.
    return f"run `{layout.fleet.build_command([buildable(name).removesuffix(cell.SUFFIX)])}`"
