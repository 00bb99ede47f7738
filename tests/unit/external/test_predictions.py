"""Files of predictions: written as the harness reads them, and read with errors that name the place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rows_for_tests import said_by, written

from orchestrator.errors import InputError
from orchestrator.external.predictions import read_predictions, write_predictions

GOOD = {"instance_id": "a__b-1", "model_name_or_path": "stateplane", "model_patch": "diff\u2028\n"}


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "predictions" / "stateplane.run1.jsonl"
    write_predictions(path, "stateplane", {"b": "", "a": "diff\u2028 --git\n"})
    found = read_predictions(path)
    assert found.condition == "stateplane"
    assert dict(found.patches) == {"a": "diff\u2028 --git\n", "b": ""}


def test_a_line_is_one_prediction_whatever_the_patch_holds(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    write_predictions(path, "c", {"a": "x\u2028y\x0b\x1cz\x85\r\n"})
    assert len(path.read_text().splitlines()) == 1


def test_null_is_an_empty_patch_and_other_keys_are_passed_over(tmp_path: Path) -> None:
    path = written(tmp_path / "p.json", {**GOOD, "model_patch": None, "full_output": 1})
    assert dict(read_predictions(path).patches) == {"a__b-1": ""}


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([{**GOOD, "instance_id": ""}], r"\[0\]: instance_id"),
        (
            [{k: v for k, v in GOOD.items() if k != "model_name_or_path"}],
            "a__b-1: model_name_or_path is missing",
        ),
        ([{k: v for k, v in GOOD.items() if k != "model_patch"}], "a__b-1: model_patch is missing"),
        ([{**GOOD, "model_patch": ["diff"]}], "a__b-1: model_patch: "),
        ([{**GOOD, "model_patch": "\udfff"}], "a__b-1: model_patch: "),
        ([GOOD, GOOD], r"\[1\] a__b-1: has a second prediction"),
        ([GOOD, {**GOOD, "instance_id": "a__b-2", "model_name_or_path": "x"}], "a__b-2: is of 'x'"),
    ],
)
def test_a_wrong_prediction_is_named(tmp_path: Path, rows: list[object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_predictions(written(tmp_path / "p.json", *rows))


@given(data=st.data())
def test_any_bytes_are_predictions_or_one_error(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    whole = bytearray(f"{json.dumps(GOOD)}\n{json.dumps({**GOOD, 'instance_id': 'b'})}\n".encode())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(whole) - 1))
        whole[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    path = tmp_path_factory.getbasetemp() / "mutated.jsonl"
    path.write_bytes(bytes(whole))
    try:
        read_predictions(path)
    except InputError as error:
        said_by(error, str(path))
