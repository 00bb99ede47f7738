"""What is refused before anything of a sweep is written, and what of it each call is about."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from orchestrator.errors import EnvironmentFault, InputError
from orchestrator.plan.expand import PlannedCell
from orchestrator.plan.spec import Spending, SweepSpec, load_spec
from orchestrator.report.plan import print_dry_run
from orchestrator.run import machine, start
from orchestrator.run.grow import grow
from orchestrator.run.start import Matrix, Options, Ready, of_file, of_stored, plan_of, sweep_record
from orchestrator.sandbox.images import Lock, LockedImage
from orchestrator.sandbox.images.lock import save_lock
from orchestrator.store.cells import CellStore
from orchestrator.store.index import IndexEntry

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
    with (
        pytest.raises(InputError, match=wanted),
        start.started(of_file(write(tmp_path, text), results, "mine-1")),
    ):
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
    monkeypatch.setattr(machine, "pins_now", lambda *_: {})
    monkeypatch.setattr(machine, "pins_of", lambda *_: {})
    monkeypatch.setattr(machine, "start_engine", lambda *_: None)
    monkeypatch.setattr(machine, "start_bench", lambda *_: None)
    store = CellStore(tmp_path, "mine-1")
    with start.started(of_file(write(tmp_path, BASELINE), tmp_path, "mine-1")):
        first = store.sweep()
    with start.started(of_file(write(tmp_path, BASELINE + "seed: 7\n"), tmp_path, "mine-1")):
        second = store.sweep()
    assert (first.seed, second.seed) == (0, 7)
    monkeypatch.setattr(CellStore, "finished", lambda _: {"mine-1/x": None})
    with (
        pytest.raises(InputError, match="is not what mine-1 was started from"),
        start.started(of_file(write(tmp_path, BASELINE), tmp_path, "mine-1")),
    ):
        pytest.fail("started")
    assert store.sweep() == second


def entry(cell_id: str, outcome: str) -> IndexEntry:
    """A line of the index of which only these two are looked at."""
    return IndexEntry.model_construct(cell_id=cell_id, outcome=outcome)


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ready]:
    """`run` or `resume` of a small sweep on a machine that has all; its cells can be said to be finished."""
    monkeypatch.setattr(machine, "pins_now", lambda *_: {})
    monkeypatch.setattr(machine, "pins_of", lambda *_: {})
    monkeypatch.setattr(machine, "start_engine", lambda *_: None)
    monkeypatch.setattr(machine, "start_bench", lambda *_: None)
    spec = write(tmp_path, BASELINE.replace("[noop]", "[noop, oracle]"))

    def call(
        verb: str = "run", *, finished: Iterable[str] = (), outcome: str = "completed", **options: Any
    ) -> Ready:
        entries = {cell: entry(cell_id=cell, outcome=outcome) for cell in finished}
        monkeypatch.setattr(CellStore, "finished", lambda _: entries)
        given = Options(**options)
        new = verb == "run"
        asked = of_file(spec, tmp_path, "mine-1", given) if new else of_stored(tmp_path, "mine-1", given)
        with start.started(asked) as ready:
            return ready

    return call


NOOP, ORACLE = (f"mine-1/{cli}/none/polyglot/python-reverse-string#run" for cli in ("noop", "oracle"))


def ids(cells: Iterable[PlannedCell]) -> set[str]:
    return {cell.cell_id for cell in cells}


def test_only_limits_the_call_and_not_the_sweep(started: Callable[..., Ready]) -> None:
    ready = started(only=("noop/*",))
    assert ids(ready.todo) == ids(ready.chosen) == {f"{NOOP}1"}
    assert set(ready.store.sweep().order) == {f"{NOOP}1", f"{ORACLE}1"}
    assert ids(started("resume", finished=[f"{NOOP}1"]).todo) == {f"{ORACLE}1"}
    again = started(finished=[f"{NOOP}1"], only=("noop/*",))
    assert (ids(again.todo), ids(again.chosen)) == (set(), {f"{NOOP}1"})
    assert ids(started(finished=[f"{NOOP}1"], outcome="infra_error", only=("noop/*",)).todo) == {f"{NOOP}1"}


def test_concurrency_is_of_the_call_and_a_new_sweep_keeps_it(started: Callable[..., Ready]) -> None:
    assert started(concurrency=3).store.sweep().concurrency == 3
    assert started("resume", finished=[f"{NOOP}1"]).matrix.spec.concurrency == 3
    ready = started(finished=[f"{NOOP}1"], concurrency=2)
    assert ready.matrix.spec.concurrency == 2
    assert ready.store.sweep().concurrency == 3


def test_a_budget_is_of_the_call_and_stored_with_its_time(
    started: Callable[..., Ready], tmp_path: Path
) -> None:
    def budgets() -> list[tuple[int | None, float | None]]:
        return [(one.tokens, one.usd) for one in CellStore(tmp_path, "mine-1").sweep().budgets]

    started(budget=Spending(tokens=100))
    started("resume", finished=[f"{NOOP}1"], budget=Spending(tokens=100))
    assert budgets() == []
    before = datetime.now(UTC)
    started("resume", finished=[f"{NOOP}1"], budget=Spending(tokens=500))
    [now] = CellStore(tmp_path, "mine-1").sweep().budgets
    assert before <= now.at <= datetime.now(UTC)
    started("resume", finished=[f"{NOOP}1"], budget=Spending(tokens=500, usd=2.0))
    # It holds for the call: the next has the sweep's own again, and more runs keep what was told.
    started("resume", finished=[f"{NOOP}1"], runs=2)
    assert budgets() == [(500, None), (500, 2.0), (100, None)]
    every = [f"{cli}{run}" for cli in (NOOP, ORACLE) for run in (1, 2)]
    started("resume", finished=every, budget=Spending(tokens=900))
    assert len(budgets()) == 3, "no cell ran under it"


def test_runs_are_part_of_the_sweep_and_only_a_resume_adds_some(
    started: Callable[..., Ready], tmp_path: Path
) -> None:
    first = started(runs=2).store.sweep()
    assert len(first.order) == 4
    assert first.spec["runs"] == 2
    finished = [f"{NOOP}1"]
    assert len(started(finished=finished).todo) == 3  # the sweep's own runs, not the file's
    assert len(started(finished=finished, runs=2).todo) == 3
    with pytest.raises(InputError, match=r"--runs 1: mine-1 has runs: 2 \(leave --runs out, or give"):
        started(finished=finished, runs=1)
    asks = rf"--runs 3: mine-1 has runs: 2 \(`cab sweep resume mine-1 -r {tmp_path} --runs 3` adds to it"
    with pytest.raises(InputError, match=asks):
        started(finished=finished, runs=3)
    with pytest.raises(InputError, match=r"--runs 1: mine-1 has runs: 2 \(runs can only be added"):
        started("resume", finished=finished, runs=1)
    ready = started("resume", finished=finished, runs=3)
    grown = ready.store.sweep()
    assert grown.order[:4] == first.order
    assert set(grown.order[4:]) == {f"{NOOP}3", f"{ORACLE}3"}
    assert [cell.order_index for cell in ready.matrix.plan.cells] == [0, 1, 2, 3, 4, 5]
    assert len(ready.todo) == 5
    assert grown.spec["runs"] == 3
    assert len(started("resume", finished=finished).todo) == 5


def test_only_what_was_part_of_a_sweep_grows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = {
        "name": "mine",
        "clis": ["opencode"],
        "models": ["embedded/idle", {"id": "paid/model", "endpoint": "hosted"}],
        "endpoints": {"hosted": {"base_url": {"env": "CAB_TEST_URL"}}},
        "tasks": ["polyglot/python-reverse-string"],
    }
    stored = sweep_record(Matrix.of(SweepSpec.of_data(spec), "mine-1"), f"sha256:{'a' * 64}", {})
    monkeypatch.setenv("CAB_TEST_URL", "http://127.0.0.1:1")
    more = Matrix.of(SweepSpec.of_data(spec | {"runs": 2}), "mine-1").plan
    grown = grow(stored, SweepSpec.of_data(spec), 2, more)
    assert [cell.rpartition("#")[2] for cell in grown.order] == ["run1", "run2"]
    assert all("embedded/idle" in cell for cell in grown.order)
    assert [cell.cell_id.rpartition("#")[2] for cell in grown.skipped] == ["run1", "run2"]


def test_a_file_whose_cells_are_all_skipped_leaves_no_sweep(tmp_path: Path) -> None:
    text = (
        "name: mine\nclis: [opencode]\nmodels: [{id: paid/model, endpoint: hosted}]\n"
        "endpoints: {hosted: {base_url: {env: CAB_TEST_UNSET}}}\ntasks: [polyglot/python-reverse-string]\n"
    )
    with (
        pytest.raises(InputError, match=r"mine\.yaml: every cell is skipped: CAB_TEST_UNSET is not set"),
        start.started(of_file(write(tmp_path, text), tmp_path / "results", "mine-1")),
    ):
        pytest.fail("started")
    assert not (tmp_path / "results").exists()


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, str]]:
    """Locks the images of these names, as if they had just been built; their ids. No engine is asked."""
    (init := tmp_path / "init").touch()
    for module in (machine, start):
        monkeypatch.setattr(module, "IMAGES_LOCK", tmp_path / "images.lock")
        monkeypatch.setattr(module, "INIT_BINARY", init)
    monkeypatch.setattr(machine, "start_bench", lambda *_: None)
    monkeypatch.setattr(machine, "start_engine", lambda *_: None)

    def build(*names: str) -> dict[str, str]:
        ids = {name: f"sha256:{ord(name[0]):064x}" for name in ("base", *names)}
        images = {
            name: LockedImage(
                id=image_id,
                tag=f"cab/{name}:1",
                inputs_hash="0",
                parent=None if name == "base" else ids["base"],
                versions={"sh": "1"},
                built_at="",
                size=1,
            )
            for name, image_id in ids.items()
        }
        save_lock(Lock(images=images), tmp_path / "images.lock")
        return ids

    return build


BOTH = BASELINE.replace("[noop]", "[noop, oracle]")


def test_a_sweep_is_pinned_to_the_images_of_the_clis_that_its_calls_were_about(
    tmp_path: Path,
    built: Callable[..., dict[str, str]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    spec, store = write(tmp_path, BOTH), CellStore(tmp_path, "mine-1")
    ids = built("noop")
    lacking = r"no image 'oracle' \(run `cab images build oracle`\)"
    with (
        pytest.raises(EnvironmentFault, match=lacking),
        start.started(of_file(spec, tmp_path, "mine-1")),
    ):
        pytest.fail("started")
    assert not store.exists()
    with start.started(of_file(spec, tmp_path, "mine-1", Options(only=("noop/*",)))):
        first = store.sweep()
    assert first.pins == ids
    assert set(first.order) == {f"{NOOP}1", f"{ORACLE}1"}

    done = {f"{NOOP}1": entry(f"{NOOP}1", "completed")}
    monkeypatch.setattr(CellStore, "finished", lambda _: done)
    for again in (of_stored(tmp_path, "mine-1"), of_file(spec, tmp_path, "mine-1")):
        print_dry_run(again, as_json=False)
        assert "to be built before: cab images build oracle\n" in capsys.readouterr().out
        with pytest.raises(EnvironmentFault, match=lacking), start.started(again):
            pytest.fail("started")
        assert store.sweep() == first
    with start.started(of_stored(tmp_path, "mine-1", Options(only=("noop/*",)))) as ready:
        assert ready.todo == []

    both = built("noop", "oracle")
    with start.started(of_stored(tmp_path, "mine-1", Options(runs=2))):
        assert store.sweep().pins == both
    # What was pinned once is not looked up again.
    built("noop")
    print_dry_run(of_stored(tmp_path, "mine-1"), as_json=True)
    assert '"images_to_build": []' in capsys.readouterr().out
    with start.started(of_stored(tmp_path, "mine-1")) as ready:
        assert {cell.key.cli for cell in ready.todo} == {"noop", "oracle"}


def test_pins_that_another_call_added_are_not_lost_to_more_runs(
    tmp_path: Path, built: Callable[..., dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, store = write(tmp_path, BOTH), CellStore(tmp_path, "mine-1")
    ids = built("noop", "oracle")
    with start.started(of_file(spec, tmp_path, "mine-1", Options(only=("noop/*",)))):
        pass
    monkeypatch.setattr(CellStore, "finished", lambda _: {f"{NOOP}1": entry(f"{NOOP}1", "completed")})
    grows = of_stored(tmp_path, "mine-1", Options(runs=2, only=("noop/*",)))
    with start.started(of_stored(tmp_path, "mine-1", Options(only=("oracle/*",)))):
        pass
    with start.started(grows):
        assert store.sweep().pins == ids


def test_the_engine_is_asked_for_the_images_of_the_cells_to_run_alone(
    tmp_path: Path, built: Callable[..., dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[set[str]] = []

    def start_engine(_: object, __: object, clis: Iterable[str], *___: object) -> object:
        asked.append(set(clis))
        return object()

    monkeypatch.setattr(machine, "start_engine", start_engine)
    spec = write(tmp_path, BOTH)
    built("noop", "oracle")
    with start.started(of_file(spec, tmp_path, "mine-1")):
        pass
    monkeypatch.setattr(CellStore, "finished", lambda _: {f"{NOOP}1": entry(f"{NOOP}1", "completed")})
    for only in ((), ("noop/*",)):
        with start.started(of_stored(tmp_path, "mine-1", Options(only=only))):
            pass
    assert asked == [{"noop", "oracle"}, {"oracle"}]
