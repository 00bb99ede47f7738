"""The pages of the site, a module for each kind. `docs/site.md` is the contract of such a module."""

from __future__ import annotations

from orchestrator.site.pages import cell, compare, gallery, guide, leaderboard, matrix, pareto

MODULES = (leaderboard, matrix, pareto, guide, compare, cell, gallery)
"""Every module whose `pages(source)` the site consists of."""
