"""Handshakes of a sweep: which are made, what is kept and used again, and what of the sweep is left."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from orchestrator.errors import InputError
from orchestrator.gateway.local.registry import LocalModel
from orchestrator.plan.spec import ModelSpec, Spending, load_spec
from orchestrator.report.preflight import check, print_preflight
from orchestrator.report.summary import summary
from orchestrator.run.bench import Bench
from orchestrator.run.budget import Budget
from orchestrator.run.outcome import Outcome
from orchestrator.run.preflight import check as checking
from orchestrator.run.preflight import handshake as hands
from orchestrator.run.preflight.check import Preflight, apply
from orchestrator.run.preflight.handshake import Handshake
from orchestrator.run.preflight.pairs import Pair, decided, pairs_of, recall, with_known
from orchestrator.run.start import Matrix, Options, Ready, plan_of, sweep_record
from orchestrator.store.cells import CellStore
from orchestrator.store.preflight import (
    PREFLIGHT,
    PairResult,
    PreflightRecord,
    Verdict,
    incompatible_cells,
    read_preflight,
    write_preflight,
)
from scorers.evidence import Evidence, ModelCall, Usage
from scorers.score import score

PINS = {name: f"sha256:{number:064x}" for number, name in enumerate(("base", "opencode", "aider", "noop"))}
LOCAL_MODEL = LocalModel(
    name="m", path="/m", sha256="0" * 64, size=1, title=None, architecture="a", context_length=None
)
NOW = datetime(2026, 11, 28, tzinfo=UTC)
SPEC = """\
name: mine
clis: [opencode, aider, noop]
models: [embedded/reference, {id: a, endpoint: up}, {id: v/b, endpoint: up}]
endpoints: {up: {base_url: "http://127.0.0.1:9/v1"}}
tasks: [polyglot/python-reverse-string]
"""


def matrix_of(folder: Path, text: str = SPEC, **options: Any) -> Matrix:
    path = folder / "mine.yaml"
    path.write_text(text)
    return plan_of(load_spec(path), "mine-1", Options(**options))


def ready_of(folder: Path, text: str = SPEC, *, results: Path | None = None, **options: Any) -> Ready:
    matrix = matrix_of(folder, text, **options)
    store = CellStore(results or folder / "results", "mine-1")
    with store:
        store.create(sweep_record(matrix, f"sha256:{0:064x}", PINS))
    return Ready(matrix, store, matrix.plan.cells, matrix.plan.cells, None)


def result_of(pair: Pair, verdict: Verdict = "compatible", **changes: Any) -> PairResult:
    cell = pair.cell
    values: dict[str, Any] = {
        "cli": cell.key.cli,
        "model": cell.key.model,
        "endpoint": cell.endpoint,
        "key": pair.key,
        "verdict": verdict,
        "cause": None if verdict == "compatible" else "no_edit",
        "tries": 1,
        "tokens": 9,
        "known_tokens": 9,
        "cost_usd": 0.5,
        "duration_s": 1.0,
        "at": NOW,
    }
    return PairResult(**(values | changes))


def bench_of(matrix: Matrix) -> Bench:
    """What needs neither engine nor gateway."""
    nothing = cast(Any, None)
    return Bench(
        sweep_id="mine-1",
        grader=nothing,
        gateway=nothing,
        pins=PINS,
        tags={},
        adapters=matrix.adapters,
        adapter_digests={},
        tasks={},
        provenance=nothing,
        engine_version="",
        concurrency=1,
    )


def names(pairs: list[Pair]) -> set[tuple[str, str]]:
    return {pair.name for pair in pairs}


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
            def __init__(self, bench: Bench, cell: Any, *_: Any, graded: bool) -> None:
                assert not graded
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


# ---- the whole, as a command has it ----


@pytest.fixture
def checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Ready, list[str]]]:
    """`check` of a sweep whose handshakes find what is given by model; which of them were made."""
    ready = ready_of(tmp_path)
    ready = replace(ready, bench=bench_of(ready.matrix))
    pairs = pairs_of(ready.todo, ready.matrix, PINS)

    def call(found: Mapping[str, tuple[Verdict, str | None]], **options: Any) -> tuple[Ready, list[str]]:
        made: list[str] = []

        def run(self: Handshake) -> PairResult:
            pair = next(it for it in pairs if it.cell == self.cell)
            verdict, cause = found[pair.cell.key.model]
            made.append(f"{pair.cell.key.cli} {pair.cell.key.model}")
            return result_of(pair, verdict, cause=cause, detail=cause and "it said so")

        monkeypatch.setattr(Handshake, "run", run)
        left, interrupted = check(ready, **options)
        assert not interrupted
        return left, made

    return call


def test_a_refused_key_is_told_once_with_its_mend_and_asked_again(
    checked: Callable[..., tuple[Ready, list[str]]], capsys: pytest.CaptureFixture[str]
) -> None:
    found = {"a": ("undecided", "key_refused"), "v/b": ("compatible", None)}
    left, made = checked(found)
    assert len(made) == 3
    assert {cell.key.model for cell in left.held} == {"a"}
    said = capsys.readouterr().err
    assert said.count("check the key that the endpoint's variable holds") == 1
    assert "endpoint up, model a: key_refused: it said so" in said
    assert "2 cells not run; go on with: cab sweep resume mine-1" in said
    # What is known is not asked again, what was not told is.
    assert {line.split()[1] for line in checked(found)[1]} == {"a"}
    assert len(checked({"a": ("compatible", None), "v/b": ("compatible", None)}, again=True)[1]) == 4


def test_what_an_incompatible_pair_and_an_endpoint_that_is_down_keep_from_running_is_told_with_its_mend(
    checked: Callable[..., tuple[Ready, list[str]]], capsys: pytest.CaptureFixture[str]
) -> None:
    left, _ = checked({"a": ("incompatible", "no_edit"), "v/b": ("undecided", "endpoint_down")})
    said = capsys.readouterr().err
    assert f"{len(left.incompatible)} cells of incompatible pairs not run; `--no-preflight` runs them" in said
    assert "(check the endpoint's base_url; it may also pass)" in said


def test_tokens_that_were_not_stated_are_not_told_as_none(
    checked: Callable[..., tuple[Ready, list[str]]],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compatible: dict[str, tuple[Verdict, str | None]] = {
        "a": ("compatible", None),
        "v/b": ("compatible", None),
    }
    checked(compatible)
    assert "at least" not in capsys.readouterr().err
    stated = result_of
    monkeypatch.setitem(
        globals(),
        "result_of",
        lambda *args, **more: stated(*args, **more).model_copy(update={"tokens": None}),
    )
    checked(compatible, again=True)
    assert "spent so far: at least " in capsys.readouterr().err


def test_a_sweep_of_scripted_models_is_left_as_it_is(tmp_path: Path) -> None:
    ready = ready_of(tmp_path, SPEC.replace(", {id: a, endpoint: up}, {id: v/b, endpoint: up}", ""))
    ready = replace(ready, bench=bench_of(ready.matrix))
    assert check(ready) == (ready, False)
    assert not (ready.store.root / PREFLIGHT).exists()


def test_what_was_found_is_printed_as_a_table_and_as_data(
    checked: Callable[..., tuple[Ready, list[str]]], capsys: pytest.CaptureFixture[str]
) -> None:
    left, _ = checked({"a": ("incompatible", "no_edit"), "v/b": ("compatible", None)})
    capsys.readouterr()
    record = read_preflight(left.store.root)
    print_preflight(left.matrix, record, as_json=False)
    table = capsys.readouterr().out
    assert "opencode × a: it said so" in table
    assert "incompatible (no_edit)" in table
    print_preflight(left.matrix, record, as_json=True)
    data = json.loads(capsys.readouterr().out)
    assert [it["verdict"] for it in data["pairs"]] == ["incompatible", "compatible"] * 2
    assert {"cli": "noop", "model": "none"} in data["untested"]
    assert data["known_usd"] == 2.0
    assert [it["reason"] for it in summary(left.store)["skipped"]] == [
        "incompatible (no_edit): it said so"
    ] * 2


def test_without_preflight_an_endpoint_that_refuses_to_be_asked_for_usage_is_not_asked(
    tmp_path: Path,
) -> None:
    ready = ready_of(tmp_path)
    ready = replace(ready, bench=bench_of(ready.matrix))
    pairs = {pair.name: pair for pair in pairs_of(ready.todo, ready.matrix, PINS)}
    assert with_known(ready).bench == ready.bench

    def found(results: Path, **by_model: PairResult) -> frozenset[tuple[str, str]]:
        record = PreflightRecord()
        for result in by_model.values():
            record = record.with_result(result)
        results.mkdir(exist_ok=True)
        write_preflight(results, record)
        left = with_known(replace(ready, todo=[cell for cell in ready.todo if cell.key.cli == "aider"]))
        assert left.bench is not None
        assert (left.incompatible, left.held) == ((), ())
        return left.bench.unasked

    refuses = result_of(pairs["opencode", "a"], asks_usage=False)
    # In any sweep of these results, by any CLI, for this model alone.
    other = ready.store.root.parent / "other-1"
    told = found(other, a=refuses, b=result_of(pairs["opencode", "v/b"], "incompatible"))
    assert told == {("up", "a")}
    assert not (ready.store.root / PREFLIGHT).exists()
    assert found(other, a=refuses.model_copy(update={"verdict": "undecided", "cause": "disk"})) == set()
    # Of the same names, but of another URL, image or adapter.
    assert found(ready.store.root, a=refuses.model_copy(update={"key": f"sha256:{1:064x}"})) == set()


def test_what_was_not_pinned_yet_is_no_pair_that_is_known(tmp_path: Path) -> None:
    ready = ready_of(tmp_path)
    pins = {name: pin for name, pin in PINS.items() if name != "opencode"}
    ready = replace(ready, bench=replace(bench_of(ready.matrix), pins=pins))
    assert with_known(ready).bench == ready.bench


def test_a_budget_that_ends_preflight_is_told_with_the_option_that_raises_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ready = ready_of(tmp_path, SPEC + "budget: {tokens: 9, usd: 7.5}\n")
    ready = replace(ready, bench=bench_of(ready.matrix))
    pairs = pairs_of(ready.todo, ready.matrix, PINS)

    def run(self: Handshake) -> PairResult:
        return result_of(next(it for it in pairs if it.cell == self.cell))

    monkeypatch.setattr(Handshake, "run", run)
    left, _ = check(ready)
    assert len(left.held) == 3
    said = capsys.readouterr().err
    assert "sweep_budget: 9 of 9 tokens and $0.5000 of $7.50 used, 3 cells not run; go on with: cab" in said
    assert f"sweep resume mine-1 --budget-tokens MORE -r {tmp_path / 'results'}\n" in said
