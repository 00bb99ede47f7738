"""From what a cell came to, to what is stored of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import scorers
from orchestrator.adapter import Adapter
from orchestrator.plan.expand import PlannedCell
from orchestrator.plan.plugin import Plugin
from orchestrator.plan.stack import would_apply
from orchestrator.run.bench import Bench
from orchestrator.run.cell import CellResult
from orchestrator.run.claim import claim_of
from orchestrator.run.outcome import stored_outcome
from orchestrator.run.stack import Rules
from orchestrator.store.record import (
    Attempt,
    Cab,
    CellRecord,
    Deviation,
    Identity,
    Limits,
    ModelBuild,
    Reproduce,
    Timing,
    UsedPlugin,
)
from orchestrator.store.reproduce import Asked, reproduce
from scorers.evidence import ModelCall


def attempt_of(result: CellResult) -> Attempt:
    """What is kept of a try that is made again."""
    tokens = result.scores.tokens
    return Attempt(
        outcome=stored_outcome(result.outcome),
        timing=Timing.since(result.started_at, result.duration_s),
        input_tokens=tokens.prompt_tokens,
        output_tokens=tokens.completion_tokens,
        cost_usd=tokens.cost_usd,
    )


def record_of(bench: Bench, cell: PlannedCell, result: CellResult, attempts: Sequence[Attempt]) -> CellRecord:
    """The record of a cell that has ended."""
    task, adapter = bench.tasks[cell.key.task], bench.adapters[cell.key.cli]
    build_id = _build_id(result.evidence.calls)
    identity = _identity(bench, cell, result, build_id)
    return CellRecord(
        methodology_version=scorers.METHODOLOGY_VERSION,
        identity=identity,
        outcome=stored_outcome(result.outcome),
        claim=claim_of(
            cell,
            bench.provenance,
            result.scores,
            uses_model=adapter.uses_model,
            unproved=task.unproved,
            build_id=build_id,
            weaknesses=bench.weaknesses,
        ),
        isolation=bench.isolation,
        timing=Timing.since(result.started_at, result.duration_s),
        scores=result.scores.by_axis(),
        attempts=tuple(attempts),
        order_index=cell.order_index,
        replay_of=cell.recorded.cell_id if cell.recorded else None,
        recording=adapter.recording,
        hosts_tried=result.hosts_tried,
        reproduce=_reproduce(bench, cell, identity),
    )


def _reproduce(bench: Bench, cell: PlannedCell, identity: Identity) -> Reproduce | None:
    """The command that runs the cell in one container; None where it ran in one, or in none."""
    if bench.cell_images is None:
        return None
    return reproduce(identity, _asked(bench, cell), bench.cell_images.get(cell.key.cli))


def _asked(bench: Bench, cell: PlannedCell) -> Asked:
    price = bench.prices.get(cell.key.model)
    return Asked(
        wire=bench.wires.get(cell.endpoint) if cell.endpoint else None,
        price=None if isinstance(price, str) else price,
        timeout_s=bench.timeout_s,
        require_tokens="tokens.wire" in bench.require,
    )


def _identity(bench: Bench, cell: PlannedCell, result: CellResult, build_id: str | None) -> Identity:
    task, adapter, pin = (
        bench.tasks[cell.key.task],
        bench.adapters[cell.key.cli],
        bench.pins.get(cell.key.cli),
    )
    limits, provenance, end = bench.grader.limits, bench.provenance, result.evidence.end
    found = bench.found_limits or limits
    plugins = bench.stacks.get(cell.key.stack, ())
    applied = would_apply(adapter, plugins)
    skipped = dict(applied.skipped)
    return Identity(
        cell_id=cell.cell_id,
        sweep_id=bench.sweep_id,
        cli=cell.key.cli,
        cli_version=adapter.version,
        model=cell.key.model,
        task=cell.key.task,
        run=cell.key.run,
        stack=cell.key.stack,
        condition=cell.key.condition,
        behaviour_mode="stack" if plugins else "factory",
        rules_file=Rules.of(adapter, plugins).read_from(task.workdir),
        plugins=tuple(
            UsedPlugin(
                name=it.name,
                kind=it.kind,
                digest=it.digest,
                skipped=skipped.get(it.name),
                offered=_offered(it, result, adapter) if it.name not in skipped else None,
            )
            for it in plugins
        ),
        plugin_env_keys=applied.env_keys,
        plugin_args=applied.extra_args,
        deviations=tuple(Deviation(what=item.what, reason=item.reason) for item in adapter.deviations),
        container_image=bench.tags.get(cell.key.cli),
        image_digest=pin,
        digest_kind="image_id" if pin else None,
        verifier_digest=bench.grader.base if task.graded else None,
        task_content_hash=task.content_hash,
        adapter_digest=bench.adapter_digests[cell.key.cli],
        cab=Cab(version=provenance.version, commit=provenance.commit, dirty=provenance.dirty),
        model_build_id=build_id,
        model_builds=_builds(result.evidence.calls),
        generation_settings=_distinct(call.settings for call in result.evidence.calls),
        settings_set=_settings_set(bench, cell),
        settings_overridden=_distinct(
            _overridden(call) for call in result.evidence.calls if _overridden(call)
        ),
        platform=provenance.platform,
        engine_version=bench.engine_version,
        limits=Limits(
            memory_bytes=found.memory_bytes,
            cpus=found.cpus,
            pids=found.pids,
            tmp_bytes=found.tmp_bytes,
            scratch_bytes=limits.scratch_bytes if result.bounded else None,
            scratch_inodes=limits.scratch_inodes if result.bounded else None,
            timeout_s=bench.timeout_s or task.agent_timeout_s,
            max_calls=task.max_turns,
            max_tokens=bench.spending.tokens,
            max_usd=bench.spending.usd,
        ),
        concurrency=bench.concurrency,
        machine_load=result.load,
        exit_code=end.exit_code if end else None,
    )


def _offered(plugin: Plugin, result: CellResult, adapter: Adapter) -> bool | None:
    """Whether a tool of an MCP server reached the model; None of no server, where no model was asked, and
    where none was named by a CLI that need not name it.
    """
    if plugin.kind != "mcp" or not result.evidence.calls or adapter.mcp is None:
        return None
    return True if plugin.name in result.offered else False if adapter.mcp.named else None


def _build_id(calls: Sequence[ModelCall]) -> str | None:
    """The model as the endpoint named it; None when it named none, or several."""
    named = {call.reported_model for call in calls if call.reported_model}
    return named.pop() if len(named) == 1 else None


def _builds(calls: Sequence[ModelCall]) -> tuple[ModelBuild, ...]:
    """Each distinct build, in order of its first answer. An answer that does not state a fingerprint, as a
    cut one, tells no other build than one of the same model that does.
    """
    stated = dict.fromkeys((call.reported_model, call.fingerprint) for call in calls)
    marked = {model for model, fingerprint in stated if fingerprint}
    return tuple(
        ModelBuild(model=model, fingerprint=fingerprint)
        for model, fingerprint in stated
        if fingerprint or (model and model not in marked)
    )


def _settings_set(bench: Bench, cell: PlannedCell) -> dict[str, Any]:
    found = bench.settings.get(cell.key.model)
    return found.given() if found else {}


def _overridden(call: ModelCall) -> dict[str, Any]:
    """The CLI's own settings that others went upstream in place of."""
    return {name: value for name, value in call.settings_before.items() if value is not None}


def _distinct(found: Iterable[dict[str, Any]]) -> tuple[dict[str, Any], ...]:
    """Each distinct set of settings, in order of first use."""
    distinct: list[dict[str, Any]] = []
    for one in found:
        if one not in distinct:
            distinct.append(one)
    return tuple(distinct)
