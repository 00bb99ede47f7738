"""The site of a sweep that ran: a CLI in a container with a scripted model, and one that does nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from browsing import Looker, Place
from command import PYTHON_TASK, Cab
from playwright.sync_api import expect

from orchestrator.site import links
from orchestrator.store.names import CellKey

pytestmark = pytest.mark.docker

SOLVER = CellKey("opencode", "embedded/reference", PYTHON_TASK)


@dataclass(frozen=True)
class Real:
    """A site, and where the cell of the CLI that solved the task is stored and shown."""

    place: Place
    cell: Path
    page: str


@pytest.fixture(scope="module")
def real() -> Iterator[Real]:
    with Cab.own() as cab:
        spec = cab.spec(clis=[SOLVER.cli, "noop"], models=[SOLVER.model], concurrency=2)
        cab.sweep("run", spec).end(0)
        site = cab.root / "site"
        cab.start("site", "build", cab.results, "-o", site).end(0)
        yield Real(
            Place(site, f"{site.as_uri()}/"),
            cab.sweep_dir / "cells" / SOLVER.path(),
            links.cell_page(cab.sweep_id, SOLVER),
        )


def test_each_page_opens_and_leads_to_what_ran(look: Looker, real: Real) -> None:
    page = look.at(real.place, "index.html")
    row = page.locator("section.pipeline-checks tbody tr", has_text=SOLVER.cli)
    expect(row.first).to_contain_text(SOLVER.model)
    expect(page.locator("table[data-board][data-kind=result]")).to_have_count(0)
    for path in real.place.pages("**/*.html"):
        page.goto(real.place.url(path))
        assert page.title(), path


def test_its_cell_plays_and_shows_spans_and_diff(look: Looker, real: Real) -> None:
    page = look.at(real.place, real.page)
    expect(page.locator("#claim")).to_have_attribute("data-claim", "pipeline_only")
    page.locator(".play-recording").click()

    stored = [json.loads(line) for line in (real.cell / "spans.jsonl").read_text("utf-8").splitlines()]
    calls = [it["span_id"] for it in stored if it["kind"] == "model_call"]
    assert calls
    rows = page.locator("#span-table tbody tr")
    shown = rows.evaluate_all("rows => rows.map((row) => row.dataset.id)")
    assert sorted(shown) == sorted(it["span_id"] for it in stored)
    expect(rows.filter(has_text=f"chat {SOLVER.model}")).to_have_count(len(calls))
    expect(page.locator("#timeline rect.span")).to_have_count(len(stored))

    patch = (real.cell / "diff.patch").read_text("utf-8")
    changed = [line for line in patch.splitlines() if line[0] in "+-" and line[:3] not in ("+++", "---")]
    assert changed
    lines = page.locator("pre.diff").inner_text().splitlines()
    assert [line for line in changed if line not in lines] == []

    # What the CLI printed once it had asked the model and used a tool.
    page.locator(".player", has_text="Read src/reverse.py").wait_for()
