"""What a sweep runs on: the engine with the pinned images, scratch, and the gateway.

Importing this imports the engine's client and the tracing SDK: it is imported when there is something to run.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Mapping
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING

from orchestrator.adapter import Adapter
from orchestrator.fleet import Fleet
from orchestrator.gateway.client import Gateway
from orchestrator.gateway.contract import Endpoint
from orchestrator.gateway.local.server import LocalServer
from orchestrator.paths import IMAGES_LOCK, INIT_BINARY
from orchestrator.plan.spec import SweepSpec
from orchestrator.run.bench import LOCAL_LOG, Bench
from orchestrator.run.grader import OWNER_LABEL, Grader
from orchestrator.run.pins import BASE, cell_images, check_images, resolve, tags_of, with_late
from orchestrator.run.provenance import Provenance
from orchestrator.sandbox.docker import DockerSandbox
from orchestrator.sandbox.images import known_lock
from orchestrator.sandbox.scratch import ScratchRoot
from orchestrator.store.cells import CellStore
from orchestrator.trace.otlp import OtlpExport, wanted

if TYPE_CHECKING:
    from orchestrator.run.start import Matrix


def pins_now(adapters: Mapping[str, Adapter], fleet: Fleet) -> dict[str, str]:
    """The image ids that images.lock has for these CLIs and for the verifier.

    Raises EnvironmentFault for images that are not there, or told another version than their adapter's.
    """
    return resolve(known_lock(IMAGES_LOCK), adapters, INIT_BINARY, fleet)


def pins_of(pins: Mapping[str, str], adapters: Mapping[str, Adapter], fleet: Fleet) -> dict[str, str]:
    """The pins of a sweep, with those of the CLIs among these that it has none of yet.

    Raises EnvironmentFault as `pins_now` does, and PinMismatch where an image stands on another base.
    """
    return with_late(pins, known_lock(IMAGES_LOCK), adapters, INIT_BINARY, fleet)


def start_engine(
    stack: ExitStack, pins: Mapping[str, str], clis: Collection[str], fleet: Fleet
) -> DockerSandbox:
    """The engine, which has the images that cells of these CLIs need.

    Raises EnvironmentFault and PinMismatch.
    """
    sandbox = DockerSandbox(INIT_BINARY)
    stack.callback(sandbox.close)
    check_images(sandbox, {name: pins[name] for name in sorted({BASE, *clis})}, fleet)
    return sandbox


def start_bench(
    stack: ExitStack,
    matrix: Matrix,
    store: CellStore,
    pins: Mapping[str, str],
    scratch: ScratchRoot,
    sandbox: DockerSandbox,
    models: Collection[str] = (),
) -> Bench:
    """Remove what a dead runner left of the sweep, and start the gateway and those of `models` that are
    local; `stack` ends all of it.
    """
    owner = hashlib.sha256(bytes(store.root.resolve())).hexdigest()[:16]
    grader = Grader(sandbox, scratch, pins[BASE], matrix.sweep_id, owner, matrix.spec.limits.resolve())
    sandbox.remove_leftovers({OWNER_LABEL: owner})
    sandbox.remove_stillborn("cab=1")
    stack.enter_context(closing(grader))
    servers = tuple(
        stack.enter_context(LocalServer.start(model, log=store.root / LOCAL_LOG))
        for name, model in matrix.local.items()
        if name in models
    )
    endpoints = [*_endpoints(matrix.spec), *(server.endpoint for server in servers)]
    gateway = stack.enter_context(Gateway.start(endpoints, log=store.root / "gateway.log"))
    exporter = None
    if wanted(os.environ):
        exporter = stack.enter_context(closing(OtlpExport()))
    return Bench(
        sweep_id=matrix.sweep_id,
        grader=grader,
        gateway=gateway,
        servers=servers,
        pins=pins,
        tags=tags_of(pins, IMAGES_LOCK),
        adapters=matrix.adapters,
        adapter_digests=matrix.adapter_digests,
        tasks=matrix.tasks,
        provenance=Provenance.read(),
        engine_version=sandbox.engine_version,
        concurrency=matrix.spec.concurrency,
        timeout_s=matrix.spec.timeout_s,
        prices=store.sweep().prices,
        settings={model.id: model.settings for model in matrix.spec.models},
        spending=matrix.spec.limits,
        require=matrix.spec.require,
        stacks=matrix.stacks,
        cell_images=cell_images(pins, IMAGES_LOCK),
        wires={endpoint.name: endpoint.wire for endpoint in endpoints},
        span_exporter=exporter.processor if exporter else None,
    )


def _endpoints(spec: SweepSpec) -> list[Endpoint]:
    """The endpoints whose variables are set; their keys go to the gateway alone."""
    endpoints = []
    for name, endpoint in spec.endpoints.items():
        if all(os.environ.get(variable) for variable in endpoint.variables()):
            url, key = endpoint.base_url, endpoint.key
            endpoints.append(
                Endpoint(
                    name=name,
                    base_url=url.url or os.environ[url.env or ""],
                    key=os.environ[key.env] if key else "",
                    wire=endpoint.wire,
                    concurrency=endpoint.concurrency,
                )
            )
    return endpoints
