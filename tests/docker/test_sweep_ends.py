"""What ends a sweep before its cells: a dead gateway, a cancellation, an environment that is not set."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from secrets import token_hex
from typing import Any
from unittest.mock import Mock

import pytest
from cells import (
    SLOW_TESTS,
    TASK,
    TOKENS_IN,
    TOKENS_OUT,
    Answer,
    Stub,
    Watcher,
    assert_nothing_left,
    bench_of,
    cell_of,
    containers_of,
    own_scratch,
    program,
    sweep_record,
    tasks_in,
    wait_until,
)
from docker.errors import DockerException

from orchestrator.errors import EnvironmentFault
from orchestrator.plan.expand import expand
from orchestrator.plan.spec import Spending, SweepSpec
from orchestrator.run.bench import Bench
from orchestrator.run.budget import Budget
from orchestrator.run.outcome import TABLE
from orchestrator.run.rescore import rescore
from orchestrator.run.sweep import Sweep
from orchestrator.store.cells import CellStore
from scorers.evidence import Price, Rates

pytestmark = pytest.mark.docker


@contextmanager
def lone_bench(stub: Stub, texts: dict[str, str], place: Path) -> Iterator[tuple[Bench, CellStore]]:
    """A bench of one worker and a store, with a CLI for each of `texts`; leaves nothing."""
    tasks = tasks_in(place / "tasks")
    fixed = tasks[TASK].solution.files["src/reverse.py"]
    adapters = {name: program(name, text, fixed=fixed) for name, text in texts.items()}
    store = CellStore(place / "results", f"lone-{token_hex(4)}")
    with own_scratch() as scratch:
        with (
            stub.served() as url,
            bench_of(
                store.sweep_id,
                adapters=adapters,
                tasks=tasks,
                endpoints={"stub": url},
                scratch=scratch,
                log=place / "gateway.log",
            ) as bench,
            store,
        ):
            store.create(sweep_record(bench, []))
            yield replace(bench, concurrency=1), store
            wait_until(lambda: containers_of(store.sweep_id) == [])
        assert_nothing_left(scratch, store)


def test_a_dead_gateway_ends_the_sweep_and_its_cell_is_not_counted(tmp_path: Path) -> None:
    texts = {"talks": "fix(); ask(); ask()", "next": "ask()"}
    stub, watcher = Stub({}), Watcher()
    with lone_bench(stub, texts, tmp_path) as (bench, store):

        def kill(number: int) -> Answer:
            if number == 2:
                wait_until(lambda: any(path.stat().st_size for path in store.root.rglob("calls.jsonl")))
                os.kill(bench.gateway.pid, signal.SIGKILL)
            return Answer()

        stub.answers["stub/model"] = kill
        cells = [cell_of(store.sweep_id, name, "stub/model", TASK, endpoint="stub") for name in texts]
        sweep = Sweep(bench, store, cells, 1, watcher)
        with pytest.raises(EnvironmentFault, match="gateway died"):
            sweep.run()
        assert not sweep.interrupted
        assert store.finished().keys() == {cells[0].cell_id}
        assert watcher.starts == {cells[0].cell_id: 1}
        record = store.record(cells[0].key)
        assert (record.outcome.name, record.outcome.cause) == ("infra_error", "gateway")
        assert record.outcome.counted is False
        scores: dict[str, Any] = record.scores
        assert scores["composite"]["composite"] is None
        assert scores["tokens"]["known"]["total_tokens"] == TOKENS_IN + TOKENS_OUT


def test_a_dead_engine_ends_the_sweep_before_all_cells_have_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub, watcher = Stub({}), Watcher()
    with lone_bench(stub, {"talks": "fix(); ask(); ask()", "next": "ask()"}, tmp_path) as (bench, store):
        cells = [
            cell_of(store.sweep_id, name, "stub/model", TASK, endpoint="stub") for name in ("talks", "next")
        ]
        sandbox = bench.grader.sandbox
        assert sandbox.answers

        def take_away(number: int) -> Answer:
            if number == 2:
                monkeypatch.setattr(sandbox._api, "ping", Mock(side_effect=DockerException("gone")))
                sandbox.remove_leftovers({"cab.cell": cells[0].cell_id})
            return Answer()

        stub.answers["stub/model"] = take_away
        sweep = Sweep(bench, store, cells, 1, watcher)
        with pytest.raises(EnvironmentFault, match="engine is gone"):
            sweep.run()
        assert watcher.starts == {cells[0].cell_id: 1}
        assert str(store.record(cells[0].key).outcome.cause) == "engine"


def test_a_token_limit_ends_a_cell_and_a_budget_the_sweep_until_it_is_larger(tmp_path: Path) -> None:
    call = TOKENS_IN + TOKENS_OUT
    texts = {"first": "fix()\nwhile True: ask()", "next": "ask()"}
    price = Price(rates=[Rates(input=1, output=1)], source="sweep file")
    stub = Stub({"stub/model": lambda _: Answer()})
    with lone_bench(stub, texts, tmp_path) as (lone, store):
        bench = replace(lone, spending=Spending(tokens=2 * call), prices={"stub/model": price})
        cells = [cell_of(store.sweep_id, name, "stub/model", TASK, endpoint="stub") for name in texts]
        sweep = Sweep(bench, store, cells, 1, Watcher(), Budget.of(Spending(tokens=2 * call), store))
        sweep.run()
        assert (sweep.over_budget, sweep.interrupted) == (1, False)
        assert store.finished().keys() == {cells[0].cell_id}
        record = store.record(cells[0].key)
        assert (record.outcome.name, record.outcome.cause) == ("limit_reached", "tokens")
        scores: dict[str, Any] = record.scores
        assert (scores["pass_rate"]["pass"], scores["tokens"]["total_tokens"]) == (1, 2 * call)
        assert scores["tokens"]["cost_usd"] == 2 * call / 1e6
        assert rescore(store.cell_dir(cells[0].key)).differences == {}
        larger = Budget.of(Spending(tokens=2 * call + 1), store)
        assert larger.tokens == 2 * call
        sweep = Sweep(bench, store, cells[1:], 1, Watcher(), larger)
        sweep.run()
        assert sweep.over_budget == 0
        assert store.record(cells[1].key).outcome.name == "completed"


@pytest.mark.parametrize("during", ["adapter_run", "verify"])
def test_a_cancelled_cell_ends_at_once_and_is_not_stored(during: str, tmp_path: Path) -> None:
    stub, watcher = Stub({}), Watcher()
    text = "ask(); time.sleep(200)" if during == "adapter_run" else "ask()"
    with lone_bench(stub, {"cli": text}, tmp_path) as (bench, store):
        cell = cell_of(store.sweep_id, "cli", "stub/model", SLOW_TESTS, endpoint="stub")
        sweep = Sweep(bench, store, [cell, cell], 1, watcher)

        def cancelling(number: int) -> Answer:
            if during == "adapter_run":
                sweep.cancel()
            return Answer()

        def on_stage(stage: str) -> None:
            if stage == during == "verify":
                sweep.cancel()

        stub.answers["stub/model"], watcher.on_stage = cancelling, on_stage
        begin = time.monotonic()
        sweep.run()
        assert time.monotonic() - begin < 60  # CLI and tests would take 200 s
        assert sweep.interrupted
        assert (watcher.cancels, watcher.ends) == ([cell.cell_id], {})
        assert store.finished() == {}
        assert not store.cell_dir(cell.key).exists()


def test_a_model_whose_environment_is_not_set_is_skipped() -> None:
    spec = SweepSpec.of_data(
        {
            "name": "lone",
            "clis": ["cli"],
            "models": [{"id": "vendor/model", "endpoint": "hosted"}],
            "endpoints": {"hosted": {"base_url": {"env": "HOSTED_URL"}, "key": {"env": "HOSTED_KEY"}}},
            "tasks": [TASK],
        }
    )
    cli = program("cli", "ask()", fixed="")
    plan = expand(spec, sweep_id="lone", clis={"cli": cli}, tasks=[TASK], env={"HOSTED_URL": "http://host"})
    assert plan.cells == ()
    assert plan.skipped == ((f"lone/cli/vendor/model/{TASK}#run1", "HOSTED_KEY is not set"),)
    rule = TABLE["skipped"]
    assert (rule.counted, rule.retried, rule.ran) == (False, False, False)
