"""Images that do not stand on each other are built at the same time, none before what it stands on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from docker.errors import APIError, ImageNotFound

from orchestrator.errors import NotAllBuilt
from orchestrator.sandbox.images import Layout, Lock, Progress, build, load_lock
from orchestrator.sandbox.images.builder import _left

WAIT_S = 20.0


class Engine:
    """An engine whose builds end when `let_go` lets them; `together` is how many there were at once."""

    def __init__(self, let_go: Callable[[str], None]) -> None:
        self._let_go = let_go
        self._lock = threading.Lock()
        self._now = 0
        self.together = 0
        self.order: list[str] = []
        self.made: dict[str, list[str]] = {}
        self.api = SimpleNamespace(build=self._build)
        self.images = SimpleNamespace(get=self._get, list=lambda **_: [])
        self.containers = SimpleNamespace(create=self._create)

    def _build(self, *, fileobj: Any, **_: Any) -> Iterator[dict[str, Any]]:
        name = next(name for name in NAMES if f"NAME={name}\n".encode() in fileobj.getvalue())
        with self._lock:
            self._now += 1
            self.together = max(self.together, self._now)
            self.order.append(name)
        try:
            yield {"stream": f"Step 1/1 : RUN {name}\n"}
            self._let_go(name)
        finally:
            with self._lock:
                self._now -= 1
                self.order.append(f"{name} ended")
        self.made[f"sha256:{name}"] = []
        yield {"aux": {"ID": f"sha256:{name}"}}

    def _get(self, name: str) -> Any:
        for image_id, tags in self.made.items():
            if name in (image_id, *tags):
                attributes = {"Size": 1, "Created": "2026-11-28T00:00:00Z", "RepoDigests": []}
                return SimpleNamespace(id=image_id, tags=tags, tag=tags.append, labels={}, attrs=attributes)
        raise ImageNotFound(name)

    def _create(self, *_: Any, **__: Any) -> Any:
        def start() -> None:
            raise APIError('exec: "sh": executable file not found in $PATH')

        return SimpleNamespace(start=start, remove=lambda **_: None)


NAMES = ("base", "one", "two", "three")


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = Layout(tmp_path)
    for name in NAMES:
        (layout.images / name).mkdir(parents=True)
        above = "FROM scratch" if name == "base" else "ARG BASE\nFROM ${BASE}"
        (layout.images / name / "Dockerfile").write_text(f"{above}\nENV NAME={name}\n")
    (layout.images / "base" / "base.pin").write_text('image = "debian"\nsuite = "x"\nepoch = 1\n')
    return layout


def built(layout: Layout, engine: Any, jobs: int, events: list[Progress] | None = None) -> Lock:
    tell = [] if events is None else events
    return build(jobs=jobs, layout=layout, client=engine, on_progress=tell.append)


def test_as_many_as_are_asked_for_are_under_way_at_once_on_a_base_that_is_there(layout: Layout) -> None:
    both = threading.Barrier(2, timeout=WAIT_S)
    pairs = iter(range(2))

    def let_go(name: str) -> None:
        if name != "base" and next(pairs, None) is not None:
            both.wait()  # the first two go on together, or never

    engine = Engine(let_go)
    events: list[Progress] = []
    lock = built(layout, engine, 2, events)
    assert engine.together == 2
    assert engine.order[:2] == ["base", "base ended"]
    assert set(lock.images) == set(NAMES)
    assert load_lock(layout.lock) == lock
    places = {(it.image, it.at, it.of) for it in events}
    assert places == {("base", 1, 4), ("one", 2, 4), ("two", 4, 4), ("three", 3, 4)}


def test_one_at_a_time_is_one_at_a_time(layout: Layout) -> None:
    engine = Engine(lambda _: None)
    built(layout, engine, 1)
    assert engine.together == 1
    assert engine.order[::2] == ["base", "one", "three", "two"]


def test_what_fails_beside_others_fails_alone(layout: Layout) -> None:
    def let_go(name: str) -> None:
        if name == "two":
            raise APIError("no space left")

    with pytest.raises(NotAllBuilt, match="no space left"):
        built(layout, Engine(let_go), 3)
    assert set(load_lock(layout.lock).images) == {"base", "one", "three"}


def test_a_fault_that_nobody_foresaw_ends_the_call(layout: Layout) -> None:
    def let_go(_: str) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        built(layout, Engine(let_go), 2)


@pytest.mark.parametrize(
    ("times", "jobs", "left"),
    [
        ({}, 2, 0.0),
        ({"a": 10.0}, 2, 10.0),
        ({"a": 10.0, "b": 20.0, "c": 30.0}, 1, 60.0),
        ({"a": 10.0, "b": 20.0, "c": 30.0}, 2, 30.0),
        ({"a": 10.0, "b": 10.0, "c": 50.0}, 2, 50.0),
        ({"a": 10.0, "b": None}, 2, None),
    ],
)
def test_the_time_left_is_shared_among_the_jobs(
    times: dict[str, float | None], jobs: int, left: float | None
) -> None:
    assert _left(times, {}, jobs) == left
