"""The gateway as a thread: the same calls and faults as the process, on loopback."""

from __future__ import annotations

import json
import socket
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from orchestrator.errors import CellFault, EnvironmentFault
from orchestrator.gateway.contract import CellRoute, Endpoint, Script
from orchestrator.gateway.inside import InsideGateway

CREDENTIAL = "cell-credential-42"


def route(tmp_path: Path, **changes: Any) -> CellRoute:
    asked: dict[str, Any] = {
        "cell_id": "cell-1",
        "socket": tmp_path / "model.sock",
        "socket_owner": (0, 0),
        "credential": CREDENTIAL,
        "model": "m",
        "script": Script(kind="idle"),
        "calls_path": tmp_path / "calls.jsonl",
        "wire_path": tmp_path / "wire.jsonl.gz",
    }
    return CellRoute(**(asked | changes))


def ask(gateway: InsideGateway, credential: str = CREDENTIAL) -> int:
    """The status of one call."""
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hello"}]}).encode()
    headers = {"Authorization": f"Bearer {credential}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{gateway.base_url}/v1/chat/completions", body, headers)
    try:
        with urllib.request.urlopen(request, timeout=20) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def test_it_serves_an_open_cell_and_no_other(tmp_path: Path) -> None:
    with InsideGateway(port=0) as gateway:
        gateway.open_cell(route(tmp_path))
        assert (ask(gateway), ask(gateway, "another")) == (200, 401)
        said = gateway.close_cell("cell-1")
        assert (said["calls"], said["refused"]) == (2, 1)
        with pytest.raises(urllib.error.URLError, match="refused"):
            ask(gateway)
    assert len((tmp_path / "calls.jsonl").read_text().splitlines()) == 2
    assert not (tmp_path / "model.sock").exists()


def test_its_port_is_its_own_from_the_start_and_again_for_the_next_cell(tmp_path: Path) -> None:
    with InsideGateway(port=0) as gateway:
        with pytest.raises(EnvironmentFault, match=str(gateway.port)):
            InsideGateway(port=gateway.port)
        for name in ("cell-1", "cell-2"):
            (tmp_path / name).mkdir()
            gateway.open_cell(route(tmp_path / name, cell_id=name))
            assert ask(gateway) == 200
            gateway.close_cell(name)


def test_a_limit_is_told(tmp_path: Path) -> None:
    told: list[str] = []
    with InsideGateway(port=0) as gateway:
        gateway.open_cell(route(tmp_path, max_calls=1), on_limit=lambda: told.append("limit"))
        assert ask(gateway) == 200
        assert told == []
        assert ask(gateway) != 200
        assert told == ["limit"]


def test_a_cell_that_makes_no_sense_is_a_fault_of_the_gateway(tmp_path: Path) -> None:
    with InsideGateway([Endpoint(name="e", base_url="http://127.0.0.1:9", key="k")], port=0) as gateway:
        with pytest.raises(CellFault, match="unknown endpoint") as fault:
            gateway.open_cell(route(tmp_path, script=None, endpoint="other"))
        assert fault.value.cause == "gateway"
        gateway.open_cell(route(tmp_path, script=None, endpoint="e", max_retries=0))
        assert gateway.windows() == []


def test_after_its_end_it_answers_nobody(tmp_path: Path) -> None:
    gateway = InsideGateway(port=0)
    assert gateway.alive
    gateway.open_cell(route(tmp_path))
    gateway.stop()
    gateway.stop()
    assert not gateway.alive
    with pytest.raises(CellFault, match="is dead"):
        gateway.close_cell("cell-1")
    with socket.socket() as free:
        free.bind(("127.0.0.1", gateway.port))


def test_its_sudden_death_is_told(tmp_path: Path) -> None:
    gateway = InsideGateway(port=0)
    faults: list[CellFault] = []
    gateway.open_cell(route(tmp_path), on_fault=faults.append)
    gateway._loop.call_soon_threadsafe(gateway._loop.stop)
    gateway._thread.join()
    assert [fault.cause for fault in faults] == ["gateway"]
    assert not gateway.alive
