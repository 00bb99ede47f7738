"""Every word that the site uses in a sense of its own: once, for the glossary's page and for every tooltip.

`glossary.toml` has the sentences. Outcomes are the outcome table's own words, claims those of `words`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from orchestrator.analysis.groups import MIN_RUNS
from orchestrator.run.outcome import TABLE
from orchestrator.site.words import CLAIMS
from scorers.aggregate import MIN_COVERAGE

FILE = Path(__file__).with_name("glossary.toml")

GROUPS = {
    "ran": "What was run",
    "claim": "What may be said of it",
    "axis": "What was measured",
    "rate": "Rates and their uncertainty",
    "outcome": "What happened to a cell",
    "call": "Calls, spans and changes",
    "compare": "Comparisons",
    "evidence": "Evidence and its identity",
}
"""Sections of the page, in their order, with their headings."""


@dataclass(frozen=True)
class Term:
    """One entry. `also` are other words that pages show for it, such as a column's short name; `see` is the
    anchor of a heading of the methodology, where that says more.
    """

    name: str
    group: str
    text: str
    also: tuple[str, ...] = ()
    see: str | None = None

    @property
    def slug(self) -> str:
        """The anchor of the entry on the glossary's page."""
        return slug(self.name)


def slug(name: str) -> str:
    """A name as an anchor. Names that are all marks get words."""
    spelled = name.lower().replace("^", "-hat-").replace("@", "-at-").replace("–", "not-measured")
    return re.sub(r"[^a-z0-9]+", "-", spelled).strip("-")


@cache
def terms() -> tuple[Term, ...]:
    """All entries, section by section."""
    data = tomllib.loads(FILE.read_text("utf-8"))
    found: list[Term] = []
    for group in GROUPS:
        found += _outcomes() if group == "outcome" else _of(group, data.pop(group))
        found += _claims() if group == "claim" else ()
    if data:
        raise ValueError(f"{FILE.name}: no section is called {', '.join(data)}")
    return tuple(found)


def find(word: str) -> Term | None:
    """The entry for a word that a page shows, in whatever case; None where there is none."""
    return _by_word().get(_key(word))


def _of(group: str, entries: list[Mapping[str, object]]) -> Iterator[Term]:
    needed = {"coverage": f"{MIN_COVERAGE * 100:.0f}\u00a0%", "runs": str(MIN_RUNS)}
    for entry in entries:
        also, see = entry.get("also", ()), entry.get("see")
        assert isinstance(also, list | tuple)
        yield Term(
            name=str(entry["name"]),
            group=group,
            text=str(entry["text"]).format_map(needed),
            also=tuple(map(str, also)),
            see=None if see is None else str(see),
        )


def _claims() -> Iterator[Term]:
    for claim in CLAIMS.values():
        also = () if claim.word == claim.level else (claim.word, f"{claim.word}s")
        yield Term(claim.level, "claim", claim.about, also)


def _outcomes() -> Iterator[Term]:
    for name, rule in TABLE.items():
        counts = (
            "Counted." if rule.counted else "Not counted, and tried again." if rule.retried else "Not run."
        )
        text = f"{rule.meaning[:1].upper()}{rule.meaning[1:]}. {counts}"
        yield Term(name, "outcome", text, (name.replace("_", " "),) if "_" in name else (), "outcomes")


@cache
def _by_word() -> Mapping[str, Term]:
    words: dict[str, Term] = {}
    for term in terms():
        for word in (term.name, *term.also):
            if (other := words.setdefault(_key(word), term)) is not term:
                raise ValueError(f"{word!r} is a word of {other.name!r} and of {term.name!r}")
    return words


def _key(word: str) -> str:
    return " ".join(word.split()).casefold()
