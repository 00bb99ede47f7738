"""A stack of two plugins on two CLIs, as `sweeps/stacks.yaml` asks for it, and one of a setting and
arguments: what reached the model is read at the wire, and what a CLI does not take is told.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command import ENDED_S, PYTHON_TASK, REPO, Cab
from ruamel.yaml import YAML
from stack_probes import PROBES, lay_probes
from wire_requests import main_requests, tools, words

from orchestrator.paths import PLUGINS
from orchestrator.plan.plugin import load_plugin
from orchestrator.store.evidence import load_evidence
from orchestrator.store.names import CellKey

RULES = load_plugin(PLUGINS, "careful").rules
TASK_RULES = (REPO / "tasks" / PYTHON_TASK / "environment" / "workdir" / "AGENTS.md").read_text()
NO_SERVER = "aider takes no MCP server: it offers its model no tools"
OWN = "own"
"""One cell more than the example has."""


@pytest.fixture(scope="module")
def ran() -> Iterator[Cab]:
    """The example's cells, and one of opencode with a setting and arguments of its own, run once."""
    with Cab.own() as cab:
        plugins, path = cab.root / "plugins", cab.root / "stacks.yaml"
        lay_probes(plugins, ["opencode"])
        cab.patched(PLUGINS=plugins)
        spec = YAML(typ="safe").load(REPO / "sweeps" / "stacks.yaml")
        spec["stacks"] += [{"name": OWN, "plugins": ["setting", "said"]}]
        spec["exclude"] += [{"cli": cli, "stack": OWN} for cli in ("aider", "noop")]
        path.write_text(json.dumps(spec))
        cab.sweep("run", path, "--concurrency", "2").end(0, ENDED_S * 2)
        yield cab
        assert cab.left() == {}


def cell_dir(cab: Cab, cli: str, stack: str) -> Path:
    key = CellKey(cli, "embedded/reference", PYTHON_TASK, stack=stack)
    return cab.sweep_dir / "cells" / Path(str(key.path()))


def record(cab: Cab, cli: str, stack: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((cell_dir(cab, cli, stack) / "cell.json").read_text())
    return found


def asked(cab: Cab, cli: str, stack: str) -> list[dict[str, Any]]:
    """The bodies of the requests that the CLI sent of its main thread."""
    return main_requests(cell_dir(cab, cli, stack))


@pytest.mark.parametrize("cli", ["opencode", "aider"])
def test_the_rules_are_in_the_request_with_the_stack_alone(ran: Cab, cli: str) -> None:
    for body in asked(ran, cli, "careful"):
        assert TASK_RULES.strip() in words(body)
        assert RULES.strip() in words(body)
    for body in asked(ran, cli, "none"):
        assert TASK_RULES.strip() in words(body)
        assert RULES.strip() not in words(body)


def test_the_tool_of_the_server_is_offered_with_the_stack_alone(ran: Cab) -> None:
    assert all("facts_lookup" in tools(body) for body in asked(ran, "opencode", "careful"))
    assert all("facts_lookup" not in tools(body) for body in asked(ran, "opencode", "none"))
    assert not any(tools(body) for body in asked(ran, "aider", "careful"))


def test_a_setting_and_arguments_take_effect_with_the_stack_alone(ran: Cab) -> None:
    probe = PROBES["opencode"]
    for stack, there in {"none": False, OWN: True}.items():
        body = json.dumps(asked(ran, "opencode", stack)[0])
        calls = load_evidence(cell_dir(ran, "opencode", stack)).calls
        assert [piece in body for piece in probe.says] == [there]
        assert all(call.main for call in calls) == there  # a title is asked for unless one is given
    identity = record(ran, "opencode", OWN)["identity"]
    assert identity["plugin_args"] == list(probe.args)
    assert [it["skipped"] for it in identity["plugins"]] == [None, None]


@pytest.mark.parametrize("stack", ["none", "careful"])
@pytest.mark.parametrize("cli", ["opencode", "aider"])
def test_the_rules_are_no_change_of_the_agents(ran: Cab, cli: str, stack: str) -> None:
    found = record(ran, cli, stack)
    assert found["scores"]["pass_rate"]["pass"] == 1
    assert found["scores"]["blast_radius"]["blast_radius_agent"] == 0
    assert found["identity"]["rules_file"] == "AGENTS.md"
    assert found["identity"]["behaviour_mode"] == ("factory" if stack == "none" else "stack")
    assert "AGENTS.md" not in (cell_dir(ran, cli, stack) / "diff.patch").read_text()
    before = json.loads((cell_dir(ran, cli, stack) / "before.json").read_text())
    size = len(TASK_RULES.encode()) + (0 if stack == "none" else 1 + len(RULES.encode()))
    assert before["AGENTS.md"]["size"] == size


def test_record_span_and_report_say_what_was_applied(ran: Cab) -> None:
    stored = json.loads((ran.sweep_dir / "sweep.json").read_text())["plugins"]
    digests = {name: load_plugin(PLUGINS, name).digest for name in ("careful", "facts")}
    assert digests.items() <= stored.items()
    for cli, skipped in {"opencode": [], "aider": [f"facts: {NO_SERVER}"]}.items():
        identity = record(ran, cli, "careful")["identity"]
        assert {it["name"]: it["digest"] for it in identity["plugins"]} == digests
        reached = {it["name"]: it["offered"] for it in identity["plugins"]}
        assert reached == {"careful": None, "facts": None if skipped else True}
        lines = (cell_dir(ran, cli, "careful") / "spans.jsonl").read_text("utf-8").splitlines()
        spans = [json.loads(line) for line in lines]
        [applied] = [span for span in spans if span["name"] == "applied_plugins"]
        [parent] = [span for span in spans if span["span_id"] == applied["parent_id"]]
        assert parent["kind"] == "adapter_run"
        assert parent["attributes"] == {"plugin_stack": "careful", "behavior_mode": "stack"}
        names = [it["name"] for it in identity["plugins"] if it["skipped"] is None]
        assert applied["attributes"] == {
            "tui": cli,
            "count": 2,
            "applied": names,
            "skipped": skipped,
            "env_keys": [],
            "extra_args": [],
            "applied_count": len(names),
            "skipped_count": len(skipped),
        }
    shown = ran.start("cell", "show", cell_dir(ran, "aider", "careful")).end(0)
    assert f": {NO_SERVER}" in shown.out


def test_a_baseline_is_skipped_with_the_reason(ran: Cab) -> None:
    [skipped] = ran.stored()["skipped"]
    assert skipped["cell_id"].endswith(f"/noop/none/{PYTHON_TASK}+careful#run1")
    assert skipped["reason"] == "stack careful: the CLI asks no model, so a stack would change nothing"


def test_a_cell_with_a_stack_is_replayed_as_it_was(ran: Cab) -> None:
    done = ran.start("cell", "replay", cell_dir(ran, "opencode", "careful"), "--json").end()
    assert done.code == 0, done
