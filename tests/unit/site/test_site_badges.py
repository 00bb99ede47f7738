"""Badges and cards: their text fits, nothing in them is markup, and no pipeline check looks like a result."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from site_samples import CLIS, MODELS, TASKS, entry, matrix, results, small

from orchestrator.analysis.units import units_of
from orchestrator.site import links
from orchestrator.site.badge_text import NO_RESULT, of_cell, of_lines
from orchestrator.site.badges import COLOURS, LABEL_GROUND, TEXT, Badge, svg, text_width
from orchestrator.site.build import build
from orchestrator.site.source import Source
from orchestrator.store.names import CellKey

SVG = "{http://www.w3.org/2000/svg}"
KEY = CellKey("codex", "openai/gpt:1", TASKS[0])


def drawn(badge: Badge) -> ElementTree.Element:
    return ElementTree.fromstring(svg(badge))


def source_of(tmp_path: Path, *cells: Any) -> Source:
    return Source.read([results(tmp_path / "results", "free-1", cells)])


def said_of(tmp_path: Path, **changes: Any) -> Any:
    [unit] = units_of(source_of(tmp_path, entry("free-1", KEY, **changes)).frame)
    return of_cell(unit.first)


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("ground", [LABEL_GROUND, *COLOURS.values()])
def test_text_can_be_read_on_every_ground(ground: str) -> None:
    assert (luminance(TEXT) + 0.05) / (luminance(ground) + 0.05) >= 4.5


@pytest.mark.parametrize(
    ("text", "pixels"), [("", 0), ("iiii", 12.2), ("WWWW", 43.5), ("pass 72 %", 56.6), ("漢字", 22.0)]
)
def test_widths_are_those_of_the_font(text: str, pixels: float) -> None:
    assert text_width(text) == pytest.approx(pixels, abs=0.1)


@pytest.mark.parametrize("text", ["x", "a much longer message of many words, 95 % (80–99 %)", "漢字" * 9])
def test_every_text_lies_within_its_ground(text: str) -> None:
    root = drawn(Badge(text, text, "result", "title"))
    label, message = root.iter(f"{SVG}text")
    middle = float(message.attrib["x"]) - 6
    assert float(label.attrib["x"]) + float(label.attrib["textLength"]) <= middle - 6
    assert float(message.attrib["x"]) + float(message.attrib["textLength"]) <= float(root.attrib["width"]) - 6
    # A reader's own font is pressed into that width.
    assert float(label.attrib["textLength"]) == pytest.approx(text_width(label.text or ""), abs=1)


def test_hostile_text_stays_text() -> None:
    hostile = "</title><script>alert(1)</script>\" onload='x' &amp; \x00\x1b[31m \u202egpj"
    root = drawn(Badge(hostile, hostile, "failed", hostile))
    allowed = {f"{SVG}{tag}" for tag in ("svg", "title", "path", "g", "text")}
    assert {element.tag for element in root.iter()} <= allowed
    assert set(root.attrib) == {"width", "height", "viewBox", "role", "aria-label"}
    assert not re.search("[\x00-\x08\x1b\u202e]", svg(Badge(hostile, hostile, "failed", hostile)))


def test_a_badge_tells_those_who_hear_it_what_it_shows() -> None:
    root = drawn(Badge("cab codex", "pass 72 %", "result", "Over 10 tasks."))
    assert root.attrib["role"] == "img"
    assert root.attrib["aria-label"] == root.findtext(f"{SVG}title") == "cab codex: pass 72 %. Over 10 tasks."


def test_what_is_long_is_cut_in_its_middle_and_told_whole() -> None:
    name = f"{'a' * 80}-the-end"
    root = drawn(Badge(name, "x", "result", ""))
    label = next(root.iter(f"{SVG}text")).text or ""
    assert len(label) <= 72
    assert label.endswith("-the-end")
    assert name in root.attrib["aria-label"]


@pytest.mark.parametrize(
    ("changes", "value", "claim", "tone"),
    [
        ({}, "passed", "citable", "passed"),
        ({"passed": 0.0}, "failed", "citable", "failed"),
        ({"passed": 0.0, "void": True, "integrity": 0.0}, "failed, void", "citable", "failed"),
        ({"claim": "imported"}, "passed", "imported", "imported"),
        ({"claim": "provisional"}, "passed", "provisional", "passed"),
        (
            {"outcome": "infra_error", "cause": "rate_limited", "counted": False, "passed": None},
            "did not count (infra error)",
            "citable",
            "unmeasured",
        ),
    ],
)
def test_a_cell_says_what_came_of_it_and_its_claim(
    tmp_path: Path, changes: dict[str, Any], value: str, claim: str, tone: str
) -> None:
    said = said_of(tmp_path, **changes)
    assert (said.value, said.claim, said.tone) == (value, claim, tone)
    assert said.badge("x").message == f"{value}, run 1, {claim}"


@pytest.mark.parametrize("passed", [0.0, 1.0])
def test_a_pipeline_check_says_so_and_no_number(tmp_path: Path, passed: float) -> None:
    said = said_of(tmp_path, claim="pipeline_only", passed=passed)
    assert said.badge("x").message == NO_RESULT
    assert not re.search(r"\d|pass(ed)?\b|fail", said.value + said.title)
    assert said.tone == "pipeline"


def lines(tmp_path: Path, *cells: Any) -> Any:
    return source_of(tmp_path, *cells).summary("pair").lines


def test_a_rate_has_its_interval_its_basis_and_its_claim(tmp_path: Path) -> None:
    cells = matrix("free-1", ["codex"], ["m/one"], TASKS, runs=3)
    message = of_lines(lines(tmp_path, *cells)).badge("x").message
    assert re.fullmatch(r"pass 100 % \(\d+–100 %\), 3 tasks × 3 runs, citable", message)


def test_lost_cells_show_as_coverage_and_as_bounds(tmp_path: Path) -> None:
    whole = matrix("free-1", ["codex"], ["m/one"], TASKS)
    fault = {"outcome": "infra_error", "cause": "engine", "counted": False, "passed": None}
    said = of_lines(lines(tmp_path, *whole[:-1], whole[-1].model_copy(update=fault)))
    assert "coverage 67 %" in said.basis
    assert "66.7 %" in said.title
    assert "100 %" in said.title


def test_scripted_models_give_a_cli_no_number(tmp_path: Path) -> None:
    cells = matrix("free-1", ["codex"], ["embedded/reference"], TASKS, claim="pipeline_only")
    said = of_lines(lines(tmp_path, *cells))
    assert said.badge("codex").message == NO_RESULT
    assert not re.search(r"\d", said.title)


def test_methodology_versions_are_not_merged_in_a_badge(tmp_path: Path) -> None:
    new = matrix("free-1", ["codex"], ["m/one"], TASKS)
    old = matrix("free-1", ["codex"], ["m/one"], ["polyglot/other"], methodology_version="0", passed=0.0)
    said = of_lines(lines(tmp_path, *new, *old))
    assert said.value.startswith("pass 100 %")
    assert "Methodology 1." in said.title
    assert "methodology 0 are not in it" in said.title


def test_every_cell_pair_and_cli_has_a_badge_and_a_card(tmp_path: Path) -> None:
    out = tmp_path / "site"
    build([small(tmp_path / "results")], out)
    pages = [links.cli_page(cli) for cli in CLIS]
    pages += [links.pair_page("codex", "embedded/reference"), links.pair_page("opencode", MODELS[0])]
    keys = [CellKey(cli, MODELS[0], task) for cli in CLIS for task in TASKS[1:]]
    pages += [links.cell_page("free-1", key) for key in keys]
    for page in pages:
        card = (out / links.card(page)).read_text("utf-8")
        ElementTree.parse(out / links.badge(page))
        # A frame runs no script, and says no number without its claim.
        assert "<script" not in card
        assert 'class="claim claim-' in card
    scripted = (out / links.card(links.pair_page("codex", "embedded/reference"))).read_text("utf-8")
    assert NO_RESULT in scripted
    assert " %" not in scripted
