"""What ran and when, as names and values; what is not known says why."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from orchestrator.report.text import number, plural
from orchestrator.report.timeline import PART_NAMES
from orchestrator.run.outcome import with_cause
from orchestrator.site.cell.bounded import line
from orchestrator.store.names import NO_STACK
from orchestrator.store.record import CellRecord, Identity, Limits

NOT_ANSWERED = "no model answered"
NOT_PUBLISHED = "the published file does not tell it"
MAX_SETTINGS = 8
MAX_ATTEMPTS = 20


class Fact(NamedTuple):
    """`value` is None where it is not known, and `reason` says why. `mono`: a digest, a path, a command."""

    name: str
    value: str | None
    reason: str = ""
    mono: bool = False


@dataclass(frozen=True)
class PartOfTime:
    """A part of the cell's time; `seconds` and `share` are None where it was not measured, for `reason`."""

    name: str
    seconds: float | None
    share: float | None
    reason: str


def identity_facts(record: CellRecord) -> list[Fact]:
    """The identity of a run, all of it that the record has."""
    identity = record.identity
    told = record.imported.reasons if record.imported else {}
    not_told = NOT_PUBLISHED if record.imported else ""

    def fact(name: str, field: str, otherwise: str = "", *, mono: bool = False) -> Fact:
        value = getattr(identity, field)
        if value is None:
            return Fact(name, None, line(told.get(field) or not_told or otherwise or "not recorded"))
        shown = number(value, 2) if isinstance(value, float) else str(value)
        return Fact(name, line(shown), mono=mono)

    facts = [
        Fact("cell_id", line(identity.cell_id), mono=True),
        Fact("sweep_id", line(identity.sweep_id), mono=True),
        fact("CLI version", "cli_version"),
        fact("container_image", "container_image", "no container of cab's", mono=True),
        fact("image_digest", "image_digest", "no container of cab's", mono=True),
        *_digest_kind(identity),
        fact("verifier_digest", "verifier_digest", "no container of cab's", mono=True),
        fact("task_content_hash", "task_content_hash", mono=True),
        fact("adapter_digest", "adapter_digest", mono=True),
        fact("model_build_id", "model_build_id", NOT_ANSWERED, mono=True),
        *_builds(identity),
        fact("exit_code (the agent's)", "exit_code", "a signal ended it, or it never ran"),
        fact("behaviour_mode", "behaviour_mode"),
        Fact("stack", line(identity.stack)),
    ]
    if identity.condition is not None:
        facts.append(Fact("condition", line(identity.condition)))
    if record.replay_of is not None:
        facts.append(Fact("replay of", line(record.replay_of), mono=True))
    facts += [
        *_settings(identity, not_told or NOT_ANSWERED),
        fact("rules file", "rules_file", "the CLI found none"),
        *_isolation(record, told),
        *_limits(identity.limits, told),
        fact("platform", "platform"),
        fact("engine_version", "engine_version", "no engine"),
        fact("concurrency", "concurrency"),
        fact("machine load at the start", "machine_load"),
        Fact("place in the sweep's order", str(record.order_index + 1)),
    ]
    return facts


def timing_facts(record: CellRecord) -> list[Fact]:
    """When a cell began and ended: UTC to the microsecond, and the monotonic time between."""
    timing = record.timing
    return [
        Fact("started_at", f"{timing.started_at:%Y-%m-%d %H:%M:%S.%f} UTC"),
        Fact("ended_at", f"{timing.ended_at:%Y-%m-%d %H:%M:%S.%f} UTC"),
        Fact("duration", f"{timing.duration_s:.2f} s"),
        *_tokens(record.scores.get("tokens") or {}),
        *(
            Fact(
                f"earlier try {at}",
                f"{with_cause(one.outcome.name, one.outcome.cause)}, {one.timing.duration_s:.1f} s",
            )
            for at, one in enumerate(record.attempts[:MAX_ATTEMPTS], start=1)
        ),
    ]


def parts_of_time(latency: Mapping[str, Any]) -> list[PartOfTime]:
    """Where the time went: the parts that add up to the whole; none where that was not measured."""
    parts, total = latency.get("partition") or {}, latency.get("total_ms")
    reasons = parts.get("reasons") or {}
    found = []
    for name, ms in parts.items():
        if name == "reasons" or (ms is None and name == "queue"):
            continue
        share = ms / total if ms is not None and total else None
        seconds = None if ms is None else ms / 1000
        why = line(str(reasons.get(name, "not measured")))
        found.append(PartOfTime(PART_NAMES.get(name, line(name, 40)), seconds, share, why))
    return found


def _digest_kind(identity: Identity) -> Iterator[Fact]:
    kinds = {
        "manifest": "the manifest at a registry, which docker pull takes",
        "image_id": "the image's id where it was built; it was not pushed when the cell ran",
    }
    if identity.digest_kind is not None:
        yield Fact("image_digest is", kinds[identity.digest_kind])


def _builds(identity: Identity) -> Iterator[Fact]:
    if identity.model_builds:
        yield Fact("builds that answered", line("; ".join(map(str, identity.model_builds))), mono=True)


def _settings(identity: Identity, otherwise: str) -> Iterator[Fact]:
    asked = identity.generation_settings
    said = [json.dumps(one) if one else "none stated on the wire" for one in asked[:MAX_SETTINGS]]
    if len(asked) > MAX_SETTINGS:
        said.append(f"{len(asked) - MAX_SETTINGS} more in the record")
    yield Fact("generation settings", line("; ".join(said)) if said else None, otherwise, mono=True)
    if identity.settings_set:
        yield Fact("set by the sweep", line(json.dumps(identity.settings_set)), mono=True)
    if identity.settings_overridden:
        yield Fact("in place of", line(json.dumps(identity.settings_overridden)), mono=True)
    if identity.stack != NO_STACK and identity.plugin_env_keys:
        yield Fact("variables of the stack", line(" ".join(identity.plugin_env_keys)), mono=True)
    if identity.stack != NO_STACK and identity.plugin_args:
        yield Fact("arguments of the stack", line(" ".join(identity.plugin_args)), mono=True)


def _isolation(record: CellRecord, told: Mapping[str, str]) -> Iterator[Fact]:
    found = record.isolation
    if found is None:
        yield Fact("isolation", None, line(told.get("isolation", "not known")))
        return
    where = {
        "separate": "agent and grader each in a container",
        "single-container": "agent and grader in one container",
        "none": "no container",
    }
    yield Fact("isolation", f"{where[found.containers]}; network: {found.egress}; verifier: {found.verifier}")


def _limits(limits: Limits | None, told: Mapping[str, str]) -> Iterator[Fact]:
    if limits is None:
        yield Fact("limits", None, line(told.get("limits", "not known")))
        return
    gib = 1 << 30
    said = [f"{number(limits.timeout_s, 1)} s"]
    said += [] if limits.memory_bytes is None else [f"{number(limits.memory_bytes / gib, 1)} GiB of memory"]
    said += [] if limits.cpus is None else [f"{number(limits.cpus, 2)} CPUs"]
    said += [] if limits.pids is None else [plural(limits.pids, "process", "processes")]
    said += [] if limits.max_calls is None else [plural(limits.max_calls, "model call")]
    said += [] if limits.max_tokens is None else [plural(limits.max_tokens, "token")]
    said += [] if limits.max_usd is None else [f"${limits.max_usd}"]
    yield Fact("limits", ", ".join(said))


def _tokens(tokens: Mapping[str, Any]) -> Iterator[Fact]:
    """As the published page has them: the two sums and where they were counted."""
    reasons = tokens.get("reasons") or {}
    for name in ("prompt_tokens", "completion_tokens"):
        value = tokens.get(name)
        yield Fact(name, None if value is None else str(value), line(str(reasons.get(name, "not recorded"))))
    if tokens.get("source"):
        yield Fact("tokens source", "counted on the wire by the gateway")
