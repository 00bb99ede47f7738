"""Preflight as a command has it: what is told, what is printed, and what a call without it still knows."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from preflight_rig import PINS, SPEC, bench_of, ready_of, result_of

from orchestrator.report.preflight import check, print_preflight
from orchestrator.report.summary import summary
from orchestrator.run.preflight.handshake import Handshake
from orchestrator.run.preflight.pairs import pairs_of, with_known
from orchestrator.run.start import Ready
from orchestrator.store.preflight import (
    PREFLIGHT,
    PairResult,
    PreflightRecord,
    Verdict,
    read_preflight,
    write_preflight,
)


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
