"""The methodology's page says what the scorers do, and documents become pages without markup of their own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from site_samples import TASKS, matrix, results, small

from orchestrator.paths import DOCS
from orchestrator.site.build import build
from orchestrator.site.formulas import formulas
from orchestrator.site.markdown import render
from orchestrator.site.pages.documents import places
from scorers import METHODOLOGY_VERSION
from scorers.composite import CAB_1, CAB_1_WEIGHTS, PUBLISHED, PUBLISHED_WEIGHTS

METHODOLOGY = (DOCS / "methodology.md").read_text("utf-8")


def test_the_text_is_of_the_version_that_records_name() -> None:
    assert METHODOLOGY.startswith(f"# Methodology, version {METHODOLOGY_VERSION}\n")


def weights_of(formula: str) -> list[float]:
    """The numbers of a formula of the document's, as they stand there."""
    [line] = [line for line in METHODOLOGY.splitlines() if line.startswith("    ") and formula in line]
    return [float(number) for number in re.findall(r"\b0\.\d+", line)]


@pytest.mark.parametrize(
    ("formula", "weights"),
    [("E(tokens)", CAB_1_WEIGHTS.values()), ("cost_efficiency", PUBLISHED_WEIGHTS.values())],
)
def test_the_documents_formula_has_the_scorers_weights(formula: str, weights: list[float]) -> None:
    assert weights_of(formula) == pytest.approx(list(weights))


def test_each_composite_is_told_term_by_term() -> None:
    default, published = formulas()
    assert (default.name, published.name) == (CAB_1, PUBLISHED)
    for formula, weights in ((default, CAB_1_WEIGHTS), (published, PUBLISHED_WEIGHTS)):
        assert {row.name: row.weight for row in formula.rows if row.weight is not None} == weights
        assert sum(row.weight or 0 for row in formula.rows) == pytest.approx(1)


def test_examples_are_what_the_scorers_give() -> None:
    default, published = formulas()
    values = {example.about: example.value for example in default.examples}
    assert values["does nothing"] == 0
    assert values["passes, at the reference's tokens and time, nothing else changed"] == 1
    [unknown] = [example for example in default.examples if example.value is None]
    assert unknown.low < unknown.high
    # What is wrong with the published formula is shown, not told: doing nothing scores.
    assert max(it.value or 0 for it in published.examples if it.about.startswith("does nothing")) == 0.6


def test_a_documents_markup_is_text_and_no_attribute_is_style() -> None:
    hostile = (
        "# <script>x</script>\n\n<b onclick=x>y</b> [go](javascript:alert(1))\n\n| a |\n| --: |\n| `<i>` |\n"
    )
    document = render(hostile, lambda target: target)
    assert not re.search(r"<script|<b|<i|href=\"javascript|style=", document.html)
    assert 'class="right"' in document.html
    assert document.title == "<script>x</script>"


def test_headings_can_be_led_to_also_where_they_recur() -> None:
    document = render("# A\n\n## Of the `pass` rate\n\n## Of the `pass` rate\n", lambda _: None)
    assert [heading.slug for heading in document.headings] == ["of-the-pass-rate", "of-the-pass-rate-1"]
    assert 'id="of-the-pass-rate-1"' in document.html


def test_a_document_without_title_is_refused() -> None:
    with pytest.raises(ValueError, match="title"):
        render("text\n\n# late\n", lambda _: None)


def test_links_between_documents_lead_to_their_pages_and_others_lead_nowhere(tmp_path: Path) -> None:
    out = tmp_path / "site"
    build([small(tmp_path / "results")], out)
    assert all((out / place).is_file() for place in places().values())
    page = (out / "methodology.html").read_text("utf-8")
    assert '<a href="docs/outcomes.html">outcomes.md</a>' in page
    replay = (out / "docs" / "replay.html").read_text("utf-8")
    assert ".md" not in "".join(re.findall(r'href="([^"]*)"', replay))


def test_versions_of_the_methodology_are_told_apart(tmp_path: Path) -> None:
    given = results(tmp_path / "results", "new-1", matrix("new-1", ["codex"], ["m/one"], TASKS))
    results(given, "old-1", matrix("old-1", ["codex"], ["m/one"], TASKS, methodology_version="0"))
    out = tmp_path / "site"
    build([given], out)
    page = (out / "methodology.html").read_text("utf-8")
    assert "Not on this page, which is of version 1." in page
    rows = re.findall(r'<tr><th scope="row">([^<]*)</th><td class="num">(\d+)</td>', page)
    assert rows[:2] == [("0", "3"), ("1", "3")]
