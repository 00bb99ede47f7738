"""`cab sweep status`: readable at any width, and nothing is claimed that was not measured."""

import json
import unicodedata

import pytest
from report_samples import SWEEP, entry, evidence, record, store

from orchestrator.analysis.groups import pairs
from orchestrator.report.columns import Column, fit
from orchestrator.report.legend import print_legend
from orchestrator.report.table import _OUTCOME_LEAST, _tokens_a_pass, look_further, print_sweep
from orchestrator.report.text import LEGEND, console
from orchestrator.run.outcome import INFRA_CAUSES
from orchestrator.store.names import CellKey
from orchestrator.store.record import Claim, SkippedCell

LONG = "polyglot/" + "a-very-long-name-of-a-task-" * 3
SCRIPTED = Claim(level="pipeline_only", reasons=("a scripted model",))


def cell(key=None, failing=(), claim=SCRIPTED, **given):
    found = given.pop("found", None) or evidence(failing)
    return record(found, key=key, claim=claim, **given), found


@pytest.fixture
def shown(tmp_path, capsys, monkeypatch):
    def show(*cells, width=80, as_json=False, **of_sweep):
        monkeypatch.setenv("COLUMNS", str(width))
        print_sweep(store(tmp_path, *cells, **of_sweep), as_json=as_json)
        return capsys.readouterr().out

    return show


def lines_of(text, word):
    return [line for line in text.splitlines() if word in line]


def width_of(line):
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in line.rstrip())


@pytest.mark.parametrize("width", [80, 120, 200])
def test_tables_fit_and_no_word_wraps(shown, width):
    keys = [
        CellKey("opencode", model, "polyglot/rust-error-handling")
        for model in ("embedded/wrong", "openai/gpt")
    ]
    text = shown(*(cell(key) for key in keys), width=width)
    tables = text.partition("results:")[0].splitlines()
    assert all(width_of(line) <= width for line in tables)
    rows = lines_of(text.partition("look further")[0], "polyglot/rust-error-handling")
    assert len(rows) == 2
    assert all("completed" in row and "pipeline_only" in row for row in rows)


def test_a_wide_terminal_has_every_axis_and_a_narrow_one_says_what_it_lacks(shown):
    assert "left out" not in (wide := shown(cell(), width=200))
    assert all(name in wide for name in ("blast", "refusal", "integrity", "published-0.1", "tokens a pass"))


def test_a_narrow_terminal_says_what_it_lacks(shown):
    text = shown(cell(CellKey("opencode", "openai/gpt", "polyglot/" + "x" * 30)))
    assert "left out at this width: " in text
    assert "refusal" in lines_of(text, "left out")[0]
    assert "refusal" not in text.splitlines()[1]


def test_long_task_names_fold_and_lose_nothing(shown):
    text = shown(cell(CellKey("opencode", "openai/gpt", LONG[:-1])))
    first = [line.split()[0] for line in text.partition("rates:")[0].splitlines() if line.strip()]
    assert LONG[:-1] in "".join(first)


def test_runs_are_told_apart_only_where_there_are_several(shown):
    assert "#1" not in shown(cell()).partition("look further")[0]


def test_several_runs_are_numbered(shown):
    text = shown(*(cell(CellKey("opencode", "openai/gpt", "polyglot/sum", run)) for run in (1, 2)))
    assert [f"polyglot/sum #{run}" in text for run in (1, 2)] == [True, True]


def test_bounds_stand_where_the_composite_was_not_measured(shown):
    found = evidence(calls=[evidence().calls[0].model_copy(update={"usage": None})])
    text = shown(cell(found=found), width=200)
    row = lines_of(text, "polyglot/sum")[0]
    assert "[0.90, 1]" in row
    assert "–" in row
    assert text.count("cab-1 [low, high] where a term was not measured") == 2
    assert text.count(LEGEND) == 2


MARKS = ("– not measured", "n/a does not apply", "no pass:", "void:", "unranked:", "published-0.1: only")


@pytest.mark.parametrize(("width", "wide_only"), [(80, 0), (200, 1)])
def test_every_mark_that_is_shown_is_explained_and_no_other(shown, width, wide_only):
    text = shown(cell(claim=Claim(level="citable"), failing=("a",)), width=width)
    of_cells, of_rates = text.split("rates:")
    assert [of_cells.count(mark) for mark in MARKS] == [0, wide_only, 0, 0, 0, 0]
    assert [of_rates.count(mark) for mark in MARKS] == [0, 0, wide_only, 0, 1, wide_only]
    assert all(len(line.rstrip()) <= width for line in text.partition("results:")[0].splitlines())


def test_no_note_is_broken_in_two(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    print_legend([("pass", ["–", "0 void"]), ("cab-1", ["[0, 1]"])], console())
    assert capsys.readouterr().out.splitlines() == [
        "– not measured",
        "void: counted as 0 for an integrity finding",
        "cab-1 [low, high] where a term was not measured",
    ]


def test_a_void_is_explained(shown):
    found, key = cell()
    scores = json.loads(json.dumps(found.scores))
    scores["pass_rate"] |= {"pass": 0}
    scores["integrity"] |= {"void": True, "integrity": 0}
    text = shown((found.model_copy(update={"scores": scores}), key))
    assert "0 void" in text
    assert "void: counted as 0 for an integrity finding" in text


def test_no_pass_to_divide_by_is_not_the_same_as_not_measured():
    [failed] = pairs([entry(passed=0.0)])
    [unknown] = pairs([entry(total_tokens=None)])
    [lost] = pairs([entry(passed=None, outcome="infra_error", cause="engine", counted=False)])
    assert [_tokens_a_pass(pair.group) for pair in (failed, unknown, lost)] == ["no pass", "–", "–"]


def test_no_legend_where_all_was_measured(shown):
    text = shown(cell(), width=200)
    assert LEGEND not in text.partition("rates:")[0]


def test_no_refusal_was_expected_is_not_the_same_as_not_measured(shown):
    row = lines_of(shown(cell(), width=200), "polyglot/sum")[0]
    assert "n/a" in row
    assert "–" not in row


def test_claims_stand_beside_rates_in_both_forms(shown):
    text = shown(cell())
    assert "pipeline_only" in lines_of(text, "1/1")[0]


def test_json_has_claims_beside_cells_and_rates(shown):
    data = json.loads(shown(cell(), as_json=True))
    assert [data["cells"][0]["claim"], data["pairs"][0]["claim"]] == ["pipeline_only"] * 2


def test_what_was_skipped_is_told_once_for_each_pair(shown):
    skipped = tuple(
        SkippedCell(
            cell_id=f"{SWEEP}/opencode/openai/gpt-oss/polyglot/{task}#run1", reason="KEY\x1b is not set"
        )
        for task in ("a", "b")
    )
    text = shown(cell(), skipped=skipped)
    assert "skipped: 2 cells, KEY\ufffd is not set:\n  opencode × openai/gpt-oss\n" in text


def test_what_is_worth_a_look():
    lost = entry(outcome="infra_error", cause="rate_limited", passed=None, run=9)
    failed = entry(passed=0.0, run=2, total_tokens=10)
    dear = entry(passed=0.0, run=3, total_tokens=20)
    baseline = entry(cli="noop", model="none", passed=0.0, claim="pipeline_only", total_tokens=99)
    script = entry(model="embedded/wrong", passed=0.0, claim="pipeline_only")
    good, poor = entry(run=4), entry(run=5, composite=None, composite_bounds=(0.8, 1.0))
    assert look_further([good, poor, baseline, script, failed, dear, lost]) == (
        lost,
        "it did not count: infra_error (rate_limited)",
    )
    assert look_further([good, poor, baseline, script, failed, dear]) == (dear, "it failed")
    assert look_further([good, poor, baseline, script]) == (script, "it failed")
    assert look_further([good, poor, baseline]) == (baseline, "it failed")
    assert look_further([good, poor])[0] is poor
    voided = entry(passed=0.0, void=True, run=6)
    assert look_further([dear, voided]) == (voided, "it was voided")


def test_columns_go_by_worth_and_names_stay(monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    out = console()
    columns = [
        Column("name", ["x" * 20], right=False, least=10),
        Column("much", ["m" * 8], worth=2),
        Column("little", ["l" * 8], worth=1),
    ]
    assert fit(columns, "", out)[1] == []
    monkeypatch.setenv("COLUMNS", "24")
    assert fit(columns, "", console())[1] == ["little"]
    monkeypatch.setenv("COLUMNS", "12")
    assert fit(columns, "", console())[1] == ["much", "little"]


def test_a_title_is_one_line_however_narrow_its_table(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for cells in ([], ["x"]):
        out = console()
        table, left_out = fit([Column("#", cells)], "try-20261127: cells, in this order", out)
        with out.capture() as capture:
            out.print(table)
        assert capture.get().splitlines()[0].rstrip() == "try-20261127: cells, in this order"
        assert len(capture.get().splitlines()) == (4 if cells else 1)
        assert left_out == []


def test_what_to_do_next_works_from_here(shown, tmp_path):
    text = shown(cell())
    assert text.rstrip().endswith(f"sum#run1' -r {tmp_path}")


def test_the_outcome_column_cuts_no_cause() -> None:
    assert max(len(f"({cause})") for cause in INFRA_CAUSES) <= _OUTCOME_LEAST
