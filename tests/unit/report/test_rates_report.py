"""`cab report` and `cab compare`: on stored sweeps, at any width, in pipes, as JSON and as Markdown."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner
from report_samples import FACTS, SWEEP, evidence, record, store
from rich.cells import cell_len

from orchestrator.cli import cab
from orchestrator.errors import InputError, StoreError
from orchestrator.report.markdown import escaped
from orchestrator.store.names import CellKey
from orchestrator.store.record import Claim, SkippedCell
from scorers.evidence import FinalMessage, ModelCall

SCRIPTED = Claim(level="pipeline_only", reasons=("a scripted model",))
TASKS = [f"polyglot/t{number}" for number in range(8)]


def cell(cli, task, passed, model="openai/gpt", run=1, **given):
    found = evidence(() if passed else ("a",))
    facts = FACTS.model_copy(update={"task": task})
    return record(found, key=CellKey(cli, model, task, run), facts=facts, **given), found


def lost(cli, task, model="openai/gpt", run=1):
    call = ModelCall(index=0, start=2, end=4, request_hash="h", error="rate_limited", error_detail="no")
    found = evidence(calls=[call])
    return record(
        found, key=CellKey(cli, model, task, run), outcome="infra_error", cause="rate_limited"
    ), found


@pytest.fixture
def stored(tmp_path):
    """Two CLIs on eight tasks: aider fails seven, opencode one. A scripted model and a baseline."""
    cells = [cell("aider", task, task == TASKS[0]) for task in TASKS]
    cells += [cell("opencode", task, task != TASKS[0]) for task in TASKS]
    cells += [cell("aider", TASKS[0], False, "embedded/wrong", claim=SCRIPTED)]
    cells += [cell("oracle", TASKS[0], True, "none", claim=SCRIPTED)]
    left_out = (SkippedCell(cell_id=f"{SWEEP}/aider/openai/big/{TASKS[0]}#run1", reason="no key"),)
    store(tmp_path, *cells, skipped=left_out)
    return tmp_path


def called(results, *words, width=160):
    done = CliRunner(env={"COLUMNS": str(width)}).invoke(
        cab, [*words, "-r", str(results)], catch_exceptions=False
    )
    assert done.exit_code == 0, done.output
    return done.stdout


def row(text, name):
    [line] = [line for line in text.splitlines() if line.startswith(name)][:1]
    return line.split()


def test_each_pair_has_its_rate_with_all_that_stands_beside_it(stored):
    text = called(stored, "report")
    assert row(text, "opencode × openai/gpt")[3:9] == ["8", "1", "8/8", "0.875", "[0.53,", "0.98]"]
    assert row(text, "aider × openai/gpt")[3:7] == ["8", "1", "8/8", "0.125"]
    assert "95 % intervals of pass: Wilson" in text
    assert f"1 sweep: {SWEEP}" in text
    assert "skipped: 1 cell, no key:\n  aider × openai/big" in text


def test_pipeline_checks_stand_apart_and_say_what_they_are(stored):
    text = called(stored, "report", "--by", "cli")
    results, baselines, scripted = text.split("by cli: ")[1:]
    assert results.startswith("results of models; methodology 1; over the 8 units that all attempted")
    assert baselines.startswith("baselines, which ask no model: checks of tasks, not results")
    assert scripted.startswith("scripted models or replays: checks of the pipeline, not results")
    assert "oracle" not in results + scripted
    assert "pipeline_only" not in results


def test_findings_stand_beside_what_they_voided(stored):
    head, *_ = [line for line in called(stored, "report", width=200).splitlines() if "wall s" in line]
    assert head.split()[-7:] == ["void", "findings", "refused", "falsely", "infra", "not", "run"]
    [line] = [
        line for line in called(stored, "report", width=200).splitlines() if line.startswith("aider × openai")
    ][1:]
    assert line.split()[-6:] == ["0", "0", "n/a", "0/8", "0", "0"]


@pytest.mark.parametrize("width", [56, 80, 120, 200])
def test_tables_fit_their_width(stored, width):
    text = called(stored, "report", width=width)
    tables = [line for line in text.splitlines() if "×" in line or "──" in line]
    assert tables
    assert all(cell_len(line.rstrip()) <= width for line in tables)
    assert ("left out at this width" in text) == (width < 80)
    # What stands beside every rate has a table of its own where it is no part of a wide one.
    assert ({"findings", "refused", "falsely", "void"} <= set(text.split())) == (width >= 80)
    heads = sum(line.startswith("CLI × model") for line in text.splitlines())
    assert width == 120 or heads == 3 * (2 if width == 200 else 3)
    assert row(text, "opencode")[-1] in ("unranked", "openai/gpt", "0")


def test_lost_cells_show_as_coverage_and_bounds(tmp_path):
    store(
        tmp_path,
        *(cell("aider", task, True) for task in TASKS[:6]),
        lost("aider", TASKS[6]),
        lost("aider", TASKS[7]),
    )
    text = called(tmp_path, "report", SWEEP)
    assert row(text, "aider × openai/gpt")[5:] == [
        "6/8",
        "1",
        "[0.61,",
        "1]",
        "[0.75,",
        "1]",
        *row(text, "aider")[-2:],
    ]
    assert "if lost: with all infra cells as failed, and as passed" in text


def test_what_says_nothing_is_a_dash_with_its_reason(tmp_path):
    """Imported cells have no cab-1 and no bounds of it; of a CLI that never ran no cell was lost."""
    never = evidence()
    passed, found = cell("aider", TASKS[0], True)
    nothing = {**passed.scores, "composite": {"composite": None, "bounds": None}}
    store(
        tmp_path,
        (passed.model_copy(update={"scores": nothing}), found),
        lost("aider", TASKS[1]),
        (
            record(never, key=CellKey("goose", "openai/gpt", TASKS[0]), outcome="skipped", cause="no_key"),
            never,
        ),
    )
    text = called(tmp_path, "report")
    assert row(text, "aider × openai/gpt")[5:] == [
        *("1/2", "1", "[0.21,", "1]", "[0.50,", "1]", "–"),
        *row(text, "aider")[-1:],
    ]
    assert row(text, "goose × openai/gpt")[5:9] == ["0/0", "–", "–", "–"]
    assert "cab-1 –: composite of 1 of 1 counted cells not known; no counted run" in text
    assert "if lost: with all infra cells as failed, and as passed; –: no cell was attempted" in text
    by_sweep = called(tmp_path, "sweep", "status", SWEEP)
    assert "[0, 1]" not in by_sweep


def test_runs_show_their_spread(tmp_path):
    store(
        tmp_path,
        *(cell("aider", task, task != TASKS[0] or run == 2, run=run) for task in TASKS for run in (1, 2)),
    )
    text = called(tmp_path, "report")
    assert "pass@2" in text
    assert "mixed: passed in some runs, not in others" in text


def test_bars_and_colours_are_for_terminals(stored, monkeypatch):
    assert "█" not in called(stored, "report")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    on_terminal = called(stored, "report")
    assert "████████▊" in on_terminal
    assert "\x1b[" in on_terminal
    monkeypatch.setenv("NO_COLOR", "1")
    colourless = called(stored, "report")
    assert "█" in colourless
    assert "\x1b[3" not in colourless


def test_a_report_as_json_has_every_number(stored):
    data = json.loads(called(stored, "report", "--by", "task", "--json"))
    assert (data["sweeps"], data["by"], len(data["skipped"])) == ([SWEEP], "task", 1)
    [first, *_] = data["tables"][0]["lines"]
    assert first["name"] == TASKS[0]
    assert first["pass_rate"] == {
        "value": 0.5,
        "low": pytest.approx(0.0945, abs=1e-4),
        "high": pytest.approx(0.9055, abs=1e-4),
        "method": "Wilson",
        "reason": None,
    }
    assert first["usd_per_solved"]["reason"] == "cost of 2 of 2 counted cells not known"


def test_a_report_as_markdown_is_a_table(stored):
    text = called(stored, "report", "--markdown", width=40)
    assert "| opencode × openai/gpt | 8 | 1 | 8/8 | 0.875 | \\[0.53, 0.98\\] |" in text
    assert "| --- | ---: |" in text


def test_hostile_names_are_no_markup():
    assert escaped("a|b<script>*[x](y)_`") == r"a\|b\<script\>\*\[x\](y)\_\`"


def test_one_version_of_the_methodology_can_be_asked_for(stored):
    assert "methodology 1" in called(stored, "report", "--methodology", "1")
    with pytest.raises(InputError, match="no result is of version '7'"):
        called(stored, "report", "--methodology", "7")


def test_a_sweep_that_is_not_there_is_named(stored):
    with pytest.raises(StoreError, match="did you mean"):
        called(stored, "report", SWEEP[:-1])


def test_a_sweep_of_which_nothing_is_finished_is_told(tmp_path):
    store(tmp_path)
    with pytest.raises(InputError, match="no cell is finished"):
        called(tmp_path, "report")


def test_two_clis_are_compared_in_words_and_numbers(stored):
    text = called(stored, "compare", "aider", "opencode")
    assert "B, opencode, beside A, aider: results of models; methodology 1" in text
    assert "over 8 shared tasks; runs of each: A 1, B 1; lost to infra errors: A 0, B 0" in text
    # Seven tasks differ one way and one the other: 2 × (1 + 8) ÷ 2⁸.
    assert row(text, "pass ") == [
        "pass",
        "0.125",
        "0.875",
        "+0.750",
        "[+0.14,",
        "+1.00]",
        "0.07",
        "0.07",
        "no",
        *["detectable", "difference"],
    ]
    assert "no detectable difference in pass: 8 tasks at as many runs show" in text
    assert "cost, cost a pass: not measured in 16 of 16 counted cells" in text


def test_a_verdict_is_one_sentence(tmp_path):
    store(tmp_path, *(cell(cli, task, cli == "opencode") for cli in ("aider", "opencode") for task in TASKS))
    assert "opencode is better than aider in pass: +1.000 [" in called(
        tmp_path, "compare", "aider", "opencode"
    )
    assert "aider is worse than opencode in pass: -1.000 [" in called(
        tmp_path, "compare", "opencode", "aider"
    )
    by_category = called(tmp_path, "compare", "aider", "opencode", "--by", "category")
    assert row(by_category, "polyglot")[-1] == "better"


def test_few_shared_tasks_have_no_verdict(tmp_path):
    store(tmp_path, *(cell(cli, task, cli == "aider") for cli in ("aider", "opencode") for task in TASKS[:5]))
    text = called(tmp_path, "compare", "aider", "opencode")
    assert "no verdict on pass: fewer than 6 shared tasks" in text


def test_two_results_directories_of_one_sweep_id_are_compared(tmp_path):
    for name, passed in (("before", False), ("after", True)):
        store(tmp_path / name, *(cell("aider", task, passed) for task in TASKS))
    a, b = (str(tmp_path / name / SWEEP) for name in ("before", "after"))
    data = json.loads(called(tmp_path, "compare", a, b, "--json"))
    [found] = data["comparisons"]
    assert (found["pass_rate"]["a"], found["pass_rate"]["b"], found["pass_rate"]["verdict"]) == (
        0,
        1,
        "better",
    )
    assert (data["a"]["cells"], data["min_tasks"], data["alpha"], data["power"]) == (8, 6, 0.05, 0.8)
    with pytest.raises(InputError, match="both sides have the same cells"):
        called(tmp_path, "compare", a, a)


def test_a_comparison_as_markdown(stored):
    text = called(stored, "compare", "aider", "opencode", "--markdown")
    assert "| pass | 0.125 | 0.875 | +0.750 | \\[+0.14, +1.00\\] |" in text
    assert "- no detectable difference in pass" in text


def test_false_refusals_stand_beside_the_right_ones(tmp_path):
    """Of four tasks that can be done one was declined; a fifth was scored before that was measured."""
    cells = [cell("aider", task, False) for task in TASKS[:5]]
    declined = cells[0][1].model_copy(
        update={
            "changes": [],
            "diff": "",
            "final_message": FinalMessage(text="I cannot do this.", source="wire"),
        }
    )
    facts = FACTS.model_copy(update={"task": TASKS[0]})
    cells[0] = record(declined, key=CellKey("aider", "openai/gpt", TASKS[0], 1), facts=facts), declined
    del cells[4][0].scores["refusal"]["false_refusal"]
    store(tmp_path, *cells)
    text = called(tmp_path, "report", width=200)
    assert "falsely: refused, of the cells whose task can be done" in text
    [_, line] = [line for line in text.splitlines() if line.startswith("aider × openai")]
    assert line.split()[-4:] == ["n/a", "1/4", "0", "0"]
    [found] = json.loads(called(tmp_path, "report", "--json"))["tables"][0]["lines"]
    assert found["refusals"] == {"right": 0, "partly": 0, "missed": 0, "false": 1, "attempted": 3}
    assert "false" in called(tmp_path, "sweep", "status", SWEEP, width=250)
    told = called(tmp_path, "cell", "show", cells[0][0].cell_id)
    assert "failed: it declined a ticket that can be done" in told
    assert "the final message declines a task that can be done" in told


def test_void_and_findings_are_not_told_of_what_could_not_be_read(tmp_path):
    """A diff that was cut off is not without findings, nor without severe ones."""
    cut = evidence().model_copy(update={"diff_truncated": True})
    facts = FACTS.model_copy(update={"task": TASKS[0]})
    store(tmp_path, (record(cut, key=CellKey("aider", "openai/gpt", TASKS[0], 1), facts=facts), cut))
    text = called(tmp_path, "report", width=200)
    [_, line] = [line for line in text.splitlines() if line.startswith("aider × openai")]
    assert line.split()[-6:-4] == ["–", "–"]
    assert "void and findings lack 1 cell that could not be read for findings" in text
