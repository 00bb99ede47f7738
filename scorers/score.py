"""All axes of one cell, and the composites derived from them."""

from __future__ import annotations

from typing import Any

from scorers import (
    METHODOLOGY_VERSION,
    blast_radius,
    composite,
    integrity,
    latency,
    pass_rate,
    refusal,
    tokens,
)
from scorers.blast_radius import BlastRadius
from scorers.composite import Composite
from scorers.evidence import Evidence, Model, TaskFacts
from scorers.integrity import Integrity
from scorers.latency import Latency
from scorers.pass_rate import PassRate
from scorers.refusal import Refusal
from scorers.tokens import Tokens


class Scores(Model):
    """One object per axis with the published keys and cab's own, and the composites derived from them."""

    methodology_version: str = METHODOLOGY_VERSION
    pass_rate: PassRate
    tokens: Tokens
    latency: Latency
    blast_radius: BlastRadius
    refusal: Refusal
    integrity: Integrity
    composite: Composite
    composite_published: Composite

    def by_axis(self) -> dict[str, dict[str, Any]]:
        """One JSON object an axis, as a record holds them."""
        return self.model_dump(mode="json", by_alias=True, exclude={"methodology_version"})


def score(task: TaskFacts, evidence: Evidence, *, outcome_counts: bool) -> Scores:
    """Score one cell. Where its outcome is not counted, measured axes stand and the composites are null."""
    honest = integrity.score(task, evidence)
    refused = refusal.score(task, evidence)
    result = pass_rate.score(task, evidence, refused, honest)
    spent = tokens.score(evidence, result.passed)
    took = latency.score(evidence)
    blast = blast_radius.score(task, evidence)
    if outcome_counts:
        default = composite.cab_1_of(
            task, result=result, tokens=spent, latency=took, blast=blast, integrity=honest
        )
        published = composite.published_of(result, spent, took, blast, refused)
    else:
        default, published = composite.uncounted(composite.CAB_1), composite.uncounted(composite.PUBLISHED)
    return Scores(
        pass_rate=result,
        tokens=spent,
        latency=took,
        blast_radius=blast,
        refusal=refused,
        integrity=honest,
        composite=default,
        composite_published=published,
    )
