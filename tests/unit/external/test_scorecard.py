"""Claims hold by construction: what a run may not claim cannot be got out of any of its reports."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from card_samples import CONDITIONS, MARKS, card
from click.testing import CliRunner

from orchestrator.cli import cab
from orchestrator.errors import InputError, StoreError
from orchestrator.external import report, scorecard
from orchestrator.external.results import ClaimLevel, Scorecard, Verdict

FULL = dict(zip(CONDITIONS, (["+--+-0e-"], ["+--++-e-"], ["++++++e+"]), strict=True))
BELOW: tuple[ClaimLevel, ...] = ("dry_run_pipeline_only", "patch_generation_only")


def alone(of: Scorecard) -> Scorecard:
    """The card as it is read where no run is beside it."""
    reasons = (*of.claim.reasons, "taken as it stands: no run is beside it")
    return of.model_copy(update={"claim": of.claim.model_copy(update={"reasons": reasons})})


def everything(of: Scorecard, capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    """Every text that cab makes of a run: files, and what is printed in each form."""
    capsys.readouterr()
    found = {"scorecard.json": scorecard.scorecard_bytes(of).decode()}
    for name, form in (
        ("", {}),
        ("json", {"as_json": True}),
        ("md", {"markdown": True}),
        ("csv", {"as_rows": True}),
    ):
        report.print_card(of, **form)
        found[name] = capsys.readouterr().out
    return found


@pytest.mark.parametrize("level", BELOW)
def test_below_the_harness_nothing_that_is_made_depends_on_any_verdict(
    level: ClaimLevel, capsys: pytest.CaptureFixture[str]
) -> None:
    unjudged = everything(card({name: [" " * 7] for name in CONDITIONS}, level=level), capsys)
    for marks in (("+++++++", "-------", "+++++++"), ("+-e0? +", "+e0-+++", "????+-+")):
        judged = card({name: [of] for name, of in zip(CONDITIONS, marks, strict=True)}, level=level)
        assert everything(judged, capsys) == unjudged


@pytest.mark.parametrize("level", BELOW)
def test_below_the_harness_there_is_no_rate(level: ClaimLevel, capsys: pytest.CaptureFixture[str]) -> None:
    made = everything(card(FULL, level=level), capsys)
    for name, text in made.items():
        assert level in "\n".join(text.splitlines()[:5]), name
        assert "harness_evaluated" not in text
        assert "win/tie/loss" not in text
    assert no_rate(json.loads(made["json"]))
    assert f"no resolved rate: the claim is {level}" in made[""]


def no_rate(data: dict[str, Any]) -> bool:
    """Whether a report in JSON has no rate, no comparison of rates, and says why."""
    rates = [it["resolved"] for it in data["conditions"]]
    pairs = [it["resolved"] for it in data["pairs"]]
    numbers = [it[name] for it in rates for name in ("value", "low", "high")]
    numbers += [
        it[name] for it in pairs for name in ("a", "b", "value", "low", "high", "p", "effect", "needed")
    ]
    numbers += [pair[name] for pair in data["pairs"] for name in ("wins", "ties", "losses")]
    numbers += [flip for pair in data["pairs"] for flip in pair["flips"]]
    return bool(data["withheld"]) and all(it["reason"] for it in rates) and numbers == [None] * len(numbers)


@pytest.mark.parametrize("marks", ["+++++++?", "+++++++ "])
def test_a_partial_run_says_so_has_counts_and_no_rate(marks: str, capsys: pytest.CaptureFixture[str]) -> None:
    made = everything(card({**FULL, "stateplane": [marks]}), capsys)
    for name, text in made.items():
        head = "\n".join(text.splitlines()[:5]).lower()
        assert "partial" in head, name
        assert "win/tie/loss" not in text
    data = json.loads(made["json"])
    assert data["claim"]["partial"] is True
    assert no_rate(data)
    assert data["conditions"][2]["outcomes"] == {
        **dict.fromkeys(("unresolved", "error", "empty_patch"), 0),
        **{"resolved": 7, "incomplete": 1},
    }
    assert "no resolved rate: partial: 1 of 24 results have no verdict" in made[""]


def test_a_result_that_is_not_there_makes_a_run_partial() -> None:
    whole = card(FULL)
    lacking = whole.model_copy(update={"results": whole.results[:-1]})
    assert scorecard.enforced(lacking).claim.partial
    assert scorecard.conditions_of(lacking).withheld == "partial: 1 of 24 results have no verdict"
    assert not scorecard.enforced(whole).claim.partial


def test_a_task_that_was_to_be_run_and_has_no_result_is_submitted() -> None:
    whole = card(FULL, tasks=("org__repo-1", "org__repo-9"))
    assert scorecard.tasks_of(whole)[-1] == "org__repo-9"
    found = scorecard.conditions_of(whole)
    assert found.withheld == "partial: 3 of 27 results have no verdict"
    assert {(it.submitted, it.tasks) for it in found.conditions} == {(9, 9)}


def test_a_run_that_calls_itself_partial_is_believed() -> None:
    assert scorecard.conditions_of(card(FULL, partial=True)).withheld is not None
    assert no_rate(report.as_data(card(FULL, partial=True)))


def test_a_level_that_was_written_by_hand_gives_no_rate_without_verdicts() -> None:
    claimed = card({name: [" " * 8] for name in CONDITIONS})
    assert scorecard.enforced(claimed).claim.partial
    assert no_rate(report.as_data(claimed))


def test_an_evaluated_run_has_all_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    made = everything(card(FULL), capsys)
    data = json.loads(made["json"])
    assert [it["resolved"]["value"] for it in data["conditions"]] == [2 / 8, 3 / 8, 7 / 8]
    assert [(it["wins"], it["ties"], it["losses"]) for it in data["pairs"]] == [
        (1, 7, 0),
        (5, 3, 0),
        (4, 4, 0),
    ]
    assert made[""].startswith("claim: harness_evaluated – ")
    assert made["md"].startswith("**Claim: `harness_evaluated`** – ")
    assert "resolved more often by compact_summary than by transcript_replay: org__repo-5" in made[""]
    assert "no detectable difference in resolved: 8 tasks at as many runs show" in made[""]
    assert "stateplane is worse than transcript_replay in prompt tokens: +800.0 on every task" in made[""]
    assert "| org\\_\\_repo-6 | empty | ✗ | ✓ |" in made["md"]


def test_a_dry_run_compares_prompts_and_nothing_that_an_agent_did() -> None:
    data = report.as_data(card(FULL, level="dry_run_pipeline_only"))
    assert set(data["conditions"][0]["means"]) == {"prompt_tokens"}
    assert {other["measure"] for pair in data["pairs"] for other in pair["others"]} == {"prompt_tokens"}
    patches = report.as_data(card(FULL, level="patch_generation_only"))
    assert set(patches["conditions"][0]["means"]) == {"prompt_tokens", "patch_bytes", "elapsed_s"}


MANY = ("transcript_replay", *(f"stateplane-no_{group}" for group in ("constraints", "decisions", "risks")))
"""Of the last two all tasks resolve, of the first two none."""


def many(**given: Any) -> Scorecard:
    halves = ["-" * 8, "-" * 8, "+" * 8, "+" * 8]
    found = card({**FULL, "stateplane": ["+" * 8]})
    template = found.results[0]
    results = [
        template.model_copy(
            update={
                "instance_id": f"org__repo-{number}",
                "condition": name,
                "verdict": Verdict.model_validate({"outcome": MARKS[mark]}),
            }
        )
        for name, marks in zip(MANY, halves, strict=True)
        for number, mark in enumerate(marks, start=1)
    ]
    return found.model_copy(update={"conditions": MANY, "results": tuple(results), **given})


def test_of_many_conditions_those_beside_the_first_and_those_that_differ_are_in_full() -> None:
    made = report.as_markdown(many())
    full, table = made.split("## Resolved, every two conditions")[0], made.split("## Resolved, every two")[1]
    beside = [
        line.split("|")[1].strip().replace("\\", "")
        for line in full.splitlines()
        if " beside " in line and "|" in line
    ]
    a, b, c, d = MANY
    assert beside[1:] == [f"{it} beside {a}" for it in (b, c, d)] + [f"{it} beside {b}" for it in (c, d)]
    cells = [
        [it.strip() for it in line.split("|")[2:-1]] for line in table.splitlines() if line.startswith("| ")
    ]
    assert cells[:6] == [
        ["1", "2", "3"],
        ["---:", "---:", "---:"],
        ["", "", ""],
        ["0/8/0", "", ""],
        ["8/0/0\\*", "8/0/0\\*", ""],
        ["8/0/0\\*", "8/0/0\\*", "0/8/0"],
    ]
    assert "not here: 15 differences that cannot be told from none, and 1 more pair: --all, --json" in made
    whole = report.as_markdown(many(), every=True)
    assert f"{d} beside {c}".replace("_", "\\_") in whole
    assert "not here: " not in whole
    assert len(report.as_data(many())["pairs"]) == 6


def test_each_result_is_told_with_what_the_harness_said_in_every_form(
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = everything(card(FULL), capsys)
    results = json.loads(made["json"])["results"]
    assert [it["outcome"] for it in results[:8]] == [MARKS[mark] for mark in "+--+-0e-"]
    assert results[5]["instance_id"] == "org__repo-6"
    lines = [line.split() for line in made[""].splitlines() if line.lstrip().startswith("org__repo-")]
    assert ["org__repo-6", "empty", "✗", "✓"] in lines
    assert ["org__repo-7", "error", "error", "error"] in lines
    below = report.as_data(card(FULL, level="patch_generation_only"))["results"]
    assert {it["outcome"] for it in below} == {None}


def test_of_many_tasks_a_terminal_shows_those_that_differ(capsys: pytest.CaptureFixture[str]) -> None:
    wide = card({"compact_summary": ["+" * 40], "stateplane": ["+" * 37 + "--0"]})
    report.print_card(wide)
    shown = capsys.readouterr().out
    tasks = [line.split()[0] for line in shown.splitlines() if line.lstrip().startswith("org__repo-")]
    assert tasks == ["org__repo-38", "org__repo-39", "org__repo-40"]
    assert "40 tasks, of which 3 came out differently and 3 are here" in shown
    report.print_card(wide, every=True)
    shown = capsys.readouterr().out
    assert len([line for line in shown.splitlines() if line.lstrip().startswith("org__repo-")]) == 40


def test_many_conditions_are_numbers_over_the_tasks_of_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    report.print_card(many())
    shown = capsys.readouterr().out
    assert "1 transcript_replay, 2 stateplane-no_constraints, 3 stateplane-no_decisions" in shown
    assert ["org__repo-8", "✗", "✗", "✓", "✓"] in [line.split() for line in shown.splitlines()]


def test_flips_of_several_runs_tell_how_many() -> None:
    made = report.as_markdown(card({"compact_summary": ["+-", "+-"], "stateplane": ["++", "+-"]}))
    assert "org\\_\\_repo-2 (1/2 for 0/2)" in made


def test_csv_has_a_row_for_each_result_and_its_claim() -> None:
    rows = list(csv.DictReader(io.StringIO(report.as_csv(card(FULL)))))
    assert len(rows) == 24
    assert {row["claim"] for row in rows} == {"harness_evaluated"}
    assert [row["outcome"] for row in rows[:8]] == [MARKS[mark] for mark in "+--+-0e-"]
    below = list(csv.DictReader(io.StringIO(report.as_csv(card(FULL, level="patch_generation_only")))))
    assert {(row["outcome"], row["reason"], row["partial"]) for row in below} == {("", "", "False")}
    assert below[0]["patch_bytes"] == "1324"


def test_files_are_written_and_read_again(tmp_path: Path) -> None:
    report.write_reports(tmp_path, card(FULL))
    assert scorecard.read_scorecard(tmp_path) == alone(card(FULL))
    first = (tmp_path / "scorecard.json").read_text("utf-8").splitlines()
    assert "harness_evaluated" in first[2]
    assert (tmp_path / "report.md").read_text("utf-8") == report.as_markdown(card(FULL))
    assert (tmp_path / "report.csv").read_text("utf-8").splitlines()[1].startswith("harness_evaluated,False,")


def test_verdicts_that_a_file_holds_against_its_claim_are_not_read(tmp_path: Path) -> None:
    told = card(FULL, level="patch_generation_only").model_dump_json()
    assert '"resolved"' in told
    (tmp_path / "scorecard.json").write_text(told, "utf-8")
    assert {it.verdict for it in scorecard.read_scorecard(tmp_path).results} == {None}


@pytest.mark.parametrize("raw", ["", "[]", "{", '{"v": 2}', '{"v": 1, "claim": {"level": "proven"}}'])
def test_a_damaged_scorecard_is_one_clear_line(tmp_path: Path, raw: str) -> None:
    (tmp_path / "scorecard.json").write_text(raw, "utf-8")
    with pytest.raises(StoreError, match=r"scorecard\.json: is no scorecard") as error:
        scorecard.read_scorecard(tmp_path)
    assert "\n" not in str(error.value)


def test_a_folder_without_one_is_told_what_to_give(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no scorecard .*--out"):
        scorecard.read_scorecard(tmp_path)


def test_hostile_names_stay_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    hostile = card(FULL, run_id="x\n# Resolved 100 %\u202e", agent="\x1b[31m|a`<b>")
    for name, text in everything(hostile, capsys).items():
        assert "\u202e" not in text, name
        assert "\n# Resolved" not in text
        assert "\x1b" not in text


def test_the_command_prints_what_is_stored_in_one_form(tmp_path: Path) -> None:
    def called(*options: str) -> str:
        done = CliRunner().invoke(
            cab, ["external", "report", str(tmp_path), *options], catch_exceptions=False
        )
        return done.stdout

    report.write_reports(tmp_path, card(FULL))
    read = alone(card(FULL))
    assert called().startswith("claim: harness_evaluated – ")
    assert called("--markdown") == report.as_markdown(read)
    assert called("--csv") == (tmp_path / "report.csv").read_text("utf-8")
    assert json.loads(called("--json")) == json.loads(json.dumps(report.as_data(read)))
    with pytest.raises(InputError, match="three ways to print"):
        called("--json", "--csv")


def test_what_no_agent_made_is_no_result_whatever_level_is_written_by_hand() -> None:
    made_up = card({"stateplane": ["++++++"]})
    results = tuple(it.model_copy(update={"agent_outcome": "not_run"}) for it in made_up.results)
    held = scorecard.enforced(made_up.model_copy(update={"results": results}))
    assert held.claim.level == "dry_run_pipeline_only"
    assert not [it for it in held.results if it.verdict]


@pytest.mark.parametrize(
    ("field", "value"),
    [("runs", 10**9), ("conditions", []), ("elapsed_s", float("nan")), ("prompt_tokens", 10**400)],
)
def test_numbers_that_no_run_has_are_refused(tmp_path: Path, field: str, value: object) -> None:
    data = json.loads(scorecard.scorecard_bytes(card({"stateplane": ["+"]})))
    (data if field in data else data["results"][0])[field] = value
    (tmp_path / "scorecard.json").write_text(json.dumps(data))
    with pytest.raises(StoreError, match=field):
        scorecard.read_scorecard(tmp_path)
