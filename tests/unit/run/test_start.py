"""What is refused before anything of a sweep is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.errors import InputError
from orchestrator.plan.spec import SweepSpec, load_spec
from orchestrator.run import machine
from orchestrator.run.start import Matrix, plan_of, run
from orchestrator.store.cells import CellStore

BASELINE = "name: mine\nclis: [noop]\ntasks: [polyglot/python-reverse-string]\n"


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (BASELINE.replace("noop", "opencode"), "mine.yaml:2:8: opencode asks a model, but models is empty"),
        (
            BASELINE.replace("polyglot/python", "python"),
            r"mine.yaml:3:9: unknown name 'python-reverse-string' under tasks "
            r"\\(did you mean 'polyglot/python-reverse-string'\\?\\)".replace("\\\\", "\\"),
        ),
        (BASELINE.replace("polyglot/python-reverse-string", '"nothing/*"'), "mine.yaml:3:9: unknown name"),
    ],
)
def test_a_file_that_asks_for_nothing_leaves_no_sweep(tmp_path: Path, text: str, wanted: str) -> None:
    results = tmp_path / "results"
    with pytest.raises(InputError, match=wanted), run(write(tmp_path, text), results, "mine-1"):
        pytest.fail("started")
    assert not results.exists()


def test_a_plan_without_a_cell_is_refused_whoever_asks(tmp_path: Path) -> None:
    assert plan_of(load_spec(write(tmp_path, BASELINE))).plan.cells
    empty = {"name": "mine", "clis": ["opencode"], "tasks": ["polyglot/python-reverse-string"]}
    with pytest.raises(InputError, match="mine-1: the sweep has no cell"):
        Matrix.of(SweepSpec.of_data(empty), "mine-1")


def test_an_edited_file_starts_a_sweep_anew_until_a_cell_of_it_is_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "pins_now", lambda _: {})
    monkeypatch.setattr(machine, "start_engine", lambda *_: None)
    monkeypatch.setattr(machine, "start_bench", lambda *_: None)
    store = CellStore(tmp_path, "mine-1")
    with run(write(tmp_path, BASELINE), tmp_path, "mine-1"):
        first = store.sweep()
    with run(write(tmp_path, BASELINE + "seed: 7\n"), tmp_path, "mine-1"):
        second = store.sweep()
    assert (first.seed, second.seed) == (0, 7)
    monkeypatch.setattr(CellStore, "finished", lambda _: {"mine-1/x": None})
    with (
        pytest.raises(InputError, match="is not what mine-1 was started from"),
        run(write(tmp_path, BASELINE), tmp_path, "mine-1"),
    ):
        pytest.fail("started")
    assert store.sweep() == second
