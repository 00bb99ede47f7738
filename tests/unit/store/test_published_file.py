"""Files that others published: each fault is named by file, element and field, in one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.errors import InputError
from orchestrator.store.published import read_published, rows_digest

FILE = Path(__file__).parents[2] / "data" / "published_cells.json"
CELLS: list[dict[str, Any]] = json.loads(FILE.read_bytes())


def written(tmp_path: Path, content: Any) -> Path:
    path = tmp_path / "cells.json"
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return path


def test_the_published_cells_are_read_in_their_order() -> None:
    rows = read_published(FILE)
    assert [row.source for row in rows] == CELLS
    assert {row.cell_id for row in rows} == {
        f"{cell['cell_id'].removesuffix('#run1')}#run1" for cell in CELLS
    }


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"{", "cells.json: is no JSON"),
        (b"\xff\xfe\x00", "cells.json: is no JSON"),
        (b"[" * 100_000, "cells.json: is no JSON"),
        (b'[{"a": 1, "a": 2}]', "the key 'a' stands twice in one object"),
        (b'[{"a": NaN}]', "NaN is no JSON number"),
        (b"{}", "cells.json: is no JSON array of cells"),
        (b"[]", "cells.json: is an empty array"),
        ([CELLS[0], 3], "cells.json: element 1: is no object"),
        ([CELLS[0], CELLS[1], CELLS[0]], "element 2 is the same cell as element 0"),
    ],
)
def test_what_is_no_such_file_is_named(tmp_path: Path, content: Any, says: str) -> None:
    with pytest.raises(InputError) as caught:
        read_published(written(tmp_path, content))
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.json: No such file"):
        read_published(tmp_path / "none.json")
    with pytest.raises(InputError, match="Is a directory"):
        read_published(tmp_path)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"pass": True}, "pass: Input should be a valid integer"),
        ({"pass": 2}, "pass: Input should be less than or equal to 1"),
        ({"pass": "1"}, "pass: Input should be a valid integer"),
        ({"blast_radius": 1.5}, "blast_radius: "),
        ({"expected_refusal": 0}, "expected_refusal: Input should be a valid boolean"),
        ({"scorer_tokens": {"prompt_tokens": 1}}, "scorer_tokens.completion_tokens: is missing"),
        ({"scorer_tokens": 0}, "scorer_tokens: "),
        ({"added": ["a", 1]}, "added.1: "),
        ({"started_at": None}, "started_at: is no text"),
        ({"started_at": 1781570926}, "started_at: is no text"),
        ({"started_at": "2026-06-16T00:48:46"}, "started_at: Input should have timezone info"),
        ({"ended_at": "2026-06-15T00:00:00Z"}, "ended_at: is before started_at"),
        ({"image_digest": "e56b"}, "image_digest: "),
        ({"run": 0}, "run: "),
        ({"run": 2}, "cell_id: is 'free-20260527/opencode"),
        ({"task": "polyglot/other"}, "but sweep_id, cli, model, task and run say"),
        ({"sweep_id": "../up"}, "sweep_id '../up' has an empty, '.' or '..' part"),
        ({"sweep_id": "a/b"}, "sweep_id: 'a/b' holds a '/'"),
        ({"model": "a~b"}, "model 'a~b' holds a character that no name may hold"),
        ({"cli": "a/b"}, "cli 'a/b' holds a '/'"),
        ({"stack": "none"}, "stack: is no field that cab knows"),
    ],
)
def test_a_wrong_field_is_named_with_its_element(tmp_path: Path, changes: dict[str, Any], says: str) -> None:
    path = written(tmp_path, [CELLS[1], CELLS[0] | changes])
    with pytest.raises(InputError) as caught:
        read_published(path)
    assert str(caught.value).startswith(f"{path}: element 1: ")
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_field_is_not_a_null(tmp_path: Path) -> None:
    short = {name: value for name, value in CELLS[0].items() if name != "notice"}
    with pytest.raises(InputError, match="element 0: notice: is missing"):
        read_published(written(tmp_path, [short]))
    assert read_published(written(tmp_path, [CELLS[0] | {"pass": None}]))[0].cell.passed is None


def test_an_id_with_and_without_its_run_is_one_cell(tmp_path: Path) -> None:
    numbered = CELLS[0] | {"cell_id": f"{CELLS[0]['cell_id']}#run1", "run": 1}
    with pytest.raises(InputError, match=r"element 1 is the same cell as element 0"):
        read_published(written(tmp_path, [CELLS[0], numbered]))
    second = CELLS[0] | {"cell_id": f"{CELLS[0]['cell_id']}#run2", "run": 2}
    assert [row.key.run for row in read_published(written(tmp_path, [CELLS[0], second]))] == [1, 2]


def test_the_digest_is_that_of_the_content(tmp_path: Path) -> None:
    pairs = [(cell["cell_id"], cell) for cell in CELLS]
    shuffled = [(name, dict(reversed(cell.items()))) for name, cell in reversed(pairs)]
    assert rows_digest(shuffled) == rows_digest(pairs)
    assert rows_digest([(name, cell | {"pass": None}) for name, cell in pairs]) != rows_digest(pairs)
