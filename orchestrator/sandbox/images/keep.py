"""What an image has to be to stand in images.lock, and how it gets there: built, pulled or found."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping
from typing import Any

import docker
from docker.models.images import Image

from orchestrator.errors import EnvironmentFault
from orchestrator.sandbox.images import cell, engine, sbom
from orchestrator.sandbox.images.layout import Layout
from orchestrator.sandbox.images.lock import Lock, LockedImage, load_lock, pin_tag, save_lock
from orchestrator.sandbox.images.recipe import INIT, ROOT, Recipe
from orchestrator.sandbox.images.root import BasePin, root_source

INPUTS_LABEL = "cab.inputs"
SHA256 = "sha256"
"""The key, in the locked versions of images/init, of the hash of its binary."""


class Keeper:
    """images.lock of a checkout beside the images of an engine; written after each image."""

    def __init__(self, layout: Layout, client: docker.DockerClient) -> None:
        self._layout = layout
        self._client = client
        self._writing = threading.Lock()
        try:
            self.lock = load_lock(layout.lock)
        except EnvironmentFault:
            self.lock = Lock()

    def parents(self, recipe: Recipe) -> dict[str, str]:
        """The locked ids of an image's parents, by name. Raises EnvironmentFault where one is not locked."""
        return {name: self.lock.image(name).id for name in recipe.parents.values()}

    def is_locked(self, recipe: Recipe, inputs: str) -> bool:
        """Whether lock and engine have the image, with the tag and the version that its adapter asks for."""
        if not self.is_current(recipe.name, inputs):
            return False
        locked = self.lock.image(recipe.name)
        return locked.tag == recipe.tag(inputs) and recipe.version_problem(locked.versions) is None

    def is_current(self, name: str, inputs: str) -> bool:
        """Whether lock and engine have the image of these inputs."""
        locked = self.lock.images.get(name)
        if locked is None or locked.inputs_hash != inputs:
            return False
        image = engine.find_image(self._client, locked.id)
        if image is not None and locked.tag not in image.tags:
            # Another checkout on this engine has built the same version from other inputs.
            image.tag(locked.tag)
        return image is not None

    def adopt_root(self, pin: BasePin) -> bool:
        """Lock the root file system that the engine has for this pin; whether there is one."""
        image = engine.find_image(self._client, root_tag(pin))
        if image is not None:
            self.keep_root(image, pin)
        return image is not None

    def adopt(self, recipe: Recipe) -> bool:
        """Lock an image that another checkout built from the same inputs; whether there is one."""
        inputs = recipe.inputs_hash(self.parents(recipe))
        found = self._client.images.list(filters={"label": f"{INPUTS_LABEL}={inputs}"})
        # Of several builds the one that has the readable tag: it is the last.
        for image in sorted(found, key=lambda image: recipe.tag(inputs) not in image.tags):
            # An image that someone built on top of it has the label too, but no pin of its own.
            if pin_tag(str(image.id)) not in image.tags:
                continue
            try:
                versions = self.versions(recipe, str(image.id))
            except EnvironmentFault:  # not fit to be taken: it is built, and that tells what is wrong
                continue
            if recipe.version_problem(versions) is None:
                self.keep(recipe, str(image.id), versions)
                return True
        return False

    def versions(self, recipe: Recipe, image_id: str) -> dict[str, str]:
        """What the image's own tools tell. Raises EnvironmentFault where one fails."""
        parent = self.parents(recipe)[recipe.stands_on] if recipe.stands_on else None
        versions = engine.read_versions(self._client, image_id, parent)
        if recipe.name == INIT:
            versions[SHA256] = hashlib.sha256(engine.copy_out(self._client, image_id, "/init")).hexdigest()
        return versions

    def keep(
        self, recipe: Recipe, image_id: str, versions: dict[str, str], build_s: float | None = None
    ) -> None:
        """Tag and lock an image that was made from the recipe as it is, list what is in it, and lay PID 1
        out where it is that.
        """
        parents = self.parents(recipe)
        inputs = recipe.inputs_hash(parents)
        self._keep(
            recipe.name,
            self._client.images.get(image_id),
            tag=recipe.tag(inputs),
            inputs_hash=inputs,
            inputs=recipe.inputs(parents),
            parent=parents[recipe.stands_on] if recipe.stands_on else None,
            versions=versions,
            build_s=build_s,
            cell=parents.get(cell.CELL),
            tasks=cell.carried_tasks(self._layout.repo) if recipe.name == cell.CELL else None,
        )
        self.export(recipe)

    def keep_root(self, image: Image, pin: BasePin, build_s: float | None = None) -> None:
        """Tag and lock a root file system that is this pin's."""
        self._keep(
            ROOT,
            image,
            tag=root_tag(pin),
            inputs_hash=pin.inputs_hash(),
            inputs=pin.inputs(),
            parent=None,
            versions={"source": root_source(image)},
            build_s=build_s,
        )

    def _keep(
        self,
        name: str,
        image: Image,
        *,
        tag: str,
        inputs_hash: str,
        inputs: Mapping[str, str],
        parent: str | None,
        versions: dict[str, str],
        build_s: float | None,
        **of_cell: Any,
    ) -> None:
        image_id = str(image.id)
        image.tag(tag)
        # Removing the readable tag, or moving it by the next build, must not drop what a sweep pinned.
        image.tag(pin_tag(image_id))
        before = self.lock.images.get(name)
        if build_s is None and before is not None and before.id == image_id:
            build_s = before.build_s
        locked = LockedImage(
            id=image_id,
            tag=tag,
            inputs_hash=inputs_hash,
            inputs=dict(inputs),
            parent=parent,
            versions=versions,
            built_at=engine.created(image),
            size=int(image.attrs["Size"]),
            build_s=None if build_s is None else round(build_s, 1),
            manifests=engine.manifests(image),
            **of_cell,
        )
        sbom.store(self._layout, self._client, name, locked)
        self.put(name, locked)

    def complete(self, name: str, inputs: Mapping[str, str]) -> None:
        """Add to a locked image what a lock of before did not have, and what the engine has learnt since."""
        locked = self.lock.image(name)
        told = {**locked.manifests, **engine.manifests(self._client.images.get(locked.id))}
        whole = locked.model_copy(update={"inputs": dict(inputs), "manifests": told})
        sbom.store(self._layout, self._client, name, locked)
        if whole != locked:
            self.put(name, whole)

    def put(self, name: str, locked: LockedImage) -> None:
        """Write one image into images.lock."""
        with self._writing:
            self.lock = self.lock.with_image(name, locked)
            save_lock(self.lock, self._layout.lock)

    def export(self, recipe: Recipe) -> None:
        """Lay PID 1 out of its image, where containers get it from."""
        if recipe.name != INIT or init_is_current(self._layout, self.lock):
            return
        content = engine.copy_out(self._client, self.lock.image(INIT).id, "/init")
        staged = self._layout.init.with_suffix(".new")
        staged.write_bytes(content)
        staged.chmod(0o755)
        staged.replace(self._layout.init)


def root_tag(pin: BasePin) -> str:
    return f"cab/{ROOT}:{pin.inputs_hash()[:12]}"


def init_is_current(layout: Layout, lock: Lock) -> bool:
    """Whether the binary laid out as PID 1 is the locked image's own."""
    locked = lock.images.get(INIT)
    if locked is None or not layout.init.is_file():
        return False
    return hashlib.sha256(layout.init.read_bytes()).hexdigest() == locked.versions[SHA256]
