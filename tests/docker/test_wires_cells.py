"""A CLI of each wire that scripted models do not speak: its calls are translated, and its edits its own."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.adapter import load_adapter
from orchestrator.paths import IMAGES
from tests.docker.command import PYTHON_TASK, Cab

pytestmark = pytest.mark.docker

TOOLS = {
    "codex": {"exec_command"},
    "claude-code": {"Read", "Bash", "Edit"},
    "gemini-cli": {"read_file", "run_shell_command", "replace"},
}
"""By CLI, the tools that the scripted model has to find."""

CLIS = sorted(TOOLS)
_TOTAL = re.compile(r"tokens used\D*\n([\d,]+)")


@pytest.fixture(scope="module")
def swept() -> Iterator[Cab]:
    with Cab.own() as cab:
        spec = cab.spec(clis=CLIS, models=["embedded/reference"], concurrency=2)
        cab.sweep("run", spec).end(0)
        yield cab


def cell_dir(cab: Cab, cli: str) -> Path:
    return cab.sweep_dir / "cells" / cli / "embedded~reference" / PYTHON_TASK.replace("/", "~") / "run1"


def record_of(cab: Cab, cli: str) -> dict[str, Any]:
    return next(record for record in cab.records().values() if record["identity"]["cli"] == cli)


def lines_of(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@pytest.mark.parametrize("cli", CLIS)
def test_it_solves_the_task_with_its_own_tools(swept: Cab, cli: str) -> None:
    record = record_of(swept, cli)
    assert record["outcome"]["name"] == "completed"
    assert record["scores"]["pass_rate"]["pass"] == 1
    assert record["scores"]["blast_radius"]["unexpected_changes"] == []
    names = [span["name"] for span in lines_of(cell_dir(swept, cli) / "spans.jsonl")]
    assert {f"execute_tool {tool}" for tool in TOOLS[cli]} == {
        name for name in names if name.startswith("execute_tool ")
    }


@pytest.mark.parametrize("cli", CLIS)
def test_each_of_its_calls_was_translated_and_answered(swept: Cab, cli: str) -> None:
    calls = lines_of(cell_dir(swept, cli) / "calls.jsonl")
    assert calls
    wire = load_adapter(IMAGES, cli).wire
    assert {(call["cli_wire"], call["wire"], call["status"]) for call in calls} == {(wire, "chat", 200)}


@pytest.mark.parametrize("cli", ["claude-code", "gemini-cli"])
def test_what_it_says_it_used_is_what_the_wire_says(swept: Cab, cli: str) -> None:
    tokens = record_of(swept, cli)["scores"]["tokens"]
    assert tokens["source"] == "wire"
    assert tokens["prompt_tokens"] > 0
    assert (tokens["cli"]["input"], tokens["cli"]["output"]) == (
        tokens["prompt_tokens"],
        tokens["completion_tokens"],
    )


def test_the_one_number_that_codex_prints_is_the_wires_total(swept: Cab) -> None:
    printed = re.sub(r"\x1b\[[\d;]*m|\r", "", (cell_dir(swept, "codex") / "stdout.log").read_text("utf-8"))
    (said,) = _TOTAL.findall(printed)
    assert int(said.replace(",", "")) == record_of(swept, "codex")["scores"]["tokens"]["total_tokens"]


@pytest.mark.parametrize("cli", CLIS)
def test_the_recording_shows_its_last_words(swept: Cab, cli: str) -> None:
    events = lines_of(cell_dir(swept, cli) / "recording.cast")[1:]
    shown = "".join(event[2] for event in events if event[1] == "o")
    assert "The slice in `reverse_string`" in shown
    assert "session_id" not in shown
