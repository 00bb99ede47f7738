"""The first page: all pairs of CLI and model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from orchestrator.site import links
from orchestrator.site.output import Page
from orchestrator.site.source import Source


def pages(source: Source) -> Iterator[Page]:
    yield Page(links.INDEX, "leaderboard.html", lambda: _context(source), (source.digest,))


def _context(source: Source) -> dict[str, Any]:
    pairs = source.frame.group_by("cli", "model", "claim").agg(pl.len().alias("cells"))
    return {"pairs": pairs.sort("cli", "model", "claim").to_dicts()}
