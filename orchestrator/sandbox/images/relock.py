"""Resolving images.lock anew from what the engine has, without building or pulling."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import docker

from orchestrator.errors import NotAllPulled
from orchestrator.sandbox.images import engine
from orchestrator.sandbox.images.keep import Keeper
from orchestrator.sandbox.images.layout import Layout
from orchestrator.sandbox.images.lock import Lock
from orchestrator.sandbox.images.progress import Progress, Teller, ignore
from orchestrator.sandbox.images.recipe import ROOT, Recipe, buildable
from orchestrator.sandbox.images.registry import with_root
from orchestrator.sandbox.images.root import load_pin


def relock(
    names: Sequence[str] | None = None,
    *,
    on_progress: Callable[[Progress], None] = ignore,
    layout: Layout | None = None,
    client: docker.DockerClient | None = None,
) -> Lock:
    """Lock the images of this checkout's inputs that the engine has, with the digests that it knows of them.

    The named ones (all when None) and what they stand on. An image that the engine does not have keeps its
    place in images.lock, since it may be pulled by that.
    Raises NotAllPulled where one that is named, or below it, or with no names one that was locked, is not
    there.
    """
    layout = layout or Layout()
    recipes = layout.recipes
    wanted = with_root(recipes, names, unavailable=layout.fleet.unavailable)
    client = client or engine.connect()
    tell = Teller(on_progress, wanted)
    lacking: list[str] = []
    with layout.one_at_a_time():
        keeper = Keeper(layout, client)
        asked = keeper.lock.images.keys() if names is None else set(with_root(recipes, names, ()))
        for name in wanted:
            parents = recipes[name].parents.values() if name in recipes else ()
            if lacking_below := [parent for parent in parents if parent in lacking]:
                problem = f"stands on {lacking_below[0]}, which the engine does not have"
            elif _found(keeper, layout, recipes.get(name)):
                tell(name, "current", keeper.lock.image(name).tag)
                continue
            else:
                problem = "the engine has none that was made from these inputs"
            tell(name, "passed_over", problem)
            lacking.append(name)
    if missed := [name for name in lacking if name in asked]:
        build = f"run `cab images build {' '.join(map(buildable, missed))}`"
        raise NotAllPulled(
            f"the engine does not have {', '.join(missed)} of this checkout's inputs",
            place="images.lock",
            mend=f"{build}, or `cab images pull` where they were pushed",
        )
    return keeper.lock


def _found(keeper: Keeper, layout: Layout, recipe: Recipe | None) -> bool:
    """Lock an image, the root file system where it has no recipe; whether there is one."""
    if recipe is None:
        pin = load_pin(layout.pin)
        if not (keeper.is_current(ROOT, pin.inputs_hash()) or keeper.adopt_root(pin)):
            return False
        keeper.complete(ROOT, pin.inputs())
        return True
    parents = keeper.parents(recipe)
    if not (keeper.is_locked(recipe, recipe.inputs_hash(parents)) or keeper.adopt(recipe)):
        return False
    keeper.complete(recipe.name, recipe.inputs(parents))
    keeper.export(recipe)
    return True
