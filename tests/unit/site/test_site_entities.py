"""Pages of one CLI, model, pair, task, category or sweep: nothing is merged that may not be."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from site_samples import MODELS, TASKS, entry, matrix, results, small

from orchestrator.report.text import count
from orchestrator.site import entities, links
from orchestrator.site.addresses import LEFT_OUT, sayable
from orchestrator.site.build import build
from orchestrator.site.pages.sweep import left_out
from orchestrator.site.source import Source
from orchestrator.store.cells import SWEEP, CellStore
from orchestrator.store.names import CellKey
from orchestrator.store.record import BudgetSet, SkippedCell, to_json

FAULT: dict[str, Any] = {"outcome": "infra_error", "cause": "engine", "counted": False, "passed": None}
HOSTILE = "<script>alert(1)</script>\u202e\"'&"


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """codex with two models and a scripted one, two methodology versions, several runs, faults, a stack."""
    folder = tmp_path_factory.mktemp("entities")
    pair = {"clis": ["codex"], "models": ["m/one"], "tasks": TASKS}
    cells = matrix("new-1", **pair, runs=3)
    cells[0] = cells[0].model_copy(update={"passed": 0.0})
    cells[4] = cells[4].model_copy(update=FAULT)
    cells[8] = cells[8].model_copy(update={"passed": 0.0, "void": True, "integrity": 0.0})
    cells += matrix("new-1", ["codex"], ["m/two"], TASKS[:1], model_builds=(HOSTILE, "two fp_1"))
    cells += matrix("new-1", ["codex"], ["m/one"], TASKS, stack="rules", passed=0.0)
    cells += matrix("new-1", ["codex"], ["embedded/reference"], TASKS, claim="pipeline_only", cost_usd=None)
    given = results(folder / "results", "new-1", cells)
    results(given, "old-1", matrix("old-1", **pair, methodology_version="0", passed=0.0))
    build([given], folder / "site")
    return folder / "site"


def page(out: Path, path: str) -> str:
    return (out / path).read_text("utf-8")


def sections(text: str) -> dict[str, str]:
    """The parts of a page by their headings."""
    found = re.findall(
        r'<section( class="pipeline-checks")? aria-labelledby="h-([^"]*)">(.*?)</section>', text, re.S
    )
    return {name: body for _, name, body in found}


PAIR = links.pair_page("codex", "m/one")
PAGES = (
    links.cli_page("codex"),
    links.model_page("m/one"),
    PAIR,
    links.task_page(TASKS[0]),
    links.category_page("polyglot"),
)


@pytest.mark.parametrize("path", PAGES)
def test_two_methodology_versions_never_share_a_table(out: Path, path: str) -> None:
    text = page(out, path)
    found = sections(text)
    assert {"result-0", "result-1"} <= set(found)
    # No table of rates or of cells stands outside of a part.
    outside = re.sub(r"<section.*?</section>", "", text, flags=re.S)
    assert 'class="rates"' not in outside
    assert 'class="grid"' not in outside
    for table in re.findall(r"<table.*?</table>", found["result-1"], re.S):
        assert "old-1" not in table
    assert "Results, methodology 1" in found["result-1"]


def test_a_pipeline_check_stands_apart_under_its_banner(out: Path) -> None:
    text = page(out, links.cli_page("codex"))
    found = sections(text)
    assert "embedded/reference" in found["pipeline-1"]
    assert 'data-claim="pipeline_only"' in found["pipeline-1"]
    assert "embedded/reference" not in found["result-1"]
    scripted = sections(page(out, links.model_page("embedded/reference")))
    assert list(scripted) == ["pipeline-1"]


def test_a_rate_has_its_claim_interval_coverage_and_bounds(out: Path) -> None:
    body = sections(page(out, PAIR))["result-1"]
    [row] = re.findall(r'<tr><th scope="row"><a[^>]*>codex × m/one</a></th>(.*?)</tr>', body, re.S)
    cells = [
        " ".join(unescape(re.sub("<[^>]*>", " ", cell)).split())
        for cell in re.findall("<td.*?</td>", row, re.S)
    ]
    claim, rate, counted, coverage, bounds, runs = cells[:6]
    assert claim == "unranked"
    assert re.fullmatch(r"77\.8 % \[[\d.]+ %, [\d.]+ %\]", rate)
    assert (counted, coverage, runs) == ("8/9", "88.9 %", "2–3")
    assert bounds == "66.7 % – 77.8 %"


def test_every_cell_of_a_pair_is_told_by_mark_and_in_words(out: Path) -> None:
    body = sections(page(out, PAIR))["result-1"]
    boxes = re.findall(r'class="box (\w+)"[^>]*title="([^"]*)">([^<]*)<', body)
    told = {title: (state, mark) for state, title, mark in boxes}
    assert told["run 1: failed"] == ("failed", "✗ 1")
    assert told["run 2: did not count (infra error)"] == ("uncounted", "– 2")
    assert told["run 3: failed, void"] == ("void", "⊘ 3")
    assert sum(state == "passed" for state, title, _ in boxes if title.startswith("run")) == 6


def test_repeats_are_told_as_far_as_every_task_has_them(out: Path) -> None:
    body = sections(page(out, PAIR))["result-1"]
    rows = re.findall(
        r'<th scope="row" class="num">(\d)</th><td class="num">([^<]*)</td><td class="num">([^<]*)</td>', body
    )
    assert [row[0] for row in rows] == ["1", "2"]
    assert rows[0][1] == rows[0][2] == "77.8 %"
    assert rows[1][1:] == ("100 %", "55.6 %")


def test_a_stack_is_a_contestant_of_its_own(out: Path) -> None:
    plain, stacked = page(out, links.cli_page("codex")), page(out, links.cli_page("codex+rules"))
    assert 'href="../cli/codex+rules.html"' in plain
    assert 'href="../cli/codex.html"' in stacked
    assert "0 %" in sections(stacked)["result-1"]


def test_a_cli_says_how_it_is_run_and_what_it_takes(out: Path) -> None:
    text = page(out, links.cli_page("codex"))
    assert "Apache-2.0" in text
    assert re.search(r'<th scope="row">mcp</th><td><span class="ok">yes</span>', text)
    assert re.search(r"wire</a></dt><dd>responses", text)


def test_more_builds_than_one_are_told_and_hostile_ones_are_text(out: Path) -> None:
    text = page(out, links.model_page("m/two"))
    assert "More than one build answered." in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;\ufffd&#34;&#39;&amp;" in text
    assert "<script>alert" not in text


def test_a_task_shows_its_contents_and_refuses_to_mix_them(tmp_path: Path) -> None:
    keys = [CellKey("codex", "m/one", TASKS[0], run) for run in (1, 2)]
    other = "sha256:" + "b" * 64
    cells = [entry("a-1", keys[0]), entry("a-1", keys[1], at=1, task_content_hash=other, passed=0.0)]
    build([results(tmp_path / "results", "a-1", cells)], tmp_path / "site")
    text = page(tmp_path / "site", links.task_page(TASKS[0]))
    assert "a" * 64 in text
    assert "b" * 64 in text
    assert "polyglot/sum (aaaaaaaa)" in text
    assert "polyglot/sum (bbbbbbbb)" in text
    assert "1/2" not in text


def test_a_task_of_this_cab_shows_what_is_asked(tmp_path: Path) -> None:
    task = "integrity/ambiguous-ticket"
    given = results(tmp_path / "results", "a-1", [entry("a-1", CellKey("codex", "m/one", task), refusal=1.0)])
    build([given], tmp_path / "site")
    text = page(tmp_path / "site", links.task_page(task))
    assert "<strong>yes</strong>: it cannot be done as asked" in text
    assert '<pre class="instruction"' in text
    # Neither the canary nor anything else that is hidden from agents.
    assert "cab-canary" not in text


def test_what_a_plan_left_out_is_told_by_reason() -> None:
    ids = [f"a-1/codex/m/one/polyglot/{name}#run1" for name in ("x", "y")]
    cells = [SkippedCell(cell_id=cell_id, reason="no key") for cell_id in ids]
    cells.append(SkippedCell(cell_id="a-1/aider/m/one/polyglot/x#run1", reason="a wire"))
    found = left_out(cells)
    assert [(it.reason, it.cells, it.pairs) for it in found] == [
        ("a wire", 1, ("aider × m/one",)),
        ("no key", 2, ("codex × m/one",)),
    ]


def test_a_sweep_says_what_is_planned_spent_and_not_finished(out: Path) -> None:
    text = page(out, links.sweep_page("new-1"))
    assert "drawn with seed 1 and recorded" in text
    assert "Nothing was." in text
    assert 'href="../data/sweep/new-1.json"' in text
    assert "completed</a> 15, " in text
    assert "infra_error</a> 1" in text


def test_a_page_of_a_pair_changes_with_its_own_cells_alone(tmp_path: Path) -> None:
    source = Source.read([small(tmp_path / "results")])
    of = {(unit.first.contestant, unit.first.model): unit for unit in source.units}
    assert entities.inputs(source, [of["codex", MODELS[0]]]) != entities.inputs(
        source, [of["opencode", MODELS[0]]]
    )
    assert all(len(entities.inputs(source, [unit])) == len(unit.cells) for unit in source.units)


def test_a_sweep_says_nothing_of_machines_that_its_endpoints_are_on(tmp_path: Path) -> None:
    given = small(tmp_path / "results")
    path = given / "free-1" / "sweep.json"
    stored = json.loads(path.read_bytes())
    stored["spec"] = {
        "models": [{"id": model, "endpoint": "mine"} for model in MODELS],
        "endpoints": {
            "mine": {"base_url": {"url": "http://gpu-box.lan:8000/v1", "env": None}, "wire": "chat"},
            "service": {"base_url": {"url": "https://api.provider.example/v1", "env": None}},
            "named": {"base_url": {"url": None, "env": "GPU_URL"}},
        },
    }
    path.write_text(json.dumps(stored))
    build([given], tmp_path / "site")
    for one in (tmp_path / "site").rglob("*"):
        assert not one.is_file() or b"gpu-box" not in one.read_bytes(), one
    published = json.loads((tmp_path / "site" / "data" / "sweep" / "free-1.json").read_bytes())
    for name in ("named", "service"):
        assert published["spec"]["endpoints"][name] == stored["spec"]["endpoints"][name]
    assert {**published, "spec": stored["spec"]} == stored


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("https://api.provider.example/v1", True),
        ("http://localhost:8000", True),
        ("http://127.0.0.1:8000", True),
        ("http://[::1]:8000", True),
        ("http://10.0.0.7:8000", False),
        ("http://[fd00::7]/v1", False),
        ("http://gpu-box:8000", False),
        ("http://GPU.corp/v1", False),
        ("http://gpu.internal./v1", False),
        ("https://user:word@api.provider.example", False),
        ("https://api.provider.example/?key=word", False),
        ("http://[nothing", False),
    ],
)
def test_an_address_is_said_where_it_is_a_services(url: str, said: bool) -> None:
    assert sayable(url) == (url if said else LEFT_OUT)


def test_findings_and_refusals_stand_beside_every_rate(tmp_path: Path) -> None:
    """One found twice, one declined a task that can be done, one pair has a cell that was not read."""
    cells = matrix("free-1", ["codex", "pi"], ["m"], TASKS, false_refusal=False, integrity_findings=0)
    cells[0] = cells[0].model_copy(update={"integrity_findings": 2})
    cells[1] = cells[1].model_copy(update={"passed": 0.0, "false_refusal": True})
    cells[2] = cells[2].model_copy(update={"refusal": 1.0, "false_refusal": None})
    cells[4] = cells[4].model_copy(update={"integrity": None, "void": None, "integrity_findings": None})
    given = results(tmp_path, "free-1", cells)
    build([given], tmp_path / "site")
    text = page(tmp_path / "site", links.sweep_page("free-1"))
    heads, codex, pi = (
        [" ".join(re.sub("<[^>]*>", "", it).split()) for it in re.findall("<t[hd].*?</t[hd]>", row, re.S)]
        for row in re.findall("<tr>.*?</tr>", text[text.index('class="rates"') :], re.S)[:3]
    )
    names = ("void", "findings", "right refusals", "false refusals")
    assert [codex[heads.index(name)] for name in names] == ["0", "2", "1/1", "1/2"]
    unread = "–not measured: 1 of 3 cells could not be read for findings"
    assert [pi[heads.index(name)] for name in names] == [unread, unread, "n/a", "0/3"]
    grid = page(tmp_path / "site", links.cli_page("codex"))
    assert "1 of 1 counted run passed, 2 integrity findings" in grid


def test_a_sweep_tells_its_budget_and_what_it_was_raised_to(tmp_path: Path) -> None:
    given = results(tmp_path, "free-1", matrix("free-1", ["codex"], ["m"], TASKS))
    record = CellStore(given, "free-1").sweep()
    at = record.started_at
    (given / "free-1" / SWEEP).write_bytes(
        to_json(record.model_copy(update={"budgets": (BudgetSet(at=at, tokens=9000, usd=None),)}))
    )
    build([given], tmp_path / "site")
    said = f"none at the start<br>budget from {at:%Y-%m-%d %H:%M} UTC: {count(9000)} tokens</dd>"
    assert said in page(tmp_path / "site", links.sweep_page("free-1"))
