"""What a column of cells is, and how its value is taken from a record. `store/columns.py` lists them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

Dtype = Literal["text", "int", "float", "bool", "time", "texts", "floats", "json"]
"""`time` is UTC, as ISO 8601 text with microseconds; `texts` and `floats` are lists; `json` is an object."""

DTYPES: dict[Dtype, str] = {
    "text": "a text",
    "int": "a whole number (64 bits)",
    "float": "a number (64 bits)",
    "bool": "true or false",
    "time": "a time in UTC, in text form ISO 8601 with microseconds",
    "texts": "a list of texts; JSON in CSV",
    "floats": "a list of numbers; JSON in CSV",
    "json": "a JSON value; its text in Parquet and CSV",
}


@dataclass(frozen=True)
class Column:
    """One column. `source` is the place in `cell.json`, or below `task` in `task.json`; a `*` stands for each
    element of a list. `derive` makes the column of what stands there; None takes it as it is.
    """

    name: str
    dtype: Dtype
    unit: str | None
    source: str
    about: str
    derive: Callable[[Any], Any] | None = field(default=None, repr=False, compare=False)

    @cached_property
    def path(self) -> tuple[str, ...]:
        return tuple(self.source.split("."))

    def of(self, cell: dict[str, Any]) -> Any:
        """The value in a cell as `cell_data` gives it; None where it was not measured or is not there."""
        value = _at(cell, self.path)
        if value is not None and self.derive is not None:
            value = self.derive(value)
        # JSON does not tell 1 from 1.0, a column of numbers does.
        return float(value) if self.dtype == "float" and isinstance(value, int) else value


def _at(value: Any, path: tuple[str, ...]) -> Any:
    for number, part in enumerate(path):
        if part == "*":
            rest = path[number + 1 :]
            return None if value is None else [_at(element, rest) for element in value]
        value = value.get(part) if isinstance(value, dict) else None
    return value


def cell_data(
    record: Mapping[str, Any], record_sha256: str, task: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """What columns read: a record as JSON, the digest of its file, and the facts of `task.json`."""
    return {**record, "record_sha256": record_sha256, "task": task}


def category(task: str) -> str:
    return task.partition("/")[0]


def builds(stated: list[dict[str, Any]]) -> list[str]:
    return [" ".join(name for name in (build["model"], build["fingerprint"]) if name) for build in stated]


def number_of(word: str) -> Callable[[list[Any]], int]:
    return lambda values: values.count(word)


def findings_of(integrity: dict[str, Any]) -> int | None:
    """How many findings there are."""
    found = _all_findings(integrity)
    return None if found is None else len(found)


def severe_findings_of(integrity: dict[str, Any]) -> int | None:
    found = _all_findings(integrity)
    return None if found is None else sum(one["severity"] == "severe" for one in found)


def rules_of(integrity: dict[str, Any]) -> list[str] | None:
    found = _all_findings(integrity)
    return None if found is None else sorted({one["rule"] for one in found})


def _all_findings(integrity: dict[str, Any]) -> list[dict[str, Any]] | None:
    """None where the axis has no number: those that were seen need not be all."""
    found = integrity.get("findings")
    return found if integrity.get("integrity") is not None and isinstance(found, list) else None


def true_ones(signals: dict[str, bool]) -> list[str]:
    return [name for name, value in signals.items() if value]


def total(values: list[Any]) -> Any:
    """A sum; None where a part of it was not stated."""
    return None if None in values else sum(values)


def null_reasons(scores: Any) -> dict[str, str]:
    """Why each null of the axes is null, by axis and key."""
    found: dict[str, str] = {}
    for axis, values in scores.items():
        parts = {axis: values, **{f"{axis}.{k}": v for k, v in values.items() if isinstance(v, dict)}}
        for place, part in parts.items():
            if isinstance(why := part.get("reasons"), dict):
                found |= {f"{place}.{key}": str(reason) for key, reason in why.items()}
    return found


def column_facts(chosen: Sequence[Column]) -> list[dict[str, str | None]]:
    """The definitions as plain data, for metadata beside and inside exports."""
    return [
        {"name": one.name, "dtype": one.dtype, "unit": one.unit, "source": one.source, "about": one.about}
        for one in chosen
    ]


def as_json_text(value: Any) -> str:
    """A list or object as the one text that Parquet and CSV hold of it."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
