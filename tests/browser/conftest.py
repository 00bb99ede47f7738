"""Debian's chromium without a window, driven by Playwright, and the sites that it looks at."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from browsing import BROWSER, HttpPlace, Looker, Place, served
from generate_results import generate
from generated_run import write_run
from playwright.sync_api import Browser, sync_playwright

from orchestrator.site.build import build

GENERATED_CELLS = 200
"""Asked for; a little more are made, of every kind that pages tell apart."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)


def once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """A folder that the first process of this run to ask for it makes; all others wait, and only read it."""
    base = factory.getbasetemp()
    # Each worker of xdist has a folder of its own in that of the run.
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "shared" / name
    folder.parent.mkdir(exist_ok=True)
    made = folder.with_name(f"{name}.made")
    with folder.with_name(f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            assert not folder.exists(), f"{folder} was begun by a test process that failed at it"
            make(folder)
            made.touch()
    return folder


@pytest.fixture(scope="session")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of cells that were made up, with hostile texts wherever agents write."""
    return once(tmp_path_factory, "generated", lambda folder: generate(folder, GENERATED_CELLS))


@pytest.fixture(scope="session")
def external(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of a made-up run of an external benchmark, with its scorecard beside them."""
    return once(tmp_path_factory, "external", write_run) / "results"


@pytest.fixture(scope="session")
def site(generated: Path, external: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site of both, in a folder below which a server serves it."""
    path = Path("some where") / "results"
    return once(tmp_path_factory, "host", lambda folder: build([generated, external], folder / path)) / path


# Not of the session: as long as Playwright runs, no other test of this process can run an event loop.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if BROWSER is None:
        pytest.fail(
            "no chromium-headless-shell on PATH, nor a browser in CAB_TEST_CHROMIUM: run `make browser`"
        )
    with sync_playwright() as playwright:
        # As root its sandbox does not start; what it opens are this checkout's own pages.
        started = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(scope="module")
def http(site: Path) -> Iterator[HttpPlace]:
    """The site at a sub-path of a web server, as static hosts have them."""
    with served(site.parents[1]) as address:
        yield HttpPlace(site, f"{address}some%20where/results/")


@pytest.fixture(scope="module")
def folder(site: Path) -> Place:
    """The site as files, which somebody has unpacked."""
    return Place(site, f"{site.as_uri()}/")


@pytest.fixture
def look(browser: Browser) -> Iterator[Looker]:
    """Opens pages, and fails the test at its end for whatever went wrong in one of them unseen."""
    looker = Looker(browser)
    yield looker
    looker.close()
    assert looker.problems == []
