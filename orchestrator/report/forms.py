"""The forms in which a table can be asked for."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Sequence
from typing import Literal

Form = Literal["text", "json", "markdown", "csv"]


def print_csv(head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A table as CSV on stdout; what is None is an empty field."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
