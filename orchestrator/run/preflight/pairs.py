"""Which pairs of a sweep need a handshake, and what is known of them already. Light: nothing here runs."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from orchestrator.plan.expand import PlannedCell
from orchestrator.run.start import Matrix, Ready
from orchestrator.store.preflight import PairResult, PreflightRecord, known_pairs, read_preflight

VERSION = 1
"""Of the handshake: raised when its task or its limits change, so that it is made again."""

PROVEN_SCRIPT = "reference"


@dataclass(frozen=True)
class Pair:
    """One CLI with one model; `cell` is its first cell, `key` the digest of what a handshake tests."""

    cell: PlannedCell
    key: str
    local: bool

    @property
    def name(self) -> tuple[str, str]:
        return self.cell.key.cli, self.cell.key.model


def pairs_of(
    cells: Iterable[PlannedCell],
    matrix: Matrix,
    pins: Mapping[str, str],
    *,
    local: bool = False,
    scripted: bool = False,
) -> list[Pair]:
    """The pairs of `cells` that need a handshake, in their order: those that ask an endpoint.

    With `local` also those of local models, which cost nothing and fail honestly; with `scripted` those of
    the scripted model that solves tasks, which prove the mechanism. A replay asks no model.
    """
    found: dict[tuple[str, str], Pair] = {}
    for cell in cells:
        served_here = cell.key.model in matrix.local
        asks = local if served_here else cell.endpoint is not None
        tested = asks or (scripted and cell.script == PROVEN_SCRIPT)
        name = (cell.key.cli, cell.key.model)
        if tested and cell.recorded is None and name not in found:
            found[name] = Pair(cell, _key(cell, matrix, pins), served_here)
    return list(found.values())


def _key(cell: PlannedCell, matrix: Matrix, pins: Mapping[str, str]) -> str:
    """Of image, adapter, model and endpoint. The endpoint's key is no part of it: what a wrong one causes is
    not kept.
    """
    cli, model = cell.key.cli, cell.key.model
    endpoint = matrix.spec.endpoints.get(cell.endpoint or "")
    local = matrix.local.get(model)
    spec = next(it for it in matrix.spec.models if it.id == model)
    url = endpoint.base_url.url or os.environ.get(endpoint.base_url.env or "") if endpoint else None
    tested = {
        "version": VERSION,
        "image": pins[cli],
        "adapter": matrix.adapter_digests[cli],
        "model": spec.model_dump(mode="json", exclude={"price", "endpoint"}),
        "build": local.build_id if local else None,
        "url": url,
        "wire": endpoint.wire if endpoint else None,
    }
    return f"sha256:{hashlib.sha256(json.dumps(tested, sort_keys=True).encode()).hexdigest()}"


def recall(ready: Ready, pairs: Sequence[Pair]) -> PreflightRecord:
    """The sweep's own record, less what of it was of another image, adapter, model or endpoint, with what any
    sweep of the same results decided about the rest.
    """
    own = read_preflight(ready.store.root)
    keys = {pair.name: pair.key for pair in pairs}
    current = tuple(it for it in own.pairs if keys.get((it.cli, it.model), it.key) == it.key)
    record = own.model_copy(update={"pairs": current})
    known = {result.key: result for result in known_pairs(ready.store.root.parent)}
    decided = {(it.cli, it.model) for it in current if it.verdict != "undecided"}
    for pair in pairs:
        result = known.get(pair.key)
        if result is not None and pair.name not in decided:
            cell = pair.cell
            here = {"cli": cell.key.cli, "model": cell.key.model, "endpoint": cell.endpoint}
            record = record.with_result(result.model_copy(update=here))
    return record


def with_known(ready: Ready) -> Ready:
    """The sweep as it runs without handshakes: an endpoint that, with a model, refuses to be asked for usage,
    as a handshake of any CLI found, is not asked. Nothing else that is known is heeded.
    """
    if ready.bench is None:
        return ready
    pins = ready.bench.pins
    cells = [cell for cell in ready.matrix.plan.cells if cell.key.cli in pins]
    pairs = pairs_of(cells, ready.matrix, pins)
    if not pairs:
        return ready
    known = decided(recall(ready, pairs)).values()
    unasked = frozenset((it.endpoint or "", it.model) for it in known if not it.asks_usage)
    return replace(ready, bench=replace(ready.bench, unasked=unasked))


def decided(record: PreflightRecord) -> dict[tuple[str, str], PairResult]:
    """By CLI and model: what needs no further handshake."""
    return {(it.cli, it.model): it for it in record.pairs if it.verdict != "undecided"}
