"""What the site was made of, and how anybody checks it: commits, machines, a digest for each record."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import polars as pl

from orchestrator.site import links
from orchestrator.site.output import File, Page
from orchestrator.site.source import Source
from orchestrator.store.names import NO_MODEL


def pages(source: Source) -> Iterator[Page | File]:
    yield Page(links.PROVENANCE, "provenance.html", lambda: _context(source), (source.everything,))
    yield File(links.RECORDS_JSON, _records(source))
    yield File(links.RECORDS_SUMS, source.sums)


def _context(source: Source) -> dict[str, Any]:
    return {
        "digest": source.digest,
        "cells": len(source.frame),
        "sweeps": list(source.sweeps.values()),
        "cells_of": dict(source.frame.group_by("sweep_id").len().iter_rows()),
        "images": _images(source),
        "tasks": _tasks(source),
        "models": _models(source),
        "example": _example(source),
        "last": source.frame["ended_at"].max(),
    }


def _example(source: Source) -> str | None:
    """A cell that can be scored again and replayed; None where all were imported or are baselines."""
    stored = pl.col("counted") & (pl.col("claim") != "imported") & (pl.col("model") != NO_MODEL)
    cells = source.frame.filter(stored)["cell_id"]
    return str(cells[0]) if len(cells) else None


def _images(source: Source) -> list[dict[str, Any]]:
    """Every image that a cell ran in, by CLI, with the digest that pinned it."""
    columns = ("cli", "cli_version", "image_digest")
    rows = source.frame.group_by(columns).len("cells").sort(columns, nulls_last=True)
    return rows.to_dicts()


def _tasks(source: Source) -> list[dict[str, Any]]:
    """Every content of a task that cells ran on; more than one of a name are different tasks."""
    columns = ("task", "task_content_hash")
    rows = source.frame.group_by(columns).len("cells").sort(columns, nulls_last=True)
    return rows.to_dicts()


def _models(source: Source) -> list[dict[str, Any]]:
    """Every build that answered, by model. A cell that was answered by two is counted at each."""
    found: dict[tuple[str, str], int] = defaultdict(int)
    for model, builds in source.frame.select("model", "model_builds").iter_rows():
        for build in builds or ():
            found[model, build] += 1
    return [
        {"model": model, "build": build, "cells": cells}
        for (model, build), cells in sorted(found.items())
        if model != NO_MODEL
    ]


def _records(source: Source) -> bytes:
    """The digest of each cell's record, by the cell's id."""
    rows = dict(source.frame.select("cell_id", "record_sha256").sort("cell_id").iter_rows())
    whole = {"data_digest": source.digest, "records": rows}
    return json.dumps(whole, indent=0, ensure_ascii=False).encode() + b"\n"
