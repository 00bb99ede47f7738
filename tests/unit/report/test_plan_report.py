"""`cab sweep plan`: the cells in their order, and what is skipped."""

import json

from orchestrator.plan.spec import SweepSpec
from orchestrator.report.plan import print_plan
from orchestrator.run.start import Matrix

SPEC = {
    "name": "try",
    "clis": ["opencode", "noop"],
    "models": ["embedded/reference", {"id": "openai/gpt", "endpoint": "hosted"}],
    "endpoints": {"hosted": {"base_url": {"env": "CAB_TEST_UNSET"}}},
    "tasks": ["polyglot/python-reverse-string"],
    "runs": 2,
}


def matrix():
    return Matrix.of(SweepSpec.of_data(SPEC), "try-1")


def test_the_plan_in_its_order(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    print_plan(plan := matrix(), as_json=False)
    text = capsys.readouterr().out
    rows = [line.split() for line in text.splitlines() if "polyglot/" in line]
    assert [(row[1], row[4]) for row in rows] == [(c.key.cli, str(c.key.run)) for c in plan.plan.cells]
    assert {row[-1] for row in rows} == {"pipeline_only"}
    assert "skipped: 2 cells, CAB_TEST_UNSET is not set:\n  opencode × openai/gpt\n" in text
    assert all(len(line.rstrip()) <= 80 for line in text.splitlines())


def test_a_model_at_an_endpoint_may_be_citable(capsys, monkeypatch):
    monkeypatch.setenv("CAB_TEST_UNSET", "http://127.0.0.1:1")
    print_plan(matrix(), as_json=False)
    rows = [line for line in capsys.readouterr().out.splitlines() if "openai/gpt" in line]
    assert len(rows) == 2
    assert all(row.rstrip().endswith("citable") for row in rows)


def test_a_plan_of_nothing_is_its_title(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    spec = SPEC | {"clis": ["opencode"], "models": SPEC["models"][1:]}
    print_plan(Matrix.of(SweepSpec.of_data(spec), "try-20261127"), as_json=False)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].rstrip() == "try-20261127: 0 cells, in this order"
    assert lines[1].startswith("skipped: 2 cells")


def test_the_same_as_json(capsys):
    print_plan(plan := matrix(), as_json=True)
    data = json.loads(capsys.readouterr().out)
    assert [cell["cell_id"] for cell in data["cells"]] == [cell.cell_id for cell in plan.plan.cells]
    assert len(data["skipped"]) == 2


ADAPTIVE = SPEC | {
    "clis": ["opencode", "noop", "oracle"],
    "models": ["embedded/reference"],
    "runs": {"min": 2, "max": 12, "until": "ranking"},
}


def test_adaptive_runs_say_how_many_cells_they_may_come_to(capsys):
    plan = Matrix.of(SweepSpec.of_data(ADAPTIVE), "try-1")
    assert {cell.key.run for cell in plan.plan.cells} == {1, 2}
    print_plan(plan, as_json=False)
    text = capsys.readouterr().out
    # The scripted model runs twice, the two baselines may run twelve times.
    assert "runs: 2 to 12, until the ranking is decided: 6 to 26 cells\n" in text
    assert "no pair can be told apart" not in text
    print_plan(plan, as_json=True)
    runs = json.loads(capsys.readouterr().out)["runs"]
    assert runs == {
        "min": 2,
        "max": 12,
        "until": "ranking",
        "cells_min": 6,
        "cells_max": 26,
        "decided_earliest": 9,
    }


def test_a_plan_says_where_adaptive_runs_can_tell_nothing(capsys):
    few = ADAPTIVE | {"runs": {"min": 2, "max": 5, "until": "ranking"}}
    print_plan(Matrix.of(SweepSpec.of_data(few), "try-1"), as_json=False)
    assert "with so few tasks no pair can be told apart before 9 runs" in capsys.readouterr().out
    alone = ADAPTIVE | {"clis": ["opencode"]}
    print_plan(Matrix.of(SweepSpec.of_data(alone), "try-1"), as_json=False)
    text = capsys.readouterr().out
    assert "2 to 2 cells" in text
    assert "no two contestants are ranked: each has the fewest runs" in text
