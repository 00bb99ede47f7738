"""The page of a sweep's conditions: rates and pairs where the claim allows them, and never below it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from html import unescape
from pathlib import Path

import pytest
from site_samples import entry, matrix, results

from orchestrator.external.report import write_reports
from orchestrator.external.results import Claim, ClaimLevel, Scorecard, TaskResult, Verdict
from orchestrator.site import glossary, links
from orchestrator.site.build import build
from orchestrator.store.names import CellKey

SWEEP = "swebench-1"
PATH = links.condition_page(SWEEP)
MARKS = {"transcript_replay": "+--+----", "compact_summary": "+--++---", "stateplane": "++++++-+"}
OUTCOMES = {"+": "resolved", "-": "unresolved", "?": "incomplete"}


def key(condition: str, number: int) -> CellKey:
    return CellKey("codex", "v/one", f"swebench/org__repo-{number}", 1, "none", condition)


def run_of(folder: Path, marks: Mapping[str, str], level: ClaimLevel | None = None) -> Path:
    """A run's directory: its sweep, with the verdicts that there are, and its scorecard; of no level none."""
    cells, found = [], []
    for condition, of in marks.items():
        for number, mark in enumerate(of, start=1):
            judged = mark != "?" and level != "patch_generation_only"
            verdict = {"passed": float(mark == "+")} if judged else {"passed": None, "composite": None}
            cells.append(entry(SWEEP, key(condition, number), at=len(cells), claim="provisional", **verdict))
            found.append(
                TaskResult(
                    instance_id=f"org__repo-{number}",
                    condition=condition,
                    run=1,
                    cell_id=cells[-1].cell_id,
                    agent_outcome="completed",
                    prompt_tokens=900 + 10 * number * len(condition),
                    context_tokens=9,
                    patch_bytes=1300,
                    patch_lines=20,
                    elapsed_s=20.0,
                    verdict=Verdict.model_validate({"outcome": OUTCOMES[mark]}),
                )
            )
    results(folder / "results", SWEEP, cells)
    if level is not None:
        card = Scorecard(
            run_id=SWEEP,
            benchmark="swebench",
            agent="codex",
            model="v/one",
            conditions=tuple(marks),
            runs=1,
            claim=Claim(level=level),
            results=tuple(found),
        )
        write_reports(folder, card)
    return folder


def page(folder: Path) -> str:
    build([folder / "results"], folder / "site")
    return (folder / "site" / PATH).read_text("utf-8")


def rows(text: str, caption: str) -> list[list[str]]:
    """The rows of the table of this caption, as texts."""
    [table] = [it for it in re.findall(r"<table.*?</table>", text, re.S) if f">{caption}" in it]
    return [
        [
            " ".join(unescape(re.sub("<[^>]*>", " ", it)).split())
            for it in re.findall("<t[hd].*?</t[hd]>", row, re.S)
        ]
        for row in re.findall("<tr>.*?</tr>", table, re.S)
    ]


def test_an_evaluated_run_is_told_with_rates_pairs_and_flips(tmp_path: Path) -> None:
    text = page(run_of(tmp_path, MARKS, "harness_evaluated"))
    assert "Claim: harness_evaluated – patches were judged" in text
    head, *lines = rows(text, "Each condition")
    assert head[:5] == ["condition", "tasks", "runs", "resolved", "n resolved"]
    assert [line[0] for line in lines] == list(MARKS)
    assert re.fullmatch(r"87\.5 % \[52\.9 %, 97\.8 %\]", lines[2][3])
    assert lines[2][4:9] == ["7", "1", "0", "0", "0"]
    pairs = {line[0]: line for line in rows(text, "What every two resolved")[1:]}
    assert pairs["stateplane beside transcript_replay"][1:4] == ["8", "5/3/0", "+0.625"]
    assert pairs["stateplane beside transcript_replay"][-1] == "no detectable difference"
    assert "to see the observed +0.625, about 11 tasks" in text
    flip = re.search(r"Tasks that differ: .*?org__repo-5.*?</li>", text, re.S)
    assert flip is not None
    assert unescape(re.sub("<[^>]*>", "", flip[0])).startswith(
        "Tasks that differ: org__repo-5 ✗: run 1: unresolved → ✓: run 1: resolved"
    )
    took = rows(text, "What they took")[1:]
    assert {line[1] for line in took} == {"tokens of the prompt", "patch bytes", "elapsed s"}


@pytest.mark.parametrize(
    ("marks", "level", "why"),
    [
        (MARKS, "patch_generation_only", "the claim is patch_generation_only"),
        (
            {**MARKS, "stateplane": "++++++-?"},
            "harness_evaluated",
            "partial: 1 of 24 results have no verdict",
        ),
        ({**MARKS, "stateplane": "++++++-?"}, None, "partial: 24 of 24 results have no verdict"),
    ],
)
def test_without_all_verdicts_no_page_of_the_site_has_a_rate(
    tmp_path: Path, marks: Mapping[str, str], level: ClaimLevel | None, why: str
) -> None:
    text = page(run_of(tmp_path, marks, level))
    assert f"<strong>No resolved rate:</strong> {why}." in text
    assert "win/tie/loss" not in text
    assert ">resolved</th>" not in text.replace(">n resolved</th>", "")
    for path in (tmp_path / "site").rglob("*"):
        # The glossary's sentences and the composites' made-up cells are no results.
        if path.suffix in (".html", ".svg") and path.name not in ("methodology.html", "glossary.html"):
            told = re.sub(r"\b(?:95|80|100|0|5)\s%", "", path.read_text("utf-8"))
            assert re.findall(r"\d\s%", told) == [], path


def test_cells_alone_are_told_in_the_order_that_the_sweep_asked_for(tmp_path: Path) -> None:
    text = page(run_of(tmp_path, MARKS))
    _, *lines = rows(text, "Each condition")
    assert {line[0] for line in lines} == set(MARKS)
    assert "data-external-claim" not in text
    assert {line[1] for line in rows(text, "What they took")[1:]} == {"input tokens", "elapsed s"}
    assert "swebench/org__repo-5" in text


def test_a_scorecard_of_other_cells_is_not_taken(tmp_path: Path) -> None:
    run_of(tmp_path / "other", {"a": "+" * 8, "b": "-" * 8}, "harness_evaluated")
    run_of(tmp_path, MARKS)
    (tmp_path / "scorecard.json").write_bytes((tmp_path / "other" / "scorecard.json").read_bytes())
    assert "data-external-claim" not in page(tmp_path)


def test_a_changed_scorecard_makes_the_page_again(tmp_path: Path) -> None:
    assert "No resolved rate" not in page(run_of(tmp_path, MARKS, "harness_evaluated"))
    told = (tmp_path / "scorecard.json").read_text("utf-8")
    (tmp_path / "scorecard.json").write_text(told.replace('"resolved"', '"incomplete"', 1), "utf-8")
    assert "partial: 1 of 24 results" in page(tmp_path)


def test_a_scorecard_that_does_not_agree_with_its_run_gives_no_rate(tmp_path: Path) -> None:
    before = page(run_of(tmp_path, MARKS, "harness_evaluated"))
    assert "What every two resolved" in before
    asked = {
        "benchmark": "swebench",
        "source": {"file": True},
        "conditions": [*MARKS],
        "runs": 1,
        "mode": "cli",
    }
    asked |= {
        "tasks": {f"org__repo-{number}": "" for number in range(1, 9)},
        "agent": "codex",
        "model": "v/one",
    }
    (tmp_path / "metadata.json").write_text(json.dumps({"v": 1, "run_id": SWEEP, "asked": asked}))
    text = unescape(page(tmp_path))
    assert (
        "IN DOUBT – the scorecard does not agree with the run beside it: the run beside it cannot be read"
        in text
    )
    assert "No resolved rate:</strong> the scorecard does not agree with the run beside it." in text
    assert "What every two resolved" not in text
    assert str(tmp_path) not in text


def test_a_scorecard_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    run_of(tmp_path, MARKS)
    (tmp_path / "scorecard.json").write_text("{")
    text = unescape(page(tmp_path))
    assert "No claim: scorecard.json: is no scorecard" in text
    assert str(tmp_path) not in text


def test_the_page_of_the_sweep_leads_there_and_one_without_conditions_has_none(tmp_path: Path) -> None:
    run_of(tmp_path, MARKS)
    results(tmp_path / "results", "free-1", matrix("free-1", ("codex",), ("v/one",), ("polyglot/sum",)))
    page(tmp_path)
    swebench, free = (
        (tmp_path / "site/sweep" / f"{name}.html").read_text("utf-8") for name in (SWEEP, "free-1")
    )
    assert f'href="../{PATH}"' in swebench
    assert "condition/" not in free
    assert [path.name for path in (tmp_path / "site/condition").iterdir()] == [f"{SWEEP}.html"]


def test_every_word_over_a_column_is_in_the_glossary(tmp_path: Path) -> None:
    text = page(run_of(tmp_path, MARKS, "harness_evaluated"))
    heads = {
        unescape(re.sub("<[^>]*>", "", head)).strip()
        for head in re.findall(r'<th scope="col"[^>]*>(.*?)</th>', text, re.S)
    }
    assert {head for head in heads - set(MARKS) if glossary.find(head) is None} == {
        "measure",
        "the first",
        "the second",
    }
