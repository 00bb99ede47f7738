"""The site's words for claims: what each allows to be said."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Claim:
    """A claim level: its name, its word in tables, the head of its banner, and what it means."""

    level: str
    word: str
    banner: str
    about: str


CLAIMS = {
    claim.level: claim
    for claim in (
        Claim(
            "citable",
            "citable",
            "These results may be cited.",
            "Pinned image, real endpoint or a local model known by its digest, tokens from the wire, a "
            "proven task; a rate also needs 3 runs of each task and 95 % coverage.",
        ),
        Claim(
            "unranked",
            "unranked",
            "Measured, and not ranked.",
            "Each cell is citable, the rate is not: fewer than 3 runs of a task, or coverage below 95 %.",
        ),
        Claim(
            "provisional",
            "provisional",
            "Provisional: not for citation.",
            "Run without a pinned container or with open egress, or with something else unproven: a first "
            "look, not for citation.",
        ),
        Claim(
            "imported",
            "imported",
            "Results of others.",
            "Published by others and shown as they published it; what they did not publish is not known.",
        ),
        Claim(
            "pipeline_only",
            "pipeline check",
            "A pipeline check, not a result.",
            "A scripted or replayed model, or a baseline that asks none: it tests tasks and pipeline, and "
            "says nothing of any CLI or model.",
        ),
    )
}
"""By level, the strongest first."""
