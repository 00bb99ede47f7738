"""`docker run IMAGE run-cell …`: the line that a sweep prints, tasks from outside, evidence, refusals."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from command import PYTHON_TASK, REPO, Cab, serving
from one_container import assert_reproduced, printed_line, run_line, timeless

from orchestrator.sandbox.images import load_lock
from orchestrator.task_files import content_hash

KEY = f"sk-{secrets.token_urlsafe(24)}"
NOOP = ("--tui", "noop", "--task", PYTHON_TASK)


@pytest.fixture(scope="module")
def cab() -> Iterator[Cab]:
    """A sweep of the baselines, run to its end."""
    with Cab.own() as cab:
        cab.sweep("run", cab.spec(clis=["oracle", "noop"])).end(0)
        yield cab


def image(cli: str) -> str:
    return load_lock(REPO / "images.lock").image(f"{cli}+cell").id


def refused(*words: str, options: tuple[str, ...] = ()) -> str:
    """The one line that `docker run IMAGE words` ends with."""
    done = subprocess.run(
        ["docker", "run", "--rm", *options, image("noop"), *words],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done
    assert done.stdout == ""
    [line] = done.stderr.splitlines()
    return line


@pytest.mark.parametrize("cli", ["oracle", "noop"])
def test_the_line_of_a_baseline_gives_its_scores(cab: Cab, cli: str) -> None:
    record = assert_reproduced(cab, cli)
    assert record["scores"]["pass_rate"]["pass"] == (cli == "oracle")


def test_the_same_line_is_in_record_table_and_cell(cab: Cab) -> None:
    table = printed_line(cab.sweep("status").end(0).out)
    lines = {}
    for cell_id, record in cab.records().items():
        lines[cell_id] = record["reproduce"]["command"]
        shown = cab.start("cell", "show", cell_id, "-r", cab.results).end(0).out
        assert printed_line(shown) == lines[cell_id]
        as_json = cab.start("cell", "show", cell_id, "-r", cab.results, "--json").end(0).data
        assert as_json["reproduce"]["command"] == lines[cell_id]
    assert table in lines.values()
    shown = run_line(table, cwd=cab.root)
    assert "failed: 10 of 10 fail-to-pass tests still fail" in shown
    assert "one container for agent and grader" in shown


def test_a_task_that_the_image_has_not_is_mounted(cab: Cab, tmp_path: Path) -> None:
    tasks = tmp_path / "tasks"
    shutil.copytree(REPO / "tasks" / PYTHON_TASK, tasks / PYTHON_TASK)
    hidden = tasks / PYTHON_TASK / "tests" / "test.sh"
    hidden.write_text(f"{hidden.read_text()}# another than the image's\n")
    proof = tasks / PYTHON_TASK / "proof.json"
    said = json.loads(proof.read_text())
    proof.write_text(json.dumps({**said, "content_hash": content_hash(tasks / PYTHON_TASK)}))
    with Cab.own() as other:
        other.patched(TASKS=tasks)
        other.sweep("run", other.spec(clis=["noop"])).end(0)
        [cell] = other.records().values()
    command = cell["reproduce"]["command"]
    assert f'-v "$PWD"/tasks/{PYTHON_TASK}:' in command
    record = json.loads(run_line(command, "--json", cwd=tmp_path))
    assert record["identity"]["task_content_hash"] == cell["identity"]["task_content_hash"]
    assert timeless(record["scores"]) == timeless(cell["scores"])


def test_all_evidence_is_given_to_the_owner_of_out(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    if os.geteuid() == 0:
        os.chown(out, 1000, 1000)
    command = f"docker run --rm -v {out}:/out {image('noop')} run-cell {' '.join(NOOP)}"
    assert "all evidence: /out/noop~none~polyglot~python-reverse-string~run1" in run_line(
        command, cwd=tmp_path
    )
    [cell] = out.iterdir()
    names = {path.name for path in cell.iterdir()}
    assert {"cell.json", "evidence.json", "task.json", "diff.patch", "recording.cast"} <= names
    owner = out.stat().st_uid
    assert {path.stat().st_uid for path in (cell, *cell.iterdir())} == {owner}
    with Cab.own() as cab:
        again = cab.start("cell", "score", cell, "--json").end(0).data
        assert again["differences"] == {}
        assert "run it again: by the command" in cab.start("cell", "show", cell).end(0).out
    assert "is there already" in refused("run-cell", *NOOP, options=("-v", f"{out}:/out"))


def answered(_: int, headers: Mapping[str, str]) -> tuple[int, bytes]:
    """A stream of one word, for whoever has the key."""
    if headers["Authorization"] != f"Bearer {KEY}":
        return 401, b"{}"
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "stub-1"}
    usage = {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}
    parts: list[dict[str, Any]] = [
        {"choices": [{"index": 0, "delta": {"role": "assistant", "content": "done"}, "finish_reason": None}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        {"choices": [], "usage": usage},
    ]
    lines = [b"data: " + json.dumps(head | part).encode() + b"\n\n" for part in parts]
    return 200, b"".join([*lines, b"data: [DONE]\n\n"])


def test_a_model_at_an_endpoint_is_asked_with_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = (
        f"docker run --rm --network host -e CAB_ENDPOINT -e CAB_KEY {image('opencode')} run-cell "
        f"--tui opencode --model stub-model --task {PYTHON_TASK} --temperature 0.5 "
        "--price input=1,output=2 --json"
    )
    monkeypatch.setenv("CAB_KEY", KEY)
    with serving(answered) as endpoint:
        monkeypatch.setenv("CAB_ENDPOINT", endpoint.url)
        shown = run_line(command, cwd=tmp_path)
    assert KEY not in shown
    record = json.loads(shown)
    identity, tokens = record["identity"], record["scores"]["tokens"]
    assert (identity["model"], identity["model_build_id"]) == ("stub-model", "stub-1")
    assert identity["settings_set"] == {"temperature": 0.5}
    assert tokens["prompt_tokens"] == 7 * endpoint.calls
    assert tokens["cost_usd"] == pytest.approx(endpoint.calls * (7 + 2 * 2) / 1e6)
    assert record["claim"]["level"] == "provisional"
    assert "single container" in record["claim"]["reasons"][0]


@pytest.mark.parametrize(
    ("options", "words", "said"),
    [
        ((), ("--tui", "opencode", "--task", PYTHON_TASK), "this image holds noop, not 'opencode'"),
        ((), ("--tui", "noop", "--task", "polyglot/python-revers"), f"did you mean '{PYTHON_TASK}'"),
        (("--user", "1000"), NOOP, "leave --user out of docker run"),
        (("--read-only",), NOOP, "leave --read-only out of docker run"),
    ],
)
def test_what_cannot_be_run_is_told_in_one_line(
    options: tuple[str, ...], words: tuple[str, ...], said: str
) -> None:
    assert said in refused("run-cell", *words, options=options)


def test_an_image_offers_run_cell_and_nothing_else() -> None:
    assert "no such command 'sweep'" in refused("sweep", "run", "sweeps/free.yaml")
    shown = run_line(f"docker run --rm {image('noop')} --help", cwd=REPO)
    commands = shown.partition("Commands:")[2].strip().splitlines()
    assert [line.split()[0] for line in commands] == ["run-cell"]
