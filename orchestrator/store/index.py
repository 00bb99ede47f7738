"""`index.jsonl`: one line for each finished cell, with what tables need, so that records need not be opened.

The last line of a cell holds; earlier ones were replaced. The whole file can be rebuilt from the records.
"""

from __future__ import annotations

import gc
import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from orchestrator.errors import NewerThanCab, StoreError
from orchestrator.paths import resume_command
from orchestrator.store.column import cell_data
from orchestrator.store.columns import INDEX_COLUMNS
from orchestrator.store.record import CellRecord, ClaimLevel, Model, OutcomeName

INDEX = "index.jsonl"
_VERSION = 1


class IndexEntry(Model):
    """One finished cell in brief. Scores are None where they were not measured.

    The fields are the columns of `store/columns.py`, which says what each is, in which unit. Times are UTC
    ISO 8601 texts with microseconds. A stale line is known by `record_sha256`. Fields with a default are
    missing in lines of an older cab, until the index is rebuilt.
    """

    v: Literal[1] = 1
    cell_id: str
    sweep_id: str
    cli: str
    cli_version: str | None
    model: str
    task: str
    run: int
    stack: str
    condition: str | None
    order_index: int
    outcome: OutcomeName
    cause: str | None
    counted: bool
    claim: ClaimLevel
    passed: float | None
    partial_score: float | None
    prompt_tokens: int | None
    completion_tokens: int | None
    total_tokens: int | None
    model_calls: int | None
    cost_usd: float | None
    wall_clock_ms: float | None
    container_active_ms: float | None
    model_call_ms: float | None
    blast_radius: float | None
    blast_radius_agent: float | None
    refusal: float | None
    false_refusal: bool | None = None
    integrity: float | None
    void: bool | None
    integrity_findings: int | None = None
    composite: float | None
    composite_bounds: tuple[float, float] | None
    composite_published: float | None
    attempts: int
    started_at: str
    ended_at: str
    duration_s: float
    image_digest: str | None
    task_content_hash: str | None
    model_build_id: str | None
    model_builds: tuple[str, ...] = ()
    methodology_version: str
    record_sha256: str

    @property
    def complete(self) -> bool:
        """Whether its line had every field."""
        return len(self.model_fields_set) == len(type(self).model_fields)

    def line(self) -> bytes:
        text = json.dumps(self.model_dump(), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode("utf-8", "replace") + b"\n"


def entry_of(record: CellRecord, raw: bytes) -> IndexEntry:
    """The index line of a record; `raw` is its `cell.json` as stored.

    Raises StoreError when a score is not what its published key says.
    """

    cell = cell_data(record.model_dump(mode="json"), hashlib.sha256(raw).hexdigest())
    fields = {column.name: column.of(cell) for column in INDEX_COLUMNS}
    try:
        return IndexEntry(**fields)
    except ValidationError as error:
        raise StoreError(f"cannot be indexed: {_fault(error)}", place=record.cell_id) from None


def whole_lines(path: Path) -> bytes:
    """The bytes of an index up to its last line end, so without a torn line; none when there is no index."""
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return b""
    return raw[: raw.rfind(b"\n") + 1]


def read_index(path: Path) -> dict[str, IndexEntry]:
    """Finished cells by id, in order of their first line. Raises StoreError for a damaged line."""
    entries: dict[str, IndexEntry] = {}
    validate = IndexEntry.model_validate_json
    with _no_collection():
        for number, line in enumerate(whole_lines(path).splitlines(), start=1):
            try:
                entry = validate(line)
            except ValidationError as error:
                raise _damaged(line, error, path, number) from None
            entries[entry.cell_id] = entry
    return entries


def rebuild_mend(index: Path) -> str:
    """What to do about a damaged index."""
    return f"run `{resume_command(index.parent)}`, which rebuilds the index from the records"


def _damaged(line: bytes, error: ValidationError, path: Path, number: int) -> StoreError:
    """One line that cannot be read: of a newer cab, or torn."""
    place = f"{path}:{number}"
    try:
        version = json.loads(line)["v"]
    except (ValueError, TypeError, KeyError):
        version = None
    if isinstance(version, int) and version > _VERSION:
        return NewerThanCab(
            f"has version {version}, newer than {_VERSION}", place=place, mend="update cab to read it"
        )
    return StoreError(f"is damaged: {_fault(error)}", place=place, mend=rebuild_mend(path))


def _fault(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    field = ".".join(str(part) for part in first["loc"])
    return f"{field}: {first['msg']}" if field else first["msg"]


@contextmanager
def _no_collection() -> Iterator[None]:
    """Hold the cycle collector back: it would walk the growing entries, which have no cycles."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
