"""The record of a published cell and of its sweep: what was printed, and a reason for what was not."""

from __future__ import annotations

import re
from collections.abc import Sequence

from orchestrator.errors import InputError
from orchestrator.run.outcome import Outcome, stored_outcome
from orchestrator.run.published_scores import NOT_TOLD, NOT_VISIBLE, axes_of, recompute
from orchestrator.store.published import PublishedCell, Row, rows_digest
from orchestrator.store.record import (
    OF_THE_RUNNER,
    Cab,
    CellRecord,
    Claim,
    Identity,
    ImportedCell,
    ImportedSweep,
    SweepRecord,
    Timing,
)
from scorers.composite import PUBLISHED

NOTICES: tuple[tuple[re.Pattern[str], Outcome], ...] = (
    (re.compile(r"provider rate limit\b.*\b429\b"), Outcome("infra_error", "rate_limited")),
    (re.compile(r"model incompatible with CLI\b"), Outcome("incompatible", "handshake")),
    (re.compile(r"run timed out\b"), Outcome("timed_out")),
)
"""How a published notice begins, and what it says by cab's outcome table."""


def outcome_of(cell: PublishedCell, place: str) -> Outcome:
    """What happened to a published cell, from its notice and its agent's exit code.

    Raises InputError for a notice that is not in `NOTICES`: whether its cell counts cannot be guessed.
    """
    if cell.notice is not None:
        for begins, outcome in NOTICES:
            if begins.match(cell.notice):
                return Outcome(outcome.name, outcome.cause, f"published notice: {cell.notice}")
        raise InputError(
            f"notice: {cell.notice!r} is none whose meaning is known",
            place=place,
            mend="add it to NOTICES in orchestrator/run/published_record.py",
        )
    if cell.agent_exit_code:
        return Outcome("agent_crashed", detail=f"exit code {cell.agent_exit_code}")
    return Outcome("completed", detail="published without a notice")


def record_of(row: Row, index: int, cab: Cab, place: str) -> CellRecord:
    cell = row.cell
    outcome = outcome_of(cell, place)
    duration_s = (cell.ended_at - cell.started_at).total_seconds()
    return CellRecord(
        # The rules by which it was scored are the publisher's, not cab's.
        methodology_version=PUBLISHED,
        identity=_identity(row, cab),
        outcome=stored_outcome(outcome),
        claim=Claim(level="imported", reasons=("published by others; cab neither ran nor graded it",)),
        isolation=None,
        timing=Timing(started_at=cell.started_at, ended_at=cell.ended_at, duration_s=duration_s),
        scores=axes_of(cell, counted=outcome.rule.counted),
        order_index=index,
        imported=_imported(cell),
    )


def _identity(row: Row, cab: Cab) -> Identity:
    cell, key = row.cell, row.key
    return Identity(
        cell_id=row.cell_id,
        sweep_id=cell.sweep_id,
        cli=key.cli,
        cli_version=None,
        model=key.model,
        task=key.task,
        run=key.run,
        behaviour_mode=None,
        container_image=cell.container_image,
        image_digest=cell.image_digest,
        digest_kind=None,
        verifier_digest=None,
        task_content_hash=None,
        cab=cab,
        model_build_id=None,
        platform=None,
        engine_version=None,
        limits=None,
        concurrency=None,
        exit_code=cell.agent_exit_code,
    )


def _imported(cell: PublishedCell) -> ImportedCell:
    recomputed = recompute(cell)
    untold = (
        *OF_THE_RUNNER,
        "isolation",
        "digest_kind",
        "verifier_digest",
        "model_build_id",
        "engine_version",
    )
    reasons = dict.fromkeys(untold, NOT_TOLD)
    if cell.container_image is not None:
        del reasons["container_image"]
    seen = {
        "container_image": cell.container_image,
        "image_digest": cell.image_digest,
        "exit_code": cell.agent_exit_code,
        "printed": cell.composite_shown,
        "printed_exact": cell.composite_exact,
    }
    reasons |= {name: NOT_VISIBLE for name, value in seen.items() if value is None}
    if cell.notice is None:
        reasons["notice"] = "published without one"
    if recomputed.composite is None:
        reasons["recomputed"] = recomputed.reasons["composite"]
    return ImportedCell(
        published_id=cell.cell_id,
        notice=cell.notice,
        printed=cell.composite_shown,
        printed_exact=cell.composite_exact,
        recomputed=recomputed.composite,
        reasons=reasons,
    )


def sweep_of(sweep_id: str, rows: Sequence[Row], cab: Cab) -> SweepRecord:
    untold = ("spec", "spec_digest", "seed", "concurrency", "machine", "pins", "tasks", "adapters")
    return SweepRecord(
        sweep_id=sweep_id,
        started_at=min(row.cell.started_at for row in rows),
        spec=None,
        spec_digest=None,
        pins={},
        order=tuple(row.cell_id for row in rows),
        seed=None,
        concurrency=None,
        cab=cab,
        machine=None,
        imported=ImportedSweep(rows_digest=digest_of(rows), reasons=dict.fromkeys(untold, NOT_TOLD)),
    )


def digest_of(rows: Sequence[Row]) -> str:
    return rows_digest((row.cell_id, row.source) for row in rows)
