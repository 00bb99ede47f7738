"""What past nights say, of made-up nights in which something is known to have happened."""

from __future__ import annotations

import pytest
from night_samples import DIGEST, REFERENCE, drawn, name_of, night, of

from orchestrator.analysis.drift import Difference
from orchestrator.analysis.history import Builds, history
from orchestrator.errors import InputError

OTHER = "sha256:" + "b" * 64
SOLVED = [[1]] * 4


def test_a_change_of_level_is_found_with_what_else_changed() -> None:
    nights = [
        night(
            number,
            of(number, drawn(0.9 if number < 7 else 0.5, 30, 2, seed=number)),
            pins={"aider": DIGEST if number < 7 else OTHER},
        )
        for number in range(12)
    ]
    [pair] = history(nights).pairs
    assert pair.shift is not None
    assert pair.shift.significant
    assert pair.shift.since == name_of(7)
    assert pair.shift.before == pytest.approx(0.9, abs=0.05)
    assert pair.shift.after == pytest.approx(0.5, abs=0.1)
    assert pair.shift.differences == (Difference("image", "aider", (DIGEST,), (OTHER,)),)


def test_steady_nights_show_none_and_few_are_not_tested() -> None:
    nights = [night(number, of(number, drawn(0.7, 30, 2, seed=number))) for number in range(9)]
    [pair] = history(nights).pairs
    assert pair.shift is not None
    assert not pair.shift.significant
    [few] = history(nights[:7]).pairs
    assert (few.shift, few.untested) == (None, "fewer than 8 nights with a result")


def test_changes_are_corrected_over_the_pairs() -> None:
    def at(number: int) -> list[list]:
        level = 0.95 if number < 4 else 0.6
        return [of(number, drawn(level, 30, 2, seed=number), "v/one")] + [
            of(number, drawn(0.7, 30, 2, seed=100 * pair + number), f"v/other{pair}") for pair in range(3)
        ]

    found = history([night(number, *at(number)) for number in range(8)]).pairs
    shift = found[0].shift
    assert shift is not None
    assert shift.p_holm == pytest.approx(4 * shift.p)


def test_a_night_that_lacks_the_easy_tasks_is_no_change() -> None:
    # Half of the tasks always pass, half never; on the later nights only those are left that never do.
    both, hard = [[1]] * 10 + [[0]] * 10, [[None]] * 10 + [[0]] * 10
    nights = [night(number, of(number, both if number < 6 else hard)) for number in range(12)]
    [pair] = history(nights).pairs
    assert pair.points[0] is not None
    assert pair.points[-1] is not None
    assert (pair.points[0].pass_rate.value, pair.points[-1].pass_rate.value) == (0.5, 0.0)
    assert pair.points[-1].infra == 10
    assert pair.shift is not None
    assert pair.shift.p == 1.0


def test_a_pair_may_be_missing_on_a_night() -> None:
    nights = [night(0, of(0, SOLVED, "v/b")), night(1, of(1, SOLVED, "v/a")), night(2, of(2, SOLVED, "v/b"))]
    a, b = history(nights).pairs
    assert [point is not None for point in a.points] == [False, True, False]
    assert [point is not None for point in b.points] == [True, False, True]


def test_flaky_tasks_are_those_that_differ_often_enough() -> None:
    runs = {0: [[1, 0], [1, 1], [0, 0], [1, 1]], 1: [[0, 1], [1, 1], [0, 0], [1, 1]]}
    nights = [night(number, of(number, runs[number % 2])) for number in range(10)]
    nights.append(night(10, of(10, [[1, 0], [1, 0], [0, 0], [1, 1]])))
    found = history(nights)
    assert found.tested_tasks == 4
    assert [(it.task, it.flaky, it.runs, it.passes) for it in found.mixed] == [
        ("polyglot/t1", True, 22, 11),
        ("polyglot/t2", False, 22, 21),
    ]
    assert found.mixed[0].differ_within == 1.0


def test_a_new_pin_begins_anew() -> None:
    before = [night(number, of(number, SOLVED)) for number in range(10)]
    after = [night(number, of(number, [[0]] * 4, image_digest=OTHER)) for number in range(10, 20)]
    assert history([*before, *after]).mixed == ()
    build = [night(number, of(number, [[0]] * 4, model_builds=("v/one fp_2",))) for number in range(10, 20)]
    assert history([*before, *build]).mixed == ()
    mixed = history([*before, *(night(number, of(number, [[0]] * 4)) for number in range(10, 20))]).mixed
    assert [task.flaky for task in mixed] == [True] * 4
    # All runs of one night agree: it is the nights that differ.
    assert mixed[0].differ_within is None


def test_a_script_that_differs_once_is_flaky_and_comes_first() -> None:
    nights = [
        night(
            number,
            of(number, [[number % 2], [1]]),
            of(number, [[1], [int(number != 3)]], REFERENCE, claim="pipeline_only"),
        )
        for number in range(20)
    ]
    found = history(nights).mixed
    assert [(it.kind, it.task, it.flaky) for it in found] == [
        ("pipeline", "polyglot/t2", True),
        ("result", "polyglot/t1", True),
    ]
    assert found[0].p_holm > 0.05


def test_builds_that_changed_are_told_by_night() -> None:
    builds = [("m fp_1",), ("m", "m fp_1"), ("m fp_2",), ("m fp_1",)]
    nights = [night(number, of(number, SOLVED, model_builds=names)) for number, names in enumerate(builds)]
    one, two, three, four = map(name_of, range(4))
    assert history(nights).builds == (
        Builds("v/one", ("m fp_1",), one, two, 2),
        Builds("v/one", ("m fp_2",), three, three, 1),
        Builds("v/one", ("m fp_1",), four, four, 1),
    )
    assert history(nights[:2]).builds == ()


def test_other_methodologies_and_empty_nights_are_left_out_and_told() -> None:
    nights = [night(0, of(0, SOLVED, methodology_version="0")), night(1, of(1, SOLVED)), night(2)]
    found = history(nights)
    assert found.nights == (name_of(1),)
    assert [name in " ".join(found.notes) for name in map(name_of, range(3))] == [True, False, True]
    with pytest.raises(InputError, match="no finished cell"):
        history([night(2)])
