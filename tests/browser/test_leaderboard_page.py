"""The leaderboard in the hands of a reader: sorting, filters, another axis, and addresses that keep them."""

from __future__ import annotations

import re

from browsing import HttpPlace, Looker, Place, settled
from playwright.sync_api import Page, Route, expect

PAGE = "index.html"
BOARD = "table[data-board][data-kind=result]"


def column(page: Page, head: str) -> list[str]:
    """What the visible rows of the first board hold in the column of that head: the value, else the text."""
    return page.locator(BOARD).first.evaluate(
        """(table, head) => {
            const at = [...table.tHead.rows[0].cells].findIndex((cell) => cell.textContent.startsWith(head));
            return [...table.tBodies[0].rows].filter((row) => !row.hidden).map((row) => {
                const cell = row.cells[at];
                return cell.dataset.value ?? cell.textContent.trim();
            });
        }""",
        head,
    )


def numbers(texts: list[str]) -> list[float]:
    found = (re.search(r"[\d.]+", re.sub(r"[\s,]", "", text)) for text in texts)
    return [float(number[0]) for number in found if number]


def test_a_head_sorts_both_ways_and_says_so(look: Looker, folder: Place) -> None:
    page = look.at(folder, PAGE)
    head = page.locator(BOARD).first.get_by_role("button", name="counted")
    cell = page.locator(BOARD).first.locator("th", has_text="counted")
    head.click()
    first = numbers(column(page, "counted"))
    assert cell.get_attribute("aria-sort") == "descending"
    assert first == sorted(first, reverse=True)
    assert len(set(first)) > 1
    head.press("Enter")
    assert cell.get_attribute("aria-sort") == "ascending"
    assert numbers(column(page, "counted")) == sorted(first)


def test_what_was_not_measured_comes_last_either_way(look: Looker, folder: Place) -> None:
    page = look.at(folder, PAGE)
    for _ in range(2):
        page.locator(BOARD).first.get_by_role("button", name="place").click()
        places = column(page, "place")
        known = [place not in ("", "–") for place in places]
        assert known == sorted(known, reverse=True)


def test_words_filter_rows_and_the_address_keeps_them(look: Looker, folder: Place) -> None:
    page = look.at(folder, PAGE)
    everyone = len(column(page, "CLI"))
    page.locator("#filter-text").fill("cli-a")
    kept = column(page, "CLI")
    assert 0 < len(kept) < everyone
    assert {re.split("[+@]", name)[0] for name in kept} == {"made-up-cli-a"}
    expect(page.locator("#status")).to_contain_text(" of ")
    again = look.at(folder, f"{PAGE}#{page.url.partition('#')[2]}")
    assert column(again, "CLI") == kept
    assert again.locator("#filter-text").input_value() == "cli-a"


def test_a_model_is_chosen(look: Looker, folder: Place) -> None:
    page = look.at(folder, PAGE)
    model = page.locator("#filter-model option").nth(1).get_attribute("value")
    page.locator("#filter-model").select_option(model)
    expect(page.locator("#status")).to_contain_text(" of ")
    assert set(column(page, "model")) <= {model}


def test_another_axis_orders_the_board_and_back(look: Looker, folder: Place) -> None:
    page = look.at(folder, PAGE)
    before = [column(page, head) for head in ("CLI", "model", "pass")]
    option = page.locator("#filter-axis option").nth(1)
    key, title = option.get_attribute("value") or "", option.get_attribute("data-head") or ""
    better = option.get_attribute("data-better")
    page.locator("#filter-axis").select_option(key)
    settled(page)
    expect(page.locator(BOARD).first.locator("th").nth(4)).to_contain_text(f"{title}, 95")
    found = numbers(column(page, f"{title}, 95"))
    assert found == sorted(found, reverse=better == "higher")
    assert len(set(found)) > 1
    again = look.at(folder, f"{PAGE}#axis={key}")
    settled(again)
    expect(again.locator(BOARD).first.locator("th").nth(4)).to_contain_text(f"{title}, 95")
    page.get_by_role("button", name="Clear").click()
    expect(page.locator(BOARD).first.locator("th").nth(4)).to_contain_text("pass")
    assert [column(page, head) for head in ("CLI", "model", "pass")] == before


def test_checks_of_the_pipeline_stand_apart_from_results(look: Looker, folder: Place) -> None:
    page = look.at(folder, PAGE)
    results = page.locator(BOARD)
    for number in range(results.count()):
        assert "embedded/" not in results.nth(number).inner_text()
        assert "pipeline" not in results.nth(number).locator("tbody").inner_text()
    apart = page.locator("section.pipeline-checks")
    assert "embedded/reference" in apart.first.inner_text()


def test_findings_and_refusals_are_those_of_the_chosen_work(look: Looker, folder: Place) -> None:
    page = look.at(folder, PAGE)
    heads = ("findings", "right refusals", "false refusals")
    everything = [column(page, head) for head in heads]
    assert any(re.fullmatch(r"[1-9]\d*", text) for text in everything[0])
    assert any(re.fullmatch(r"[1-9]\d*/\d+", text) for text in everything[2])
    page.locator("#filter-work").select_option("category/made-up-refusals")
    settled(page)
    assert set(column(page, "false refusals")) == {"n/a"}
    assert all(re.fullmatch(r"\d+/\d+", text) for text in column(page, "right refusals"))
    page.locator("#filter-work").select_option("category/made-up-bugs")
    settled(page)
    assert set(column(page, "right refusals")) == {"n/a"}
    page.locator("#filter-work").select_option("")
    settled(page)
    assert [column(page, head) for head in heads] == everything


def test_while_data_come_the_page_says_that_it_will_change(look: Looker, http: HttpPlace) -> None:
    page = look.at(http, PAGE)
    before = column(page, "right refusals")
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/data/**", hold)
    page.locator("#filter-work").select_option("category/made-up-bugs")
    expect(page.locator("main")).to_have_attribute("aria-busy", "true")
    assert column(page, "right refusals") == before
    for route in held:
        route.continue_()
    settled(page)
    assert column(page, "right refusals") != before
