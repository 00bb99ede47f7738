"""What preflight found of the pairs of a sweep (`preflight.json`, beside its `sweep.json`)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from orchestrator.store.cells import CellStore
from orchestrator.store.files import store_errors, write_durably
from orchestrator.store.record import VERSION, Digest, Model, SkippedCell, UtcTime, parse

PREFLIGHT = "preflight.json"

Verdict = Literal["compatible", "incompatible", "undecided"]
"""`undecided`: a fault of the endpoint or the machine kept the handshake from telling."""


class PairResult(Model):
    """One CLI with one model. `endpoint` is None for a scripted model.

    `key` is the digest of what was tested: image, adapter, model, endpoint and handshake. `cause` is None of
    a compatible pair; `last_words` are the model's, of a pair that made no edit. `asks_usage` says whether
    the gateway may ask for the usage of a stream, `states_usage` whether every answer stated its own (None
    where there was none). `tokens` is None where a call stated none, `known_tokens` the sum of those that
    did. `taken_from` is the sweep whose handshake this was; None for the sweep's own.
    """

    cli: str
    model: str
    endpoint: str | None
    key: Digest
    verdict: Verdict
    cause: str | None = None
    detail: str | None = None
    last_words: str | None = None
    tries: int = Field(ge=0)
    asks_usage: bool = True
    states_usage: bool | None = None
    tokens: int | None
    known_tokens: int = Field(ge=0)
    cost_usd: float | None
    duration_s: float = Field(ge=0)
    at: UtcTime
    taken_from: str | None = None

    @property
    def reason(self) -> str:
        """Why its cells are not run, as it is listed: `incompatible (no_edit): …`."""
        return f"{self.verdict} ({self.cause}): {self.detail}"


class PreflightRecord(Model):
    """All pairs of a sweep that were tested. `known_tokens` and `known_usd` are what all handshakes that this
    sweep ever made spent at least, those that were repeated included: what was not stated is not in them.
    """

    schema_version: Annotated[Literal[1], VERSION] = 1
    pairs: tuple[PairResult, ...] = ()
    known_tokens: int = Field(default=0, ge=0)
    known_usd: float = Field(default=0.0, ge=0)

    def with_result(self, result: PairResult) -> PreflightRecord:
        """With one more pair, instead of what was known of it; what it spent is added unless it was taken."""
        others = [it for it in self.pairs if (it.cli, it.model) != (result.cli, result.model)]
        pairs = tuple(sorted((*others, result), key=lambda it: (it.cli, it.model)))
        if result.taken_from is not None:
            return self.model_copy(update={"pairs": pairs})
        return PreflightRecord(
            pairs=pairs,
            known_tokens=self.known_tokens + result.known_tokens,
            known_usd=self.known_usd + (result.cost_usd or 0.0),
        )


def read_preflight(root: Path) -> PreflightRecord:
    """What is known of the sweep whose directory is `root`; empty where nothing was tested.

    Raises StoreError.
    """
    path = root / PREFLIGHT
    with store_errors(path):
        try:
            raw = path.read_bytes()
        except FileNotFoundError:
            return PreflightRecord()
    return parse(PreflightRecord, raw, place=str(path))


def write_preflight(root: Path, record: PreflightRecord) -> None:
    """Write it whole or not at all. Raises StoreError."""
    path = root / PREFLIGHT
    with store_errors(path):
        write_durably(path, record.model_dump_json(indent=1).encode() + b"\n")


def known_pairs(results_dir: Path) -> Iterator[PairResult]:
    """What all sweeps of a results directory decided, oldest first, whatever it was taken from."""
    paths = results_dir.glob(f"*/{PREFLIGHT}")
    found = [
        result.model_copy(update={"taken_from": result.taken_from or path.parent.name})
        for path in paths
        for result in read_preflight(path.parent).pairs
        if result.verdict != "undecided"
    ]
    yield from sorted(found, key=lambda it: it.at)


def incompatible_cells(store: CellStore) -> list[SkippedCell]:
    """The cells of a sweep that are not run since their CLI and model cannot work together."""
    refused = {
        (it.cli, it.model): it.reason
        for it in read_preflight(store.root).pairs
        if it.verdict == "incompatible"
    }
    if not refused:
        return []
    finished = store.finished()
    return [
        SkippedCell(cell_id=cell_id, reason=reason)
        for cell_id in store.sweep().order
        if cell_id not in finished and (reason := refused.get(pair_of(cell_id)))
    ]


def pair_of(cell_id: str) -> tuple[str, str]:
    """CLI and model of a cell id, whose last two parts are its task."""
    cli, *model = cell_id.split("/")[1:-2]
    return cli, "/".join(model)
