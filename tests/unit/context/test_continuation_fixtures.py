"""The fixtures of the continuation eval, and what is wrong with one that is none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.context.fixtures import HELD_OUT, MEASURES, load_fixture, load_fixtures
from orchestrator.context.judging import met
from orchestrator.errors import CabError, InputError

FIXTURES = load_fixtures()
UNSEEN = load_fixtures(HELD_OUT)


def test_they_are_many_long_enough_and_ask_for_everything() -> None:
    assert len(FIXTURES) >= 14
    assert all(15 <= len(fixture.history.events) <= 60 for fixture in (*FIXTURES, *UNSEEN))
    assert not {fixture.name for fixture in FIXTURES} & {fixture.name for fixture in UNSEEN}
    assert {measure for fixture in FIXTURES for measure in fixture.expect} == set(MEASURES)
    assert [fixture.name for fixture in FIXTURES if not fixture.expect] == ["nothing-of-use-python"]


@pytest.mark.parametrize("fixture", [*FIXTURES, *UNSEEN], ids=lambda fixture: fixture.name)
def test_a_whole_record_of_the_session_meets_what_it_can_meet(fixture: Any) -> None:
    """With kinds, keys and files nothing is lost, what ended reads as ended, what is risky is there."""
    record = "\n".join(
        f"{event.kind} {event.key} {' '.join(event.files)}: {event.text}" for event in fixture.history
    )
    missed = [
        (measure, one.what)
        for measure, wanted in fixture.expect.items()
        for one in wanted
        if met(measure, one, record) is (measure == "risky")
    ]
    assert missed == []


def _raw(**changed: Any) -> dict[str, Any]:
    events = [{"id": "e1", "kind": "constraint", "text": "no new dependencies"}]
    expect = {"constraints": [{"what": "rule", "match": "no new dependencies"}]}
    return {"title": "t", "about": "a", "task": "do it", "events": events, "expect": expect, **changed}


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"expect": {"constraint": []}}, "expect.constraint"),
        ({"expect": {"constraints": [{"what": "rule", "match": "("}]}}, "expect.constraints.0.match"),
        ({"expect": {"constraints": [{"what": "rule", "match": "never said"}]}}, "no event holds"),
        ({"expect": {"risky": [{"what": "r", "match": "never said"}]}}, "no event holds"),
        (
            {"expect": {"constraints": [{"what": "r", "match": "no new", "by": "no new"}]}},
            "only what is superseded",
        ),
        ({"events": [{"id": "e1", "kind": "wish", "text": "x"}]}, "events[0]"),
        ({"task": ""}, "task"),
        ({"extra": 1}, "extra"),
    ],
)
def test_a_wrong_fixture_is_named_with_its_place(changed: dict[str, Any], named: str, tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    path.write_text(json.dumps(_raw(**changed)))
    with pytest.raises(InputError) as caught:
        load_fixture(path)
    assert str(path) in str(caught.value)
    assert named in str(caught.value)


def test_no_json_no_file_and_no_directory_are_said_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text("{")
    for directory in (tmp_path, tmp_path / "none", tmp_path / "one.json"):
        with pytest.raises(CabError) as caught:
            load_fixtures(directory)
        assert "\n" not in str(caught.value)
    (tmp_path / "one.json").write_text(json.dumps(_raw()))
    [fixture] = load_fixtures(tmp_path)
    assert (fixture.name, list(fixture.expect)) == ("one", ["constraints"])
