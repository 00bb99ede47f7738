"""sweeps/fleet.yaml as it is, for all CLIs or some, and what each CLI has to show for it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from command import REPO, Cab
from ruamel.yaml import YAML

from orchestrator.adapter import Adapter
from orchestrator.fleet import Fleet
from orchestrator.store.names import NO_STACK, CellKey

SWEEP = REPO / "sweeps" / "fleet.yaml"
TASKS = ("polyglot/python-reverse-string", "polyglot/c-ring-buffer", "mutations/rust-error-negated")
FLEET = Fleet(REPO / "images")
CLIS = tuple(name for name in FLEET.runnable if FLEET.adapter(name).uses_model)
"""The CLIs that ask a model."""

_SETUP = (REPO / "scripts" / "setup.sh").read_text("utf-8")
_NAMES = re.findall(r"^IMAGES=\((.*?)\)", _SETUP, re.MULTILINE)[0].split()
OF_SETUP = tuple(name for name in CLIS if name in _NAMES)
"""Those of them that `make setup` builds."""

WHOLE_S = 3000
"""A cell takes seconds where nothing else runs; this is for what never comes."""


@contextmanager
def swept(clis: Sequence[str]) -> Iterator[Cab]:
    """The sweep, run to its end for these CLIs alone: the images of others need not be there."""
    with Cab.own() as cab:
        spec = YAML(typ="safe").load(SWEEP)
        path = cab.root / SWEEP.name
        path.write_text(json.dumps({**spec, "clis": list(clis), "exclude": []}), "utf-8")
        cab.sweep("run", path).end(0, timeout_s=WHOLE_S)
        yield cab


def cell_dir(cab: Cab, cli: str, task: str, stack: str = NO_STACK, model: str = "embedded/reference") -> Path:
    """Where a cell is."""
    key = CellKey(cli, model, task, stack=stack)
    return cab.sweep_dir / "cells" / Path(str(key.path()))


def assert_driven(cab: Cab, cli: str) -> None:
    """The CLI solved the tasks by its own means, and all of it was measured."""
    adapter = FLEET.adapter(cli)
    records = [record for record in cab.records().values() if record["identity"]["cli"] == cli]
    assert sorted(record["identity"]["task"] for record in records) == sorted(TASKS)
    for record in records:
        task = record["identity"]["task"]
        found = _shortcomings(record, cell_dir(cab, cli, task), adapter)
        assert not found, f"{cli} on {task}: {'; '.join(found)}"


def _shortcomings(record: dict[str, Any], cell: Path, adapter: Adapter) -> list[str]:
    """What a cell does not show as it has to."""
    outcome, scores = record["outcome"], record["scores"]
    if outcome["name"] != "completed":
        return [f"it ended as {outcome['name']}: {outcome['cause']} {outcome['detail']}"]
    tokens, blast = scores["tokens"], scores["blast_radius"]
    events = (cell / "recording.cast").read_text("utf-8").splitlines()[1:]
    shown = "".join(json.loads(event)[2] for event in events if json.loads(event)[1] == "o")
    spans = [json.loads(line)["name"] for line in (cell / "spans.jsonl").read_text("utf-8").splitlines()]
    tools = [name for name in spans if name.startswith("execute_tool ")]
    by_agent = set(blast["unexpected_changes"]) - {*blast["cli_state"], *blast["generated"]}
    faults = {
        f"pass is {scores['pass_rate']['pass']}: {scores['pass_rate']['reason']}": scores["pass_rate"]["pass"]
        != 1,
        f"tokens are of {tokens['source']}": tokens["source"] != "wire",
        "no token was counted": not tokens["prompt_tokens"] or not tokens["completion_tokens"],
        "the recording shows nothing": not shown.strip(),
        f"spans of tools: {tools}": bool(tools) != adapter.tool_calls,
        f"counted as the agent's: {sorted(by_agent)}": bool(by_agent) or blast["blast_radius_agent"] != 0,
    }
    return [fault for fault, there in faults.items() if there] + _own_count(tokens, adapter)


def _own_count(tokens: dict[str, Any], adapter: Adapter) -> list[str]:
    """A CLI whose own totals are read states them, and its folder explains a difference from the wire."""
    if adapter.reported_usage is None:
        return []
    said = tokens["cli"]
    if said is None:
        return [f"its own totals were not found: {tokens['reasons']['cli']}"]
    readme = FLEET.folders[adapter.name] / "README.md"
    explained = readme.is_file() and "wire" in readme.read_text("utf-8")
    if said["agrees"] is False and not explained:
        return [f"{said} differs from the wire, and its README.md does not say why"]
    return []
