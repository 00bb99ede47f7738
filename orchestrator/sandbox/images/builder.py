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
from typing import Any, Literal

import docker
from docker.models.images import Image

from orchestrator import paths
from orchestrator.errors import CabError, EnvironmentFault, NotAllBuilt
from orchestrator.fleet import Fleet
from orchestrator.sandbox.images import cell, engine
from orchestrator.sandbox.images.host import HostAccess, read_host
from orchestrator.sandbox.images.lock import Lock, LockedImage, check_checkout, load_lock, pin_tag, save_lock
from orchestrator.sandbox.images.recipe import (
    BASE,
    INIT,
    ROOT,
    Recipe,
    load_recipes,
    with_children,
    with_parents,
)
from orchestrator.sandbox.images.root import BasePin, load_pin, make_root, root_source

INPUTS_LABEL = "cab.inputs"
SHA256 = "sha256"
"""The key, in the locked versions of images/init, of the hash of its binary."""


Event = Literal["current", "started", "step", "output", "built", "failed", "passed_over"]


@dataclass(frozen=True)
class Progress:
    """What happened to one image, `seconds` after its start.

    A `step` is named by `detail`; an `output` is the last line that it printed so far. `tail` is the end of a
    failed build's log. `passed_over` is an image that cannot be built, for the reason in `detail`. `at` is
    its place among the `of` images of the call, from 1. `left_s` is how long it and the images after it took
    when they were last built; None where that is not known of one of them.
    """

    image: str
    event: Event
    detail: str = ""
    seconds: float = 0.0
    tail: tuple[str, ...] = ()
    at: int = 0
    of: int = 0
    left_s: float | None = None


@dataclass(frozen=True)
class Layout:
    """Where things are in a checkout, and the folder elsewhere that holds more CLIs' folders."""

    repo: Path = paths.ROOT
    elsewhere: Path | None = None

    def __post_init__(self) -> None:
        """Raises EnvironmentFault where there is no checkout."""
        check_checkout()

    @property
    def images(self) -> Path:
        return self.repo / "images"

    @cached_property
    def fleet(self) -> Fleet:
        """Its CLIs, and those elsewhere."""
        return Fleet(self.images, self.elsewhere)

    @property
    def recipes(self) -> dict[str, Recipe]:
        """What its images are made from, parents before children."""
        return load_recipes(self.images, self.elsewhere)

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
    """Build the named images (all that can be had when None), CLIs' with those for run-cell, and what they
    stand on; write images.lock after each, so that a build that was killed goes on where it was.

    What is up to date is left alone. `force` builds the named ones again, without the engine's cache. A
    failure stops what stands on it and nothing else.
    Raises NotAllBuilt at the end where some failed, EnvironmentFault where no engine answers, InputError for
    a name that is unknown or cannot be had.
    """
    layout = layout or Layout()
    recipes = layout.recipes
    asked = None if names is None else with_children(recipes, names)
    wanted = with_parents(recipes, asked, layout.fleet.unavailable)
    forced = frozenset(recipes if names is None else names) if force else frozenset()
    with _one_at_a_time(layout):
        builder = _Builder(layout, client or engine.connect(), on_progress)
        if names is None:
            for name, reason in layout.fleet.unavailable.items():
                on_progress(Progress(name, "passed_over", reason))
        failed = builder.all(wanted, forced)
    if failed:
        raise _not_all(failed, layout)
    return builder.lock


def _not_all(failed: Mapping[str, CabError], layout: Layout) -> NotAllBuilt:
    if len(failed) == 1:
        (error,) = failed.values()
        return NotAllBuilt(error.thing, place=error.place, mend=error.mend)
    return NotAllBuilt(
        f"{len(failed)} images were not built: {', '.join(failed)}",
        place=str(layout.logs),
        mend="what failed is told above; a second `cab images build` goes on from here",
    )


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
        self._ahead: list[str] = []
        self._of = 0
        self._left_s: float | None = None

    def all(self, wanted: Sequence[Recipe], forced: frozenset[str]) -> Mapping[str, CabError]:
        """Make sure of all images, parents before children. What could not be built, with the reason."""
        on_root = any(ROOT in recipe.parents.values() for recipe in wanted)
        self._ahead = [*([ROOT] if on_root else []), *(recipe.name for recipe in wanted)]
        self._of = len(self._ahead)
        times = self._times(wanted, forced)
        failed: dict[str, CabError] = {}
        steps: list[tuple[str, Recipe | None]] = [(recipe.name, recipe) for recipe in wanted]
        for name, recipe in [(ROOT, None), *steps] if on_root else steps:
            self._left_s = None if None in times.values() else sum(filter(None, times.values()))
            try:
                if recipe is None:
                    self.root(force=BASE in forced)
                elif below := [parent for parent in recipe.parents.values() if parent in failed]:
                    raise self._stands_on(name, below[0])
                else:
                    self.image(recipe, force=name in forced)
            except CabError as error:
                failed[name] = error
            times.pop(name, None)
            self._ahead.remove(name)
        return failed

    def _stands_on(self, name: str, parent: str) -> EnvironmentFault:
        problem = f"stands on {parent}, which was not built"
        self._tell(name, "passed_over", problem)
        return EnvironmentFault(problem, place=f"image {name}", mend=f"mend {parent} first")

    def _times(self, wanted: Sequence[Recipe], forced: frozenset[str]) -> dict[str, float | None]:
        """By image that is to be built: the seconds that it took last, None where that is not known."""
        times: dict[str, float | None] = {}
        for recipe in wanted:
            locked = self.lock.images.get(recipe.name)
            parents = {name: self.lock.images.get(name) for name in recipe.parents.values()}
            ids = {name: parent.id for name, parent in parents.items() if parent}
            stays = len(ids) == len(parents) and not times.keys() & parents and recipe.name not in forced
            if stays and self._is_locked(recipe, recipe.inputs_hash(ids)):
                continue
            times[recipe.name] = locked.build_s if locked else None
        return times

    def _tell(self, name: str, event: Event, detail: str = "", **more: Any) -> None:
        at = self._of - len(self._ahead) + 1
        progress = Progress(name, event, detail, at=at, of=self._of, left_s=self._left_s, **more)
        self._on_progress(progress)

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
            start = time.monotonic()
            made = make_root(self._pin, self._client, self._host, tag=tag, log=log, say=say)
            self._keep_root(made, tag, inputs, time.monotonic() - start)
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
            built = engine.build(
                self._client,
                recipe.context(self._host.files(), self._made(recipe, parents)),
                name=recipe.name,
                arguments={
                    **{key: parents[name] for key, name in recipe.parents.items()},
                    **self._host.proxies,
                },
                labels={INPUTS_LABEL: inputs},
                use_cache=not force,
                log=log,
                say=say,
                hear=lambda line: self._tell(recipe.name, "output", line),
            )
            versions = self._versions(recipe, built.image_id, parents)
            if problem := recipe.version_problem(versions):
                # Neither tagged nor locked: nothing may run it.
                raise EnvironmentFault(
                    problem,
                    place=f"image {recipe.name}",
                    mend=f"make Dockerfile, its label cab.reads.{recipe.name} and adapter agree",
                )
            self._keep_built(recipe, built.image_id, inputs, parents, versions, built.seconds)
            self._export(recipe)
        return None

    def _made(self, recipe: Recipe, parents: Mapping[str, str]) -> dict[str, bytes]:
        """The files of a build's context that tell what only the engine knows."""
        if recipe.facts is None or recipe.stands_on is None:
            return {}
        parent = self._client.images.get(parents[recipe.stands_on])
        said = cell.image_file(
            recipe.facts,
            parent_id=str(parent.id),
            parent_tag=self.lock.image(recipe.stands_on).tag,
            env=parent.attrs["Config"]["Env"] or (),
        )
        return {cell.IMAGE_FILE: said}

    def _adopt(self, recipe: Recipe, inputs: str, parents: Mapping[str, str]) -> bool:
        """Take an image that another checkout built from the same inputs."""
        for image in self._client.images.list(filters={"label": f"{INPUTS_LABEL}={inputs}"}):
            # An image that someone built on top of it has the label too, but no pin of its own.
            if pin_tag(str(image.id)) not in image.tags:
                continue
            try:
                versions = self._versions(recipe, str(image.id), parents)
            except EnvironmentFault:  # not fit to be taken: it is built, and that tells what is wrong
                continue
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
        build_s: float | None = None,
    ) -> None:
        parent = parents[recipe.stands_on] if recipe.stands_on else None
        self._keep(
            recipe.name,
            image_id,
            tag=recipe.tag(inputs),
            inputs=inputs,
            parent=parent,
            versions=versions,
            build_s=build_s,
            cell=parents.get(cell.CELL),
            tasks=cell.carried_tasks(self._layout.repo) if recipe.name == cell.CELL else None,
        )

    def _keep_root(self, image: Image, tag: str, inputs: str, build_s: float | None = None) -> None:
        versions = {"source": root_source(image)}
        self._keep(
            ROOT, str(image.id), tag=tag, inputs=inputs, parent=None, versions=versions, build_s=build_s
        )

    def _keep(
        self,
        name: str,
        image_id: str,
        *,
        tag: str,
        inputs: str,
        parent: str | None,
        versions: dict[str, str],
        build_s: float | None,
        **of_cell: Any,
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
            build_s=None if build_s is None else round(build_s, 1),
            **of_cell,
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
        self._tell(name, "current", self.lock.image(name).tag)

    @contextmanager
    def _reported(self, name: str, log: Path) -> Iterator[Callable[[str], None]]:
        start = time.monotonic()

        def say(detail: str) -> None:
            self._tell(name, "step", detail, seconds=time.monotonic() - start)

        self._tell(name, "started")
        log.unlink(missing_ok=True)
        try:
            yield say
        except CabError as error:
            tail = tuple(engine.log_tail(log))
            self._tell(name, "failed", str(error), seconds=time.monotonic() - start, tail=tail)
            raise
        self._tell(name, "built", self.lock.image(name).tag, seconds=time.monotonic() - start)


def init_is_current(layout: Layout, lock: Lock) -> bool:
    """Whether the binary laid out as PID 1 is the locked image's own."""
    locked = lock.images.get(INIT)
    if locked is None or not layout.init.is_file():
        return False
    return hashlib.sha256(layout.init.read_bytes()).hexdigest() == locked.versions[SHA256]
