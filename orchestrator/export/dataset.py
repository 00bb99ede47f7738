"""A directory to publish: tables, a card as the Hugging Face hub reads it, columns, provenance, checksums.

Results of models, published cells of others and checks of the pipeline are tables of their own, and so is
each methodology version: whoever loads one has not merged them unawares. Nothing is put in place before
`leaks.Check` has read all of it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator import __version__
from orchestrator.errors import InputError
from orchestrator.export import tables
from orchestrator.export.cells import cells_of
from orchestrator.export.columns_doc import markdown
from orchestrator.export.leaks import Check, Leak
from orchestrator.export.writing import new_directory
from orchestrator.store.cells import CellStore
from orchestrator.store.column import Column
from orchestrator.store.index import IndexEntry

SUMS = "SHA256SUMS"
CARD = "README.md"
LEAKS_NAMED = 5

_KINDS = {"pipeline_only": "pipeline_only", "imported": "imported"}
_ABOUT = {
    "results": "results of models, measured by cab",
    "imported": "cells that others published, with their own numbers",
    "pipeline_only": "checks of the pipeline with scripted models and baselines: **not results**",
}
_NO_RESULT = ("**Nothing in here is a result: all of it are checks of the pipeline.**", "")
_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))


@dataclass(frozen=True)
class Part:
    """Cells that may stand in one table: `kind` is results, imported or pipeline_only."""

    kind: str
    methodology_version: str

    @classmethod
    def of(cls, entry: IndexEntry) -> Part:
        return cls(_KINDS.get(entry.claim, "results"), entry.methodology_version)

    @property
    def rank(self) -> tuple[int, str]:
        """Results come first."""
        return list(_ABOUT).index(self.kind), self.methodology_version

    @property
    def name(self) -> str:
        """Its name in the card and of its files."""
        version = re.sub(r"[^A-Za-z0-9._-]", "-", self.methodology_version)
        return f"{self.kind}-methodology-{version}"


@dataclass(frozen=True)
class Publication:
    """What the card says beside the data. `licence` is SPDX's identifier in lower case, as the hub has it."""

    title: str
    licence: str | None = None


def write_dataset(
    stores: Sequence[CellStore],
    directory: Path,
    columns: Sequence[Column],
    publication: Publication,
    check: Check,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> dict[Part, int]:
    """Write the dataset of chosen sweeps to a new directory; how many cells each part has.

    `progress` is told the rows written and read again so far, and how many there are in all.

    Raises InputError where there is no cell, where something would be told that must not be, or where
    `directory` holds something already; nothing is left there then.
    """
    parts: Counter[Part] = Counter()
    claims: dict[Part, Counter[str]] = {}
    for store in stores:
        for entry in store.finished().values():
            parts[Part.of(entry)] += 1
            claims.setdefault(Part.of(entry), Counter())[entry.claim] += 1
    if not parts:
        raise InputError("no cell is finished in these sweeps", mend="see `cab sweep status`")
    # Each cell is written, and its rows in both files are read again; Parquet's metadata is one more.
    steps = _Steps(3 * parts.total() + len(parts), progress)
    with new_directory(directory) as root:
        (root / "data").mkdir()
        for part in parts:
            _write_part(root / "data" / part.name, part, stores, columns, steps)
        (root / "columns.md").write_text(markdown(columns), "utf-8")
        (root / "columns.json").write_bytes(tables.facts(columns))
        provenance = json.dumps(_provenance(stores), indent=1, ensure_ascii=False, allow_nan=False)
        (root / "provenance.json").write_text(provenance + "\n", "utf-8")
        (root / CARD).write_text(_card(publication, claims, stores, columns), "utf-8")
        (root / SUMS).write_text("".join(_sums(root)), "utf-8")
        _refuse(leak for path in _files(root) for leak in _read_again(path, root, check, steps))
    return {part: parts[part] for part in sorted(parts, key=lambda part: part.rank)}


class _Steps:
    """Counts what is done of a known amount of work."""

    def __init__(self, of: int, progress: Callable[[int, int], None]) -> None:
        self._done, self._of, self._progress = 0, of, progress

    def one(self) -> None:
        self._done += 1
        self._progress(self._done, self._of)


def _read_again(path: Path, root: Path, check: Check, steps: _Steps) -> Iterator[Leak]:
    row = steps.one if path.parent.name == "data" else None
    return check.file(path, str(path.relative_to(root)), row)


def _write_part(
    stem: Path, part: Part, stores: Sequence[CellStore], columns: Sequence[Column], steps: _Steps
) -> None:
    """The two files of a part, of which each record is read once."""
    cells = cells_of(stores, lambda entry: Part.of(entry) == part)
    with Path(f"{stem}.jsonl").open("wb") as file:

        def written() -> Iterator[tables.Row]:
            for row in tables.rows_of(cells, columns):
                file.write(tables.json_line(row))
                yield row
                steps.one()

        tables.write_parquet(Path(f"{stem}.parquet"), written(), columns)


def _files(root: Path) -> list[Path]:
    return sorted(path for path in root.rglob("*") if path.is_file())


def _sums(root: Path) -> Iterator[str]:
    """Lines as `sha256sum --check` reads them."""
    for path in _files(root):
        with path.open("rb") as file:
            yield f"{hashlib.file_digest(file, 'sha256').hexdigest()}  {path.relative_to(root)}\n"


def _refuse(leaks: Iterable[Leak]) -> None:
    """Raise InputError that names the first leak, and how many there are besides."""
    found = list(dict.fromkeys(leaks))
    if not found:
        return
    first = found[0]
    texts = dict.fromkeys(leak.text for leak in found)
    others = [text for text in texts if text != first.text][: LEAKS_NAMED - 1]
    more = f"; also {', '.join(map(repr, others))}" if others else ""
    places = f", in {len(found)} places" if len(found) > 1 else ""
    column = first.place.partition(", column ")[2]
    leave = f"leave the column out with --without {column}, or " if column else ""
    raise InputError(
        f"would publish {first.what}: {first.text!r}{places}{more}",
        place=first.place,
        mend=f"{leave}let a text pass that is meant to be there with --allow TEXT",
    )


def _provenance(stores: Sequence[CellStore]) -> dict[str, Any]:
    """Where the cells come from. The spec itself is left out: it names endpoints."""
    sweeps, digests = [], []
    left_out = {"spec", "order", "skipped", "schema_version"}
    for store in stores:
        sweep, entries = store.sweep(), store.finished().values()
        digests += [f"{entry.cell_id} {entry.record_sha256}\n" for entry in entries]
        sweeps.append(
            {
                **sweep.model_dump(mode="json", exclude=left_out),
                "planned": len(sweep.order),
                "finished": len(entries),
                "skipped": dict(sorted(Counter(one.reason for one in sweep.skipped).items())),
                "methodology_versions": sorted({entry.methodology_version for entry in entries}),
            }
        )
    data = hashlib.sha256("".join(sorted(digests)).encode()).hexdigest()
    return {"exported_by": f"cab {__version__}", "data_digest": f"sha256:{data}", "sweeps": sweeps}


def _card(
    publication: Publication,
    claims: dict[Part, Counter[str]],
    stores: Sequence[CellStore],
    columns: Sequence[Column],
) -> str:
    """README.md: front matter as the hub reads it (JSON texts are YAML), then what a reader has to know."""
    total = sum(counter.total() for counter in claims.values())
    parts = sorted(claims, key=lambda part: part.rank)
    size = next((name for limit, name in _SIZES if total < limit), "n>1M")
    front = ["---", f"pretty_name: {json.dumps(publication.title)}"]
    if publication.licence:
        front.append(f"license: {json.dumps(publication.licence)}")
    front += ["tags:", "- coding-agents", "- benchmark", "- evaluation", "size_categories:", f"- {size}"]
    front.append("configs:")
    for part in parts:
        front.append(f"- config_name: {json.dumps(part.name)}")
        front += ["  default: true"] if part == parts[0] and part.kind != "pipeline_only" else []
        front += ["  data_files:", "  - split: test", f"    path: {json.dumps(f'data/{part.name}.parquet')}"]
    rows = [
        f"| `{part.name}` | {claims[part].total()} | {_counts(claims[part])} | {_ABOUT[part.kind]} |"
        for part in parts
    ]
    sweeps = ", ".join(f"`{store.sweep_id}`" for store in stores)
    return "\n".join(
        [
            *front,
            "---",
            "",
            f"# {publication.title}",
            "",
            *(_NO_RESULT if parts[0].kind == "pipeline_only" else ()),
            "Coding-agent CLIs, measured by cab. A row is one cell: one run of one CLI with one model on one",
            'task. A null is "not measured", and `null_reasons` says why.',
            "",
            "| table | cells | claims | what it is |",
            "|---|---|---|---|",
            *rows,
            "",
            "Do not merge tables: two methodology versions score by different rules, and a row of",
            "`pipeline_only` says that the pipeline works, and nothing of a model.",
            "",
            f"- Sweeps: {sweeps}; `provenance.json` has their images, tasks and prices.",
            f"- Columns: {len(columns)}, with type, unit and source in `columns.md` and `columns.json`.",
            "- Every table is there as Parquet and as JSON Lines, with the same values.",
            f"- `sha256sum --check {SUMS}` checks the files.",
            *([] if publication.licence else ["- The publisher has named no licence."]),
            "",
            "```python",
            "import polars",
            "",
            f'cells = polars.read_parquet("data/{parts[0].name}.parquet")',
            "```",
            "",
        ]
    )


def _counts(counter: Counter[str]) -> str:
    return ", ".join(f"{count} {claim}" for claim, count in sorted(counter.items()))
