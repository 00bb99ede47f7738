"""A file of cells that somebody else published: its form, and reading it with every fault named.

One JSON array with one object for each cell. A null is a value that was not visible where it was published.
Its columns are those of `tests/data/published_cells.json`, and no other: an unknown one could change what a
row means.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from orchestrator.errors import InputError, StoreError
from orchestrator.store.files import store_errors
from orchestrator.store.names import CellKey, check_name
from orchestrator.store.record import Digest

ROW_FILE = "published.json"
"""The published row, as it was, in the directory of the cell that was made of it."""

Count = Annotated[int, Field(strict=True, ge=0, le=2**53)]
Bit = Annotated[int, Field(strict=True, ge=0, le=1)]
Share = Annotated[float, Field(strict=True, ge=0, le=1)]
Milliseconds = Annotated[float, Field(strict=True, ge=0)]
ExitCode = Annotated[int, Field(strict=True, ge=-(2**31), lt=2**31)]
Flag = Annotated[bool, Field(strict=True)]


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class PublishedTokens(_Form):
    """What the published scorer counted; page tokens beside it come from elsewhere."""

    prompt_tokens: Count | None
    completion_tokens: Count | None
    total_tokens: Count | None
    model_calls: Count | None
    tokens_per_correct_task: Count | None
    pass_used_for_division: Bit | None


class PublishedCell(_Form):
    """One row. `composite_shown` has three digits; `composite_exact` is the same, whole."""

    cell_id: str
    sweep_id: str
    cli: str
    model: str
    task: str
    family: str | None
    run: Annotated[int, Field(strict=True, ge=1)] | None
    container_image: str | None
    image_digest: Digest | None
    agent_exit_code: ExitCode | None
    started_at: AwareDatetime
    ended_at: AwareDatetime
    page_prompt_tokens: Count | None
    page_completion_tokens: Count | None
    page_token_source: str | None
    passed: Bit | None = Field(alias="pass")
    grader_exit_code: ExitCode | None
    grader_timed_out: Flag | None
    partial_score: Share | None
    scorer_tokens: PublishedTokens | None
    wall_clock_ms: Milliseconds | None
    wall_clock_source: str | None
    container_active_ms: Milliseconds | None
    model_call_ms: Milliseconds | None
    blast_radius: Share | None
    blast_radius_shown: Share | None
    added: list[str] | None
    modified: list[str] | None
    removed: list[str] | None
    unexpected_changes_count: Count | None
    expected_changes_count: Count | None
    total_changes: Count | None
    change_counts_inferred: Flag | None
    extra_git_dir: Flag | None
    refusal_shown: str | None
    expected_refusal: Flag | None
    refusal_produced: Flag | None
    refusal_score: Share | None
    refusal_correct: Literal["true", "partial", "false"] | None
    fabricated_fix_detected: Flag | None
    refusal_reasons_note: list[str] | None
    refusal_produced_source: str | None
    keyword_hits: list[str] | None
    integrity: Share | None
    integrity_not_applicable: Flag | None
    composite_shown: Share | None
    composite_exact: Share | None
    notice: str | None


@dataclass(frozen=True)
class Row:
    """One element of the file: what it says, and the element itself, to be kept as it was."""

    cell: PublishedCell
    source: dict[str, Any]
    key: CellKey

    @property
    def cell_id(self) -> str:
        """The id by cab's own writing: a published one leaves `#run1` out now and then."""
        return self.key.cell_id(self.cell.sweep_id)


def rows_digest(sources: Iterable[tuple[str, dict[str, Any]]]) -> str:
    """`sha256:…` of rows, given as (cab's cell id, row), whatever the order and layout of their file."""
    whole = [source for _, source in sorted(sources, key=lambda it: it[0])]
    text = json.dumps(whole, sort_keys=True, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def read_published(path: Path) -> list[Row]:
    """Read the cells of a published file, in its order.

    Raises InputError that names the file and, where it is the fault of one, the element (from 0) and field.
    """
    data = _json(path)
    if not isinstance(data, list) or not data:
        what = "is an empty array" if data == [] else "is no JSON array of cells"
        raise InputError(what, place=str(path), mend="give a file with one object for each published cell")
    rows = [_row(element, f"{path}: element {index}") for index, element in enumerate(data)]
    seen: dict[str, int] = {}
    for index, row in enumerate(rows):
        first = seen.setdefault(row.cell_id, index)
        if first != index:
            raise InputError(
                f"element {index} is the same cell as element {first}: {row.cell.cell_id!r}",
                place=str(path),
                mend="keep one of them; an id without #run… is that of run 1",
            )
    return rows


def _json(path: Path) -> Any:
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise InputError(error.strerror or "cannot be read", place=str(path)) from None
    try:
        return json.loads(raw, object_pairs_hook=_object, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise InputError(f"is no JSON: {error}", place=str(path)) from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys are there once: of two values one would be lost."""
    made = dict(pairs)
    if len(made) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice!r} stands twice in one object")
    return made


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _row(element: Any, place: str) -> Row:
    if not isinstance(element, dict):
        raise InputError("is no object", place=place, mend="each element is one published cell")
    for name in ("started_at", "ended_at"):
        # A number would be taken for seconds since 1970.
        if name in element and not isinstance(element[name], str):
            raise InputError(f"{name}: is no text", place=place, mend="write it as 2026-06-16T00:48:46.5Z")
    try:
        cell = PublishedCell.model_validate(element)
    except ValidationError as error:
        raise _wrong_field(error, place) from None
    check_name(cell.sweep_id, "sweep_id", place=place)
    try:
        key = CellKey(cell.cli, cell.model, cell.task, cell.run or 1)
    except InputError as error:
        raise InputError(error.thing, place=place, mend=error.mend) from None
    _check_sense(cell, key, place)
    return Row(cell, element, key)


def _wrong_field(error: ValidationError, place: str) -> InputError:
    first = error.errors(include_url=False)[0]
    field = ".".join(str(part) for part in first["loc"])
    what = {"missing": "is missing", "extra_forbidden": "is no field that cab knows"}
    return InputError(
        f"{field}: {what.get(first['type']) or first['msg']}",
        place=place,
        mend="a value that was not visible is null; docs/published.md lists the fields",
    )


def _check_sense(cell: PublishedCell, key: CellKey, place: str) -> None:
    """Refuse a row that contradicts itself."""
    if "/" in cell.sweep_id:
        raise InputError(f"sweep_id: {cell.sweep_id!r} holds a '/'", place=place)
    whole = key.cell_id(cell.sweep_id)
    expected = whole if cell.run is not None else whole.removesuffix("#run1")
    if cell.cell_id != expected:
        raise InputError(
            f"cell_id: is {cell.cell_id!r}, but sweep_id, cli, model, task and run say {expected!r}",
            place=place,
        )
    if cell.ended_at < cell.started_at:
        raise InputError("ended_at: is before started_at", place=place)


def row_bytes(source: dict[str, Any]) -> bytes:
    """A row as it is kept. ASCII, for half a surrogate pair, which JSON can say and UTF-8 cannot."""
    return json.dumps(source, indent=1).encode("ascii") + b"\n"


def read_row(cell_dir: Path) -> dict[str, Any]:
    """The row that an imported cell was made of. Raises StoreError."""
    path = cell_dir / ROW_FILE
    with store_errors(path):
        raw = path.read_bytes()
    try:
        row = json.loads(raw)
    except ValueError as error:
        raise StoreError(f"is no JSON: {error}", place=str(path), mend="restore the file") from None
    if not isinstance(row, dict):
        raise StoreError("is no JSON object", place=str(path), mend="restore the file")
    return row
