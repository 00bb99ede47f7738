"""A model that nobody scripted: aider asks it, the wire counts it, and its server ends with cab.

Whether so small a model solves the task is not what is tested.
"""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from command import PYTHON_TASK, REPO, Cab, wait_for

from orchestrator.gateway.local.registry import LocalModel, Registry

pytestmark = pytest.mark.xdist_group("local-model")

NAME = "coder"


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Registry:
    """A registry that has the model; the test is skipped where there is none to be had."""
    if importlib.util.find_spec("xllamacpp") is None:
        pytest.skip("xllamacpp is not installed: requirements-local.lock")
    fetch = [sys.executable, REPO / "scripts" / "fetch_model.py"]
    done = subprocess.run(fetch, check=False, capture_output=True, text=True)
    if done.returncode == 1:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    registry = Registry(tmp_path_factory.mktemp("models"))
    registry.add(Path(done.stdout.strip()), name=NAME)
    return registry


@pytest.fixture
def cab(models: Registry) -> Iterator[Cab]:
    with Cab.own() as cab:
        cab.env["CAB_MODELS"] = str(models.root)
        yield cab


def servers(log: Path) -> list[int]:
    """The processes whose stderr is this file."""
    found = []
    for link in Path("/proc").glob("[0-9]*/fd/2"):
        try:
            if os.readlink(link) == str(log):
                found.append(int(link.parts[2]))
        except OSError:  # gone meanwhile
            continue
    return found


def test_a_cell_of_aider_is_measured_on_a_local_model(cab: Cab, models: Registry) -> None:
    model = models.get(NAME)
    # What it says is of no use, and takes the processor's time.
    asked = {"id": model.id, "settings": {"max_output_tokens": 32}}
    cab.sweep("run", cab.spec(clis=["aider"], models=[asked], tasks=[PYTHON_TASK], timeout_s=240)).end(0)
    [record] = cab.records().values()
    assert record["outcome"]["name"] in ("completed", "timed_out")
    assert record["outcome"]["counted"]
    assert record["identity"]["model_build_id"] == model.build_id == cab.stored()["models"][model.id]
    tokens = record["scores"]["tokens"]
    assert tokens["source"] == "wire"
    assert tokens["prompt_tokens"] > 100
    assert tokens["completion_tokens"] > 0
    assert_as_citable_as_the_checkout_allows(record)
    [calls] = cab.sweep_dir.glob("cells/**/calls.jsonl")
    assert {json.loads(line)["reported_model"] for line in calls.read_text().splitlines()} == {model.build_id}
    assert servers(cab.sweep_dir / "local.log") == []
    assert cab.left() == {}


def assert_as_citable_as_the_checkout_allows(record: dict[str, object]) -> None:
    """Nothing speaks against the claim but, where tests are run with changes at hand, the checkout."""
    claim, unclean = record["claim"], "cab ran from a changed checkout or from none"
    assert claim in ({"level": "citable", "reasons": []}, {"level": "provisional", "reasons": [unclean]})


def test_a_server_asks_for_its_key_and_ends_with_a_killed_cab(cab: Cab, models: Registry) -> None:
    log = cab.root / "served.log"
    running = cab.start("model", "serve", NAME, "--log", log)
    said = wait_for(lambda: "key" in running.out.read_text() and running.out.read_text(), "the key")
    url, key = (line.split()[-1] for line in said.splitlines())
    assert url.startswith("http://127.0.0.1:")
    assert status_of(url, "no-key") == 401
    assert status_of(url, key) == 200
    assert key not in log.read_text()
    assert len(servers(log)) == 1
    running.signal(signal.SIGKILL)
    wait_for(lambda: servers(log) == [], "the end of the server")


def status_of(url: str, key: str) -> int:
    request = urllib.request.Request(f"{url}/models", headers={"Authorization": f"Bearer {key}"})
    try:
        with urllib.request.urlopen(request) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def test_a_server_that_loads_ends_with_a_killed_cab(cab: Cab, models: Registry) -> None:
    log = cab.root / "served.log"
    running = cab.start("model", "serve", NAME, "--log", log)
    wait_for(lambda: log.exists() and log.stat().st_size > 0, "the first of llama.cpp's lines")
    assert running.out.read_text() == ""
    running.signal(signal.SIGKILL)
    wait_for(lambda: servers(log) == [], "the end of the server")


def test_the_registry_has_what_the_file_says(models: Registry) -> None:
    model: LocalModel = models.get(NAME)
    assert model.architecture == "qwen2"
    assert model.context_length == 32768
    assert model.title is not None
    assert model.title.startswith("Qwen2.5 Coder 0.5B")
