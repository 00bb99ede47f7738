"""aider ends with 0 whatever its endpoint did: what happened is read from the gateway."""

from __future__ import annotations

from dataclasses import replace
from secrets import token_hex

import pytest
from cells import (
    CALL_RETRIES,
    LIMITS,
    TASK,
    Answer,
    Stub,
    Watcher,
    assert_nothing_left,
    bench_of,
    cell_of,
    own_scratch,
    refusal,
    sweep_record,
    tasks_in,
)

from orchestrator.adapter import load_adapter
from orchestrator.paths import IMAGES, IMAGES_LOCK
from orchestrator.run.sweep import Sweep
from orchestrator.sandbox.images import load_lock
from orchestrator.store.cells import CellStore
from orchestrator.store.evidence import load_evidence
from orchestrator.store.record import CellRecord
from scorers.evidence import Evidence

pytestmark = [pytest.mark.docker, pytest.mark.xdist_group("outcomes")]

SWEEP = f"aider-{token_hex(4)}"
FAILED_CALL = 1 + CALL_RETRIES
ANSWERS = {
    "stub/refuses": lambda _: refusal(401),
    # The gateway gives up on the first call; aider asks again by itself.
    "stub/recovers": lambda number: refusal(503) if number <= FAILED_CALL else Answer(),
}

Ran = dict[str, tuple[CellRecord, Evidence]]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """Both cells by the model's name, run in one sweep."""
    results = tmp_path_factory.mktemp("results")
    stub, store = Stub(dict(ANSWERS)), CellStore(results, SWEEP)
    cells = [cell_of(SWEEP, "aider", model, TASK, endpoint="stub") for model in ANSWERS]
    with own_scratch() as scratch:
        with (
            stub.served() as url,
            bench_of(
                SWEEP,
                adapters={"aider": load_adapter(IMAGES, "aider")},
                tasks=tasks_in(tmp_path_factory.mktemp("tasks")),
                endpoints={"stub": url},
                scratch=scratch,
                log=results / "gateway.log",
                image=load_lock(IMAGES_LOCK).image("aider"),
                limits=replace(LIMITS, memory_bytes=1 << 30, pids=256),
            ) as bench,
            store,
        ):
            store.create(sweep_record(bench, cells))
            Sweep(bench, store, cells, 0, Watcher()).run()
        assert_nothing_left(scratch, store)
    return {
        cell.key.model: (store.record(cell.key), load_evidence(store.cell_dir(cell.key))) for cell in cells
    }


def test_a_refused_key_is_no_fault_of_aiders(ran: Ran) -> None:
    record, evidence = ran["stub/refuses"]
    assert evidence.end is not None
    assert (evidence.end.exit_code, evidence.end.timed_out) == (0, False)
    assert [call.error for call in evidence.calls] == ["key_refused"]
    assert (record.outcome.name, record.outcome.cause) == ("infra_error", "key_refused")
    assert record.scores["composite"]["composite"] is None


def test_a_fault_that_aider_overcomes_is_harmless(ran: Ran) -> None:
    record, evidence = ran["stub/recovers"]
    assert [call.error for call in evidence.calls] == ["upstream_5xx", None]
    assert record.outcome.name == "completed"
    assert record.scores["pass_rate"]["pass"] == 0
    assert record.scores["blast_radius"]["blast_radius_agent"] == 0
    assert ".gitignore" in record.scores["blast_radius"]["cli_state"]
