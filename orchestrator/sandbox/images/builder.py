"""Building images in order, and only those that changed."""

from __future__ import annotations

import fcntl
import hashlib
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Literal

import docker
from docker.models.images import Image

from orchestrator import paths
from orchestrator.errors import CabError, EnvironmentFault
from orchestrator.sandbox.images import engine
from orchestrator.sandbox.images.host import HostAccess, read_host
from orchestrator.sandbox.images.lock import Lock, LockedImage, load_lock, pin_tag, save_lock
from orchestrator.sandbox.images.recipe import BASE, INIT, ROOT, Recipe, load_recipes, with_parents
from orchestrator.sandbox.images.root import BasePin, load_pin, make_root, root_source

INPUTS_LABEL = "cab.inputs"
SHA256 = "sha256"
"""The key, in the locked versions of images/init, of the hash of its binary."""


@dataclass(frozen=True)
class Progress:
    """What happened to one image, `seconds` after its start.

    A `step` is named by `detail`; an `output` is the last line that it printed so far. `tail` is the end of a
    failed build's log.
    """

    image: str
    event: Literal["current", "started", "step", "output", "built", "failed"]
    detail: str = ""
    seconds: float = 0.0
    tail: tuple[str, ...] = ()


@dataclass(frozen=True)
class Layout:
    """Where things are in a checkout."""

    repo: Path = paths.ROOT

    @property
    def images(self) -> Path:
        return self.repo / "images"

    @property
    def lock(self) -> Path:
        return self.repo / "images.lock"

    @property
    def pin(self) -> Path:
        return self.images / BASE / "base.pin"

    @property
    def logs(self) -> Path:
        return self.repo / "build" / "logs"

    @property
    def init(self) -> Path:
        """The binary that is PID 1 of every container."""
        return self.repo / "build" / "init"


def _ignore(progress: Progress) -> None:
    """Show nothing."""
    del progress


def build(
    names: Sequence[str] | None = None,
    *,
    force: bool = False,
    on_progress: Callable[[Progress], None] = _ignore,
    layout: Layout | None = None,
    client: docker.DockerClient | None = None,
) -> Lock:
    """Build the named images (all when None) and what they stand on; write images.lock after each.

    What is up to date is left alone. `force` builds the named ones again, without the engine's cache.
    Raises EnvironmentFault when the engine, a registry or a build fails, InputError for an unknown name.
    """
    layout = layout or Layout()
    recipes = load_recipes(layout.images)
    forced = frozenset(recipes if names is None else names) if force else frozenset()
    with _one_at_a_time(layout):
        builder = _Builder(layout, client or engine.connect(), on_progress)
        wanted = with_parents(recipes, names)
        if any(ROOT in recipe.parents.values() for recipe in wanted):
            builder.root(force=BASE in forced)
        for recipe in wanted:
            builder.image(recipe, force=recipe.name in forced)
        return builder.lock


@contextmanager
def _one_at_a_time(layout: Layout) -> Iterator[None]:
    layout.logs.mkdir(parents=True, exist_ok=True)
    with (layout.logs / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


class _Builder:
    def __init__(
        self, layout: Layout, client: docker.DockerClient, on_progress: Callable[[Progress], None]
    ) -> None:
        self._layout = layout
        self._client = client
        self._on_progress = on_progress
        try:
            self.lock = load_lock(layout.lock)
        except EnvironmentFault:
            self.lock = Lock()

    @cached_property
    def _pin(self) -> BasePin:
        return load_pin(self._layout.pin)

    @cached_property
    def _host(self) -> HostAccess:
        return read_host(self._pin.suite, os.environ)

    def root(self, *, force: bool) -> None:
        """Make sure of the root file system under images/base."""
        inputs = self._pin.inputs_hash()
        if not force and self._is_current(ROOT, inputs):
            return self._current(ROOT)
        tag = f"cab/{ROOT}:{inputs[:12]}"
        if not force and (found := engine.find_image(self._client, tag)):
            self._keep_root(found, tag, inputs)
            return self._current(ROOT)
        log = self._layout.logs / f"{ROOT}.log"
        with self._reported(ROOT, log) as say:
            made = make_root(self._pin, self._client, self._host, tag=tag, log=log, say=say)
            self._keep_root(made, tag, inputs)
        return None

    def image(self, recipe: Recipe, *, force: bool) -> None:
        """Make sure of one image. Its parents are there already."""
        parents = {name: self.lock.image(name).id for name in recipe.parents.values()}
        inputs = recipe.inputs_hash(parents)
        if not force and (self._is_locked(recipe, inputs) or self._adopt(recipe, inputs, parents)):
            self._export(recipe)
            return self._current(recipe.name)
        log = self._layout.logs / f"{recipe.name}.log"
        with self._reported(recipe.name, log) as say:
            image_id = engine.build(
                self._client,
                recipe.context(self._host.files()),
                name=recipe.name,
                arguments={
                    **{key: parents[name] for key, name in recipe.parents.items()},
                    **self._host.proxies,
                },
                labels={INPUTS_LABEL: inputs},
                use_cache=not force,
                log=log,
                say=say,
                hear=lambda line: self._on_progress(Progress(recipe.name, "output", line)),
            )
            versions = self._versions(recipe, image_id, parents)
            if problem := recipe.version_problem(versions):
                # Neither tagged nor locked: nothing may run it.
                raise EnvironmentFault(
                    problem,
                    place=f"image {recipe.name}",
                    mend=f"make Dockerfile, its label cab.reads.{recipe.name} and adapter agree",
                )
            self._keep_built(recipe, image_id, inputs, parents, versions)
            self._export(recipe)
        return None

    def _adopt(self, recipe: Recipe, inputs: str, parents: Mapping[str, str]) -> bool:
        """Take an image that another checkout built from the same inputs."""
        for image in self._client.images.list(filters={"label": f"{INPUTS_LABEL}={inputs}"}):
            # An image that someone built on top of it has the label too, but no pin of its own.
            if pin_tag(str(image.id)) not in image.tags:
                continue
            versions = self._versions(recipe, str(image.id), parents)
            if recipe.version_problem(versions) is None:
                self._keep_built(recipe, str(image.id), inputs, parents, versions)
                return True
        return False

    def _versions(self, recipe: Recipe, image_id: str, parents: Mapping[str, str]) -> dict[str, str]:
        """What the image's own tools tell."""
        parent = parents[recipe.stands_on] if recipe.stands_on else None
        versions = engine.read_versions(self._client, image_id, parent)
        if recipe.name == INIT:
            versions[SHA256] = hashlib.sha256(engine.copy_out(self._client, image_id, "/init")).hexdigest()
        return versions

    def _keep_built(
        self,
        recipe: Recipe,
        image_id: str,
        inputs: str,
        parents: Mapping[str, str],
        versions: dict[str, str],
    ) -> None:
        parent = parents[recipe.stands_on] if recipe.stands_on else None
        self._keep(
            recipe.name, image_id, tag=recipe.tag(inputs), inputs=inputs, parent=parent, versions=versions
        )

    def _keep_root(self, image: Image, tag: str, inputs: str) -> None:
        versions = {"source": root_source(image)}
        self._keep(ROOT, str(image.id), tag=tag, inputs=inputs, parent=None, versions=versions)

    def _keep(
        self,
        name: str,
        image_id: str,
        *,
        tag: str,
        inputs: str,
        parent: str | None,
        versions: dict[str, str],
    ) -> None:
        image = self._client.images.get(image_id)
        image.tag(tag)
        # Removing the readable tag, or moving it by the next build, must not drop what a sweep pinned.
        image.tag(pin_tag(image_id))
        locked = LockedImage(
            id=image_id,
            tag=tag,
            inputs_hash=inputs,
            parent=parent,
            versions=versions,
            built_at=datetime.now(UTC).isoformat(timespec="seconds"),
            size=int(image.attrs["Size"]),
        )
        self.lock = self.lock.with_image(name, locked)
        save_lock(self.lock, self._layout.lock)

    def _export(self, recipe: Recipe) -> None:
        """Lay PID 1 out of its image, where containers get it from."""
        if recipe.name != INIT or init_is_current(self._layout, self.lock):
            return
        content = engine.copy_out(self._client, self.lock.image(INIT).id, "/init")
        staged = self._layout.init.with_suffix(".new")
        staged.write_bytes(content)
        staged.chmod(0o755)
        staged.replace(self._layout.init)

    def _is_locked(self, recipe: Recipe, inputs: str) -> bool:
        """Whether the lock has the image, under the tag and with the version that its adapter asks for."""
        if not self._is_current(recipe.name, inputs):
            return False
        locked = self.lock.image(recipe.name)
        return locked.tag == recipe.tag(inputs) and recipe.version_problem(locked.versions) is None

    def _is_current(self, name: str, inputs: str) -> bool:
        locked = self.lock.images.get(name)
        if locked is None or locked.inputs_hash != inputs:
            return False
        image = engine.find_image(self._client, locked.id)
        if image is not None and locked.tag not in image.tags:
            # Another checkout on this engine has built the same version from other inputs.
            image.tag(locked.tag)
        return image is not None

    def _current(self, name: str) -> None:
        self._on_progress(Progress(name, "current", self.lock.image(name).tag))

    @contextmanager
    def _reported(self, name: str, log: Path) -> Iterator[Callable[[str], None]]:
        start = time.monotonic()

        def say(detail: str) -> None:
            self._on_progress(Progress(name, "step", detail, time.monotonic() - start))

        self._on_progress(Progress(name, "started"))
        log.unlink(missing_ok=True)
        try:
            yield say
        except CabError as error:
            tail = tuple(engine.log_tail(log))
            self._on_progress(Progress(name, "failed", str(error), time.monotonic() - start, tail))
            raise
        self._on_progress(Progress(name, "built", self.lock.image(name).tag, time.monotonic() - start))


def init_is_current(layout: Layout, lock: Lock) -> bool:
    """Whether the binary laid out as PID 1 is the locked image's own."""
    locked = lock.images.get(INIT)
    if locked is None or not layout.init.is_file():
        return False
    return hashlib.sha256(layout.init.read_bytes()).hexdigest() == locked.versions[SHA256]
