"""What the gate of nights fails on, and what it does not."""

from __future__ import annotations

import pytest
from night_samples import REFERENCE, drawn, name_of, night, of, skipping

from orchestrator.analysis.drift import Difference
from orchestrator.analysis.gate import Gate, Rules, gate
from orchestrator.analysis.gate_tests import Limit, PairTest
from orchestrator.errors import InputError
from orchestrator.store.record import Cab

GOOD = drawn(0.9, 30, 3, seed=1)
BAD = drawn(0.4, 30, 3, seed=2)
ALIKE = drawn(0.9, 30, 3, seed=3)
SOLVED = [[1]] * 4
DIGEST_OF_BASE = "sha256:" + "a" * 64


def one(found: Gate) -> PairTest:
    [test] = found.tests
    return test


def test_a_drop_fails_it_and_is_told_with_its_tasks() -> None:
    found = gate(night(1, of(1, BAD)), [night(0, of(0, GOOD))], Rules())
    test = one(found)
    assert not found.passed
    assert (test.pair, test.axis, test.verdict, test.tasks, test.nights) == (
        "aider × v/one",
        "passed",
        "worse",
        30,
        1,
    )
    before, now = (sum(map(sum, runs)) / 90 for runs in (GOOD, BAD))
    assert (test.before, test.now) == (pytest.approx(before), pytest.approx(now))
    assert test.p == test.p_holm is not None
    assert test.p < 0.001
    falls = [task.before - task.now for task in test.fell]
    assert falls == sorted(falls, reverse=True)
    assert min(falls) > 0


def test_a_night_alike_passes_and_says_what_it_could_have_seen() -> None:
    found = gate(night(1, of(1, ALIKE)), [night(0, of(0, GOOD))], Rules())
    assert found.passed
    assert one(found).verdict == "no significant change"
    detectable = one(found).detectable
    assert detectable is not None
    assert 0.1 < detectable < 0.3


def test_a_rise_is_no_drop() -> None:
    assert gate(night(1, of(1, GOOD)), [night(0, of(0, BAD))], Rules()).passed


def test_several_nights_see_what_one_does_not() -> None:
    nights = [night(number, of(number, drawn(0.85, 30, 1, seed=number))) for number in range(8)]
    tonight = night(8, of(8, drawn(0.62, 30, 1, seed=3)))
    few, many = gate(tonight, nights[-1:], Rules()), gate(tonight, nights, Rules())
    assert (few.passed, many.passed) == (True, False)
    assert (one(many).nights, many.baseline) == (8, tuple(map(name_of, range(8))))


def test_what_is_significant_alone_may_not_be_among_many() -> None:
    # 6 of 6 tasks that differ fell: p = 1/64.
    fell, same = [[1]] * 6 + SOLVED, [[0]] * 6 + SOLVED
    alone = gate(night(1, of(1, same)), [night(0, of(0, fell))], Rules())
    assert one(alone).p == pytest.approx(1 / 64)
    assert not alone.passed
    models = [f"v/m{number}" for number in range(4)]
    others = [[of(at, SOLVED * 3, model) for model in models[1:]] for at in (0, 1)]
    among = gate(
        night(1, of(1, same, models[0]), *others[1]), [night(0, of(0, fell, models[0]), *others[0])], Rules()
    )
    first = among.tests[0]
    assert (first.p, first.p_holm) == (pytest.approx(1 / 64), pytest.approx(4 / 64))
    assert among.passed


def test_pairs_that_could_show_nothing_cost_the_others_nothing() -> None:
    small = [of(at, [[1]] * 4, f"v/small{number}") for number in range(30) for at in (0, 1)]
    found = gate(
        night(1, of(1, [[0]] * 6 + SOLVED), *small[1::2]),
        [night(0, of(0, [[1]] * 6 + SOLVED), *small[::2])],
        Rules(),
    )
    assert [test.verdict for test in found.tests].count("too few tasks") == 30
    assert not found.passed


def test_a_lost_scripted_cell_fails_it_alone() -> None:
    before = night(0, of(0, SOLVED, REFERENCE, claim="pipeline_only"))
    for lost, said in ((0, "fails"), (None, "ended as infra_error")):
        tonight = night(1, of(1, [[1], [lost], [1], [1]], REFERENCE, claim="pipeline_only"))
        found = gate(tonight, [before], Rules(coverage=0))
        [cell] = found.lost
        assert (cell.cell, cell.now) == ("aider/embedded/reference/polyglot/t2#run1", said)
        assert (len(found.scripted), found.tests, found.passed) == (4, (), False)


def test_a_scripted_cell_that_failed_last_is_not_lost() -> None:
    runs = [of(number, [[passed], [1]], REFERENCE) for number, passed in enumerate((1, 0, 0))]
    nights = [night(number, cells) for number, cells in enumerate(runs)]
    assert gate(nights[2], nights[:2], Rules()).passed
    assert not gate(nights[2], nights[:1], Rules()).passed


def test_a_scripted_cell_that_was_not_run_is_lost() -> None:
    before = night(0, of(0, SOLVED, REFERENCE))
    three = of(1, SOLVED[:3], REFERENCE)
    planned = tuple(entry.cell_id for entry in of(1, SOLVED, REFERENCE))
    unfinished = gate(night(1, three, order=planned), [before], Rules(coverage=0))
    assert [cell.now for cell in unfinished.lost] == ["was not finished"]
    left_out = skipping(night(1, three), "aider/embedded/reference/polyglot/t4#run1", reason="no image")
    assert [cell.now for cell in gate(left_out, [before], Rules(coverage=0)).lost] == [
        "was not run: no image"
    ]
    # What nobody planned is told, and not missed.
    shorter = gate(night(1, three), [before], Rules())
    assert shorter.lost == ()
    assert any("not planned tonight" in note and note.endswith("polyglot/t4") for note in shorter.notes)
    longer = gate(night(1, of(1, [*SOLVED, [1]], REFERENCE)), [before], Rules())
    assert [note for note in longer.notes if "new to a pair" in note] == [
        "tasks new to a pair of the baseline: polyglot/t5"
    ]


def test_an_unmeasured_pair_is_no_good_night() -> None:
    before = night(0, of(0, GOOD))
    lost = [[None, None, None]] * 2
    found = gate(night(1, of(1, lost + GOOD[2:])), [before], Rules())
    [cover] = found.uncovered
    assert (cover.counted, cover.infra, cover.cells) == (84, 6, 90)
    assert (found.worse, found.passed) == ((), False)
    assert gate(night(1, of(1, lost + GOOD[2:])), [before], Rules(coverage=0.9)).passed


def test_cells_that_never_ended_lower_coverage() -> None:
    planned = tuple(entry.cell_id for entry in of(1, GOOD))
    found = gate(night(1, of(1, GOOD[:20]), order=planned), [night(0, of(0, GOOD))], Rules())
    assert [(it.counted, it.unfinished, it.enough) for it in found.coverage] == [(60, 30, False)]


def test_skipped_cells_are_missed_where_the_baseline_has_their_pair() -> None:
    canary = [of(at, SOLVED, REFERENCE) for at in (0, 1, 2)]
    ids = [entry.cell_id.partition("/")[2] for entry in of(1, GOOD)]
    tonight = skipping(night(1, canary[1]), *ids)
    measured = gate(tonight, [night(0, canary[0], of(0, GOOD))], Rules())
    assert [(it.pair, it.left_out) for it in measured.uncovered] == [("aider × v/one", 90)]
    # With no key on any night there is nothing to miss.
    assert gate(tonight, [night(0, canary[0])], Rules()).passed


def test_a_changed_task_is_another_task() -> None:
    other = "sha256:" + "b" * 64
    tonight = night(1, of(1, [[0, 0, 0]] * 10, task_content_hash=other), of(1, GOOD, model="v/two"))
    found = gate(tonight, [night(0, of(0, GOOD[:10]), of(0, GOOD, model="v/two"))], Rules())
    assert found.passed
    assert [test.pair for test in found.tests if test.tasks] == ["aider × v/two"]
    assert any("files changed" in note and "polyglot/t1" in note for note in found.notes)


def test_a_first_night_is_asked_for_coverage_alone() -> None:
    first = gate(night(0, of(0, BAD)), [], Rules())
    assert (first.passed, first.baseline, first.tests) == (True, (), ())
    assert any("no earlier good night" in note for note in first.notes)
    assert not gate(night(0, of(0, [[None] * 3] * 3 + BAD)), [], Rules()).passed


def test_a_night_of_which_every_cell_was_left_out_is_no_good_night() -> None:
    ids = [entry.cell_id for entry in of(0, SOLVED)]
    # Preflight leaves out what is in the order, a plan what is not.
    found = skipping(night(0, order=tuple(ids)), *(it.partition("/")[2] for it in ids))
    for before in ([], [night(-1, of(-1, SOLVED, REFERENCE))]):
        with pytest.raises(InputError, match="left out"):
            gate(found, before, Rules())


def test_nothing_in_common_is_no_pass() -> None:
    with pytest.raises(InputError, match="too few tasks"):
        gate(night(1, of(1, GOOD)), [night(0, of(0, GOOD, "v/other"))], Rules())
    with pytest.raises(InputError, match="too few tasks"):
        gate(night(1, of(1, SOLVED)), [night(0, of(0, SOLVED))], Rules())


def test_methodologies_are_never_compared() -> None:
    old, new = (night(number, of(number, GOOD, methodology_version=str(number))) for number in (0, 1))
    with pytest.raises(InputError, match="its methodology is 0, not 1"):
        gate(new, [old], Rules())
    kept = gate(night(2, of(2, ALIKE, methodology_version="1")), [old, new], Rules())
    assert kept.baseline == (name_of(1),)
    assert any(name_of(0) in note for note in kept.notes)
    with pytest.raises(InputError, match="methodologies 0, 1"):
        gate(
            night(2, of(2, GOOD, methodology_version="0"), of(2, GOOD, "v/b", methodology_version="1")),
            [],
            Rules(),
        )


def test_a_limit_fails_only_on_significantly_more() -> None:
    before = night(0, of(0, GOOD, total_tokens=1000))
    rules = Rules(limits=(Limit("tokens", 1.25),))
    for tokens, verdict in (
        (1000, "no significant change"),
        (1250, "no significant change"),
        (1300, "worse"),
    ):
        found = gate(night(1, of(1, GOOD, total_tokens=tokens)), [before], rules)
        test = found.tests[1]
        assert (test.axis, test.limit, test.verdict) == ("tokens", 1.25, verdict)
        assert (test.before, test.now) == (pytest.approx(1000), pytest.approx(tokens))
        assert found.passed is (verdict != "worse")


def test_what_is_not_measured_is_not_limited() -> None:
    nights = [night(number, of(number, GOOD, total_tokens=None)) for number in (0, 1)]
    found = gate(nights[1], nights[:1], Rules(limits=(Limit("tokens", 1.25),)))
    assert [(test.axis, test.verdict, test.p is None) for test in found.tests] == [
        ("passed", "no significant change", False),
        ("tokens", "too few tasks", True),
    ]


def test_differences_stand_beside_the_verdict() -> None:
    before = [
        night(0, of(0, GOOD, model_builds=("v/one", "v/one fp_1"))),
        night(1, of(1, GOOD, model_builds=("v/one fp_1",))),
    ]
    same = gate(night(2, of(2, ALIKE, model_builds=("v/one", "v/one fp_1"))), before, Rules())
    assert same.differences == ()
    other = "sha256:" + "b" * 64
    tonight = night(
        2,
        of(2, ALIKE, model_builds=("v/one fp_2",), cli_version="2"),
        pins={"base": DIGEST_OF_BASE, "aider": other},
        cab=Cab(version="0.2.0", commit=None, dirty=None),
    )
    found = gate(tonight, before, Rules())
    assert found.passed
    assert found.differences == (
        Difference("CLI version", "aider", ("1",), ("2",)),
        Difference("cab", "", ("0.1.0 at 000000000000",), ("0.2.0",)),
        Difference("image", "aider", (DIGEST_OF_BASE,), (other,)),
        Difference("model build", "v/one", ("v/one fp_1",), ("v/one fp_2",)),
    )
