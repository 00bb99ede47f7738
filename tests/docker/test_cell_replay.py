"""Finished cells run again with their recorded answers: the same diff and scores, or where they differ."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.docker.command import HOSTED, PYTHON_TASK, REPO, Cab, completion, serving

KEY = "sk-live-" + "7" * 24
SCRIPTED = {"opencode": 6, "aider": 2}
"""CLIs with how many calls they make to solve the task."""


@pytest.fixture(scope="module")
def cab() -> Iterator[Cab]:
    """One sweep of real CLIs with a scripted model, and of a probe at an endpoint that is then gone."""
    with Cab.own() as cab:
        cab.add_probe()
        for cli in SCRIPTED:
            (cab.root / "images" / cli).mkdir()
            shutil.copy(REPO / "images" / cli / "adapter.py", cab.root / "images" / cli)
        spec = cab.spec(
            clis=[*SCRIPTED, "probe"],
            models=["embedded/reference", *HOSTED["models"]],
            endpoints=HOSTED["endpoints"],
            exclude=[{"cli": "probe", "model": "embedded/*"}]
            + [{"cli": cli, "model": "stub-model"} for cli in SCRIPTED],
            concurrency=2,
        )
        with serving(lambda *_: (200, completion())) as endpoint:
            cab.sweep("run", spec, CAB_ENDPOINT=endpoint.url, CAB_KEY=KEY).end(0)
        yield cab


def cell_id(cab: Cab, cli: str, model: str = "embedded/reference") -> str:
    return f"{cab.sweep_id}/{cli}/{model}/{PYTHON_TASK}#run1"


def replay(cab: Cab, cell: str | Path, *more: str | Path, code: int = 0) -> dict[str, Any]:
    done = cab.start("cell", "replay", "-r", cab.results, str(cell), "--json", *more).end(code)
    data: dict[str, Any] = done.data
    return data


@pytest.mark.parametrize("cli", SCRIPTED)
def test_a_replayed_cell_gives_the_same_diff_and_scores(cab: Cab, cli: str) -> None:
    kept = cab.root / f"kept-{cli}"
    found = replay(cab, cell_id(cab, cli), "-o", kept)
    assert (found["same"], found["same_diff"], found["scores"]) == (True, True, {})
    assert (found["asked"], found["not_asked"], found["request"]) == (SCRIPTED[cli], [], None)
    [path] = kept.glob("*/cells/*/*/*/*/cell.json")
    stored = json.loads(path.read_bytes())
    assert stored["identity"]["cell_id"] == found["replayed"]
    assert stored["identity"]["model"] == "replay/embedded/reference"
    assert stored["replay_of"] == cell_id(cab, cli)
    assert stored["claim"] == {
        "level": "pipeline_only",
        "reasons": [f"a replay of {cell_id(cab, cli)}: no model was asked"],
    }
    assert stored["scores"]["pass_rate"]["pass"] == 1
    assert b"+" in (path.parent / "diff.patch").read_bytes()
    assert cab.left() == {}


def test_a_cell_of_an_endpoint_is_replayed_without_endpoint_and_key(cab: Cab) -> None:
    found = replay(cab, cell_id(cab, "probe", "stub-model"))
    assert (found["same"], found["asked"], found["stored"]) == (True, 1, None)


def test_it_stops_at_the_first_request_that_differs_and_shows_where(cab: Cab) -> None:
    altered = cab.root / "altered" / cab.sweep_id
    shutil.copytree(cab.sweep_dir, altered)
    [wire] = altered.glob("cells/opencode/*/*/*/wire.jsonl.gz")
    calls = [json.loads(line) for line in gzip.decompress(wire.read_bytes()).splitlines()]
    answered = [message for message in calls[-1]["request"]["messages"] if message["role"] == "tool"]
    before = "return text[-1:0:-1]"
    assert before in answered[0]["content"]
    for call in calls:
        for message in call["request"]["messages"]:
            if message["role"] == "tool":
                message["content"] = message["content"].replace(before, "return text")
    wire.write_bytes(gzip.compress("".join(json.dumps(call) + "\n" for call in calls).encode()))
    found = replay(cab, wire.parent, code=1)
    assert found["request"] == {
        "index": 2,
        "how": "not as recorded in call 2",
        "recorded_index": 2,
        "places": [
            {
                "path": "$.messages[3].content",
                "recorded": "6:     return text",
                "sent": f"6:     {before}",
            }
        ],
        "more": 0,
    }
    assert (found["same"], found["outcome"]["replayed"]) == (False, "infra_error (replay_differs)")
    assert (found["same_diff"], found["scores"]) == (None, None)
    assert found["not_asked"] == [2, 3, 4, 5]
    assert cab.left() == {}
