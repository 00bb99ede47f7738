"""The page of each cell, and beside it the files that it leads to."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from markupsafe import Markup

from orchestrator.analysis.explain import AXES, explain
from orchestrator.errors import StoreError
from orchestrator.paths import IMAGES_LOCK
from orchestrator.report.verdict import imported_verdict, verdict
from orchestrator.run.outcome import TABLE, with_cause
from orchestrator.site import links
from orchestrator.site.cell import again, axes, facts, work
from orchestrator.site.cell.bounded import line, lines_of, text
from orchestrator.site.cell.cast import cast
from orchestrator.site.cell.diff import diff
from orchestrator.site.cell.drawn import bars, rows
from orchestrator.site.cell.neighbours import Neighbours, result_of
from orchestrator.site.cell.stored import CAST, PATCH, PUBLISHED_AS, SPANS, SPANS_SHOWN_WHOLE, Stored
from orchestrator.site.cell.trace import Trace, trace
from orchestrator.site.output import File, Page, data_file
from orchestrator.site.player import PLAYER
from orchestrator.site.source import Source
from orchestrator.store.cells import CELL
from orchestrator.store.record import CellRecord
from scorers.evidence import Evidence

MAX_HOSTS = 64
MAX_OUTPUT = 60
YOUR_SITE = "https://YOUR-SITE/"

CONTENTS = (
    ("axes", "Axes"),
    ("composite", "Composite"),
    ("trace", "Trace"),
    ("terminal", "Terminal"),
    ("calls", "Model calls"),
    ("tools", "Tool calls"),
    ("work", "What it left"),
    ("diff", "Diff"),
    ("findings", "Findings"),
    ("tests", "Tests"),
    ("identity", "Identity"),
    ("timing", "Timing"),
    ("breakdown", "Scorers"),
    ("run-it", "Run it yourself"),
    ("share", "Badge"),
    ("others", "Beside it"),
    ("provenance", "Provenance"),
)
OF_EVIDENCE = ("calls", "tools", "work", "diff", "findings", "tests")
"""Sections that a cell without evidence has not."""


def pages(source: Source) -> Iterator[Page | File]:
    """A page for each finished cell whose files are there: of one that is in the index alone there is
    nothing to show.
    """
    neighbours = Neighbours(source)
    # Where an image has been pushed since, the command of a cell is another one.
    lock = hashlib.sha256(IMAGES_LOCK.read_bytes()).hexdigest() if IMAGES_LOCK.is_file() else ""
    rows = source.frame.select("cell_id", "sweep_id", "cli", "record_sha256").iter_rows()
    for cell_id, sweep_id, cli, sha256 in rows:
        key, directory = source.key(cell_id), source.cell_dir(cell_id)
        names = _names(directory)
        if CELL not in names:
            continue
        page = links.cell_page(sweep_id, key)
        files = {name: links.attached(page, PUBLISHED_AS[name]) for name in PUBLISHED_AS if name in names}
        beside = neighbours.digest(sweep_id, key)
        inputs = (source.told[cell_id], beside, again.adapter_digest(cli), lock, *sorted(files))
        context = partial(_context, source, directory, files, neighbours, sha256)
        yield Page(page, "cell.html", context, inputs, apart=True)
        for name, path in files.items():
            yield File(path, directory / name, (sha256, name), apart=True)
        if CAST in names:
            yield _recording(recording_path(page), directory / CAST, sha256)


def recording_path(page: str) -> str:
    """Where the recording of a cell is: for the player, or as it is where the site has none."""
    return links.attached(page, "recording.js" if PLAYER else CAST)


def _recording(target: str, path: Path, sha256: str) -> File:
    """For the player it is one text whatever it holds, so that none of it can be run."""
    if not PLAYER:
        return File(target, path, (sha256,), apart=True)
    return data_file(target, lambda: path.read_text("utf-8", errors="replace"), (sha256,), apart=True)


def _names(directory: Path) -> set[str]:
    """The files of a cell that are of use to readers: not an empty patch, nor a trace that the page certainly
    shows whole. Raises StoreError for a link: results come from others, too, and it would publish what it
    leads to on this machine.
    """
    try:
        with os.scandir(directory) as entries:
            names = {entry.name: entry for entry in entries if entry.name in _OF_USE}
    except FileNotFoundError:
        return set()
    for entry in names.values():
        if entry.is_symlink():
            raise StoreError("is a symbolic link", place=entry.path, mend="put the file itself there")
    for name, least in ((PATCH, 1), (CAST, 1), (SPANS, SPANS_SHOWN_WHOLE + 1)):
        if name in names and names[name].stat().st_size < least:
            del names[name]
    return set(names)


_OF_USE = {*PUBLISHED_AS, CAST}


def _context(
    source: Source, directory: Path, files: Mapping[str, str], neighbours: Neighbours, sha256: str
) -> dict[str, Any]:
    stored = Stored.read(directory)
    record, evidence = stored.record, stored.evidence
    identity, key = record.identity, record.identity.key
    page = links.cell_page(identity.sweep_id, key)
    counted = TABLE[record.outcome.name].counted
    imported = record.imported
    return {
        "name": f"{links.contestant(key)} × {key.model}",
        "contestant": links.contestant(key),
        "identity": identity,
        "category": links.category_of(key.task),
        "claim": {"level": record.claim.level, "reasons": lines_of(record.claim.reasons)},
        **_verdict(stored),
        "uncounted": "" if counted else _uncounted(record),
        "contents": [it for it in CONTENTS if evidence is not None or it[0] not in OF_EVIDENCE],
        "axes": axes.axes(record.scores),
        "breakdown": list(axes.breakdown(record.scores)),
        "composites": [it for name in AXES if (it := explain(record.scores, name, stored.facts)).summands],
        "no_composite": _no_composite(record),
        "imported": imported is not None,
        "printed": imported,
        **(traced := _trace(stored)),
        **(terminal := _terminal(stored)),
        "in_step": _in_step(traced["trace"], terminal["recording"]),
        "evidence": evidence is not None,
        **(_evidence(evidence, record) if evidence is not None else {}),
        "hosts": None if record.hosts_tried is None else record.hosts_tried[:MAX_HOSTS],
        "plugins": identity.plugins,
        "deviations": identity.deviations,
        "identity_facts": facts.identity_facts(record),
        "timing_facts": facts.timing_facts(record),
        "times": facts.parts_of_time(record.scores.get("latency") or {}),
        "one_container": again.one_container(record),
        "own": again.own_endpoint(record),
        "check": again.check_command(record),
        "share": _share(source, page, record),
        "others": neighbours.of(identity.sweep_id, key),
        "record_sha256": sha256,
        "methodology": record.methodology_version,
        "files": files,
    }


def _verdict(stored: Stored) -> dict[str, str]:
    """What came of the cell in a sentence, and a word for how that looks."""
    record = stored.record
    if stored.evidence is not None and stored.facts is not None:
        said = verdict(record, stored.facts, stored.evidence)
    elif record.imported is not None:
        said = imported_verdict(record)
    else:
        passed: Any = (record.scores.get("pass_rate") or {}).get("pass")
        _, word = result_of(passed, TABLE[record.outcome.name].counted, record.outcome.name)
        said = f"{word}: the evidence that says why is not in these results"
    kind = {"passed": "passed", "failed": "failed"}.get(said.partition(":")[0], "uncounted")
    return {"verdict": line(said), "verdict_kind": kind}


def _uncounted(record: CellRecord) -> str:
    """The notice of a cell that no rate counts: what happened, by name and in words."""
    outcome = record.outcome
    said = f"{with_cause(outcome.name, outcome.cause)}, {TABLE[outcome.name].meaning}"
    return line(f"{said}; {outcome.detail}" if outcome.detail else said)


def _no_composite(record: CellRecord) -> str:
    values = record.scores.get("composite") or {}
    reasons: Any = values.get("reasons") or {}
    return line(str(reasons.get("composite") or axes.NO_REASON))


def _trace(stored: Stored) -> dict[str, Any]:
    found = trace(stored.spans)
    spans = found.spans if found else ()
    return {"trace": found, "trace_bars": bars(spans), "trace_rows": rows(spans)}


def _in_step(found: Trace | None, recording: dict[str, Any] | None) -> bool | None:
    """Whether trace and recording are told by one clock; None where one of them is not there.

    A cell's times are all seconds since one reading of the clocks (`trace/anchor.py`): those of its recording
    as they are written, those of its spans from the start of the span of the cell. Both say when that was.
    """
    if found is None or recording is None:
        return None
    return found.started is not None and found.started == recording["cast"].started


def _terminal(stored: Stored) -> dict[str, Any]:
    record = stored.record
    found = cast(stored.directory, record.recording)
    evidence = stored.evidence
    if found is not None:
        key = record.identity.key
        return {
            "recording": {
                "cast": found,
                "plays": PLAYER,
                "file": recording_path(links.cell_page(record.identity.sweep_id, key)),
                "title": f"{key.cli} on {key.task}",
            }
        }
    if record.imported is not None:
        why = "its publisher's is not in the published file"
    elif (stored.directory / CAST).is_file():
        why = "the CLI showed nothing"
    else:
        why = "none was made"
    tail = evidence.stdout_tail + evidence.stderr_tail if evidence else ""
    return {"recording": None, "no_recording": why, "printed_tail": text(tail, MAX_OUTPUT, end=True)}


def _evidence(evidence: Evidence, record: CellRecord) -> dict[str, Any]:
    """What only a cell with evidence has to show."""
    shown = diff(evidence.diff)
    return {
        "calls": work.calls(evidence.calls),
        "other_models": work.other_models(evidence.calls),
        "tools": work.tools(evidence.tool_calls),
        "message": work.said(evidence),
        "refused": work.refused(evidence),
        "changes": work.changes(evidence.changes, record.scores.get("blast_radius") or {}),
        "collected": "collect" in evidence.phases,
        "diff": shown,
        "diff_html": Markup(shown.html) if shown else "",  # escaped where it was made
        "diff_truncated": evidence.diff_truncated,
        "findings": work.findings(record.scores.get("integrity") or {}),
        "verified": work.verified(evidence.verification),
    }


def _share(source: Source, page: str, record: CellRecord) -> dict[str, str]:
    """The badge and the card of a cell, as their users paste them."""
    site = source.base_url or YOUR_SITE
    badge, card = (f"{site}{links.url(path)}" for path in (links.badge(page), links.card(page)))
    target = f"{site}{links.url(page)}"
    key = record.identity.key
    said = f"cab: {links.contestant(key)} × {key.model} on {key.task}"
    if record.claim.level == "pipeline_only":
        said += " (pipeline check)"
    return {
        "page": page,
        "badge": links.badge(page),
        "card": links.card(page),
        "alt": said,
        "markdown": f"[![{said}]({badge})]({target})",
        "html": f'<a href="{target}"><img src="{badge}" alt="{said}" height="20"></a>',
        "iframe": f'<iframe src="{card}" title="{said}" width="420" height="170" loading="lazy"></iframe>',
    }
