"""The handshakes of a sweep: those that are not known yet, as many at once as the sweep has cells."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import groupby

from orchestrator.errors import InputError
from orchestrator.run.bench import Bench
from orchestrator.run.budget import Budget
from orchestrator.run.cell import Cancelled
from orchestrator.run.preflight.handshake import Handshake, handshake_bench
from orchestrator.run.preflight.pairs import Pair
from orchestrator.run.preflight.verdict import Finding
from orchestrator.run.start import Ready
from orchestrator.run.workers import Workers
from orchestrator.store.cells import CellStore
from orchestrator.store.preflight import PairResult, PreflightRecord, write_preflight


@dataclass
class Preflight:
    """Makes the handshakes of `pairs`, and keeps each result as it comes; `record` is what is known. `told`
    is called with each, from several threads. `stop` and `cancel` may come from a signal handler.

    The CLIs of one model at one endpoint come one after another: what is wrong with the endpoint is found,
    and told, once.
    """

    bench: Bench
    store: CellStore
    pairs: Sequence[Pair]
    record: PreflightRecord
    budget: Budget
    told: Callable[[PairResult], None]
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _under_way: dict[tuple[str, str], Handshake] = field(default_factory=dict)
    _cancelling: threading.Event = field(default_factory=threading.Event)
    _workers: Workers[list[Pair]] = field(init=False)

    def __post_init__(self) -> None:
        self._workers = Workers(self._try, "preflight-worker")

    @property
    def stopping(self) -> bool:
        return self._workers.stopping.is_set()

    @property
    def interrupted(self) -> bool:
        """Whether the user stopped it before its end."""
        return self._workers.interrupted

    def stop(self) -> None:
        """Start no further handshake; those under way come to their end."""
        self._workers.stop()

    def cancel(self) -> None:
        """Stop the handshakes under way as well; nothing of them is kept."""
        self._cancelling.set()
        self.stop()
        for handshake in list(self._under_way.values()):
            handshake.cancel()

    def run(self) -> None:
        """Run to the end, to a stop, or until the budget is used up. Raises what made going on pointless."""

        def where(pair: Pair) -> tuple[str, str]:
            return pair.cell.endpoint or "", pair.cell.key.model

        groups = [list(group) for _, group in groupby(sorted(self.pairs, key=where), key=where)]
        self.bench = handshake_bench(self.bench)
        # What a group raises is the store, the machine or cab itself: further handshakes would fail alike.
        self._workers.run(groups, self.bench.concurrency)

    def _try(self, group: Sequence[Pair]) -> None:
        with suppress(Cancelled):
            self._run(group)

    def _run(self, group: Sequence[Pair]) -> None:
        """The CLIs of one model at one endpoint, one after another."""
        asks_usage, at_fault = True, None
        for pair in group:
            if self.stopping or self.budget.used_up:
                return
            if at_fault is not None:
                self._keep(_not_tried(pair, at_fault))
                continue
            result = self._shake_hands(pair, asks_usage=asks_usage)
            self._keep(result)
            if result.verdict != "undecided":
                asks_usage = result.asks_usage
            elif Finding(result.verdict, result.cause).of_the_endpoint:
                at_fault = result

    def _shake_hands(self, pair: Pair, *, asks_usage: bool) -> PairResult:
        handshake = Handshake(self.bench, self.store, pair.cell, pair.local, pair.key, asks_usage)
        self._under_way[pair.name] = handshake
        try:
            if self._cancelling.is_set():
                handshake.cancel()
            return handshake.run()
        finally:
            del self._under_way[pair.name]

    def _keep(self, result: PairResult) -> None:
        self.budget.add(result.known_tokens, result.cost_usd)
        with self._lock:
            self.record = self.record.with_result(result)
            write_preflight(self.store.root, self.record)
        self.told(result)


def _not_tried(pair: Pair, at_fault: PairResult) -> PairResult:
    """Of a further CLI of a model whose endpoint failed: nothing was spent on it."""
    cell = pair.cell
    return PairResult(
        cli=cell.key.cli,
        model=cell.key.model,
        endpoint=cell.endpoint,
        key=pair.key,
        verdict="undecided",
        cause=at_fault.cause,
        detail=at_fault.detail,
        tries=0,
        tokens=0,
        known_tokens=0,
        cost_usd=0.0,
        duration_s=0.0,
        at=datetime.now(UTC),
    )


def apply(ready: Ready, pairs: Sequence[Pair], record: PreflightRecord) -> Ready:
    """The sweep less what preflight found cannot be run, or came to no result about.

    Raises InputError where the sweep requires tokens that an endpoint does not state.
    """
    asked = {pair.name for pair in pairs}
    results = {(it.cli, it.model): it for it in record.pairs if (it.cli, it.model) in asked}
    _check_required(ready, list(results.values()))

    def verdict(cell_name: tuple[str, str]) -> str:
        if cell_name not in asked:
            return "compatible"
        return results[cell_name].verdict if cell_name in results else "undecided"

    by_verdict = {cell.cell_id: verdict((cell.key.cli, cell.key.model)) for cell in ready.todo}
    parts = {
        name: tuple(cell for cell in ready.todo if by_verdict[cell.cell_id] == name)
        for name in ("compatible", "incompatible", "undecided")
    }
    unasked = frozenset((it.endpoint or "", it.model) for it in results.values() if not it.asks_usage)
    bench = replace(ready.bench, unasked=unasked) if ready.bench else None
    return replace(
        ready,
        todo=parts["compatible"],
        incompatible=parts["incompatible"],
        held=parts["undecided"],
        bench=bench,
    )


def _check_required(ready: Ready, results: Sequence[PairResult]) -> None:
    if "tokens.wire" not in ready.matrix.spec.require:
        return
    for result in results:
        if result.verdict == "compatible" and result.states_usage is False:
            raise InputError(
                "the sweep requires tokens.wire, but no usage is stated for the answers of this model",
                place=f"endpoint {result.endpoint}, model {result.model} (asked by {result.cli})",
                mend="leave the model out, or do not require tokens.wire",
            )
