"""What a sweep prints and how it ends: results on stdout, all else on stderr, exit codes as documented."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docker.command import HOSTED, PYTHON_TASK, Cab, completion, serving
from tests.docker.partition import wrong_cells

NO_ENGINE = {"DOCKER_HOST": "unix:///nonexistent/docker.sock"}
REFUSAL_TASK = "integrity/unsolvable-refusal"


@pytest.fixture
def cab() -> Iterator[Cab]:
    with Cab.own() as cab:
        yield cab


@pytest.fixture(scope="module")
def finished() -> Iterator[tuple[Cab, Path]]:
    """A sweep that has ended, and its file."""
    with Cab.own() as cab:
        spec = cab.spec(clis=["noop", "oracle"], tasks=[PYTHON_TASK, REFUSAL_TASK], concurrency=2)
        done = cab.sweep("run", spec, "--json").end(0)
        assert done.data["planned"] == done.data["finished"] == 4
        assert "4 cells to run" in done.err
        yield cab, spec


def test_a_second_run_does_nothing_and_needs_no_engine(finished: tuple[Cab, Path]) -> None:
    cab, spec = finished
    before = cab.index()
    for again in ("run", spec), ("resume",):
        begin = time.monotonic()
        done = cab.sweep(*again, "--json", **NO_ENGINE).end(0)
        assert time.monotonic() - begin < 60
        assert "4 cells finished, nothing to do" in done.err
        assert done.data["finished"] == 4
    assert cab.index() == before


def test_tables_go_to_stdout_and_nothing_else_does(finished: tuple[Cab, Path]) -> None:
    cab, spec = finished
    done = cab.sweep("status").end(0)
    assert done.err == ""
    assert cab.sweep("run", spec, **NO_ENGINE).end(0).out == done.out
    assert done.out.startswith(f"{cab.sweep_id}: 4 of 4 cells")


def test_the_parts_of_each_cells_time_add_up(finished: tuple[Cab, Path]) -> None:
    assert wrong_cells(finished[0].sweep_dir) == {}


def test_json_is_one_document(finished: tuple[Cab, Path]) -> None:
    cab, spec = finished
    cell = next(iter(cab.records()))
    status = cab.sweep("status", "--json", **NO_ENGINE).end(0)
    assert {entry["cell_id"] for entry in status.data["cells"]} == set(cab.records())
    plan = cab.start("sweep", "plan", spec, "--json", **NO_ENGINE).end(0)
    assert len(plan.data["cells"]) == 4
    shown = cab.start("cell", "show", cell, "-r", cab.results, "--json", **NO_ENGINE).end(0)
    assert isinstance(shown.data, dict)
    assert status.err == plan.err == shown.err == ""


def test_scoring_again_needs_no_engine_and_gives_the_same(finished: tuple[Cab, Path]) -> None:
    cab, _ = finished
    running = {
        cell: cab.start("cell", "score", cell, "-r", cab.results, "--json", **NO_ENGINE)
        for cell in cab.records()
    }
    for cell, command in running.items():
        scored = command.end(0).data
        assert scored["differences"] == {}
        assert scored["scores"] == cab.records()[cell]["scores"]


def test_a_cell_that_failed_through_no_fault_of_the_agent(cab: Cab) -> None:
    """Exit code 1; a resume runs it again, and its record takes the place of the failed one."""
    cab.add_probe()
    spec = cab.spec(clis=["probe"], retries=0, **HOSTED)
    refused = json.dumps({"error": {"message": "no such key", "code": "invalid_api_key"}}).encode()
    good: list[bool] = []
    with serving(lambda *_: (200, completion()) if good else (401, refused)) as endpoint:
        cab.env |= {"CAB_ENDPOINT": endpoint.url, "CAB_KEY": "a-key-of-no-value"}
        done = cab.sweep("run", spec, "--json").end(1)
        (failed,) = done.data["cells"]
        assert (failed["outcome"], failed["cause"], failed["counted"]) == (
            "infra_error",
            "key_refused",
            False,
        )
        assert failed["passed"] is None
        good.append(True)
        (cell,) = cab.sweep("run", spec, "--json").end(0).data["cells"]
    assert (cell["cell_id"], cell["outcome"]) == (failed["cell_id"], "completed")
    assert len(cab.records()) == 1
    assert cab.left() == {}


def test_an_endpoint_that_is_gone_on_a_resume(cab: Cab) -> None:
    """Its cells are still part of the sweep: it is refused, not silently shortened."""
    cab.add_probe()
    spec = cab.spec(clis=["probe"], retries=0, **HOSTED)
    with serving(lambda *_: (401, b"{}")) as endpoint:
        cab.sweep("run", spec, CAB_ENDPOINT=endpoint.url, CAB_KEY="a-key-of-no-value").end(1)
        done = cab.sweep("resume", CAB_ENDPOINT=endpoint.url).end(2)
    (line,) = done.err.splitlines()
    assert "CAB_KEY is not set" in line


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"clis": ["noop"], "run": 3}, ["unknown key 'run'", "did you mean 'runs'?", ".yaml:1:"]),
        ({"clis": ["nop"]}, ["unknown name 'nop'", "did you mean 'noop'?", ".yaml:1:"]),
        ({"clis": ["noop"], "tasks": ["polyglot/cobol"]}, ["polyglot/cobol"]),
        ({"clis": ["noop"], "endpoints": {"x": {"base_url": "http://h", "key": "sk-1234"}}}, ["{env: NAME}"]),
    ],
)
def test_bad_input(cab: Cab, fields: dict[str, object], words: list[str]) -> None:
    done = cab.sweep("run", cab.spec(**fields)).end(2)
    (line,) = done.err.splitlines()
    assert all(word in line for word in words), line
    assert "sk-1234" not in line
    assert done.out == ""
    assert not cab.results.exists()


def test_no_engine_leaves_no_sweep(cab: Cab) -> None:
    done = cab.sweep("run", cab.spec(clis=["noop"]), **NO_ENGINE).end(2)
    (line,) = done.err.splitlines()
    assert "no Docker engine answers" in line
    assert "DOCKER_HOST" in line
    assert done.out == ""
    assert not cab.results.exists()


def test_no_permission_for_the_engine(cab: Cab) -> None:
    path = cab.root / "closed.sock"
    with socket.socket(socket.AF_UNIX) as closed:
        closed.bind(str(path))
        path.chmod(0)
        # Root may connect to what is closed to all, unless it gives that power up.
        powerless = ("setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all")
        prefix = powerless if os.geteuid() == 0 else ()
        running = cab.sweep("run", cab.spec(clis=["noop"]), prefix=prefix, DOCKER_HOST=f"unix://{path}")
        done = running.end(2)
    (line,) = done.err.splitlines()
    assert "no permission to use the Docker engine" in line
    assert not cab.results.exists()


def test_results_of_a_newer_cab(finished: tuple[Cab, Path], cab: Cab) -> None:
    older, spec = finished
    subprocess.run(["cp", "-r", older.sweep_dir, cab.root / older.sweep_id], check=True)
    sweep = cab.root / older.sweep_id / "sweep.json"
    sweep.write_text(json.dumps(older.stored() | {"schema_version": 99}))
    for command in (
        ["status", older.sweep_id],
        ["resume", older.sweep_id],
        ["run", spec, "--id", older.sweep_id],
    ):
        done = cab.start("sweep", *command, "-r", cab.root).end(2)
        (line,) = done.err.splitlines()
        assert str(sweep) in line
        assert "99" in line
        assert done.out == ""


def test_no_such_sweep(cab: Cab) -> None:
    for verb in ("status", "resume"):
        done = cab.sweep(verb).end(2)
        assert "there is no such sweep" in done.err
        assert done.out == ""
