"""The page of a cell in a reader's hands: its trace by keys and pointer, its recording, its copy buttons."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from browsing import HttpPlace, Looker, Place
from playwright.sync_api import Page, expect

from orchestrator.site import links
from orchestrator.store.frame import load_frame
from orchestrator.store.names import CellKey

FRAMES = """new Promise((done) => {
  let left = 10;
  const tick = () => (left-- ? requestAnimationFrame(tick) : done());
  tick();
})"""
"""Waits for ten frames: what plays moves in each."""


@pytest.fixture(scope="package")
def solved(generated: Path) -> str:
    """The page of a cell that has a trace, a recording, calls and a diff."""
    frame = load_frame(generated)
    [row] = (
        frame.filter(sweep_id="made-up-large", passed=1.0, outcome="completed")
        .sort("cell_id")[:1]
        .rows(named=True)
    )
    return links.cell_page(row["sweep_id"], CellKey(row["cli"], row["model"], row["task"], row["run"]))


def seconds(page: Page) -> float:
    return float(page.locator("#trace-time").inner_text().removesuffix(" s"))


def current(page: Page) -> int | None:
    """The place of the span that the table marks."""
    marked = page.locator("#span-table tr.current")
    return int(marked.get_attribute("data-span") or "") if marked.count() else None


def starts(page: Page) -> list[float]:
    rows = page.locator("#span-table tbody tr")
    return [float(start) for start in rows.evaluate_all("rows => rows.map(row => row.dataset.start)")]


def test_arrows_step_from_span_to_span(look: Looker, folder: Place, solved: str) -> None:
    page = look.at(folder, solved)
    page.locator("#timeline").focus()
    first = current(page)
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert current(page) == (first or 0) + 2
    assert seconds(page) == pytest.approx(starts(page)[(first or 0) + 2], abs=0.006)
    page.keyboard.press("ArrowLeft")
    assert current(page) == (first or 0) + 1
    assert page.locator("#span-now h3").inner_text()


def test_comma_and_dot_step_a_tenth_of_a_second(look: Looker, folder: Place, solved: str) -> None:
    page = look.at(folder, solved)
    page.locator("#timeline").focus()
    for _ in range(5):
        page.keyboard.press(".")
    assert seconds(page) == pytest.approx(0.5)
    page.keyboard.press(",")
    assert seconds(page) == pytest.approx(0.4)
    page.keyboard.press("End")
    assert seconds(page) == pytest.approx(
        float(page.locator("#timeline").get_attribute("aria-valuemax") or 0), abs=0.01
    )
    page.keyboard.press("Home")
    page.keyboard.press(",")
    assert seconds(page) == 0


def test_space_plays_and_pauses_at_the_chosen_speed(look: Looker, folder: Place, solved: str) -> None:
    page = look.at(folder, solved)
    page.locator("#trace-speed").select_option("10")
    page.locator("#timeline").focus()
    page.keyboard.press("Space")
    expect(page.locator("#trace-time")).to_have_text(re.compile(r"([2-9]|\d\d)\.\d+ s"))
    page.keyboard.press("Space")
    assert page.locator("#trace-play").get_attribute("aria-pressed") == "false"
    stopped = seconds(page)
    page.evaluate(FRAMES)
    assert seconds(page) == stopped


def test_a_click_on_the_drawing_goes_there(look: Looker, folder: Place, solved: str) -> None:
    page = look.at(folder, solved)
    last = page.locator("#timeline [data-span]").last
    place = int(last.get_attribute("data-span") or "")
    last.click(force=True)
    assert current(page) == place


def test_an_address_leads_to_one_span(look: Looker, folder: Place, solved: str) -> None:
    page = look.at(folder, solved)
    page.locator("#timeline").focus()
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    address, place = page.url, current(page)
    assert "#span=" in address
    again = look.at(folder, f"{solved}#{address.partition('#')[2]}")
    assert current(again) == place


@pytest.mark.parametrize("where", ["folder", "http"])
def test_the_recording_plays(look: Looker, request: pytest.FixtureRequest, where: str, solved: str) -> None:
    page = look.at(request.getfixturevalue(where), solved)
    page.locator(".play-recording").click()
    page.locator(".player", has_text="made-up agent").wait_for()


def screen(page: Page) -> str:
    """What the terminal in step with the trace shows, without the blanks at the ends of its lines."""
    return "\n".join(
        line.rstrip() for line in page.locator("#trace-screen .player").inner_text().splitlines()
    )


def printed(folder: Place, path: str, until: float) -> list[str]:
    """The last two lines that the recording has up to a moment."""
    raw = (folder.folder / links.attached(path, "recording.js")).read_text("utf-8")
    _, cast = json.loads(f"[{raw.removeprefix('cab.data(').rpartition(')')[0]}]")
    events = [json.loads(line) for line in cast.splitlines()[1:]]
    said = "".join(event[2] for event in events if event[0] <= until)
    return [line for line in re.sub(r"\x1b\[[\d;]*m", "", said).splitlines() if line.strip()][-2:]


def test_the_terminal_keeps_step_with_the_trace(look: Looker, folder: Place, solved: str) -> None:
    """At the end of each tool call it shows what the call printed; back at the start, nothing."""
    page = look.at(folder, solved)
    page.locator("#trace-terminal").click()
    page.locator("#trace-screen .ap-wrapper").wait_for()
    slider = page.locator("#timeline")
    slider.focus()
    moments = [start for start in starts(page) if start > 1]
    assert len(moments) > 5
    for moment in (moments[1], moments[-1], moments[3]):  # also back
        while seconds(page) > moment + 0.006:
            page.keyboard.press("ArrowLeft")
        while seconds(page) < moment - 0.006:
            page.keyboard.press("ArrowRight")
        for line in printed(folder, solved, moment):
            page.locator("#trace-screen .player", has_text=line.strip()[:60]).wait_for()
    page.keyboard.press("Home")
    expect(page.locator("#trace-screen .player")).to_have_text("")


def test_the_terminal_plays_as_the_trace_plays(look: Looker, folder: Place, solved: str) -> None:
    page = look.at(folder, solved)
    page.locator("#trace-terminal").click()
    page.locator("#trace-screen .ap-wrapper").wait_for()
    assert "made-up agent" not in screen(page)
    page.locator("#trace-speed").select_option("10")
    page.locator("#timeline").focus()
    page.keyboard.press("Space")
    page.locator("#trace-screen .player", has_text="made-up agent").wait_for()
    page.keyboard.press("Space")
    page.locator("#trace-terminal").click()
    assert page.locator("#trace-screen").is_hidden()


def test_who_opens_the_terminal_late_sees_the_moment_of_the_trace(
    look: Looker, folder: Place, solved: str
) -> None:
    page = look.at(folder, solved)
    page.locator("#timeline").focus()
    page.keyboard.press("End")
    page.locator("#trace-terminal").click()
    last = printed(folder, solved, 1e9)[-1].strip()[:60]
    page.locator("#trace-screen .player", has_text=last).wait_for()


def test_a_copy_button_copies(look: Looker, http: HttpPlace, solved: str) -> None:
    page = look.at(http, solved, permissions=["clipboard-read", "clipboard-write"])
    buttons = page.locator("button[data-copy]:visible")
    assert buttons.count() >= 2
    for number in range(buttons.count()):
        wanted = buttons.nth(number).get_attribute("data-copy")
        buttons.nth(number).click()
        expect(buttons.nth(number)).to_have_text("Copied")
        assert page.evaluate("navigator.clipboard.readText()") == wanted


def test_a_copy_button_copies_from_a_folder_too(look: Looker, folder: Place, solved: str) -> None:
    page = look.at(folder, solved)
    page.locator("button[data-copy]:visible").first.click()
    page.locator("button[data-copy]", has_text="Copied").first.wait_for()
