"""A dash means not measured, and no text of an agent's can do more than be read."""

import pytest

from orchestrator.report.text import (
    NOT_MEASURED,
    bounded,
    clock,
    console,
    count,
    number,
    plural,
    safe_line,
    safe_lines,
    seconds,
)


@pytest.mark.parametrize("show", [number, count, seconds])
def test_what_was_not_measured_is_a_dash_and_zero_is_not(show):
    assert show(None) == NOT_MEASURED
    assert NOT_MEASURED not in show(0)


def test_numbers():
    assert [number(value) for value in (1.0, 0.9999, 0.12345, 0)] == ["1", "1.000", "0.123", "0"]
    assert count(1234567) == "1\u202f234\u202f567"
    assert [clock(value) for value in (7.4, 200, 7500)] == ["7 s", "3 min 20 s", "2 h 05 min"]
    assert [plural(1, "cell"), plural(2, "cell"), plural(2, "try", "tries")] == ["1 cell", "2 cells", "2 tries"]


def test_bounds_stand_in_for_what_was_not_measured_only():
    assert bounded(None, (0.7, 1)) == "[0.70, 1]"
    assert bounded(0.5, (0.5, 0.5)) == "0.500"
    assert bounded(None, None) == NOT_MEASURED


@pytest.mark.parametrize(
    "hostile",
    ["\x1b[2J", "\x9b31m", "\x07", "\x00", "\u202egnp", "\u2066", "\u200b", "\ud800", "\u2028", "e\u0301" * 3, "\x7f"],
)
def test_what_a_terminal_would_obey_is_replaced(hostile):
    shown = safe_line(f"a{hostile}b")
    assert shown.isprintable()
    assert "\ufffd" in shown or "\u2028" in hostile


def test_a_text_cannot_pretend_to_be_another_line():
    assert safe_line("name\noutcome   passed\r\tx") == "name outcome   passed  x"
    assert safe_lines("a\n\tb\r") == ["a", "    b "]


def test_huge_lines_are_bounded_and_say_so():
    assert safe_line("x" * 1000, 10) == "x" * 10 + "… (990 characters more)"
    assert all(len(line) < 50 for line in safe_lines("\t" * 100_000, 10))


def test_letters_of_every_script_stay():
    assert safe_line("größe 値 Ж 80\u202f862") == "größe 値 Ж 80 862"


def test_markup_and_emoji_names_are_text(capsys):
    console().print("[red]:bomb:[/red]")
    assert capsys.readouterr().out == "[red]:bomb:[/red]\n"


def test_columns_decides_the_width_off_a_terminal(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    assert console().width == 160
    monkeypatch.setenv("COLUMNS", "80")
    assert console().width == 80
