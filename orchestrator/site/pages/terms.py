"""The glossary: every word that the site uses in a sense of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from orchestrator.site import glossary, links
from orchestrator.site.output import Page
from orchestrator.site.source import Source


def pages(source: Source) -> Iterator[Page]:
    del source
    yield Page(links.GLOSSARY, "glossary.html", _context, ())


def _context() -> dict[str, Any]:
    groups = [
        (group, heading, [term for term in glossary.terms() if term.group == group])
        for group, heading in glossary.GROUPS.items()
    ]
    return {"groups": groups}
