"""The pages of the site, a module for each kind. `docs/site.md` is the contract of such a module."""

from __future__ import annotations

from orchestrator.site.pages import cell, gallery, leaderboard

MODULES = (leaderboard, cell, gallery)
"""Every module whose `pages(source)` the site consists of."""
