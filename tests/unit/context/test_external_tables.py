"""The tables of docs/external.md are what the commands give."""

from __future__ import annotations

from external_docs import BEGIN, DOCUMENT, TABLES, written


def test_the_document_holds_what_the_commands_give() -> None:
    text = DOCUMENT.read_text("utf-8")
    assert written(text) == text, "run `make external-docs`"
    for name in TABLES:
        assert text.count(BEGIN.format(name)) == 1
