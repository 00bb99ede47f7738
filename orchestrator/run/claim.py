"""What may be said of a cell's result, and why no more (design of claims: docs/methodology.md)."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.plan.expand import PlannedCell
from orchestrator.run.provenance import Provenance
from orchestrator.store.record import Claim
from scorers.score import Scores


def claim_of(
    cell: PlannedCell,
    provenance: Provenance,
    scores: Scores,
    *,
    uses_model: bool,
    unproved: str | None,
    build_id: str | None,
    weaknesses: Sequence[str] = (),
) -> Claim:
    """The claim level of one cell: the highest that nothing speaks against, `weaknesses` of its bench
    included.
    """
    if not uses_model:
        return Claim(level="pipeline_only", reasons=("a baseline: no model was asked",))
    if cell.recorded:
        return Claim(
            level="pipeline_only", reasons=(f"a replay of {cell.recorded.cell_id}: no model was asked",)
        )
    if cell.script:
        return Claim(level="pipeline_only", reasons=("a scripted model, served by cab itself",))
    reasons = list(weaknesses)
    if scores.tokens.total_tokens is None:
        reasons.append("not every call stated its tokens")
    if build_id is None:
        reasons.append("the endpoint reported no model build")
    if unproved is not None:
        reasons.append(unproved)
    if provenance.commit is None or provenance.dirty:
        reasons.append("cab ran from a changed checkout or from none")
    return Claim(level="provisional" if reasons else "citable", reasons=tuple(reasons))
