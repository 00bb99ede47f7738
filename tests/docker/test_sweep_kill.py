"""A sweep that is killed at any moment leaves nothing running, loses no finished cell and runs none twice."""

from __future__ import annotations

import os
import random
import signal
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.docker.command import HOSTED, Cab, Endpoint, Running, completion, serving, wait_for

GONE_S = 60.0
"""Within so many seconds of the runner's death its containers are gone by themselves."""


@pytest.fixture
def cab() -> Iterator[Cab]:
    with Cab.own() as cab:
        yield cab


@pytest.fixture
def held() -> Iterator[Endpoint]:
    """An endpoint that answers once it is released: its cells are under way until then."""
    with serving(lambda *_: (200, completion()), held=True) as endpoint:
        yield endpoint


@pytest.fixture
def probing(cab: Cab, held: Endpoint) -> Cab:
    cab.add_probe()
    cab.env |= {"CAB_ENDPOINT": held.url, "CAB_KEY": "a-key-of-no-value"}
    return cab


def probes(cab: Cab, runs: int = 4) -> Path:
    return cab.spec(clis=["probe"], runs=runs, concurrency=2, **HOSTED)


def at_random(moment: random.Random) -> Callable[[Cab], object]:
    seconds = moment.uniform(0, 1.5)
    begin = time.monotonic()
    return lambda _: time.monotonic() - begin > seconds


def committing(cab: Cab) -> object:
    """A record is written, or being written, in a cell that is not in its place yet."""
    return [*cab.sweep_dir.glob(".staging/*/.cell.json.tmp"), *cab.sweep_dir.glob(".staging/*/cell.json")]


def containers_run(cab: Cab) -> object:
    return cab.pids_of_init()


def indexing(before: int) -> Callable[[Cab], object]:
    return lambda cab: len(cab.index()) > before


def kill_at(running: Running, cab: Cab, moment: Callable[[Cab], object]) -> None:
    """Kill the runner at a moment, and see that its containers and its gateway follow it by themselves.

    A container that was created and not started is dead already; the next runner removes it.
    """
    wait_for(lambda: moment(cab) or running.process.poll() is not None, "the moment", every_s=0.0005)
    running.signal(signal.SIGKILL)
    running.end(-signal.SIGKILL)
    wait_for(lambda: not cab.containers(started=True), "containers to go", GONE_S)
    wait_for(lambda: not cab.gateways(), "the gateway to go", GONE_S)


@pytest.mark.timeout(600)
def test_killed_again_and_again_every_cell_is_there_once(cab: Cab) -> None:
    spec = cab.spec(clis=["noop", "oracle"], runs=5, concurrency=2, limits={"scratch": "64MiB"})
    moments = random.Random(20261127)
    kinds = ["random", "containers", "committing", "indexing", "random", "committing"]
    for number, kind in enumerate(kinds):
        running = cab.sweep("resume") if number % 2 else cab.sweep("run", spec)
        running.says("cells to run")
        kill_at(
            running,
            cab,
            {
                "random": at_random(moments),
                "containers": containers_run,
                "committing": committing,
                "indexing": indexing(len(cab.index())),
            }[kind],
        )
    before = cab.records()
    assert len(before) < len(cab.stored()["order"]), "the sweep was never interrupted in its middle"

    cab.sweep("resume").end(0)
    cab.assert_each_cell_once()
    after = cab.records()
    assert {cell_id: after[cell_id] for cell_id in before} == before
    passes = {record["identity"]["cli"]: record["scores"]["pass_rate"]["pass"] for record in after.values()}
    assert passes == {"noop": 0, "oracle": 1}
    assert cab.left() == {}
    cab.sweep("run", spec, DOCKER_HOST="unix:///nonexistent/docker.sock").end(0)
    assert cab.records() == after


def test_containers_of_a_dead_runner_go_by_themselves(probing: Cab, held: Endpoint) -> None:
    running = probing.sweep("run", probes(probing))
    held.wait_for_calls(2)
    assert len(probing.containers()) == 2
    running.signal(signal.SIGKILL)
    killed = time.monotonic()
    running.end(-signal.SIGKILL)
    wait_for(lambda: not probing.containers(), "containers to go", GONE_S)
    assert time.monotonic() - killed < GONE_S
    wait_for(lambda: not probing.gateways(), "the gateway to go", GONE_S)
    assert probing.left().keys() <= {"mounts", "loop devices", "scratch"}
    assert probing.records() == {}

    held.released.set()
    probing.sweep("resume").end(0)
    probing.assert_each_cell_once()
    assert probing.left() == {}


def test_a_dead_gateway_stops_the_sweep_with_one_line(probing: Cab, held: Endpoint) -> None:
    running = probing.sweep("run", probes(probing))
    held.wait_for_calls(2)
    (gateway,) = probing.gateways()
    os.kill(gateway, signal.SIGKILL)
    done = running.end(2)
    (line,) = [line for line in done.err.splitlines() if line.startswith("cab: ")]
    assert line.startswith(f"cab: {probing.sweep_dir}/gateway.log: the model gateway died (")
    assert line.endswith(f"sweep resume {probing.sweep_id})")
    assert done.out == ""
    assert {record["outcome"]["cause"] for record in probing.records().values()} == {"gateway"}
    assert probing.left() == {}

    held.released.set()
    probing.sweep("resume").end(0)
    outcomes = {record["outcome"]["name"] for record in probing.records().values()}
    assert outcomes == {"completed"}
    # Cells that did not count were replaced, and the last line of a cell holds.
    assert {entry["cell_id"]: entry["outcome"] for entry in probing.index()} == dict.fromkeys(
        probing.records(), "completed"
    )


def test_a_container_that_is_killed_from_outside_is_tried_again(probing: Cab, held: Endpoint) -> None:
    running = probing.sweep("run", probes(probing, runs=1))
    held.wait_for_calls(1)
    (init,) = probing.pids_of_init()
    os.kill(init, signal.SIGKILL)
    held.wait_for_calls(2)
    held.released.set()
    running.end(0)
    (record,) = probing.records().values()
    assert record["outcome"]["name"] == "completed"
    assert [(tried["outcome"]["name"], tried["outcome"]["cause"]) for tried in record["attempts"]] == [
        ("infra_error", "engine")
    ]
    assert probing.left() == {}


def test_one_runner_at_a_time(probing: Cab, held: Endpoint) -> None:
    spec = probes(probing, runs=2)
    running = probing.sweep("run", spec)
    held.wait_for_calls(2)
    for verb, args in (("run", (spec,)), ("resume", ())):
        done = probing.sweep(verb, *args).end(2)
        assert f"process {running.process.pid} is running this sweep" in done.err
        assert done.out == ""
    assert len(probing.containers()) == 2

    status = probing.sweep("status", "--json").end(0).data
    assert (status["planned"], status["finished"]) == (2, 0)
    held.released.set()
    running.end(0)
    probing.assert_each_cell_once()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_once_cells_under_way_are_stored(
    probing: Cab, held: Endpoint, number: signal.Signals
) -> None:
    running = probing.sweep("run", probes(probing))
    held.wait_for_calls(2)
    running.signal(number)
    running.says("finishing the cells under way")
    held.released.set()
    done = running.end(130)
    assert "not finished: 2 of 4 cells" in done.out
    assert f"sweep resume {probing.sweep_id}" in done.out
    first = probing.records()
    assert len(first) == len(probing.index()) == 2
    assert probing.left() == {}

    probing.sweep("resume").end(0)
    probing.assert_each_cell_once()
    assert {cell_id: probing.records()[cell_id] for cell_id in first} == first


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_twice_nothing_under_way_is_stored(
    probing: Cab, held: Endpoint, number: signal.Signals
) -> None:
    running = probing.sweep("run", probes(probing))
    held.wait_for_calls(2)
    running.signal(number)
    running.says("finishing the cells under way")
    begin = time.monotonic()
    running.signal(number)
    running.end(130)
    assert time.monotonic() - begin < GONE_S
    assert probing.records() == {}
    assert list((probing.sweep_dir / ".staging").iterdir()) == []
    assert probing.left() == {}

    held.released.set()
    probing.sweep("resume").end(0)
    probing.assert_each_cell_once()


def test_interrupted_before_a_cell_runs(cab: Cab) -> None:
    """The engine does not answer: its socket is there, and nobody reads it."""
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(cab.root / "silent.sock"))
        silent.listen()
        running = cab.sweep("run", cab.spec(clis=["noop"]), DOCKER_HOST=f"unix://{cab.root}/silent.sock")
        connection, _ = silent.accept()
        running.signal(signal.SIGINT)
        done = running.end(130)
        connection.close()
    assert done.out == ""
    assert not cab.sweep_dir.exists()
