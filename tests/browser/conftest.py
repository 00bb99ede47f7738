"""Debian's chromium, driven by Playwright, and the sites that it looks at."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from browsing import BROWSER, HttpPlace, Looker, Place, served
from generate_results import generate
from playwright.sync_api import Browser, sync_playwright

from orchestrator.site.build import build

GENERATED_CELLS = 200
"""Asked for; a little more are made, of every kind that pages tell apart."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of cells that were made up, with hostile texts wherever agents write."""
    results = tmp_path_factory.mktemp("generated") / "results"
    generate(results, GENERATED_CELLS)
    return results


@pytest.fixture(scope="session")
def site(generated: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site of them, in a folder below which a server serves it."""
    folder = tmp_path_factory.mktemp("host") / "some where" / "results"
    build([generated], folder)
    return folder


# Not of the session: as long as Playwright runs, no other test of this process can run an event loop.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if BROWSER is None:
        pytest.fail("no chromium on PATH, nor in CAB_TEST_CHROMIUM: run `make browser`")
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
