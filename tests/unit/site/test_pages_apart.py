"""Pages that several processes make: the same bytes, and a fault is told as where one process makes them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from cell_samples import KEY, evidence, record, store

from orchestrator.errors import StoreError
from orchestrator.site import apart, build
from orchestrator.site.output import Page
from orchestrator.site.pages import cell, leaderboard
from orchestrator.store.names import CellKey


def pages(amount: int) -> list[Page]:
    return [Page(f"{at}.html", "none", dict, (), apart=True) for at in range(amount)]


@pytest.fixture
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})


@pytest.mark.usefixtures("two_cores")
def test_other_processes_make_many_pages_in_their_order(tmp_path: Path) -> None:
    def make(page: Page) -> int:
        (tmp_path / page.path).write_text(str(os.getpid()))
        return int(page.path.removesuffix(".html"))

    many = pages(apart.LEAST + 30)
    with apart.made_apart(many, make) as made:
        assert [(page.path, size) for page, size in made] == [(page.path, at) for at, page in enumerate(many)]
    assert str(os.getpid()) not in {path.read_text() for path in tmp_path.iterdir()}


@pytest.mark.usefixtures("two_cores")
def test_what_a_worker_cannot_make_is_left_to_the_caller(tmp_path: Path) -> None:
    def make(page: Page) -> int:
        if page.path == "7.html":
            raise ValueError("this one")
        if page.path == "90.html":
            os._exit(9)
        return 1

    with apart.made_apart(pages(apart.LEAST), make) as made:
        sizes = [size for _, size in made]
    assert sizes[7] is None
    assert sizes[90] is None
    assert len(sizes) == apart.LEAST


@pytest.mark.usefixtures("two_cores")
def test_a_page_that_asks_a_frame_is_left_to_the_caller_and_does_not_hang() -> None:
    frame = pl.DataFrame({"a": range(1000)})

    def make(page: Page) -> int:
        if page.path == "7.html":
            return frame.sort("a").filter(pl.col("a") > 1).height
        return 1

    with apart.made_apart(pages(apart.LEAST), make) as made:
        assert [page.path for page, size in made if size is None] == ["7.html"]
    assert frame.height == 1000


@pytest.mark.usefixtures("two_cores")
def test_when_the_caller_is_interrupted_the_rest_is_not_made(tmp_path: Path) -> None:
    def make(page: Page) -> int:
        time.sleep(0.05)
        (tmp_path / page.path).touch()
        return 1

    with pytest.raises(KeyboardInterrupt), apart.made_apart(pages(10 * apart.LEAST), make):
        raise KeyboardInterrupt
    assert len(list(tmp_path.iterdir())) < apart.LEAST


@pytest.mark.usefixtures("two_cores")
def test_workers_leave_an_interrupt_to_the_caller() -> None:
    def make(_: Page) -> int:
        os.kill(os.getpid(), signal.SIGINT)
        return 1

    with apart.made_apart(pages(apart.LEAST), make) as made:
        assert {size for _, size in made} == {1}


def test_workers_end_with_a_caller_that_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "caller.py"
    script.write_text(
        "import os, time\n"
        "from pathlib import Path\n"
        "from orchestrator.site import apart\n"
        "from orchestrator.site.output import Page\n"
        "os.sched_getaffinity = lambda _: {0, 1}\n"
        "def make(page):\n"
        f"    Path({str(tmp_path)!r}, f'{{os.getpid()}}.pid').touch()\n"
        "    time.sleep(60)\n"
        "with apart.made_apart([Page('x', '', dict, (), apart=True)] * apart.LEAST, make):\n"
        "    time.sleep(60)\n"
    )
    caller = subprocess.Popen([sys.executable, script])
    try:
        wait_until(lambda: len(list(tmp_path.glob("*.pid"))) == 2)
    finally:
        caller.kill()
        caller.wait()
    workers = [Path("/proc", path.stem) for path in tmp_path.glob("*.pid")]
    wait_until(lambda: not any(_runs(worker) for worker in workers))


def wait_until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def _runs(process: Path) -> bool:
    try:
        return (process / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.usefixtures("two_cores")
def test_a_system_without_semaphores_leaves_all_pages_to_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object, **__: object) -> None:
        raise FileNotFoundError(2, "no such file")

    monkeypatch.setattr("multiprocessing.synchronize.SemLock.__init__", none)
    with apart.made_apart(pages(apart.LEAST), lambda _: 1) as made:
        assert {size for _, size in made} == {None}


def test_few_pages_are_left_to_the_caller() -> None:
    def make(_: Page) -> int:
        raise AssertionError

    with apart.made_apart(pages(3), make) as made:
        assert [size for _, size in made] == [None] * 3


@pytest.mark.usefixtures("two_cores")
def test_a_site_is_the_same_and_a_fault_is_told_whoever_makes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "MODULES", (leaderboard, cell))
    found = evidence()
    keys = [CellKey(KEY.cli, KEY.model, KEY.task, run) for run in (1, 2, 3)]
    results = store(tmp_path / "results", *((record(found, key=key), found) for key in keys))
    build.build([results], tmp_path / "alone")
    monkeypatch.setattr(apart, "LEAST", 2)
    build.build([results], tmp_path / "together")
    of_both = [
        {path.relative_to(site): path.read_bytes() for path in site.rglob("*") if path.is_file()}
        for site in (tmp_path / "alone", tmp_path / "together")
    ]
    assert of_both[0] == of_both[1]

    [damaged, *_] = sorted(results.rglob("evidence.json"))
    damaged.write_text("{")
    with pytest.raises(StoreError, match=r"evidence\.json"):
        build.build([results], tmp_path / "third")
