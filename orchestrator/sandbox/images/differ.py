"""In what two images differ: in the inputs that they were made from, and in what is in them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import docker
from docker.models.images import Image

from orchestrator.errors import EnvironmentFault
from orchestrator.sandbox.images import engine, sbom
from orchestrator.sandbox.images.keep import INPUTS_LABEL
from orchestrator.sandbox.images.layout import Layout
from orchestrator.sandbox.images.lock import LockedImage
from orchestrator.sandbox.images.recipe import ARG

_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Difference:
    """Why one image is not the other, in a phrase, and a line for each package that differs."""

    why: str
    packages: tuple[str, ...] = ()


def changed_inputs(was: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """The inputs that differ, by name; with both values where they say something to a person."""
    return [
        _changed(name, was.get(name), now.get(name))
        for name in {**was, **now}
        if was.get(name) != now.get(name)
    ]


def _changed(name: str, was: str | None, now: str | None) -> str:
    shown = f"the image that it stands on ({name})" if name.startswith(ARG) else name
    if was is None or now is None:
        return f"{shown} ({'new' if was is None else 'gone'})"
    if name.startswith(ARG) or _DIGEST.fullmatch(was):
        return shown
    return f"{shown} ({was} → {now})"


def of_inputs(locked: LockedImage, now: Mapping[str, str], layout: Layout) -> Difference:
    """Why a build would make another image than the locked one, and what differs in the one under it."""
    if not locked.inputs:
        return Difference("its files or its parent changed since it was built")
    packages: list[str] = []
    for name, image_id in now.items():
        if name.startswith(ARG) and (before := locked.inputs.get(name, image_id)) != image_id:
            old, new = sbom.stored(layout, before), sbom.stored(layout, image_id)
            if old is not None and new is not None:
                packages += sbom.differences(old, new)
    changed = ", ".join(changed_inputs(locked.inputs, now))
    return Difference(f"changed since it was built: {changed}", tuple(packages))


def of_image(
    layout: Layout, client: docker.DockerClient, name: str, locked: LockedImage, other: Image
) -> Difference:
    """How an image that stands in the place of a locked one came about, and what differs in it."""
    made_from = other.labels.get(INPUTS_LABEL)
    if made_from == locked.inputs_hash:
        why = "built again from the same inputs"
    elif made_from is not None:
        why = "made from other inputs"
    else:
        why = "no image that cab built"
    try:
        versions = engine.read_versions(client, str(other.id), locked.parent)
        there = locked.model_copy(update={"id": str(other.id), "versions": versions})
        now = sbom.store(layout, client, name, there)
        was = sbom.store(layout, client, name, locked)
    except EnvironmentFault as error:
        return Difference(f"{why}; what is in it cannot be compared: {error.thing}")
    packages = sbom.differences(was, now)
    return Difference(why if packages else f"{why}; it holds the same packages and tools", tuple(packages))
