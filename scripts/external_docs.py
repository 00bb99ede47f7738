"""Writes the tables of docs/external.md: what the continuation eval and the ablations of groups give.

No model is asked, and the same fixtures and code give the same tables.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from orchestrator.context.continuation import evaluate
from orchestrator.context.fixtures import HELD_OUT, load_fixtures
from orchestrator.context.value import value
from orchestrator.report import continuation, group_value

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "external.md"
BEGIN, END = "<!-- made by `make external-docs`: {} -->\n", "<!-- end: {} -->\n"

TABLES: dict[str, Callable[[], str]] = {
    "continuation": lambda: continuation.markdown(evaluate(load_fixtures())),
    "held-out": lambda: continuation.markdown(evaluate(load_fixtures(HELD_OUT))),
    "value": lambda: group_value.markdown(value(load_fixtures())),
}
"""Each makes what stands between the two marks of its name in the document."""


def written(text: str) -> str:
    """The document with its tables made anew."""
    for name, make in TABLES.items():
        before, found, rest = text.partition(begin := BEGIN.format(name))
        _, ended, after = rest.partition(end := END.format(name))
        assert found, f"no place for {name}"
        assert ended, f"no end of {name}"
        text = f"{before}{begin}\n{make()}\n{end}{after}"
    return text


def main() -> None:
    DOCUMENT.write_text(written(DOCUMENT.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()
