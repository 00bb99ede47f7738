"""What a column of cells is, and how its value is taken from a record. `store/columns.py` lists them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
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
    """One column. `source` is the place in `cell.json`, or below `task` in `task.json`; `of` takes the value
    from there, through `derive` where the column is made of what stands there.
    """

    name: str
    dtype: Dtype
    unit: str | None
    source: str
    about: str
    derive: Callable[[Any], Any] | None = field(default=None, repr=False, compare=False)

    def of(self, cell: Mapping[str, Any]) -> Any:
        """The value in a cell as `cell_data` gives it; None where it was not measured or is not there."""
        value: Any = cell
        for part in self.source.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        return value if value is None or self.derive is None else self.derive(value)


def cell_data(record: Mapping[str, Any], raw: bytes, task: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """What columns read: a record as JSON, the digest of its file `raw`, and the facts of `task.json`."""
    return {**record, "record_sha256": hashlib.sha256(raw).hexdigest(), "task": task}


def each(key: str) -> Callable[[Any], Any]:
    return lambda items: [item[key] for item in items]


def category(task: Any) -> str:
    return str(task).partition("/")[0]


def applied(plugins: Any) -> list[str]:
    return [plugin["name"] for plugin in plugins if plugin["skipped"] is None]


def skipped(plugins: Any) -> list[str]:
    return [f"{plugin['name']}: {plugin['skipped']}" for plugin in plugins if plugin["skipped"] is not None]


def builds(builds: Any) -> list[str]:
    return [" ".join(name for name in (build["model"], build["fingerprint"]) if name) for build in builds]


def passed_tests(tests: Any) -> int:
    return sum(test["status"] == "passed" for test in tests)


def severe(findings: Any) -> int:
    return sum(finding["severity"] == "severe" for finding in findings)


def rules(findings: Any) -> list[str]:
    return sorted({finding["rule"] for finding in findings})


def true_ones(signals: Any) -> list[str]:
    return [name for name, value in signals.items() if value]


def sum_of(key: str) -> Callable[[Any], Any]:
    """The sum over earlier tries; None where one of them did not state it."""

    def total(attempts: Any) -> Any:
        values = [attempt[key] for attempt in attempts]
        return None if None in values else sum(values)

    return total


def null_reasons(scores: Any) -> dict[str, str]:
    """Why each null of the axes is null, by axis and key."""
    found = {}
    for axis, values in scores.items():
        parts = {axis: values, **{f"{axis}.{k}": v for k, v in values.items() if isinstance(v, Mapping)}}
        for place, part in parts.items():
            if isinstance(why := part.get("reasons"), Mapping):
                found |= {f"{place}.{key}": str(reason) for key, reason in why.items()}
    return found


def column_facts(chosen: tuple[Column, ...]) -> list[dict[str, str | None]]:
    """The definitions as plain data, for metadata beside and inside exports."""
    return [
        {"name": one.name, "dtype": one.dtype, "unit": one.unit, "source": one.source, "about": one.about}
        for one in chosen
    ]


def as_json_text(value: Any) -> str:
    """A list or object as the one text that Parquet and CSV hold of it."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
