"""Texts of others made fit to stand in a page."""

from __future__ import annotations

import re
from typing import Any

from markupsafe import Markup, escape

# What changes how the text around it looks, or may not stand in a document at all.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]"
)

_SPECIAL = re.compile("""[&<>"']""")


def plain(text: str) -> str:
    """Text without what turns, hides or overwrites other text; such characters become U+FFFD.

    Line ends and tabs stay. An agent, an endpoint or a test may have written it.
    """
    return _UNSAFE.sub("\ufffd", text)


def finished_text(value: Any) -> Any:
    """What a page shows of a value: texts made harmless. Raises ValueError for None, which says nothing."""
    # Most that a page shows is plain, and a site has millions of it.
    if type(value) is str and value.isascii() and value.isprintable():
        return value
    if isinstance(value, Markup):
        return value
    if value is None:
        raise ValueError("a page would show None; say what is not there, and why")
    return plain(value) if isinstance(value, str) else value


def escaped(value: Any) -> str:
    """A value as it stands in a page's source: harmless, and escaped unless it is markup. Raises ValueError
    as `finished_text`.
    """
    if type(value) is str and value.isascii() and value.isprintable():
        return escape(value) if _SPECIAL.search(value) else value
    return escape(finished_text(value))
