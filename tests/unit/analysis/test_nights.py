"""Which sweeps a baseline means."""

from __future__ import annotations

from pathlib import Path

import pytest
from night_samples import name_of, night, of, on_disk

from orchestrator.analysis.nights import cells_by_night, find_baseline, nights_of, read_night
from orchestrator.errors import CabError, InputError, StoreError
from orchestrator.store.cells import CellStore
from orchestrator.store.gated import Gated, write_gated

TASKS = [[1], [0]]


def keep(results: Path, number: int, passed: bool, *baseline: int) -> None:
    sweep_id = name_of(number)
    gated = Gated(sweep_id=sweep_id, passed=passed, baseline=tuple(map(name_of, baseline)), reasons=())
    write_gated(results / sweep_id, gated)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Six nights; 0, 1, 3 and 4 passed their gates, 2 did not, 5 has none yet."""
    for number in range(6):
        on_disk(tmp_path, night(number, of(number, TASKS)))
    for number, passed in enumerate((True, True, False, True, True)):
        keep(tmp_path, number, passed)
    return tmp_path


def found(results: Path, *names: str, candidate: int = 5) -> list[str]:
    tonight = read_night(CellStore(results, name_of(candidate)))
    return [it.sweep_id for it in find_baseline(names, results, tonight)]


def test_the_last_good_nights_are_those_that_passed_before(results: Path) -> None:
    assert found(results, "last-good") == [name_of(4)]
    assert found(results, "last-good:3") == [name_of(number) for number in (1, 3, 4)]
    assert found(results, "last-good:9", candidate=3) == [name_of(0), name_of(1)]
    assert found(results, "last-good", candidate=0) == []


def test_a_level_that_a_person_took_is_where_good_nights_begin(results: Path) -> None:
    keep(results, 3, True, 2)
    assert found(results, "last-good:5") == [name_of(3), name_of(4)]


def test_good_nights_of_another_spec_or_methodology_are_no_baseline(results: Path) -> None:
    on_disk(results, night(6, of(6, TASKS), spec={"name": "weekly"}))
    on_disk(results, night(7, of(7, TASKS, methodology_version="2")))
    keep(results, 6, True)
    keep(results, 7, True)
    on_disk(results, night(8, of(8, TASKS)))
    assert found(results, "last-good:9", candidate=8) == [name_of(number) for number in (0, 1, 3, 4)]


def test_sweeps_and_directories_can_be_named(results: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    assert found(results, name_of(2), name_of(0)) == [name_of(0), name_of(2)]
    # Of a directory the candidate is left out.
    assert found(results, str(results)) == [name_of(number) for number in range(5)]
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    on_disk(elsewhere, night(5, of(5, [[0], [0]])))
    assert found(results, str(elsewhere / name_of(5))) == [name_of(5)]


def test_the_candidate_is_not_its_own_baseline(
    results: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with pytest.raises(InputError, match="is the candidate itself"):
        found(results, name_of(5))
    copy = tmp_path_factory.mktemp("copy")
    on_disk(copy, night(5, of(5, TASKS)))
    with pytest.raises(InputError, match="is the candidate itself"):
        found(results, str(copy))


@pytest.mark.parametrize("name", ["last-good:0", "last-good:x", "last-good:-1", "nightly-2026110", "no/such"])
def test_what_names_nothing_is_refused(results: Path, name: str) -> None:
    with pytest.raises(CabError):
        found(results, name)


def test_a_verdict_of_a_newer_cab_is_no_silent_no(results: Path) -> None:
    (results / name_of(4) / "gate.json").write_text('{"schema_version": 2}')
    with pytest.raises(StoreError, match="newer than 1"):
        found(results, "last-good")


def test_nights_of_one_spec_belong_together(results: Path) -> None:
    on_disk(results, night(6, of(6, TASKS), spec={"name": "weekly"}))
    nightly = [name_of(number) for number in range(6)]
    assert [it.sweep_id for it in nights_of([name_of(2)], results)] == nightly
    assert [it.sweep_id for it in nights_of([name_of(6)], results)] == [name_of(6)]
    assert [it.sweep_id for it in nights_of([name_of(4), name_of(1)], results)] == [name_of(1), name_of(4)]


def test_cells_of_two_copies_stay_apart(results: Path) -> None:
    one = read_night(CellStore(results, name_of(0)))
    assert [len(cells) for cells in cells_by_night([one, one])] == [2, 2]
