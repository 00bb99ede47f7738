"""Pushing the images of images.lock to a registry."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import docker

from orchestrator.errors import EnvironmentFault, InputError
from orchestrator.sandbox.images import engine
from orchestrator.sandbox.images.keep import Keeper
from orchestrator.sandbox.images.layout import Layout
from orchestrator.sandbox.images.lock import LockedImage, load_lock
from orchestrator.sandbox.images.progress import Progress, Teller, ignore
from orchestrator.sandbox.images.recipe import Recipe, buildable
from orchestrator.sandbox.images.registry import (
    Registry,
    id_tag,
    inputs_tag,
    keep_digest,
    reported,
    with_root,
)

PROPRIETARY = "proprietary"
"""The licence, in an adapter, of a CLI that its maker lets nobody hand on."""


def push(
    registry: Registry,
    names: Sequence[str] | None = None,
    *,
    proprietary: bool = False,
    on_progress: Callable[[Progress], None] = ignore,
    layout: Layout | None = None,
    client: docker.DockerClient | None = None,
) -> dict[str, str]:
    """Push the named images of images.lock (all when None) and what they stand on, and lock the digests of
    their manifests. `REPOSITORY@DIGEST` by name.

    CLIs of a proprietary licence are passed over, or where they are named refused, unless the registry is on
    loopback or `proprietary` says that they may go there. The first fault ends it; what was pushed is locked.
    Raises InputError, and EnvironmentFault where an image or the registry is not there.
    """
    layout = layout or Layout()
    recipes, lock = layout.recipes, load_lock(layout.lock)
    chosen = [name for name in recipes if name in lock.images] if names is None else names
    wanted = with_root(recipes, chosen, lock.images, layout.fleet.unavailable)
    kept_back = {} if proprietary or registry.is_loopback else _proprietary(recipes, wanted)
    for name, reason in kept_back.items():
        if names is not None:
            mend = "leave it out, or give --proprietary where you may hand it on"
            raise InputError(reason, place=f"image {name}", mend=mend)
        on_progress(Progress(name, "passed_over", reason))
    wanted = [name for name in wanted if name not in kept_back]
    for name in wanted:
        lock.image(name)  # one that is missing is told before minutes of pushing what it stands on
    client = client or engine.connect()
    tell = Teller(on_progress, wanted)
    pushed = {}
    with layout.one_at_a_time():
        keeper = Keeper(layout, client)
        for name in wanted:
            with reported(tell, name) as done:
                locked = keeper.lock.image(name)
                repository = registry.repository(locked.tag)
                digest = _push(client, repository, name, locked, tell)
                told = {**locked.manifests, repository: digest}
                keeper.put(name, locked.model_copy(update={"manifests": told}))
                pushed[name] = done(f"{repository}@{digest}")
    return pushed


def _push(client: docker.DockerClient, repository: str, name: str, locked: LockedImage, tell: Teller) -> str:
    """Push one image under its tags. Its manifest's digest."""
    image = engine.find_image(client, locked.id)
    if image is None:
        mend = f"run `cab images build {buildable(name)}`"
        raise EnvironmentFault(f"the engine has no {locked.id}", place=f"image {name}", mend=mend)

    def hear(line: str) -> None:
        tell(name, "output", line)

    keep_digest(image, repository)
    digest = engine.push(client, repository, id_tag(locked.id), hear)
    for tag in {inputs_tag(locked.inputs_hash), locked.tag.partition(":")[2]}:
        here = f"{repository}:{tag}"
        image.tag(repository, tag)
        try:
            engine.push(client, repository, tag, hear)
        finally:
            if here not in image.tags:  # as it was before
                client.images.remove(here, noprune=True)
    return digest


def _proprietary(recipes: Mapping[str, Recipe], names: Sequence[str]) -> dict[str, str]:
    """The images among these that may not be handed on, with the reason."""
    adapters = {name: recipes[name].adapter for name in names if name in recipes}
    return {
        name: f"{adapter.name} is proprietary, and the registry is not on loopback"
        for name, adapter in adapters.items()
        if adapter is not None and adapter.licence == PROPRIETARY
    }
