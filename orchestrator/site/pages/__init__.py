"""The pages of the site, a module for each kind. `docs/site.md` is the contract of such a module."""

from __future__ import annotations

from orchestrator.site.pages import (
    badges,
    category,
    cell,
    cli,
    compare,
    condition,
    documents,
    gallery,
    guide,
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
    guide,
    compare,
    gallery,
    cell,
    cli,
    model,
    pair,
    task,
    category,
    sweep,
    condition,
    documents,
    terms,
    provenance,
    snapshots,
    badges,
)
"""Every module whose `pages(source)` the site consists of."""
