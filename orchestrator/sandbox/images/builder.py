"""Building images, parents before children, and only those that changed."""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

import docker

from orchestrator.errors import CabError, EnvironmentFault, NotAllBuilt
from orchestrator.sandbox.images import cell, engine
from orchestrator.sandbox.images.host import HostAccess, read_host
from orchestrator.sandbox.images.keep import INPUTS_LABEL, Keeper, root_tag
from orchestrator.sandbox.images.layout import Layout
from orchestrator.sandbox.images.lock import Lock
from orchestrator.sandbox.images.progress import Progress, Teller, ignore
from orchestrator.sandbox.images.recipe import BASE, ROOT, Recipe, with_needed, with_parents
from orchestrator.sandbox.images.root import BasePin, load_pin, make_root


def build(
    names: Sequence[str] | None = None,
    *,
    force: bool = False,
    jobs: int = 1,
    on_progress: Callable[[Progress], None] = ignore,
    layout: Layout | None = None,
    client: docker.DockerClient | None = None,
) -> Lock:
    """Build the named images (all that can be had when None), CLIs' with those for run-cell, and what they
    stand on; write images.lock after each, so that a build that was killed goes on where it was.

    What is up to date is left alone. `force` builds the named ones again, without the engine's cache. Up to
    `jobs` images that do not stand on each other are built at a time. A failure stops what stands on it and
    nothing else.
    Raises NotAllBuilt at the end where some failed, EnvironmentFault where no engine answers, InputError for
    a name that is unknown or cannot be had.
    """
    layout = layout or Layout()
    recipes = layout.recipes
    asked = None if names is None else with_needed(recipes, names)
    wanted = with_parents(recipes, asked, layout.fleet.unavailable)
    forced = frozenset(recipes if names is None else names) if force else frozenset()
    with layout.one_at_a_time():
        builder = _Builder(layout, client or engine.connect(), on_progress, wanted, forced)
        if names is None:
            for name, reason in layout.fleet.unavailable.items():
                on_progress(Progress(name, "passed_over", reason))
        failed = builder.all(jobs)
    if failed:
        raise _not_all(failed, layout)
    return builder.keeper.lock


def _not_all(failed: Mapping[str, CabError], layout: Layout) -> NotAllBuilt:
    if len(failed) == 1:
        (error,) = failed.values()
        return NotAllBuilt(error.thing, place=error.place, mend=error.mend)
    return NotAllBuilt(
        f"{len(failed)} images were not built: {', '.join(failed)}",
        place=str(layout.logs),
        mend="what failed is told above; a second `cab images build` goes on from here",
    )


class _Builder:
    """The images of one call. Each that is under way has a thread of its own."""

    def __init__(
        self,
        layout: Layout,
        client: docker.DockerClient,
        on_progress: Callable[[Progress], None],
        wanted: Sequence[Recipe],
        forced: frozenset[str],
    ) -> None:
        self._layout = layout
        self._client = client
        self._wanted = wanted
        self._forced = forced
        self._on_root = any(ROOT in recipe.parents.values() for recipe in wanted)
        self._order = [*([ROOT] if self._on_root else []), *(recipe.name for recipe in wanted)]
        self._tell = Teller(on_progress, self._order)
        self.keeper = Keeper(layout, client)

    def all(self, jobs: int) -> Mapping[str, CabError]:
        """Make sure of all images. What could not be built, in building order, with the reason."""
        failed: dict[str, CabError] = {}
        times = self._times()
        waiting = {recipe.name: recipe for recipe in self._wanted}
        began: dict[str, float] = {}
        ended: queue.SimpleQueue[tuple[str, BaseException | None]] = queue.SimpleQueue()
        if self._on_root:
            self._tell.left_s = _left(times, began, jobs)
            try:
                self.root(force=BASE in self._forced)
            except CabError as error:
                failed[ROOT] = error
        while waiting or began:
            for name in self._stranded(waiting, failed):
                del waiting[name]
            on_these = waiting.keys() | began.keys()
            ready = [it for it in waiting.values() if on_these.isdisjoint(it.parents.values())]
            for recipe in ready[: jobs - len(began)]:
                self._tell.left_s = _left(times, began, jobs)
                began[recipe.name] = time.monotonic()
                del waiting[recipe.name]
                self._start(recipe, ended)
            if not began:
                break
            name, fault = ended.get()
            del began[name]
            times.pop(name, None)
            self._tell.left_s = _left(times, began, jobs)
            if isinstance(fault, CabError):
                failed[name] = fault
            elif fault is not None:
                raise fault
        return {name: failed[name] for name in self._order if name in failed}

    def _start(self, recipe: Recipe, ended: queue.SimpleQueue[tuple[str, BaseException | None]]) -> None:
        """Make sure of an image in a thread, which tells at its end what went wrong."""

        def make() -> None:
            fault: BaseException | None = None
            try:
                self.image(recipe, force=recipe.name in self._forced)
            except BaseException as error:  # noqa: BLE001 - the caller's thread raises it
                fault = error
            ended.put((recipe.name, fault))

        # A daemon: an interrupted command ends at once, and the engine ends a build that nobody listens to.
        threading.Thread(target=make, name=f"build {recipe.name}", daemon=True).start()

    def _stranded(self, waiting: Mapping[str, Recipe], failed: dict[str, CabError]) -> list[str]:
        """Give up what stands on an image that failed."""
        stranded = []
        for name, recipe in waiting.items():
            below = [parent for parent in recipe.parents.values() if parent in failed]
            if below:
                problem = f"stands on {below[0]}, which was not built"
                self._tell(name, "passed_over", problem)
                mend = f"mend {below[0]} first"
                failed[name] = EnvironmentFault(problem, place=f"image {name}", mend=mend)
                stranded.append(name)
        return stranded

    def _times(self) -> dict[str, float | None]:
        """By image that is to be built: the seconds that it took last, None where that is not known."""
        times: dict[str, float | None] = {}
        images = self.keeper.lock.images
        for recipe in self._wanted:
            locked = images.get(recipe.name)
            parents = {name: images.get(name) for name in recipe.parents.values()}
            ids = {name: parent.id for name, parent in parents.items() if parent}
            stays = (
                len(ids) == len(parents) and not times.keys() & parents and recipe.name not in self._forced
            )
            if stays and self.keeper.is_locked(recipe, recipe.inputs_hash(ids)):
                continue
            times[recipe.name] = locked.build_s if locked else None
        return times

    @cached_property
    def _pin(self) -> BasePin:
        return load_pin(self._layout.pin)

    @cached_property
    def _host(self) -> HostAccess:
        return read_host(self._pin.suite, os.environ)

    def root(self, *, force: bool) -> None:
        """Make sure of the root file system under images/base."""
        keeper, pin = self.keeper, self._pin
        if not force and (keeper.is_current(ROOT, pin.inputs_hash()) or keeper.adopt_root(pin)):
            return self._current(ROOT, pin.inputs())
        log = self._layout.logs / f"{ROOT}.log"
        with self._reported(ROOT, log) as say:
            start = time.monotonic()
            made = make_root(pin, self._client, self._host, tag=root_tag(pin), log=log, say=say)
            keeper.keep_root(made, pin, time.monotonic() - start)
        return None

    def image(self, recipe: Recipe, *, force: bool) -> None:
        """Make sure of one image. Its parents are there already."""
        keeper = self.keeper
        parents = keeper.parents(recipe)
        inputs = recipe.inputs_hash(parents)
        if not force and (keeper.is_locked(recipe, inputs) or keeper.adopt(recipe)):
            keeper.export(recipe)
            return self._current(recipe.name, recipe.inputs(parents))
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
            versions = keeper.versions(recipe, built.image_id)
            if problem := recipe.version_problem(versions):
                # Neither tagged nor locked: nothing may run it.
                raise EnvironmentFault(
                    problem,
                    place=f"image {recipe.name}",
                    mend=f"make Dockerfile, its label cab.reads.{recipe.name} and adapter agree",
                )
            keeper.keep(recipe, built.image_id, versions, built.seconds)
        return None

    def _made(self, recipe: Recipe, parents: Mapping[str, str]) -> dict[str, bytes]:
        """The files of a build's context that tell what only the engine knows."""
        if recipe.facts is None or recipe.stands_on is None:
            return {}
        parent = self._client.images.get(parents[recipe.stands_on])
        said = cell.image_file(
            recipe.facts,
            parent_id=str(parent.id),
            parent_tag=self.keeper.lock.image(recipe.stands_on).tag,
            env=parent.attrs["Config"]["Env"] or (),
        )
        return {cell.IMAGE_FILE: said}

    def _current(self, name: str, inputs: Mapping[str, str]) -> None:
        self.keeper.complete(name, inputs)
        self._tell(name, "current", self.keeper.lock.image(name).tag)

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
        self._tell(name, "built", self.keeper.lock.image(name).tag, seconds=time.monotonic() - start)


def _left(times: Mapping[str, float | None], began: Mapping[str, float], jobs: int) -> float | None:
    """How long the rest takes, `jobs` at a time, where each takes what it took last."""
    if None in times.values():
        return None
    now = time.monotonic()
    rest = [max(0.0, (took or 0.0) - (now - began.get(name, now))) for name, took in times.items()]
    return max(sum(rest) / min(jobs, max(1, len(rest))), *rest, 0.0)
