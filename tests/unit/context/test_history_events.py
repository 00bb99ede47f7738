"""Histories are read strictly, and what is wrong with one is told by event and field."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from histories import FEW, past
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.context.events import History
from orchestrator.errors import InputError

GOAL: dict[str, Any] = {"id": "e1", "kind": "goal", "text": "mend it"}


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ({}, "history: is an object and no list of events"),
        ([GOAL, GOAL], "history[1]: the id 'e1' stands twice"),
        ([GOAL | {"kind": "gaol"}], "history[0]: 'gaol' is no kind of event (did you mean 'goal'?)"),
        ([GOAL | {"keys": "x"}], "history[0].keys: "),
        ([GOAL | {"hard": True}], "history[0]: only a constraint is hard"),
        ([GOAL | {"kind": "goal_done"}], "needs the key of what it is about"),
        ([GOAL | {"text": ""}], "history[0].text: "),
        ([GOAL | {"id": "e 1"}], "history[0].id: "),
        ([GOAL | {"text": "\ud800"}], "history[0].text: "),
        (["goal"], "history[0]: "),
    ],
)
def test_what_is_wrong_is_named(raw: object, said: str) -> None:
    with pytest.raises(InputError) as caught:
        History.of(raw, "history")
    assert said in str(caught.value)


def test_a_history_is_the_same_after_a_file(tmp_path: Path) -> None:
    history = past(
        ("constraint", "No edits of tests.", "edit_tests", "user", {"hard": True, "files": ["a.py"]}),
        ("test_failed", "1 != 2", "tests/a.py::t", "tool", {"at": "2026-01-02T00:00:00Z"}),
    )
    path = tmp_path / "history.json"
    path.write_text(json.dumps(history.as_json()))
    assert History.load(path) == history


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(("goal", "e1")),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(("id", "kind", "text", "key", "files", "hard")), inner, max_size=6)
    ),
    max_leaves=12,
)


@FEW
@given(_JSON)
def test_no_json_ends_in_anything_but_a_history_or_a_clear_error(raw: object) -> None:
    try:
        said = str(bool(History.of(raw, "history")))
    except InputError as error:
        said = str(error)
    assert said in ("True", "False") or said.startswith("history")
