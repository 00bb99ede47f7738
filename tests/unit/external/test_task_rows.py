"""Files of external tasks: what is read of them, and what is said of wrong ones."""

from __future__ import annotations

import json
import sys
from datetime import datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rows_for_tests import CLASSIC, ROW, said_by, written

from orchestrator.errors import EnvironmentFault, InputError
from orchestrator.external.tasks import (
    OWN_KEYS,
    ExternalTask,
    load_dataset,
    load_ids,
    load_tasks_json,
    task_of,
)


@pytest.mark.parametrize("lines", [False, True])
def test_a_row_is_read_with_what_cab_keeps_beside_it(tmp_path: Path, lines: bool) -> None:
    [task] = load_tasks_json(written(tmp_path / "tasks.json", ROW, lines=lines))
    assert task.FAIL_TO_PASS == ("tests/t.py::test_mean",)
    assert task.hints_text == ""
    assert [event.key for event in task.history] == ["mean"]
    assert task.prior_patch == ROW["prior_patch"]
    assert task.source is None


def test_the_harness_is_given_the_row_as_it_was_less_cabs_own_keys(tmp_path: Path) -> None:
    [task] = load_tasks_json(written(tmp_path / "tasks.json", {**ROW, "difficulty": "15 min"}))
    assert dict(task.row) == {k: v for k, v in ROW.items() if k not in OWN_KEYS} | {"difficulty": "15 min"}


def test_the_digest_covers_row_history_and_prior_work() -> None:
    def digest(**changes: object) -> str:
        return task_of({**ROW, **changes}, "here").digest

    assert digest() == digest()
    changed = [digest(version="0.2"), digest(history=[]), digest(prior_patch=""), digest(difficulty="x")]
    assert len({digest(), *changed}) == 5


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"repo": None}, "labelco__tinymath-1: repo: "),
        ({"base_commit": "main"}, "base_commit: "),
        ({"eval_type": "all"}, "eval_type: "),
        ({"FAIL_TO_PASS": "test_mean"}, "FAIL_TO_PASS: is neither a list nor a JSON list in a string"),
        ({"FAIL_TO_PASS": [1]}, "FAIL_TO_PASS.0: "),
        ({"prior_patch": "my work"}, "prior_patch: is no diff"),
        ({"history": [{"id": "e1", "kind": "gaol", "text": "x"}]}, r".history\[0\]: 'gaol' is no kind"),
        ({"histroy": []}, "'histroy' is not known .did you mean 'history'"),
        ({"problem_statement": "\ud800"}, "labelco__tinymath-1: "),
        ({"extra": "\ud800"}, "half of a surrogate pair"),
    ],
)
def test_a_wrong_field_is_named_with_file_and_instance(
    tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    path = written(tmp_path / "tasks.json", ROW | {"instance_id": "a__b-1"}, {**ROW, **changes})
    with pytest.raises(InputError, match=said) as told:
        load_tasks_json(path)
    assert f"{path}[1] labelco__tinymath-1" in str(told.value)


@pytest.mark.parametrize("key", ["instance_id", "repo", "base_commit", "problem_statement"])
def test_a_missing_field_is_named(tmp_path: Path, key: str) -> None:
    path = written(tmp_path / "t.json", {k: v for k, v in ROW.items() if k != key})
    with pytest.raises(InputError, match=f"{key} is missing"):
        load_tasks_json(path)


@pytest.mark.parametrize("name", ["../../etc", "a/b", "", "-rf", "x" * 200, "a b"])
def test_an_instance_id_names_no_path(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="instance_id"):
        load_tasks_json(written(tmp_path / "t.json", {**ROW, "instance_id": name}))


@pytest.mark.parametrize("other", ["labelco__tinymath-1", "LabelCo__tinymath-1"])
def test_two_of_one_id_are_refused_also_where_the_harness_would_confuse_them(
    tmp_path: Path, other: str
) -> None:
    path = written(tmp_path / "t.json", ROW, {**ROW, "instance_id": other})
    with pytest.raises(InputError, match="stands twice"):
        load_tasks_json(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("[]", "holds no task"),
        ("{", ":1: is no JSON"),
        ('[{"a": 1}', "is no JSON"),
        ("[1]", r"\[0\]: is no object"),
        ("null", ":1: is no object"),
        ("[" * 100_000, "nested too deep"),
    ],
)
def test_files_that_hold_no_rows(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "t.json"
    path.write_text(text)
    with pytest.raises(InputError, match=said):
        load_tasks_json(path)


def test_bytes_that_are_no_text_and_a_missing_file(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_bytes(b"\xff\xfe{}")
    for name in ("t.json", "none.json"):
        with pytest.raises(InputError, match="cannot be read"):
            load_tasks_json(tmp_path / name)


def test_only_the_ids_asked_for_are_taken(tmp_path: Path) -> None:
    path = written(tmp_path / "t.json", ROW, {**ROW, "instance_id": "a__b-2"})
    ids = load_ids(written(tmp_path / "ids.json", "a__b-2", "a__b-2"))
    assert [task.instance_id for task in load_tasks_json(path, ids)] == ["a__b-2"]
    with pytest.raises(InputError, match="did you mean 'a__b-2'"):
        load_tasks_json(path, ["a__b-3"])


@pytest.mark.parametrize("text", ["{}", "[]", "[1]", '[""]', "a__b-1", "["])
def test_a_file_of_ids_is_a_list_of_ids(tmp_path: Path, text: str) -> None:
    (tmp_path / "ids.json").write_text(text)
    with pytest.raises(InputError, match=r"ids\.json"):
        load_ids(tmp_path / "ids.json")


class TestWhatTheHarnessNeeds:
    def test_a_whole_row_is_for_5_and_for_4(self) -> None:
        task = task_of(ROW, "here")
        assert task.harness_problem("5") is None
        assert task.harness_problem("4") is None

    def test_a_classic_row_loads_and_is_told_from_what_5_needs(self) -> None:
        task = task_of(CLASSIC, "here")
        said = task.harness_problem("5") or ""
        assert "image, log_parser, eval_type, eval_script" in said
        assert "swebench 4.x takes classic rows" in said
        assert task.harness_problem("4") is None

    def test_4_looks_up_by_version(self) -> None:
        assert "version" in (task_of({**CLASSIC, "version": ""}, "here").harness_problem("4") or "")

    def test_without_a_test_that_has_to_pass_anything_would_be_resolved(self) -> None:
        assert "FAIL_TO_PASS" in (task_of({**ROW, "FAIL_TO_PASS": []}, "here").harness_problem("5") or "")

    @pytest.mark.parametrize("lost", [">>>>> Start Test Output", ">>>>> End Test Output"])
    def test_a_script_without_a_marker_grades_nothing(self, lost: str) -> None:
        script = ROW["eval_script"].replace(lost, "")
        assert lost in (task_of({**ROW, "eval_script": script}, "here").harness_problem("5") or "")


class TestDataSets:
    def test_without_the_package_one_line_says_what_to_install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "datasets", None)
        with pytest.raises(EnvironmentFault, match="pip install datasets"):
            load_dataset("SWE-bench/SWE-bench_Lite", "test")

    def test_rows_of_a_data_set_are_rows(self, monkeypatch: pytest.MonkeyPatch) -> None:
        package = ModuleType("datasets")
        asked = []

        def load(name: str, split: str) -> list[dict[str, Any]]:
            asked.append((name, split))
            return [CLASSIC]

        package.load_dataset = load
        monkeypatch.setitem(sys.modules, "datasets", package)
        [task] = load_dataset("lite", "dev")
        assert (task.instance_id, asked) == ("labelco__tinymath-1", [("lite", "dev")])

    def test_a_row_comes_to_the_same_as_from_a_file(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        """A data set has times, and one type of event for all: what an event lacks is null."""
        fields = dict.fromkeys(name for event in ROW["history"] for name in event) | {"hard": None}
        events = [fields | event for event in ROW["history"]]
        made = datetime(2023, 3, 3, 18, 54, 20)
        package = ModuleType("datasets")
        package.load_dataset = lambda *_, **__: [
            {**ROW, "history": events, "needs": None, "wrong_patch": None, "made": [{"at": made}]}
        ]
        monkeypatch.setitem(sys.modules, "datasets", package)
        [task] = load_dataset("directory", "test")
        row = {**ROW, "made": [{"at": "2023-03-03T18:54:20"}]}
        [same] = load_tasks_json(written(tmp_path / "tasks.json", row))
        assert (task.row, task.own, task.digest) == (same.row, same.own, same.digest)

    def test_a_hub_that_does_not_answer_is_one_line(self, monkeypatch: pytest.MonkeyPatch) -> None:
        package = ModuleType("datasets")

        def load(name: str, split: str) -> None:
            raise ConnectionError("no hub\nand a long story")

        package.load_dataset = load
        monkeypatch.setitem(sys.modules, "datasets", package)
        with pytest.raises(EnvironmentFault, match=r"cannot be loaded: no hub \(see name"):
            load_dataset("lite", "test")

    def test_a_file_is_for_tasks_json(self) -> None:
        with pytest.raises(InputError, match="--tasks-json"):
            load_dataset("rows.jsonl", "test")
        with pytest.raises(InputError, match="give the data set's directory"):
            load_dataset("data/test-00000-of-00001.parquet", "test")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@given(key=st.sampled_from([*ROW, "extra"]), value=JSON, drop=st.booleans())
def test_any_row_is_a_task_or_one_error(key: str, value: object, drop: bool) -> None:
    row = {k: v for k, v in ROW.items() if k != key} | ({} if drop else {key: value})
    try:
        task = task_of(row, "here")
    except InputError as error:
        said_by(error, "here")
    else:
        assert isinstance(task, ExternalTask)
        assert task.digest.startswith("sha256:")
        task.harness_problem("5")
        task.harness_problem("4")


@given(data=st.data(), lines=st.booleans())
def test_any_bytes_are_tasks_or_one_error(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, lines: bool
) -> None:
    whole = bytearray(json.dumps(ROW if lines else [ROW, CLASSIC]).encode())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(whole) - 1))
        whole[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    path = tmp_path_factory.getbasetemp() / "mutated.json"
    path.write_bytes(bytes(whole))
    try:
        load_tasks_json(path)
    except InputError as error:
        said_by(error, str(path))
