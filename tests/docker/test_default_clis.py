"""The CLIs that `make setup` builds, one for each wire and aider, on the tasks of sweeps/fleet.yaml. Those of
wires that scripted models do not speak have their calls translated, and make their edits by their own tools.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command import PYTHON_TASK, Cab
from fleet_sweep import FLEET, OF_SETUP, WHOLE_S, assert_driven, cell_dir, swept
from one_container import assert_reproduced

pytestmark = pytest.mark.timeout(WHOLE_S + 600)

TOOLS = {
    "codex": {"exec_command"},
    "claude-code": {"Read", "Bash", "Edit"},
    "gemini-cli": {"read_file", "run_shell_command", "replace"},
}
"""By CLI of another wire, the tools that the scripted model has to find."""

OTHER_WIRES = sorted(TOOLS)
_TOTAL = re.compile(r"tokens used\D*\n([\d,]+)")


@pytest.fixture(scope="module")
def fleet() -> Iterator[Cab]:
    with swept(OF_SETUP) as cab:
        yield cab


def record_of(cab: Cab, cli: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((cell_dir(cab, cli, PYTHON_TASK) / "cell.json").read_text("utf-8"))
    return found


def lines_of(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@pytest.mark.parametrize("cli", OF_SETUP)
def test_a_cli_solves_the_tasks_and_is_measured(fleet: Cab, cli: str) -> None:
    assert_driven(fleet, cli)


@pytest.mark.parametrize("cli", OF_SETUP)
def test_the_command_of_a_cell_gives_its_scores_in_one_container(fleet: Cab, cli: str) -> None:
    assert_reproduced(fleet, cli)


@pytest.mark.parametrize("cli", OTHER_WIRES)
def test_it_solves_the_task_with_its_own_tools(fleet: Cab, cli: str) -> None:
    record = record_of(fleet, cli)
    assert record["outcome"]["name"] == "completed"
    assert record["scores"]["pass_rate"]["pass"] == 1
    assert record["scores"]["blast_radius"]["unexpected_changes"] == []
    names = [span["name"] for span in lines_of(cell_dir(fleet, cli, PYTHON_TASK) / "spans.jsonl")]
    assert {f"execute_tool {tool}" for tool in TOOLS[cli]} == {
        name for name in names if name.startswith("execute_tool ")
    }


@pytest.mark.parametrize("cli", OTHER_WIRES)
def test_each_of_its_calls_was_translated_and_answered(fleet: Cab, cli: str) -> None:
    calls = lines_of(cell_dir(fleet, cli, PYTHON_TASK) / "calls.jsonl")
    assert calls
    wire = FLEET.adapter(cli).wire
    assert {(call["cli_wire"], call["wire"], call["status"]) for call in calls} == {(wire, "chat", 200)}


@pytest.mark.parametrize("cli", ["claude-code", "gemini-cli"])
def test_what_it_says_it_used_is_what_the_wire_says(fleet: Cab, cli: str) -> None:
    tokens = record_of(fleet, cli)["scores"]["tokens"]
    assert tokens["source"] == "wire"
    assert tokens["prompt_tokens"] > 0
    assert (tokens["cli"]["input"], tokens["cli"]["output"]) == (
        tokens["prompt_tokens"],
        tokens["completion_tokens"],
    )


def test_the_one_number_that_codex_prints_is_the_wires_total(fleet: Cab) -> None:
    shown = (cell_dir(fleet, "codex", PYTHON_TASK) / "stdout.log").read_text("utf-8")
    (said,) = _TOTAL.findall(re.sub(r"\x1b\[[\d;]*m|\r", "", shown))
    assert int(said.replace(",", "")) == record_of(fleet, "codex")["scores"]["tokens"]["total_tokens"]


@pytest.mark.parametrize("cli", OTHER_WIRES)
def test_the_recording_shows_its_last_words(fleet: Cab, cli: str) -> None:
    events = lines_of(cell_dir(fleet, cli, PYTHON_TASK) / "recording.cast")[1:]
    shown = "".join(event[2] for event in events if event[1] == "o")
    assert "The slice in `reverse_string`" in shown
    assert "session_id" not in shown
