"""What images there are, as `cab images list` and the table of docs/images.md tell it. Asks no engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from orchestrator.sandbox.images.cell import child_name
from orchestrator.sandbox.images.check import stale
from orchestrator.sandbox.images.layout import Layout
from orchestrator.sandbox.images.lock import Lock
from orchestrator.sandbox.images.recipe import ROOT, Recipe

State = Literal["current", "stale", "not built", "unavailable"]


@dataclass(frozen=True)
class Listed:
    """One image, or a known CLI without one. `added` are the bytes that a CLI has beyond
    the image it stands on, `run_cell` is the state of its image for run-cell.

    What is not known is None; `reason` says why a stale one is not current, or an unavailable one cannot be
    had.
    """

    name: str
    cli: bool
    version: str | None
    licence: str | None
    state: State
    reason: str | None = None
    size: int | None = None
    added: int | None = None
    built_at: str | None = None
    build_s: float | None = None
    run_cell: State | None = None


def list_images(lock: Lock, layout: Layout) -> list[Listed]:
    """All images of the checkout in building order, each CLI's for run-cell with it, then the CLIs that
    cannot be had.
    """
    problems = {finding.image: finding.problem for finding in stale(lock, layout)}
    recipes = layout.recipes
    on_root = any(ROOT in recipe.parents.values() for recipe in recipes.values())
    found = [_root(lock, problems)] if on_root else []
    for recipe in recipes.values():
        if recipe.facts is None:
            child = child_name(recipe.name)
            run_cell = _state(child, lock, problems) if child in recipes else None
            found.append(replace(_image(recipe, lock, problems), run_cell=run_cell))
    for name, reason in layout.fleet.unavailable.items():
        found.append(Listed(name, True, None, None, "unavailable", reason))
    return found


def _root(lock: Lock, problems: Mapping[str, str]) -> Listed:
    return _with_lock(Listed(ROOT, False, None, None, "not built"), lock, problems)


def _image(recipe: Recipe, lock: Lock, problems: Mapping[str, str]) -> Listed:
    adapter = recipe.adapter
    licence = adapter.licence or None if adapter else None
    bare = Listed(recipe.name, adapter is not None, recipe.version, licence, "not built")
    return _with_lock(bare, lock, problems)


def _state(name: str, lock: Lock, problems: Mapping[str, str]) -> State:
    if name not in lock.images:
        return "not built"
    return "stale" if name in problems else "current"


def _with_lock(bare: Listed, lock: Lock, problems: Mapping[str, str]) -> Listed:
    """The same with what the lock knows of it."""
    locked = lock.images.get(bare.name)
    if locked is None:
        return bare
    problem = problems.get(bare.name)
    parents = [image.size for image in lock.images.values() if image.id == locked.parent]
    # Images of cab's own may start from scratch, and take files of the one that they stand on.
    added = locked.size - parents[0] if bare.cli and parents else None
    return Listed(
        bare.name,
        bare.cli,
        bare.version,
        bare.licence,
        _state(bare.name, lock, problems),
        problem,
        locked.size,
        added,
        locked.built_at,
        locked.build_s,
    )
