"""The pages of the site, a module for each kind. `docs/site.md` is the contract of such a module."""

from __future__ import annotations

from orchestrator.site.pages import (
    badges,
    cell,
    documents,
    gallery,
    leaderboard,
    provenance,
    snapshots,
    terms,
)

MODULES = (
    leaderboard,
    cell,
    gallery,
    documents,
    terms,
    provenance,
    snapshots,
    badges,
)
"""Every module whose `pages(source)` the site consists of."""
