"""Pulling images from a registry into images.lock: by a lock's digests, or by the inputs of a checkout."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import docker
from docker.models.images import Image

from orchestrator.errors import CabError, EnvironmentFault, NotAllPulled
from orchestrator.sandbox.images import engine
from orchestrator.sandbox.images.differ import changed_inputs
from orchestrator.sandbox.images.keep import INPUTS_LABEL, Keeper, root_tag
from orchestrator.sandbox.images.layout import Layout
from orchestrator.sandbox.images.lock import LockedImage, load_lock, pin_tag
from orchestrator.sandbox.images.progress import Progress, Teller, ignore
from orchestrator.sandbox.images.recipe import Recipe, buildable
from orchestrator.sandbox.images.registry import Registry, inputs_tag, keep_digest, reported, with_root
from orchestrator.sandbox.images.root import load_pin


def pull(
    names: Sequence[str] | None = None,
    *,
    registry: Registry | None = None,
    lock_file: Path | None = None,
    on_progress: Callable[[Progress], None] = ignore,
    layout: Layout | None = None,
    client: docker.DockerClient | None = None,
) -> dict[str, str]:
    """Pull the named images (all when None) and what they stand on, and lock those that fit this checkout.
    `REPOSITORY@DIGEST` by name.

    With a registry and no lock file, those of this checkout's inputs, by tag. Else those that the lock file
    (images.lock when None) says, by the digests that it says; of several repositories, the registry's.
    Raises NotAllPulled where some are not there or do not fit, EnvironmentFault where a registry does not
    answer, InputError for a name that is unknown.
    """
    layout = layout or Layout()
    recipes = layout.recipes
    told = None if registry and not lock_file else load_lock(lock_file or layout.lock).images
    if names is None and told is not None:
        names = [name for name in recipes if name in told]
    wanted = with_root(recipes, names, told, layout.fleet.unavailable)
    client = client or engine.connect()
    tell = Teller(on_progress, wanted)
    failed: dict[str, CabError] = {}
    with layout.one_at_a_time():
        puller = _Puller(layout, client, registry, told, tell)
        for name in wanted:
            parents = recipes[name].parents.values() if name in recipes else ()
            if below := [parent for parent in parents if parent in failed]:
                problem = f"stands on {below[0]}, which was not pulled"
                tell(name, "passed_over", problem)
                failed[name] = EnvironmentFault(problem, place=f"image {name}")
                continue
            try:
                puller.image(name, recipes.get(name))
            except _NotThere as error:
                failed[name] = error
    if failed:
        raise _not_all(failed)
    return puller.pulled


def _not_all(failed: Mapping[str, CabError]) -> NotAllPulled:
    if len(failed) == 1:
        (error,) = failed.values()
        return NotAllPulled(error.thing, place=error.place, mend=error.mend)
    return NotAllPulled(
        f"{len(failed)} images were not pulled: {', '.join(failed)}",
        mend="the reasons are told above; `cab images build` makes what no registry has",
    )


class _NotThere(EnvironmentFault):
    """A registry does not have the image, or one that does not fit."""


class _Puller:
    """The images of one call; with `told`, by the digests that a lock tells."""

    def __init__(
        self,
        layout: Layout,
        client: docker.DockerClient,
        registry: Registry | None,
        told: Mapping[str, LockedImage] | None,
        tell: Teller,
    ) -> None:
        self._client = client
        self._registry = registry
        self._told = told
        self._tell = tell
        self._pin = load_pin(layout.pin)
        self._keeper = Keeper(layout, client)
        self.pulled: dict[str, str] = {}

    def image(self, name: str, recipe: Recipe | None) -> None:
        """Pull one image, the root file system where it has no recipe, and lock it where it fits."""
        told = self._told.get(name) if self._told is not None else None
        if told is not None and not told.manifests and self._is_here(name, told):
            self._tell(name, "current", told.tag)
            return
        with reported(self._tell, name) as done:
            if self._told is None:
                image, repository, digest = self._by_tag(name, recipe)
            elif told is None:
                raise self._not_there(name, "is not in the lock")
            else:
                image, repository, digest = self._by_digest(name, told)
            image.tag(pin_tag(str(image.id)))
            if recipe is None:
                if told is not None and told.inputs_hash != self._pin.inputs_hash():
                    raise self._not_there(name, "was made from another images/base/base.pin")
                self._keeper.keep_root(image, self._pin)
            else:
                self._keep(recipe, image, told)
            locked = self._keeper.lock.image(name)
            manifests = {**(told.manifests if told else {}), **locked.manifests, repository: digest}
            self._keeper.put(name, locked.model_copy(update={"manifests": manifests}))
            self.pulled[name] = done(f"{repository}@{digest}")

    def _is_here(self, name: str, told: LockedImage) -> bool:
        """Whether this checkout has the very image already, and so has the engine."""
        own = self._keeper.lock.images.get(name)
        return own is not None and own.id == told.id and engine.find_image(self._client, told.id) is not None

    def _by_tag(self, name: str, recipe: Recipe | None) -> tuple[Image, str, str]:
        assert self._registry is not None
        if recipe is None:
            inputs, here = self._pin.inputs_hash(), root_tag(self._pin)
        else:
            inputs = recipe.inputs_hash(self._keeper.parents(recipe))
            here = recipe.tag(inputs)
        repository, tag = self._registry.repository(here), inputs_tag(inputs)
        image = self._pull(name, repository, tag)
        if image is None:
            raise self._not_there(name, f"{repository} has none that was made from these inputs ({tag})")
        keep_digest(image, repository)
        self._client.images.remove(f"{repository}:{tag}", noprune=True)
        return image, repository, engine.manifests(image)[repository]

    def _by_digest(self, name: str, told: LockedImage) -> tuple[Image, str, str]:
        only = self._registry.repository(told.tag) if self._registry else None
        for repository, digest in told.manifests.items():
            if only not in (None, repository):
                continue
            # What is there by its digest is what the registry would give.
            image = engine.find_image(self._client, f"{repository}@{digest}")
            image = image or self._pull(name, repository, digest)
            if image is None:
                continue
            if image.id != told.id:
                raise self._not_there(name, f"{repository}@{digest} is {image.id}, the lock says {told.id}")
            keep_digest(image, repository)
            return image, repository, digest
        if not told.manifests:
            raise self._not_there(name, "the lock names no registry that has it: it was never pushed")
        raise self._not_there(name, f"{only or ' and '.join(told.manifests)}: not there by the lock's digest")

    def _pull(self, name: str, repository: str, tag_or_digest: str) -> Image | None:
        return engine.pull(
            self._client, repository, tag_or_digest, lambda line: self._tell(name, "output", line)
        )

    def _keep(self, recipe: Recipe, image: Image, told: LockedImage | None) -> None:
        """Lock an image, where it was made from this checkout's inputs and tells the pinned version."""
        parents = self._keeper.parents(recipe)
        inputs = recipe.inputs_hash(parents)
        made_from = image.labels.get(INPUTS_LABEL)
        if made_from != inputs:
            what = changed_inputs(told.inputs, recipe.inputs(parents)) if told and told.inputs else []
            raise self._not_there(
                recipe.name,
                f"does not fit this checkout: {', '.join(what) or 'its files or what it stands on'} changed "
                "since it was made",
            )
        versions = self._keeper.versions(recipe, str(image.id))
        if problem := recipe.version_problem(versions):
            raise self._not_there(recipe.name, problem)
        self._keeper.keep(recipe, str(image.id), versions)

    @staticmethod
    def _not_there(name: str, problem: str) -> _NotThere:
        return _NotThere(problem, place=f"image {name}", mend=f"run `cab images build {buildable(name)}`")
