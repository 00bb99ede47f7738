"""A made-up run of an external benchmark: its sweep of conditions, and its scorecard with hostile texts."""

from __future__ import annotations

from pathlib import Path

from generate_results import Moulds, Plan, write_sweep
from generated_evidence import MARKUP, facts_of

from orchestrator.external.report import write_reports
from orchestrator.external.results import Claim, Scorecard, TaskResult, Verdict
from orchestrator.store.names import CellKey

SWEEP = "made-up-run"
CLI, MODEL = "made-up-cli-a", "made-up/xlarge-1"
"""A model that no other made-up sweep has, and the last by name: their pairs stay comparable."""
TASKS = 8
_SOLVED = {"transcript_replay": (1, 4), "compact_summary": (1, 4, 5), "stateplane": (1, 2, 3, 4, 5, 6, 8)}
"""Of the tasks from 1 on, by condition."""


def write_run(directory: Path) -> Path:
    """Write the run into a new directory; where its results are.

    What a scorecard says of tasks and reasons is what its maker wrote: here it is markup.
    """
    keys = [
        CellKey(CLI, MODEL, f"made-up-swebench/task-{number}", 1, "none", condition)
        for condition in _SOLVED
        for number in range(1, TASKS + 1)
    ]
    ways = {
        key: "solved" if int(key.task.rpartition("-")[2]) in _SOLVED[str(key.condition)] else "failed"
        for key in keys
    }
    facts = {key.task: facts_of(key.task, "made-up-swebench", 1) for key in keys}
    root = directory / "results"
    root.mkdir(parents=True)
    moulds = Moulds(directory / ".moulds", facts)
    write_sweep(root, Plan(SWEEP, keys, day=60, fixed=ways), moulds)
    write_reports(directory, _card(ways))
    return root


def _card(ways: dict[CellKey, str]) -> Scorecard:
    """Every task of the sweep, and one that no cell ran, whose name is markup."""
    of_cells = [
        _result(key.task.partition("/")[2], str(key.condition), way == "solved", key.cell_id(SWEEP))
        for key, way in ways.items()
    ]
    aside = [_result(MARKUP[1], condition, condition == "stateplane", None) for condition in _SOLVED]
    return Scorecard(
        run_id=MARKUP[0],
        benchmark="swebench",
        agent=CLI,
        model=MODEL,
        conditions=tuple(_SOLVED),
        runs=1,
        claim=Claim(level="harness_evaluated", reasons=(MARKUP[2],)),
        results=(*of_cells, *aside),
    )


def _result(name: str, condition: str, resolved: bool, cell_id: str | None) -> TaskResult:
    carried = 900 * (1 + list(_SOLVED).index(condition))
    return TaskResult(
        instance_id=name,
        condition=condition,
        run=1,
        cell_id=cell_id,
        agent_outcome="completed",
        prompt_tokens=600 + carried,
        context_tokens=carried,
        patch_bytes=1300 + len(name),
        patch_lines=20,
        elapsed_s=20.0 + len(condition),
        input_tokens=40_000 + 7 * carried,
        verdict=Verdict(outcome="resolved" if resolved else "unresolved", reason=MARKUP[3]),
    )
