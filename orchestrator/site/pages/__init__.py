"""The pages of the site, a module for each kind. `docs/site.md` is the contract of such a module."""

from __future__ import annotations

from orchestrator.site.pages import (
    badges,
    category,
    cell,
    cli,
    documents,
    gallery,
    leaderboard,
    matrix,
    model,
    pair,
    pareto,
    provenance,
    snapshots,
    sweep,
    task,
    terms,
)

MODULES = (
    leaderboard,
    matrix,
    pareto,
    gallery,
    cell,
    cli,
    model,
    pair,
    task,
    category,
    sweep,
    documents,
    terms,
    provenance,
    snapshots,
    badges,
)
"""Every module whose `pages(source)` the site consists of."""
