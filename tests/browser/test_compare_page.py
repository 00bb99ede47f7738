"""The compare page: its statistics beside scipy's and cab's own, and what it says of two that are chosen."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from browsing import Looker, Place
from playwright.sync_api import Page, expect
from scipy.stats import binomtest, permutation_test, t

from orchestrator.analysis.cells import cells_of
from orchestrator.analysis.compare import Comparison, compare
from orchestrator.analysis.sides import NO_CONDITION, Dimension, side
from orchestrator.stats.paired import MIN_TASKS, POWER, difference_interval, needed, sign_flip, spread
from orchestrator.store.frame import load_frame
from orchestrator.store.names import NO_STACK

PAGE = "compare.html"
DIFFERENCES = [0.5, -0.25, 1.0, 0.0, 0.75, 0.25, -0.5, 0.5, 1.0]
Z, Z_POWER = 1.959963984540054, 0.8416212335729143


@pytest.fixture
def page(look: Looker, folder: Place) -> Page:
    shown = look.at(folder, PAGE)
    expect(shown.locator("#compare")).to_be_visible()
    return shown


def reckoned(page: Page, function: str, *arguments: object) -> Any:
    return page.evaluate(f"given => cab.paired.{function}(...given)", list(arguments))


@pytest.mark.parametrize(("won", "lost"), [(0, 0), (1, 0), (6, 0), (5, 9), (30, 12), (400, 300)])
def test_single_runs_give_the_exact_binomial(page: Page, won: int, lost: int) -> None:
    tasks = [[[0, 1, 1, 1]]] * won + [[[1, 1, 0, 1]]] * lost + [[[1, 1, 1, 1]]] * 7
    expected = binomtest(won, won + lost).pvalue if won + lost else 1.0
    assert reckoned(page, "signFlip", tasks) == pytest.approx(expected, rel=1e-9)


def test_several_runs_give_the_exact_sign_flip(page: Page) -> None:
    tasks = [
        [[0, 2, 1, 2]],
        [[2, 4, 1, 4]],
        [[0, 3, 3, 3]],
        [[1, 3, 2, 3], [0, 1, 1, 1]],
        [[1, 2, 2, 3]],
        [[3, 3, 1, 2]],
    ]
    differences = [sum(pb / nb - pa / na for pa, na, pb, nb in units) for units in tasks]
    exact = permutation_test(
        (differences,), lambda it, axis: it.sum(axis=axis), permutation_type="samples", n_resamples=10_000
    )
    found = reckoned(page, "signFlip", tasks)
    assert found == pytest.approx(sign_flip(differences), rel=1e-9)
    assert found == pytest.approx(exact.pvalue, abs=1e-9)


def test_intervals_and_what_is_needed_are_those_of_cab(page: Page) -> None:
    assert reckoned(page, "spread", DIFFERENCES) == pytest.approx(spread(DIFFERENCES))
    assert reckoned(page, "interval", DIFFERENCES, Z, True, MIN_TASKS) == pytest.approx(
        difference_interval(DIFFERENCES)
    )
    for differences, step in ((DIFFERENCES, 1 / 3), ([0.0] * 20, 1.0), ([1.0] * 3 + [0.0] * 9, 1.0)):
        mean = sum(differences) / len(differences)
        own = needed(mean, spread(differences), len(differences), step=step)
        found = reckoned(page, "needed", differences, Z, Z_POWER, MIN_TASKS, step, POWER)
        assert found["detectable"] == pytest.approx(own.detectable)
        assert found["tasks"] == own.tasks


@pytest.mark.parametrize(("lost", "verdict"), [(0, "better"), (2, "too many lost cells")])
def test_lost_cells_that_could_turn_it_round_forbid_a_verdict(page: Page, lost: int, verdict: str) -> None:
    """As of `cab compare`: coverage is enough either way."""
    # Of 100 tasks B passed 6 more, and what A lost could all have passed.
    counts = [[[0, 1, 0]] * 5 + [[0, 1, lost]] + [[1, 1, 0]] * 94, [[1, 1, 0]] * 100]
    if lost:
        counts[0] += [[0, 0, 1]] * 6
        counts[1] += [[0, 1, 0]] * 6
    found = page.evaluate(
        """([of_a, of_b, constants]) => {
          const group = { tasks: of_a.map((_, at) => [`t${at}`, null]) };
          const [a, b] = [of_a, of_b].map((of) => ({ counts: new Map([["", of.flat()]]) }));
          return cab.compared(group, a, b, constants).verdict;
        }""",
        [
            *counts,
            {
                "alpha": 0.05,
                "minTasks": MIN_TASKS,
                "minCoverage": 0.9,
                "z": Z,
                "zPower": Z_POWER,
                "power": POWER,
            },
        ],
    )
    assert found == verdict


def test_of_several_runs_the_interval_is_students(page: Page) -> None:
    count = len(DIFFERENCES)
    mean = sum(DIFFERENCES) / count
    error = (sum((it - mean) ** 2 for it in DIFFERENCES) / (count - 1) / count) ** 0.5
    low, high = t.interval(0.95, count - 1, loc=mean, scale=error)
    assert reckoned(page, "interval", DIFFERENCES, Z, False, MIN_TASKS) == pytest.approx(
        [low, high], abs=0.001
    )
    for degrees in (5, 6, 10, 40, 1000):
        assert reckoned(page, "student", Z, degrees) == pytest.approx(t.ppf(0.975, degrees), abs=0.003)


def own(generated: Path, by: Dimension, a: str, b: str) -> Comparison:
    """The same comparison by `cab compare`, of results of models by cab's own methodology."""
    cells = [it for it in cells_of(load_frame([generated])) if it.kind == "result" and it.methodology == "1"]
    # On the page a CLI with a stack or condition is one of its own.
    bare: dict[Dimension, str] = {"stack": NO_STACK, "condition": NO_CONDITION} if by == "cli" else {}
    sides = [side(cells, name, {by: name, **bare}) for name in (a, b)]
    [found] = compare(*sides).comparisons
    return found


@pytest.mark.parametrize("by", ["cli", "model"])
def test_the_page_and_the_command_agree(look: Looker, folder: Place, generated: Path, by: Dimension) -> None:
    page = look.at(folder, f"{PAGE}#of=result%2F1&by={by}")
    names = [
        it for it in page.locator("#compare-a option").all_inner_texts() if "+" not in it and "@" not in it
    ]
    assert len(names) > 1
    a, b = names[:2]
    page.locator("#compare-a").select_option(a)
    page.locator("#compare-b").select_option(b)
    expected = own(generated, by, a, b)
    verdict = page.locator("#verdict")
    expect(verdict).to_have_attribute("data-verdict", expected.pass_rate.verdict)
    shown = page.locator("#comparison").inner_text()
    assert f"{expected.tasks} task" in shown
    assert f"{expected.units} unit" in shown
    assert expected.pass_rate.value is not None
    assert f"{abs(100 * expected.pass_rate.value):.1f}" in page.locator("#difference").inner_text()
    # The command's own p-value is of a sample where it is not of all ways.
    p = page.locator("#p-value").inner_text().split(",")[0]
    assert expected.pass_rate.p is not None
    assert float(p.removeprefix("< ")) == pytest.approx(expected.pass_rate.p, abs=0.01)


def test_an_address_leads_to_its_comparison(look: Looker, folder: Place) -> None:
    page = look.at(folder, f"{PAGE}#by=model")
    a, b, *_ = page.locator("#compare-a option").all_inner_texts()
    page.locator("#compare-a").select_option(b)
    page.locator("#compare-b").select_option(a)
    said = page.locator("#comparison").inner_text()
    again = look.at(folder, f"{PAGE}#{page.url.partition('#')[2]}")
    expect(again.locator("#verdict")).to_be_visible()
    assert again.locator("#comparison").inner_text() == said
    assert again.locator("#compare-a").input_value() == b
    again.locator("#compare-swap").click()
    assert again.locator("#compare-a").input_value() == a
    assert again.locator("#comparison").inner_text() != said


def test_one_with_itself_is_no_comparison(page: Page) -> None:
    first = page.locator("#compare-a").input_value()
    page.locator("#compare-b").select_option(first)
    expect(page.locator("#status")).to_have_text("Choose two that differ.")
    assert page.locator("#comparison").inner_text() == ""


def test_checks_are_compared_under_their_banner(page: Page) -> None:
    banner = page.locator("#not-results")
    expect(banner).to_be_hidden()
    kinds = page.locator("#compare-group option").evaluate_all(
        "all => all.map((it) => [it.value, it.dataset.kind])"
    )
    check = next(value for value, kind in kinds if kind == "pipeline")
    page.locator("#compare-group").select_option(check)
    expect(banner).to_be_visible()
    assert json.dumps(kinds).count("result") >= 1
