"""Handshakes of a sweep: which are made, what is kept and used again, and what of the sweep is left."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from preflight_rig import LOCAL_MODEL, NOW, PINS, SPEC, bench_of, matrix_of, names, ready_of, result_of

from orchestrator.errors import InputError
from orchestrator.plan.spec import ModelSpec, Spending
from orchestrator.run.bench import Bench
from orchestrator.run.budget import Budget
from orchestrator.run.outcome import Outcome
from orchestrator.run.preflight import check as checking
from orchestrator.run.preflight import handshake as hands
from orchestrator.run.preflight.check import Preflight, apply
from orchestrator.run.preflight.handshake import Handshake
from orchestrator.run.preflight.pairs import Pair, decided, pairs_of, recall
from orchestrator.store.cells import CellStore
from orchestrator.store.preflight import (
    PairResult,
    PreflightRecord,
    Verdict,
    incompatible_cells,
    read_preflight,
    write_preflight,
)
from scorers.evidence import Evidence, ModelCall, Usage
from scorers.score import score


def test_no_verifier_runs_after_a_handshake() -> None:
    assert not hands.hello_task().graded


def test_only_models_that_can_fail_are_tested(tmp_path: Path) -> None:
    ready = ready_of(tmp_path)
    hosted = {(cli, model) for cli in ("opencode", "aider") for model in ("a", "v/b")}
    assert names(pairs_of(ready.todo, ready.matrix, PINS)) == hosted
    scripted = pairs_of(ready.todo, ready.matrix, PINS, scripted=True)
    assert names(scripted) - hosted == {(cli, "embedded/reference") for cli in ("opencode", "aider")}


def test_local_models_cost_nothing_and_are_tested_when_asked(tmp_path: Path) -> None:
    ready = ready_of(tmp_path)
    cells = [replace(cell, endpoint="local/m", key=replace(cell.key, model="local/m")) for cell in ready.todo]
    spec = ready.matrix.spec.model_copy(update={"models": (ModelSpec(id="local/m"),)})
    matrix = replace(ready.matrix, spec=spec, local={"local/m": LOCAL_MODEL})
    assert pairs_of(cells, matrix, PINS) == []
    tested = pairs_of(cells, matrix, PINS, local=True)
    assert {(pair.name[1], pair.local) for pair in tested} == {("local/m", True)}


def test_a_key_is_of_image_adapter_model_and_url_and_of_nothing_else(tmp_path: Path) -> None:
    def keys(text: str = SPEC, pins: Mapping[str, str] = PINS, **options: Any) -> dict[tuple[str, str], str]:
        matrix = matrix_of(tmp_path, text, **options)
        return {pair.name: pair.key for pair in pairs_of(matrix.plan.cells, matrix, pins)}

    first = keys()
    assert len(set(first.values())) == len(first) == 4
    assert keys(SPEC.replace("name: mine", "name: yours"), runs=3) == first
    assert keys(SPEC.replace("id: a,", "id: a, price: {input: 1, output: 2},")) == first
    assert not set(keys(SPEC.replace(":9/", ":10/")).values()) & set(first.values())
    moved = keys(pins=PINS | {"aider": PINS["noop"]})
    assert {name for name in first if moved[name] != first[name]} == {("aider", "a"), ("aider", "v/b")}


def test_what_another_sweep_found_is_used_again_and_costs_nothing(tmp_path: Path) -> None:
    ready = ready_of(tmp_path)
    pairs = pairs_of(ready.todo, ready.matrix, PINS)
    other = ready.store.root.parent / "other-1"
    other.mkdir()
    known = PreflightRecord()
    for pair, verdict in zip(pairs, ("compatible", "incompatible", "undecided"), strict=False):
        known = known.with_result(result_of(pair, cast(Verdict, verdict)))
    write_preflight(other, known)
    record = recall(ready, pairs)
    assert {name: it.verdict for name, it in decided(record).items()} == {
        pairs[0].name: "compatible",
        pairs[1].name: "incompatible",
    }
    assert {it.taken_from for it in record.pairs} == {"other-1"}
    assert (record.known_tokens, record.known_usd) == (0, 0.0)
    assert (known.known_tokens, known.known_usd) == (27, 1.5)


def test_an_own_result_of_another_image_is_forgotten_and_what_it_cost_is_not(tmp_path: Path) -> None:
    ready = ready_of(tmp_path)
    [pair, *_] = pairs = pairs_of(ready.todo, ready.matrix, PINS)
    write_preflight(ready.store.root, PreflightRecord().with_result(result_of(pair)))
    assert set(decided(recall(ready, pairs))) == {pair.name}
    moved = [replace(it, key=f"sha256:{1:064x}") for it in pairs]
    record = recall(ready, moved)
    assert decided(record) == {}
    assert record.known_tokens == 9


def test_a_handshake_that_is_repeated_is_paid_twice_and_the_budget_knows(tmp_path: Path) -> None:
    ready = ready_of(tmp_path)
    [pair, *_] = pairs_of(ready.todo, ready.matrix, PINS)
    record = PreflightRecord().with_result(result_of(pair)).with_result(result_of(pair, "incompatible"))
    assert [it.verdict for it in record.pairs] == ["incompatible"]
    write_preflight(ready.store.root, record)
    assert read_preflight(ready.store.root) == record
    budget = Budget.of(Spending(tokens=18), ready.store)
    assert (budget.tokens, budget.usd, budget.used_up) == (18, 1.0, True)


def test_the_sweep_is_left_without_what_cannot_run_and_lists_it(tmp_path: Path) -> None:
    ready = ready_of(tmp_path)
    pairs = {pair.name: pair for pair in pairs_of(ready.todo, ready.matrix, PINS)}
    record = PreflightRecord()
    for name, verdict in {("opencode", "a"): "incompatible", ("aider", "a"): "undecided"}.items():
        record = record.with_result(result_of(pairs[name], cast(Verdict, verdict), detail="said nothing"))
    record = record.with_result(result_of(pairs["opencode", "v/b"]))
    write_preflight(ready.store.root, record)
    left = apply(ready, list(pairs.values()), record)
    assert [cell.key.matrix_id() for cell in left.incompatible] == [
        "opencode/a/polyglot/python-reverse-string#run1"
    ]
    # Not reached, as after Ctrl-C or at the end of a budget, is as little known as a fault.
    assert {(cell.key.cli, cell.key.model) for cell in left.held} == {("aider", "a"), ("aider", "v/b")}
    assert {(cell.key.cli, cell.key.model) for cell in left.todo} == {
        ("opencode", "embedded/reference"),
        ("aider", "embedded/reference"),
        ("noop", "none"),
        ("opencode", "v/b"),
    }
    assert left.chosen == ready.chosen
    [skipped] = incompatible_cells(ready.store)
    assert skipped.cell_id == left.incompatible[0].cell_id
    assert skipped.reason == "incompatible (no_edit): said nothing"


@pytest.mark.parametrize(("states", "refused"), [(True, False), (False, True), (None, False)])
def test_tokens_that_are_required_and_not_stated_keep_a_sweep_from_starting(
    tmp_path: Path, states: bool | None, refused: bool
) -> None:
    ready = ready_of(tmp_path, require=("tokens.wire",))
    pairs = pairs_of(ready.todo, ready.matrix, PINS)
    record = PreflightRecord().with_result(result_of(pairs[0], states_usage=states))
    if not refused:
        apply(ready, pairs, record)
        return
    with pytest.raises(InputError, match=r"endpoint up, model \S+ .* requires tokens.wire"):
        apply(ready, pairs, record)
    loose = ready_of(tmp_path, results=tmp_path / "loose")
    apply(loose, pairs, record)


Answer = Callable[[Pair, bool], PairResult]


@pytest.fixture
def shaken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Preflight]:
    """Make the handshakes of the small sweep, each with the result that is given for it."""
    ready = ready_of(tmp_path)
    pairs = pairs_of(ready.todo, ready.matrix, PINS)
    monkeypatch.setattr(checking, "handshake_bench", lambda bench: bench)

    def shake(answer: Answer, *, limit: int | None = None) -> Preflight:
        def run(self: Handshake) -> PairResult:
            return answer(next(it for it in pairs if it.cell == self.cell), self.asks_usage)

        monkeypatch.setattr(Handshake, "run", run)
        bench, budget = cast(Bench, SimpleNamespace(concurrency=1)), Budget(Spending(tokens=limit))
        preflight = Preflight(bench, ready.store, pairs, PreflightRecord(), budget, lambda _: None)
        preflight.run()
        assert preflight.record == read_preflight(ready.store.root)
        return preflight

    return shake


def verdicts(preflight: Preflight) -> dict[tuple[str, str], tuple[str, int]]:
    return {(it.cli, it.model): (it.verdict, it.tries) for it in preflight.record.pairs}


def test_an_endpoint_that_refuses_the_key_for_a_model_is_asked_once(
    shaken: Callable[..., Preflight],
) -> None:
    def answer(pair: Pair, asks_usage: bool) -> PairResult:
        refused = pair.cell.key.model == "a"
        return result_of(pair, "undecided", cause="key_refused") if refused else result_of(pair)

    preflight = shaken(answer)
    assert sorted(tries for (_, model), (_, tries) in verdicts(preflight).items() if model == "a") == [0, 1]
    assert {it.cause for it in preflight.record.pairs if it.model == "a"} == {"key_refused"}
    assert {verdict for (_, model), (verdict, _) in verdicts(preflight).items() if model == "v/b"} == {
        "compatible"
    }
    assert not preflight.interrupted


def test_a_fault_of_the_machine_does_not_speak_for_the_other_clis(
    shaken: Callable[..., Preflight],
) -> None:
    preflight = shaken(lambda pair, _: result_of(pair, "undecided", cause="disk"))
    assert set(verdicts(preflight).values()) == {("undecided", 1)}


def test_what_one_cli_learnt_of_usage_the_next_one_does_not_ask(
    shaken: Callable[..., Preflight],
) -> None:
    asked: list[tuple[str, bool]] = []

    def answer(pair: Pair, asks_usage: bool) -> PairResult:
        asked.append((pair.cell.key.model, asks_usage))
        return result_of(pair, asks_usage=asks_usage and pair.cell.key.model != "a")

    shaken(answer)
    assert asked == [("a", True), ("a", False), ("v/b", True), ("v/b", True)]


def test_no_handshake_is_made_beyond_the_budget(shaken: Callable[..., Preflight]) -> None:
    assert len(verdicts(shaken(lambda pair, _: result_of(pair), limit=10))) == 2


def test_a_fault_that_all_would_meet_ends_it(shaken: Callable[..., Preflight]) -> None:
    def answer(pair: Pair, asks_usage: bool) -> PairResult:
        raise InputError("the disk is full")

    with pytest.raises(InputError, match="the disk is full"):
        shaken(answer)


# ---- the tries of one pair ----

TALKED = ModelCall(index=0, start=0, end=1, request_hash="x", usage=Usage(input=7, output=2))
REFUSED = TALKED.model_copy(update={"usage": None, "error": "bad_request", "status": 400})
EDIT = "diff --git a/hello.txt b/hello.txt\n--- a/hello.txt\n+++ b/hello.txt\n@@ -1 +1 @@\n-x\n+cab-ready\n"


@pytest.fixture
def tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[PairResult, list[bool]]]:
    """A handshake whose tries end as given; its result, and whether each try asked for usage."""
    ready = ready_of(tmp_path)
    [pair, *_] = pairs_of(ready.todo, ready.matrix, PINS)
    facts = hands.hello_task().facts()

    def make(*tries: tuple[Outcome, Evidence]) -> tuple[PairResult, list[bool]]:
        waiting, asked = list(tries), []

        class Run:
            def __init__(self, bench: Bench, cell: Any, *_: Any) -> None:
                asked.append((cell.endpoint, cell.model) not in bench.unasked)

            def run(self) -> Any:
                outcome, evidence = waiting.pop(0)
                scores = score(facts, evidence, outcome_counts=outcome.rule.counted)
                return SimpleNamespace(outcome=outcome, evidence=evidence, scores=scores)

        monkeypatch.setattr(hands, "CellRun", Run)
        monkeypatch.setattr(hands, "check_ground", lambda *_: None)
        bench = bench_of(ready.matrix)
        with CellStore(ready.store.root.parent, "mine-1") as store:
            store.open()
            result = Handshake(bench, store, pair.cell, False, pair.key).run()
            assert list((store.root / ".staging").iterdir()) == []
        assert waiting == []
        return result, asked

    return make


def test_the_first_edit_ends_the_tries(tried: Callable[..., tuple[PairResult, list[bool]]]) -> None:
    talk = (Outcome("completed"), Evidence(calls=[TALKED]))
    edit = (Outcome("completed"), Evidence(calls=[TALKED, TALKED], diff=EDIT))
    result, _ = tried(talk, edit)
    assert (result.verdict, result.tries, result.tokens, result.states_usage) == ("compatible", 2, 27, True)
    result, _ = tried(talk, talk, talk)
    assert (result.verdict, result.cause, result.tries) == ("incompatible", "no_edit", 3)


def test_a_refused_request_is_sent_again_without_asking_for_usage(
    tried: Callable[..., tuple[PairResult, list[bool]]],
) -> None:
    refused = (Outcome("bad_request", detail="HTTP 400"), Evidence(calls=[REFUSED]))
    silent = TALKED.model_copy(update={"usage": None})
    result, asked = tried(refused, (Outcome("completed"), Evidence(calls=[silent], diff=EDIT)))
    assert asked == [True, False]
    assert (result.verdict, result.tries) == ("compatible", 1)
    assert (result.asks_usage, result.states_usage) == (False, False)
    assert (result.tokens, result.known_tokens) == (None, 0)
    result, asked = tried(refused, refused)
    assert (result.verdict, result.cause, result.asks_usage) == ("incompatible", "bad_request", True)


def test_the_newest_of_several_results_counts(tmp_path: Path) -> None:
    ready = ready_of(tmp_path)
    pairs = pairs_of(ready.todo, ready.matrix, PINS)
    for number, verdict in enumerate(("incompatible", "compatible")):
        place = ready.store.root.parent / f"z{9 - number}-1"
        place.mkdir()
        found = result_of(pairs[0], cast(Verdict, verdict), at=NOW + timedelta(hours=number))
        write_preflight(place, PreflightRecord().with_result(found))
    assert decided(recall(ready, pairs))[pairs[0].name].verdict == "compatible"
