"""What agents, endpoints and CLIs wrote stays text on every page that shows it."""

from __future__ import annotations

from pathlib import Path

import pytest
from browsing import Looker, Place
from generated_evidence import MARKUP
from playwright.sync_api import Page

from orchestrator.site import links
from orchestrator.store.cells import read_cell

GROWN = "document.querySelectorAll('[onerror], [onload], img[src=x], script:not([src])').length"
"""Elements that only a text could have become."""


@pytest.fixture(scope="package")
def hostile(generated: Path) -> list[str]:
    """The pages of the cells whose agents wrote markup wherever they could."""
    found = [
        path.parent
        for path in sorted(generated.glob("*/cells/*/*/*/*/diff.patch"))
        if "onerror" in path.read_text()
    ]
    identities = [read_cell(cell).identity for cell in found]
    assert identities
    return [links.cell_page(it.sweep_id, it.key) for it in identities]


def assert_harmless(page: Page) -> None:
    assert page.evaluate("window.hostile") is None
    assert page.evaluate(GROWN) == 0


def test_a_cells_page_shows_it_and_runs_none_of_it(look: Looker, folder: Place, hostile: list[str]) -> None:
    page = look.at(folder, hostile[0])
    page.evaluate("document.querySelectorAll('details').forEach((it) => { it.open = true; })")
    said = page.locator("main").inner_text()
    for text in MARKUP[:4]:
        assert text in said
    assert_harmless(page)


def test_its_replay_and_its_recording_run_none_of_it(look: Looker, folder: Place, hostile: list[str]) -> None:
    page = look.at(folder, hostile[0])
    page.locator("#timeline").focus()
    for _ in range(page.locator("#span-table tbody tr").count()):
        page.keyboard.press("ArrowRight")
    page.locator(".play-recording").click()
    page.locator(".player", has_text="window.hostile").wait_for()
    assert_harmless(page)


def test_the_page_of_conditions_runs_none_of_what_a_scorecard_says(look: Looker, folder: Place) -> None:
    page = look.at(folder, "condition/made-up-run.html")
    said = page.locator("main").inner_text()
    assert MARKUP[1] in said  # the name of a task that no cell ran
    assert MARKUP[2] in said  # a reason of its claim
    assert page.locator("[data-pairs] tbody tr").count() == 3
    assert_harmless(page)


def test_an_address_is_no_way_in(look: Looker, folder: Place, hostile: list[str]) -> None:
    page = look.at(folder, "index.html")
    for name in ("q", "axis", "span", "work"):
        # Another page each time: the same one would not be loaded again for another fragment.
        for path in ("matrix.html", hostile[0], "index.html"):
            fragment = f"{name}=%3Cimg%20src%3Dx%20onerror%3D%22window.hostile%3D1%22%3E"
            page.goto(folder.url(f"{path}#{fragment}"))
            assert_harmless(page)
