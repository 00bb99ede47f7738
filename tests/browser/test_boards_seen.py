"""The matrix, the trade-offs and the guide in the hands of a reader."""

from __future__ import annotations

from browsing import Looker, Place
from playwright.sync_api import expect


def test_the_matrix_by_another_axis(look: Looker, folder: Place) -> None:
    page = look.at(folder, "matrix.html")
    field = page.locator("table.matrix td[data-at] a").first
    passed, target = field.inner_text(), field.get_attribute("href")
    page.locator("#matrix-axis").select_option("tokens")
    expect(page.locator("table.matrix .what").first).to_have_text(
        "tokens for each solved task, tokens / solved"
    )
    expect(field).not_to_have_text(passed)
    assert field.get_attribute("href") == target
    again = look.at(folder, f"matrix.html#{page.url.partition('#')[2]}")
    expect(again.locator("table.matrix .what").first).to_contain_text("tokens for each")
    page.locator("#matrix-axis").select_option("pass")
    expect(field).to_have_text(passed)


def test_the_matrix_never_shows_colour_without_a_number(look: Looker, folder: Place) -> None:
    page = look.at(folder, "matrix.html")
    for axis in page.locator("#matrix-axis option").all_text_contents():
        page.locator("#matrix-axis").select_option(label=axis)
        expect(page.locator("table.matrix .what").last).to_contain_text(f"{axis}, ", ignore_case=True)
        bare = page.locator("table.matrix td").evaluate_all(
            "all => all.filter((it) => !/[0-9–]/.test(it.textContent)).length"
        )
        assert bare == 0, axis


def test_trade_offs_lead_from_axis_to_axis_and_from_points_to_pairs(look: Looker, folder: Place) -> None:
    page = look.at(folder, "pareto.html")
    chosen = page.locator("nav.choices a[aria-current=page]")
    expect(chosen).to_have_count(1)
    page.locator("nav.choices a", has_text="tokens for each solved task").click()
    page.wait_for_url("**/pareto/tokens.html")
    assert chosen.inner_text() == "tokens for each solved task"
    expect(page.get_by_role("heading", name="Tokens for each solved task").first).to_be_visible()
    point = page.locator("svg.chart a").first
    name = point.locator("title").text_content() or ""
    point.focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/pair/**")
    assert name.split(" × ")[0] in page.locator("h1").inner_text()


def test_without_script_all_charts_and_tables_are_there(look: Looker, folder: Place) -> None:
    trade_offs = look.at(folder, "pareto.html", java_script_enabled=False)
    expect(trade_offs.locator("svg.chart").first).to_be_visible()
    assert trade_offs.locator("table.trade-offs tbody tr:visible").count() > 1
    board = look.at(folder, "index.html", java_script_enabled=False)
    assert board.locator("table[data-board] tbody tr:visible").count() > 1
    expect(board.locator("#filters")).to_be_hidden()
    guide = look.at(folder, "guide.html", java_script_enabled=False)
    expect(guide.locator("#guide")).to_be_hidden()
    expect(guide.get_by_role("table").first).to_be_visible()


def test_the_guide_answers_with_a_set_that_its_questions_change(look: Looker, folder: Place) -> None:
    page = look.at(folder, "guide.html")
    rows = page.locator("#answers tbody tr")
    expect(rows.first).to_be_visible()
    said = page.locator("#status").inner_text()
    assert "told apart" in said or "stands apart" in said
    model = rows.first.locator("td").first.inner_text()
    page.locator(f'input[name=model][value="{model}"]').first.uncheck()
    expect(page.locator("#answers").get_by_text(model, exact=True)).to_have_count(0)
    page.locator("input[name=matters][value=usd]").check()
    expect(page.locator("#answers thead").first).to_contain_text("$ / solved, 95 % interval")
    expect(page.locator("#answers thead").first).to_contain_text("pass %, 95 % interval")
    again = look.at(folder, f"guide.html#{page.url.partition('#')[2]}")
    expect(again.locator("#status")).to_have_text(page.locator("#status").inner_text())
    expect(again.locator(f'input[name=model][value="{model}"]').first).not_to_be_checked()
    page.locator("button[data-all=no]").click()
    expect(page.locator("#status")).to_contain_text("No pair of these can be compared")
