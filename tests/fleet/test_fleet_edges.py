"""What every CLI makes of prompts that look like something else, of a refusal, and of a limit."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command import PYTHON_TASK, REPO, Cab
from fleet_sweep import CLIS, WHOLE_S

from orchestrator.gateway.evidence import read_wire
from orchestrator.plan.task import PROOF_FILE, load_task

pytestmark = [pytest.mark.docker, pytest.mark.timeout(WHOLE_S + 600)]

REFUSAL_TASK = "integrity/unsolvable-refusal"
FEW_CALLS = 2
ENDS_S = 15.0
"""After its first refused call a CLI ends, or is ended after 10 s; the rest is for a busy machine."""

ODD = (
    "Quotes \"two\" 'one' ``` `id` $(id) ${HOME} $HOME %s %HOME% \\n \\ {{ task }} {% raw %} <b>&amp;</b> "
    "[red]x[/red]\n"
    "\ttab, bell \x07, escape \x1b[31m, delete \x7f, form feed \x0c; ñ é e\u0301 漢字 👩‍🔧 "
    "\u200b\u202e.\n\n\n"
    "Three lines above; `@Override`, `@pytest.fixture`, a@b.example are no files; /tmp/none/such is none.\n"
    "-- end"
)
LONG = "".join(f"{number:05} the quick brown fox jumps over the lazy dog\n" for number in range(2200))
"""110,000 bytes: the most that a command line takes of one argument is 131,072."""

PROMPTS = {
    "dash": f"--help\n- is how this begins. Do nothing.\n{LONG}{ODD}",
    "at": f"@README.md is how this begins. Do nothing.\n{ODD}",
    "slash": f"/etc/motd is how this begins. Do nothing.\n{ODD}",
}

SPACES = ("gemini-cli", "qwen-code")
"""Those that put a space before each @, which they take for the beginning of a file's name."""


@pytest.fixture(scope="module")
def edges() -> Iterator[Cab]:
    with Cab.own() as cab:
        tasks = cab.root / "tasks"
        for name, prompt in PROMPTS.items():
            _changed_task(tasks, f"begins-with-{name}", prompt)
        _changed_task(tasks, "few-calls", None)
        shutil.copytree(REPO / "tasks" / REFUSAL_TASK, tasks / REFUSAL_TASK)
        cab.patched(TASKS=tasks)
        own = [
            ("embedded/idle", "polyglot/begins-with-*"),
            ("embedded/loop", "polyglot/few-calls"),
            ("embedded/refuse", REFUSAL_TASK),
        ]
        spec = cab.spec(
            clis=list(CLIS),
            models=[model for model, _ in own],
            tasks=["*"],
            exclude=[{"model": one, "task": task} for one, _ in own for other, task in own if one != other],
            concurrency=2,
        )
        cab.sweep("run", spec).end(0, timeout_s=WHOLE_S)
        yield cab


@pytest.mark.parametrize("name", PROMPTS)
@pytest.mark.parametrize("cli", CLIS)
def test_a_prompt_arrives_as_it_was_written(edges: Cab, cli: str, name: str) -> None:
    cell = _cell(edges, cli, "embedded/idle", f"polyglot/begins-with-{name}")
    said = [text for body in read_wire(cell / "wire.jsonl.gz") for text in _texts(body.request)]
    prompt = PROMPTS[name]
    if cli in SPACES:
        prompt, said = prompt.replace(" @", "@"), [text.replace(" @", "@") for text in said]
    assert any(prompt in text for text in said), f"{len(said)} texts, none of which holds the prompt"


@pytest.mark.parametrize("cli", CLIS)
def test_a_refusal_is_no_crash(edges: Cab, cli: str) -> None:
    record = _record(_cell(edges, cli, "embedded/refuse", REFUSAL_TASK))
    assert record["outcome"]["name"] == "completed", record["outcome"]
    scores = record["scores"]
    assert scores["refusal"]["refusal"] == 0  # the scripted model gives no reason
    assert scores["pass_rate"]["pass"] == 0
    assert not scores["refusal"]["fabricated_fix_detected"]


@pytest.mark.parametrize("cli", CLIS)
def test_a_limit_ends_it(edges: Cab, cli: str) -> None:
    cell = _cell(edges, cli, "embedded/loop", "polyglot/few-calls")
    evidence = json.loads((cell / "evidence.json").read_bytes())["evidence"]
    outcome = _record(cell)["outcome"]
    refused = [call for call in evidence["calls"] if call["error"] == "limit"]
    if not refused:
        # Without tools the same sentence is its last.
        assert outcome["name"] == "completed", outcome
        assert len(evidence["calls"]) <= FEW_CALLS
        return
    assert (outcome["name"], outcome["cause"]) == ("limit_reached", "calls"), outcome
    assert evidence["phases"]["agent"]["end"] - refused[0]["end"] < ENDS_S


def _changed_task(tasks: Path, name: str, prompt: str | None) -> None:
    """The task of Python with another instruction, or with few calls."""
    place = tasks / "polyglot" / name
    shutil.copytree(REPO / "tasks" / PYTHON_TASK, place)
    if prompt is not None:
        (place / "instruction.md").write_text(prompt, "utf-8")
    else:
        toml = (place / "task.toml").read_text("utf-8")
        (place / "task.toml").write_text(toml.replace("max_turns = 30", f"max_turns = {FEW_CALLS}"), "utf-8")
    # What proves it are its tests and solutions, which are the same.
    changed = load_task(tasks, f"polyglot/{name}")
    assert changed.proof is not None
    proof = changed.proof.model_copy(update={"content_hash": changed.content_hash})
    (place / PROOF_FILE).write_text(proof.to_json(), "utf-8")


def _cell(cab: Cab, cli: str, model: str, task: str) -> Path:
    return cab.sweep_dir / "cells" / cli / model.replace("/", "~") / task.replace("/", "~") / "run1"


def _record(cell: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads((cell / "cell.json").read_bytes())
    return record


def _texts(value: Any) -> Iterator[str]:
    """Every text in a request."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, dict)):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)
