"""The glossary has every word that a page shows in a sense of its own."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pytest
from cell_samples import evidence, record, store
from site_samples import CLIS, MODELS, TASKS, matrix, results

from orchestrator.paths import DOCS
from orchestrator.run.outcome import TABLE
from orchestrator.site import glossary
from orchestrator.site.build import build
from orchestrator.site.markdown import render
from orchestrator.site.words import CLAIMS

PLAIN = {
    *("term", "weight", "what it is", "a cell that", "where its text is", "what", "what forces it", "where"),
    *("plugin", "taken", "or why not", "version", "started (utc)", "cab", "machine", "k", "kind"),
    *("name", "first cell", "last cell", "last cell ended (utc)", "its own digest", "settings of the sweep"),
    *("#", "adds", "answered", "asked", "at", "attributes", "change", "file", "how", "id ‹ parent", "lines"),
    *(
        "notes",
        "part",
        "s",
        "share",
        "start",
        "took",
        "tool",
        "value",
        "key",
        "type",
        "questions",
        "first at",
    ),
    *("why null", "settings that went upstream", "by cli", "work", "highest as measured"),
    *("endpoint", "waited", "rate limits", "calls at once, at most"),
}
"""Heads of columns that are used as everybody uses them."""


class Heads(HTMLParser):
    """Words over columns, without those that lead to pages: names of CLIs, models, tasks and sweeps."""

    def __init__(self) -> None:
        super().__init__()
        self.heads: set[str] = set()
        self._text: str | None = None
        self._named = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "th" and given.get("scope") == "col":
            self._text, self._named = "", False
        elif tag in ("a", "span") and self._text is not None:
            self._named = self._named or given.get("class") != "term"

    def handle_data(self, data: str) -> None:
        if self._text is not None:
            self._text += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "th" and self._text is not None:
            if not self._named and self._text.strip():
                self.heads.add(" ".join(self._text.split()))
            self._text = None


def heads_of(out: Path, pages: str) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for path in sorted(out.glob(pages)):
        parser = Heads()
        parser.feed(path.read_text("utf-8"))
        found |= dict.fromkeys(parser.heads, path)
    return found


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("glossary")
    cells = matrix("made-1", CLIS, MODELS, TASKS, runs=2)
    cells += matrix("made-1", CLIS, ["embedded/reference"], TASKS, claim="pipeline_only", cost_usd=None)
    given = results(folder / "results", "made-1", cells)
    lost = {"outcome": "infra_error", "cause": "engine", "counted": False, "passed": None}
    results(given, "lost-1", matrix("lost-1", ["codex"], ["openai/gpt:1"], ["integrity/no"], **lost))
    store(given, (record(evidence()), evidence()))
    build([given], folder / "site")
    return folder / "site"


FOLDERS = ("", "cli/", "model/", "pair/*/", "task/*/", "category/", "sweep/", "cell/free*/*/*/*/")


@pytest.mark.parametrize("pages", [f"{folder}*.html" for folder in FOLDERS])
def test_every_head_of_a_column_has_an_entry(out: Path, pages: str) -> None:
    found = heads_of(out, pages)
    assert found, pages
    # Documents speak for themselves: they are what the glossary leads to.
    documents = ("methodology.html", "appeals.html")
    unknown = {
        head: path.name
        for head, path in found.items()
        if not all(glossary.find(word) or word.casefold() in PLAIN for word in head.split(", "))
        and path.name not in documents
    }
    assert unknown == {}


@pytest.mark.parametrize("word", [*TABLE, *CLAIMS, *(claim.word for claim in CLAIMS.values())])
def test_every_outcome_and_every_claim_has_an_entry(word: str) -> None:
    assert glossary.find(word) is not None
    assert glossary.find(word.replace("_", " ").upper()) is not None or "_" in word


def test_an_outcome_says_whether_it_counts() -> None:
    for name, rule in TABLE.items():
        term = glossary.find(name)
        assert term is not None
        assert term.text.endswith("Counted.") == rule.counted


def test_no_word_has_two_entries_and_no_anchor_two_terms() -> None:
    slugs = [term.slug for term in glossary.terms()]
    assert len(slugs) == len(set(slugs))
    words = [word.casefold() for term in glossary.terms() for word in (term.name, *term.also)]
    assert len(words) == len(set(words))


def test_every_reference_is_to_a_heading_of_the_methodology() -> None:
    headings = render((DOCS / "methodology.md").read_text("utf-8"), lambda _: None).headings
    known = {heading.slug for heading in headings}
    assert [term.name for term in glossary.terms() if term.see and term.see not in known] == []


def test_tooltips_and_links_lead_to_the_entry(out: Path) -> None:
    page = next(out.glob("pair/*/*.html")).read_text("utf-8")
    assert 'href="../../glossary.html#coverage"' in page or 'title="Counted cells as a share' in page
    shown = (out / "glossary.html").read_text("utf-8")
    assert all(f'id="{term.slug}"' in shown for term in glossary.terms())
