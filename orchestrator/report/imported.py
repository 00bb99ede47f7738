"""What came of an import: each published composite beside the one recomputed from the published axes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from rich.console import Console

from orchestrator.report.called import command
from orchestrator.report.columns import Column, fit
from orchestrator.report.legend import print_legend
from orchestrator.report.text import NOT_MEASURED, console, number, plural, print_json
from orchestrator.run.import_published import ImportedSweepOf
from orchestrator.run.outcome import TABLE, with_cause
from orchestrator.store.record import CellRecord

DIGITS = 3
"""Decimals of a composite as it is printed."""
_NAME_LEAST = 32


@dataclass(frozen=True)
class Comparison:
    """A published cell, and whether its composite follows from its axes; None where that cannot be said."""

    record: CellRecord
    printed: float | None
    printed_exact: float | None
    recomputed: float | None

    @classmethod
    def of(cls, record: CellRecord) -> Comparison:
        of = record.imported
        assert of is not None, record.cell_id
        return cls(record, of.printed, of.printed_exact, of.recomputed)

    @property
    def in_digits(self) -> bool | None:
        """Whether the recomputed composite prints as the published one."""
        if self.printed is None or self.recomputed is None:
            return None
        return f"{self.recomputed:.{DIGITS}f}" == f"{self.printed:.{DIGITS}f}"

    @property
    def to_the_bit(self) -> bool | None:
        """Whether it is the published one, where that is published whole."""
        if self.printed_exact is None or self.recomputed is None:
            return None
        return self.recomputed == self.printed_exact

    @property
    def reproduces(self) -> bool | None:
        said = [one for one in (self.in_digits, self.to_the_bit) if one is not None]
        return all(said) if said else None

    @property
    def difference(self) -> float | None:
        """Recomputed less published: of the whole number where there is one, else of its printed digits."""
        if self.recomputed is None:
            return None
        if self.printed_exact is not None:
            return self.recomputed - self.printed_exact
        if self.printed is None:
            return None
        return 0.0 if self.in_digits else self.recomputed - self.printed


def comparisons(sweeps: Sequence[ImportedSweepOf]) -> list[Comparison]:
    """One for each cell, in the order of the file."""
    return [Comparison.of(record) for sweep in sweeps for record in sweep.records]


def print_import(sweeps: Sequence[ImportedSweepOf], results: Path, *, as_json: bool) -> None:
    """Print the comparison of every cell and a summary, results on stdout."""
    rows = comparisons(sweeps)
    if as_json:
        print_json(_data(sweeps, rows), indent=1)
        return
    out = console()
    _print_cells(rows, out)
    out.print()
    for line in _summary(rows):
        out.print(line, soft_wrap=True)
    for sweep in sweeps:
        out.print(f"{sweep.sweep_id}: {plural(len(sweep.records), 'cell')}, {sweep.state}", soft_wrap=True)
    out.print(f"results: {results}", soft_wrap=True)
    out.print("look further:")
    for sweep in sweeps:
        out.print(f"  {command('sweep', 'status', sweep.sweep_id, results=results)}", soft_wrap=True)


def _print_cells(rows: Sequence[Comparison], out: Console) -> None:
    lines: list[tuple[str, Comparison | None]] = []
    for sweep, of_sweep in groupby(rows, key=lambda row: row.record.identity.sweep_id):
        lines.append((sweep, None))
        lines += [(f"  {row.record.identity.key.matrix_id()}", row) for row in of_sweep]

    def cells(show: list[str]) -> list[str]:
        shown = iter(show)
        return ["" if row is None else next(shown) for _, row in lines]

    columns = [
        Column("sweep, cell", [name for name, _ in lines], right=False, least=_NAME_LEAST),
        Column("outcome", cells([_outcome(row) for row in rows]), right=False, worth=2, least=16),
        Column("pass", cells([number(_passed(row)) for row in rows]), worth=1),
        Column("printed", cells([_digits(row.printed) for row in rows])),
        Column("recomputed", cells([_digits(row.recomputed) for row in rows])),
        Column("difference", cells([_difference(row) for row in rows])),
        Column("reproduces", cells([_word(row) for row in rows]), right=False),
    ]
    table, left_out = fit(columns, f"published composites: {plural(len(rows), 'cell')}", out)
    out.print(table)
    print_legend([(column.name, column.cells) for column in columns if column.name not in left_out], out)


def _outcome(row: Comparison) -> str:
    return with_cause(row.record.outcome.name, row.record.outcome.cause)


def _passed(row: Comparison) -> float | None:
    passed = row.record.scores["pass_rate"]["pass"]
    return passed if isinstance(passed, int) else None


def _digits(value: float | None) -> str:
    """As it was printed: always with its three digits."""
    return NOT_MEASURED if value is None else f"{value:.{DIGITS}f}"


def _difference(row: Comparison) -> str:
    """Small differences whole: three digits would make nothing of them."""
    difference = row.difference
    return NOT_MEASURED if difference is None else "0" if difference == 0 else f"{difference:+.3g}"


def _word(row: Comparison) -> str:
    if row.reproduces is None:
        return "cannot be compared"
    if not row.reproduces:
        return "no"
    return "to the last bit" if row.to_the_bit else "as printed"


def _summary(rows: Sequence[Comparison]) -> list[str]:
    counts = _counts(rows)
    lines = [
        f"{counts['reproduce_in_digits']} of {plural(counts['printed'], 'composite')} "
        "as printed, recomputed from the published axes with published-0.1",
    ]
    if counts["printed_exact"]:
        exact = f"{counts['reproduce_to_the_bit']} of {counts['printed_exact']}"
        lines.append(f"{exact} that are published whole, to the last bit")
    if counts["not_comparable"]:
        lines.append(
            f"{plural(counts['not_comparable'], 'cell')} of which a term or the composite is not visible"
        )
    uncounted = Counter(_outcome(row) for row in rows if not TABLE[row.record.outcome.name].counted)
    if uncounted:
        kinds = ", ".join(f"{amount} {name}" for name, amount in sorted(uncounted.items()))
        lines.append(
            f"{plural(uncounted.total(), 'cell')} not counted in rates, for a published notice: {kinds}"
        )
    return lines


def _counts(rows: Sequence[Comparison]) -> dict[str, int]:
    return {
        "cells": len(rows),
        "printed": sum(row.in_digits is not None for row in rows),
        "reproduce_in_digits": sum(row.in_digits is True for row in rows),
        "printed_exact": sum(row.to_the_bit is not None for row in rows),
        "reproduce_to_the_bit": sum(row.to_the_bit is True for row in rows),
        "differ": sum(row.reproduces is False for row in rows),
        "not_comparable": sum(row.reproduces is None for row in rows),
        "not_counted": sum(not TABLE[row.record.outcome.name].counted for row in rows),
    }


def _data(sweeps: Sequence[ImportedSweepOf], rows: Sequence[Comparison]) -> dict[str, Any]:
    return {
        "cells": [
            {
                "cell_id": row.record.cell_id,
                "published_id": row.record.imported.published_id if row.record.imported else None,
                "outcome": row.record.outcome.name,
                "cause": row.record.outcome.cause,
                "counted": row.record.outcome.counted,
                "pass": _passed(row),
                "printed": row.printed,
                "printed_exact": row.printed_exact,
                "recomputed": row.recomputed,
                "difference": row.difference,
                "reproduces": row.reproduces,
            }
            for row in rows
        ],
        "sweeps": [
            {"sweep_id": sweep.sweep_id, "cells": len(sweep.records), "state": sweep.state}
            for sweep in sweeps
        ],
        "summary": _counts(rows),
    }
