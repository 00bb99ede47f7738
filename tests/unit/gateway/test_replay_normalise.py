"""What may differ between two runs of a cell, and what may not; and how two requests are shown."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.gateway.replay.difference import SHOWN_MAX, VALUE_MAX, differences, distance
from orchestrator.gateway.replay.normalise import (
    ID_MEMBERS,
    IGNORED_MEMBERS,
    TEXT_RULES,
    normalise,
    normalise_text,
)
from orchestrator.paths import ROOT


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("Chunk ID: 3fa09c\nWall time: 0.1 seconds", "Chunk ID: ‹id›\nWall time: ‹duration›"),
        ("Today's date: Sat Nov 28 2026\n", "Today's date: ‹date›\n"),
        ("date: Sat Nov 28 05:07:33 2026 +0000", "date: ‹date›"),
        ("date: Sat Nov 28 05:07:33 UTC 2026", "date: ‹date›"),
        ("Sat, 28 Nov 2026 05:07:33 GMT", "‹date›"),
        ("1000 4096 Nov 28 05:07 src", "1000 4096 ‹date› src"),
        ("November 28, 2026", "‹date›"),
        ("at 2026-11-28T05:07:33.123Z ok", "at ‹date› ok"),
        ("at 2026-11-28 05:07:33 +0100 ok", "at ‹date› ok"),
        ("# aider chat started at 2026-11-28", "# aider chat started at ‹date›"),
        ("[05:07:33] go", "[‹time›] go"),
        ("since 1795842280, 1795842280123 and 1795842280.5", "since ‹epoch›, ‹epoch› and ‹epoch›"),
        ("Ran 4 tests in 0.001s", "Ran 4 tests in ‹duration›"),
        ("--- FAIL: TestA (0.00s)\nok pkg 0.312s", "--- FAIL: TestA (‹duration›)\nok pkg ‹duration›"),
        ("# duration_ms 53.2", "# duration_ms‹duration›"),
        ("real 0m1.234s, took 12 ms", "real ‹duration›, took ‹duration›"),
        (
            "in /tmp/tmpab_12xyz and /tmp/go-build3141592/b001",
            "in ‹temporary path› and ‹temporary path›/b001",
        ),
        ("<object at 0x7f3a1c2d4e50>", "<object at ‹address›>"),
        ("pid 4711, Process 12", "pid ‹pid›, Process ‹pid›"),
        ("http://127.0.0.1:41234/v1", "http://127.0.0.1:‹port›/v1"),
        ("[main 1f2e3d4] fix", "[main ‹commit›] fix"),
        ("commit 1f2e3d4c5b6a79880f1e2d3c4b5a69788f7e6d5c", "commit ‹commit›"),
        ("7d9f0c1e-2b3a-4c5d-8e9f-0a1b2c3d4e5f", "‹uuid›"),
        ("saved as tool_f3a9c01b2d4e5f60AbCdEf", "saved as tool_‹id›"),
    ],
)
def test_what_may_differ_is_hidden(text: str, normal: str) -> None:
    assert normalise_text(text) == normal


@pytest.mark.parametrize(
    "text",
    [
        "return text[-1:0:-1]",
        "version 1.18.33 of 3 files, 42 lines",
        "self.assertEqual(f(10.5), 0x1f)",
        "a ratio of 0.5 and May 5 of them",
        "May be 12 of them; MARCH 12",
        "exit code 1; sleep 5; ::1 10:30",
        "/tmp/results.txt and /workdir/tmp/tmpfile",
        "index 1f2e3d4..5c6b7a8 100644",
        "call_scripted_0 phone 17958422801234567",
    ],
)
def test_what_may_not_differ_stays(text: str) -> None:
    assert normalise_text(text) == text


def test_every_rule_is_tried_above() -> None:
    shown = {rule.shown for rule in TEXT_RULES}
    assert len(TEXT_RULES) == 13
    assert len(shown) == 12  # both kinds of date are shown alike


def test_the_document_lists_every_rule() -> None:
    listed = (ROOT / "docs" / "replay.md").read_text("utf-8")
    assert [rule.what for rule in TEXT_RULES if f"| {rule.what} |" not in listed] == []
    names = {name for members in (IGNORED_MEMBERS, ID_MEMBERS) for each in members.values() for name in each}
    assert [name for name in sorted(names) if f"`{name}`" not in listed] == []


def test_members_that_no_model_reads_do_not_count_and_ids_do_by_their_order() -> None:
    def request(first: str, second: str, answered: str) -> dict[str, Any]:
        calls = [{"id": first, "name": "a"}, {"id": second, "name": "b"}]
        messages = [{"tool_calls": calls}, {"tool_call_id": answered, "content": "id"}]
        return {"user": first, "prompt_cache_key": first, "messages": messages}

    assert normalise("chat", request("x", "y", "y")) == normalise("chat", request("p", "q", "q"))
    assert normalise("chat", request("x", "y", "y")) != normalise("chat", request("p", "q", "p"))
    assert "user" not in normalise("chat", request("x", "y", "y"))
    assert normalise("messages", {"user": "u", "metadata": {"user_id": "x"}}) == {"user": "u"}


def test_places_are_named_and_what_is_absent_is_told_from_null() -> None:
    old = {"a": [1, {"b": None}], "c": True, "model": "m"}
    new = {"a": [1, {"b": 2}, "more"], "c": 1, "model": "m", "n": [3]}
    places, more = differences(old, new)
    assert [(it.path, it.recorded, it.sent) for it in places] == [
        ("$.a[1].b", "null", "2"),
        ("$.a[2]", None, "more"),
        ("$.c", "true", "1"),
        ("$.n", None, "[3]"),
    ]
    assert more == 0
    assert distance(old, old) == 0 < distance(old, {**old, "c": False}) < distance(old, new)


def test_of_long_texts_the_lines_that_differ_are_shown() -> None:
    lines = [f"line {number}" for number in range(2000)]
    other = [*lines[:700], "another", *lines[702:]]
    [place], _ = differences({"t": "\n".join(lines)}, {"t": "\n".join(other)})
    assert (place.recorded, place.sent) == ("line 700\nline 701", "another")
    [place], _ = differences({"t": "a" * 5000 + "b"}, {"t": "a" * 5000 + "c" * 5000})
    assert (place.recorded, place.sent) == (
        "…" + "a" * 40 + "b",
        "…" + "a" * 40 + "c" * (VALUE_MAX - 40) + "…",
    )
    [place], _ = differences({"t": "one\ntwo"}, {"t": "one\ntwo\nthree"})
    assert (place.recorded, place.sent) == ("", "three")


def test_only_so_many_places_are_shown() -> None:
    places, more = differences(list(range(100)), list(range(1, 101)))
    assert (len(places), more) == (SHOWN_MAX, 100 - SHOWN_MAX)


@pytest.mark.parametrize(("wire", "name"), [("messages", "input"), ("gemini", "args")])
def test_an_id_among_the_arguments_of_a_call_is_the_models_word(wire: Any, name: str) -> None:
    first, second = ({"x": [{"id": "a1", name: {"id": word}}]} for word in ("left", "right"))
    assert normalise(wire, first) != normalise(wire, second)


def test_a_long_text_with_one_other_line_is_more_alike_than_a_request_without_it() -> None:
    output = "\n".join(f"line {number} of the tool's output" for number in range(100))
    sent = {"messages": ["the task", output]}
    same_call = {"messages": ["the task", output.replace("line 50 ", "line fifty ")]}
    for other in (
        {"messages": ["a title"]},
        {"messages": [*sent["messages"], "the next answer", output[:300]]},
    ):
        assert 0 < distance(same_call, sent) < distance(other, sent)
