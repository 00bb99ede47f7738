"""cab's own documents as pages: the methodology with its composites and versions, and what it refers to.

Each is written once, in docs/. A methodology of another version than this cab's is not shown: its pages say
where it stands.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from functools import partial
from pathlib import PurePosixPath
from typing import Any

import polars as pl

from orchestrator.paths import DOCS
from orchestrator.site import links
from orchestrator.site.formulas import formulas
from orchestrator.site.markdown import LinkTo, render
from orchestrator.site.output import Page
from orchestrator.site.source import Source
from scorers import METHODOLOGY_VERSION
from scorers.integrity import RULES_VERSION

FIRST = {"methodology": links.METHODOLOGY, "appeals": links.APPEALS}
_LINK = re.compile(r"\]\(([\w-]+)\.md[#)]")


def pages(source: Source) -> Iterator[Page]:
    for name, place in places().items():
        raw = (DOCS / f"{name}.md").read_bytes()
        digest = hashlib.sha256(raw).hexdigest()
        text = raw.decode("utf-8")
        if name == "methodology":
            of_results = versions(source)
            context = partial(_methodology, of_results, text)
            yield Page(place, "methodology.html", context, (digest, repr(of_results)))
        else:
            yield Page(place, "document.html", partial(_document, name, text), (digest,))


def places() -> dict[str, str]:
    """The documents that the site shows, by the name of their file, and where: the methodology, how to
    appeal, and what these two lead to.
    """
    led_to = {name for first in FIRST for name in _LINK.findall((DOCS / f"{first}.md").read_text("utf-8"))}
    return FIRST | {name: links.document_page(name) for name in sorted(led_to - FIRST.keys())}


def _document(name: str, text: str) -> dict[str, Any]:
    return {"document": render(text, _link_from(name))}


def _methodology(of_results: list[dict[str, Any]], text: str) -> dict[str, Any]:
    return {
        **_document("methodology", text),
        "version": METHODOLOGY_VERSION,
        "rules_version": RULES_VERSION,
        "versions": of_results,
        "formulas": formulas(),
    }


def versions(source: Source) -> list[dict[str, Any]]:
    """The methodology versions of the results, by name: how many cells each made, in which sweeps, by which
    commits of cab.
    """
    found = []
    for version in source.methodologies:
        cells = source.frame.filter(pl.col("methodology_version") == version)
        sweeps = sorted(cells["sweep_id"].unique())
        commits = {source.sweeps[sweep].cab.commit for sweep in sweeps}
        found.append(
            {
                "version": version,
                "cells": len(cells),
                "sweeps": sweeps,
                "commits": sorted(commit for commit in commits if commit),
                "here": version == METHODOLOGY_VERSION,
                "imported": bool((cells["claim"] == "imported").all()),
            }
        )
    return found


def _link_from(name: str) -> LinkTo:
    """Links of a document to another document, as seen from its page; a link within it stays."""
    known = places()

    def link_to(target: str) -> str | None:
        file, mark, anchor = target.partition("#")
        if not file:
            return target
        other = known.get(PurePosixPath(file).stem) if "/" not in file else None
        return None if other is None else f"{links.root_of(known[name])}{links.url(other)}{mark}{anchor}"

    return link_to
