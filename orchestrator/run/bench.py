"""What all cells of a sweep share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from orchestrator.adapter import GATEWAY_URL, Adapter, Wire
from orchestrator.gateway.contract import ModelGateway
from orchestrator.gateway.local.server import LocalServer
from orchestrator.gateway.settings import GenerationSettings
from orchestrator.plan.plugin import Plugin
from orchestrator.plan.spec import Requirement, Spending
from orchestrator.plan.task import Task
from orchestrator.run.grader import Grader
from orchestrator.run.provenance import Provenance
from orchestrator.sandbox.contract import FoundLimits
from orchestrator.store.record import Isolation
from orchestrator.store.reproduce import CellImage
from scorers.evidence import Price

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor

LOCAL_LOG = "local.log"
"""What the servers of local models say, in the sweep's directory."""

TWO_CONTAINERS = Isolation(containers="separate", egress="none", verifier="fresh")


@dataclass(frozen=True)
class Bench:
    """Built once for a sweep; its cells run in threads.

    `pins` says which image id each name stands for, `tags` which tag that image has, `call_retries` how often
    the gateway tries a failed model call again, `prices` what each model costs or why that is not known,
    `settings` what each model's requests are to ask for, `spending` what one cell may spend; `servers` are
    those of local models. `stacks` are the plugins of each stack. `unasked` are the endpoints, each with a
    model, that are not asked for the usage of a stream: preflight found that they refuse it. `limit_grace_s`
    are the seconds that a CLI has to end by itself once a call was refused since a limit was reached;
    `base_url` is where it finds the gateway. `isolation` is how agent and grader are kept apart, `weaknesses`
    are reasons why no result of this bench is citable, and `found_limits` those in force where cab sets
    none. `cell_images` are the CLIs' images for run-cell, as far as they were built of the pinned ones, None
    where no engine runs the cells; `wires` is what each endpoint speaks.
    """

    sweep_id: str
    grader: Grader
    gateway: ModelGateway
    pins: Mapping[str, str]
    tags: Mapping[str, str]
    adapters: Mapping[str, Adapter]
    adapter_digests: Mapping[str, str]
    tasks: Mapping[str, Task]
    provenance: Provenance
    engine_version: str | None
    concurrency: int
    timeout_s: float | None = None
    call_retries: int = 5
    limit_grace_s: float = 10.0
    servers: tuple[LocalServer, ...] = ()
    prices: Mapping[str, Price | str] = field(default_factory=dict)
    settings: Mapping[str, GenerationSettings] = field(default_factory=dict)
    spending: Spending = field(default_factory=Spending)
    require: tuple[Requirement, ...] = ()
    stacks: Mapping[str, tuple[Plugin, ...]] = field(default_factory=dict)
    unasked: frozenset[tuple[str, str]] = frozenset()
    cell_images: Mapping[str, CellImage] | None = None
    wires: Mapping[str, Wire] = field(default_factory=dict)
    span_exporter: SpanProcessor | None = None
    base_url: str = GATEWAY_URL
    isolation: Isolation = TWO_CONTAINERS
    weaknesses: tuple[str, ...] = ()
    found_limits: FoundLimits | None = None
