"""Preflight for people: told as it goes on stderr, as a table or JSON on stdout."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console

from orchestrator.report.columns import Column, fit
from orchestrator.report.live import FINISHING, HINT, STOPPING, go_on, interruptible
from orchestrator.report.spending import more, spent
from orchestrator.report.text import (
    NOT_MEASURED,
    clock,
    console,
    count,
    dollars,
    plural,
    print_json,
    safe_line,
)
from orchestrator.run.budget import Budget
from orchestrator.run.preflight.pairs import Pair, decided, pairs_of, recall
from orchestrator.run.start import Matrix, Ready
from orchestrator.store.preflight import PairResult, PreflightRecord, write_preflight

MENDS = {
    "key_refused": "check the key that the endpoint's variable holds",
    "model_unknown": "check the model's id, and the endpoint's base_url",
    "rate_limited": "wait, or ask for more",
    "endpoint_down": "check the endpoint's base_url; it may also pass",
}
"""What to do about what is wrong with an endpoint; it may pass by itself where there is none."""


def check(
    ready: Ready, *, again: bool = False, local: bool = False, scripted: bool = False
) -> tuple[Ready, bool]:
    """Make the handshakes that the sweep's unfinished cells need; the sweep less what cannot be run, and
    whether the user stopped it before its end.

    With `again` what is known already is asked again; `local` and `scripted` are those of `pairs_of`. Raises
    InputError where the sweep requires tokens that an endpoint does not state.
    """
    if ready.bench is None:
        return ready, False
    pairs = pairs_of(ready.todo, ready.matrix, ready.bench.pins, local=local, scripted=scripted)
    if not pairs:
        return ready, False
    # Imported here: a sweep of scripted models alone need not wait for it.
    from orchestrator.run.preflight.check import Preflight, apply

    record = recall(ready, pairs)
    write_preflight(ready.store.root, record)
    known = {} if again else decided(record)
    todo = [pair for pair in pairs if pair.name not in known]
    view = _View(console(stderr=True))
    budget = Budget.of(ready.matrix.spec.budget, ready.store)
    preflight = Preflight(ready.bench, ready.store, todo, record, budget, view.told)
    view.begins(ready.matrix.sweep_id, todo, len(pairs))
    with interruptible(preflight, view):
        preflight.run()
    if todo and not preflight.interrupted:
        view.ends(preflight.record)
    left = apply(ready, pairs, preflight.record)
    if left.incompatible and not preflight.interrupted:
        view.refused(left)
    if preflight.interrupted:
        view.stopped(left)
    elif left.held:
        view.held(left, preflight.record, budget)
    return left, preflight.interrupted


@dataclass
class _View:
    out: Console

    def __post_init__(self) -> None:
        self._began = time.monotonic()

    def begins(self, sweep_id: str, todo: Sequence[Pair], of: int) -> None:
        known = f", {of - len(todo)} known" if len(todo) < of else ""
        hint = f"; {HINT}" if todo and self.out.is_terminal else ""
        self._line(f"{sweep_id}: preflight of {plural(of, 'pair')} of CLI and model{known}{hint}")

    def told(self, result: PairResult) -> None:
        tries = f"{plural(result.tries, 'try', 'tries')}, " if result.tries else "not tried, "
        said = result.verdict if result.cause is None else result.reason
        name = f"{result.cli} × {result.model}"
        self._line(f"  {name}: {said} ({tries}{count(result.tokens)} tokens, {clock(result.duration_s)})")

    def ends(self, record: PreflightRecord) -> None:
        costs = [it.cost_usd for it in record.pairs]
        cost = NOT_MEASURED if None in costs else dollars(record.known_usd)
        least = "at least " if any(it.tokens is None for it in record.pairs) else ""
        spent = f"{least}{count(record.known_tokens)} tokens, {cost}"
        self._line(f"preflight took {clock(time.monotonic() - self._began)}; spent so far: {spent}")

    def refused(self, left: Ready) -> None:
        cells = plural(len(left.incompatible), "cell")
        self._line(f"{cells} of incompatible pairs not run; `--no-preflight` runs them all the same")

    def stopped(self, left: Ready) -> None:
        self._line(f"stopped; go on with: {go_on(left)}")

    def held(self, left: Ready, record: PreflightRecord, budget: Budget) -> None:
        """Which endpoints kept cells from running, once for each with each model, and the mend; or that the
        budget did.
        """
        faults = {(it.endpoint, it.model): it for it in record.pairs if it.verdict == "undecided"}
        for (endpoint, model), result in faults.items():
            mend = MENDS.get(result.cause or "", "it may pass")
            self._line(f"endpoint {endpoint}, model {model}: {result.cause}: {result.detail} ({mend})")
        why = f"sweep_budget: {spent(budget)}, " if budget.used_up else ""
        resume = go_on(left, *more(budget))
        self._line(f"{why}{plural(len(left.held), 'cell')} not run; go on with: {resume}")

    def finishing(self) -> None:
        self._line(FINISHING)

    def stopping(self) -> None:
        self._line(STOPPING)

    def _line(self, text: str) -> None:
        self.out.print(safe_line(text), soft_wrap=True)


def print_preflight(matrix: Matrix, record: PreflightRecord, *, as_json: bool) -> None:
    """Print what is known of a sweep's pairs, and which of them need no handshake."""
    tested = {(it.cli, it.model) for it in record.pairs}
    pairs = {(cell.key.cli, cell.key.model) for cell in matrix.plan.cells}
    untested = sorted(pairs - tested)
    if as_json:
        data = record.model_dump(mode="json", exclude={"schema_version"})
        rest = [{"cli": cli, "model": model} for cli, model in untested]
        print_json({"sweep_id": matrix.sweep_id, **data, "untested": rest})
        return
    out, results = console(), record.pairs
    if results:
        columns = [
            Column("CLI × model", [f"{it.cli} × {it.model}" for it in results], right=False, least=24),
            Column("verdict", [_verdict(it) for it in results], right=False),
            Column("tries", [count(it.tries) for it in results], worth=2),
            Column("tokens", [count(it.tokens) for it in results], worth=3),
            Column("cost", [dollars(it.cost_usd) for it in results], worth=1),
            Column("usage", [_usage(it) for it in results], right=False),
            Column("of", [it.taken_from or matrix.sweep_id for it in results], right=False, worth=1),
        ]
        table, _ = fit(columns, f"{matrix.sweep_id}: {plural(len(results), 'pair')} tested", out)
        out.print(table)
        for result in results:
            if result.detail:
                out.print(safe_line(f"{result.cli} × {result.model}: {result.detail}"), soft_wrap=True)
    if untested:
        out.print(f"not tested (a scripted model, a baseline, or finished): {len(untested)}", soft_wrap=True)


def _verdict(result: PairResult) -> str:
    return result.verdict if result.cause is None else f"{result.verdict} ({result.cause})"


def _usage(result: PairResult) -> str:
    if result.states_usage is None:
        return NOT_MEASURED
    stated = "stated" if result.states_usage else "not stated"
    return stated if result.asks_usage else f"{stated}, not asked for"
