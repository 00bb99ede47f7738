"""Finished cells as analyses see them: whose they are, what they are to a rate, and what may be merged.

Numbers of two *kinds* never share a table: results of models, what scripted models did (a check of the
pipeline), and what baselines did, which ask no model. Nor do those of two methodology versions. A task whose
files differ between two sweeps is two tasks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from orchestrator.analysis.groups import contestant_of, state_of, unjudged
from orchestrator.plan.spec import EMBEDDED
from orchestrator.run.outcome import TABLE
from orchestrator.store.names import NO_MODEL
from orchestrator.store.record import ClaimLevel
from scorers.aggregate import Row

if TYPE_CHECKING:
    import polars as pl

Kind = Literal["result", "baseline", "pipeline"]
KINDS: tuple[Kind, ...] = ("result", "baseline", "pipeline")
ABOUT: dict[Kind, str] = {
    "result": "results of models",
    "baseline": "baselines, which ask no model: checks of tasks, not results",
    "pipeline": "scripted models or replays: checks of the pipeline, not results",
}
"""What each kind is, in the words for a table's heading."""

NO_CONDITION = "none"
"""How the condition of a cell is called that has none."""


class Named(Protocol):
    """What says whose a cell is, finished or planned."""

    @property
    def cli(self) -> str: ...
    @property
    def stack(self) -> str: ...
    @property
    def condition(self) -> str | None: ...
    @property
    def model(self) -> str: ...
    @property
    def task(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Cell:
    """One finished cell. `task` tells apart tasks of one name and different content, where there are such
    among what was read together; `task_name` is the name alone, and `content` the digest of the task's files.
    Times are seconds.

    `row` is what it is to `scorers.aggregate`, by its contestant (the CLI with its stack and condition).
    `unjudged` is one that waits for a verdict, its own or that of another under a condition.
    What was not measured is None. `cost_usd` and the like are of the last attempt, as in the index.
    """

    cell_id: str
    sweep_id: str
    cli: str
    cli_version: str | None
    stack: str
    condition: str | None
    contestant: str
    model: str
    model_builds: tuple[str, ...]
    task: str
    task_name: str
    content: str | None
    outcome: str
    claim: ClaimLevel
    kind: Kind
    methodology: str
    refusal: float | None
    false_refusal: bool | None
    integrity: float | None
    void: bool | None
    input_tokens: int | None
    cost_usd: float | None
    wall_s: float | None
    active_s: float | None
    model_s: float | None
    findings: int | None
    blast: float | None
    record_sha256: str
    unjudged: bool
    row: Row

    @property
    def counted(self) -> bool:
        return self.row.state == "counted"


_COLUMNS = (
    *("cell_id", "sweep_id", "cli", "cli_version", "stack", "condition", "model", "model_builds", "task"),
    *("run", "outcome", "claim", "methodology_version", "passed", "composite", "composite_bounds"),
    *(
        "composite_published",
        "prompt_tokens",
        "total_tokens",
        "cost_usd",
        "wall_clock_ms",
        "container_active_ms",
    ),
    *(
        "model_call_ms",
        "blast_radius_agent",
        "refusal",
        "false_refusal",
        "integrity",
        "void",
        "task_content_hash",
    ),
    *("integrity_findings", "record_sha256"),
)


def cells_of(frame: pl.DataFrame) -> list[Cell]:
    """The cells of a frame of `store.load_frame`, by id. A record that is there twice is taken once.

    While one cell under a condition is unjudged, no verdict of that sweep under any condition counts.
    """
    rows = list(frame.select(_COLUMNS).iter_rows(named=True))
    contents: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        contents[row["task"]].add(row["task_content_hash"] or "")
    partial = {row["sweep_id"] for row in rows if unjudged(row["condition"], row["outcome"], row["passed"])}
    for row in rows:
        if row["condition"] is not None and row["sweep_id"] in partial:
            row.update({**_NO_VERDICT, "unjudged": TABLE[row["outcome"]].counted})
    distinct = {(row["cell_id"], row["record_sha256"]): row for row in rows}
    return [
        _cell(row, contents[row["task"]]) for _, row in sorted(distinct.items(), key=lambda item: item[0])
    ]


_NO_VERDICT = {"passed": None, "composite": None, "composite_bounds": None, "composite_published": None}


def kind_of(model: str, claim: ClaimLevel) -> Kind:
    """Which cells a finished cell may stand beside."""
    kind = kind_of_model(model)
    return "pipeline" if kind == "result" and claim == "pipeline_only" else kind


def kind_of_model(model: str) -> Kind:
    """The kind of cells that a model is planned for."""
    if model == NO_MODEL:
        return "baseline"
    return "pipeline" if model.startswith(EMBEDDED) else "result"


def category_of(task: str) -> str:
    return task.partition("/")[0]


def versions(names: Iterable[str | None]) -> tuple[str, ...]:
    """The distinct names that are known, sorted."""
    return tuple(sorted({name for name in names if name is not None}))


def _cell(row: dict[str, Any], contents: set[str]) -> Cell:
    contestant = contestant_of(row["cli"], row["stack"], row["condition"])
    task = _task(row["task"], row["task_content_hash"], contents)
    bounds = row["composite_bounds"]
    return Cell(
        cell_id=row["cell_id"],
        sweep_id=row["sweep_id"],
        cli=row["cli"],
        cli_version=row["cli_version"],
        stack=row["stack"],
        condition=row["condition"],
        contestant=contestant,
        model=row["model"],
        model_builds=tuple(row["model_builds"] or ()),
        task=task,
        task_name=row["task"],
        content=row["task_content_hash"],
        outcome=row["outcome"],
        claim=row["claim"],
        kind=kind_of(row["model"], row["claim"]),
        methodology=row["methodology_version"],
        refusal=row["refusal"],
        false_refusal=row["false_refusal"],
        integrity=row["integrity"],
        void=row["void"],
        findings=row["integrity_findings"],
        input_tokens=row["prompt_tokens"],
        cost_usd=row["cost_usd"],
        wall_s=_seconds(row["wall_clock_ms"]),
        active_s=_seconds(row["container_active_ms"]),
        model_s=_seconds(row["model_call_ms"]),
        blast=row["blast_radius_agent"],
        record_sha256=row["record_sha256"],
        unjudged=row.get("unjudged", False),
        row=Row(
            cli=contestant,
            model=row["model"],
            task=task,
            run=row["run"],
            state=state_of(row["outcome"], row["passed"]),
            passed=None if row["passed"] is None else int(row["passed"]),
            composite=row["composite"],
            composite_bounds=None if bounds is None else (bounds[0], bounds[1]),
            published=row["composite_published"],
            total_tokens=row["total_tokens"],
        ),
    )


def _task(name: str, content: str | None, contents: set[str]) -> str:
    """A task's name, with the beginning of its digest where there are several of that name."""
    if len(contents) < 2:
        return name
    return f"{name} ({(content or 'unknown').removeprefix('sha256:')[:8]})"


def _seconds(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000
