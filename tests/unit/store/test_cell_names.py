from __future__ import annotations

from dataclasses import replace
from pathlib import PurePosixPath

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.errors import InputError
from orchestrator.store.names import CellKey, escape, unescape

LETTERS = "abzAZ09._:-"
PART = st.text(LETTERS, min_size=1, max_size=6).filter(lambda part: part not in (".", ".."))
NAME = st.lists(PART, min_size=1, max_size=3).map("/".join)
KEY = st.builds(CellKey, PART, NAME, NAME, st.integers(1, 10**6), st.just("none") | NAME, st.none() | NAME)


@settings(deadline=None)
@given(NAME)
def test_a_name_is_one_path_part_and_back(name):
    part = escape(name)
    assert PurePosixPath(part).parts == (part,)
    assert part not in (".", "..")
    assert unescape(part) == name


@settings(deadline=None)
@given(st.text(max_size=20))
def test_what_is_no_name_is_refused_not_bent(text):
    try:
        part = escape(text)
    except InputError:
        return
    assert unescape(part) == text
    assert PurePosixPath(part).parts == (part,)


@settings(deadline=None)
@given(KEY)
def test_a_key_is_a_path_and_back(key):
    path = key.path()
    assert len(path.parts) == 4
    assert CellKey.from_path(path) == key


@settings(deadline=None)
@given(KEY, KEY)
def test_two_cells_share_neither_path_nor_id(one, other):
    if one != other:
        assert one.path() != other.path()


@pytest.mark.parametrize(
    "name",
    ["", "/", "a//b", "/a", "a/", "..", "a/../b", "./a", "a~b", "a b", "a\n", "ü", "a\0", "a+b", "x" * 256],
)
def test_bad_names(name):
    with pytest.raises(InputError):
        escape(name)


def test_cell_ids():
    assert (
        CellKey("opencode", "embedded/idle", "polyglot/a").cell_id("s")
        == "s/opencode/embedded/idle/polyglot/a#run1"
    )
    full = CellKey("opencode", "m", "t", 3, "rules", "full-context")
    assert full.cell_id("s") == "s/opencode/m/t+rules@full-context#run3"
    assert str(full.path()) == "opencode/m/t+rules@full-context/run3"


@settings(deadline=None)
@given(KEY)
def test_an_id_is_a_key_and_back(key):
    key = replace(key, task=f"category/{key.task.replace('/', '-')}")
    assert CellKey.of_id(key.cell_id("free-20261127")) == ("free-20261127", key)


@pytest.mark.parametrize(
    "cell_id", ["s/cli/m/c/t", "s/cli/c/t#run1", "s/cli/m/c/t#runx", "s/cli/m/c/t#run0", ""]
)
def test_what_is_no_cell_id(cell_id):
    with pytest.raises(InputError):
        CellKey.of_id(cell_id)


@pytest.mark.parametrize(
    "path", ["a/b/c", "a/b/c/run0", "a/b/c/runx", "a/b/c/run01", "a/b/../run1", "a/b/c/d/run1"]
)
def test_what_is_no_cell_path(path):
    with pytest.raises(InputError):
        CellKey.from_path(PurePosixPath(path))


def test_a_key_refuses_what_could_not_be_a_path():
    with pytest.raises(InputError, match="'/'"):
        CellKey("a/b", "m", "t")
    with pytest.raises(InputError, match="below 1"):
        CellKey("a", "m", "t", 0)
    with pytest.raises(InputError, match="too long"):
        CellKey("a", "m", "t" * 200, 1, "s" * 100)
