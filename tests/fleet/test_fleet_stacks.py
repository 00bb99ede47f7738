"""Every CLI with a stack of all kinds of plugins: what reached the model is read at the wire, and what a CLI
does not take is told.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from command import PYTHON_TASK, REPO, Cab
from fleet_sweep import CLIS, FLEET, WHOLE_S, cell_dir
from stack_probes import PROBES, lay_probes
from wire_requests import main_requests, tools, words

from orchestrator.adapter import LaunchContext
from orchestrator.paths import PLUGINS
from orchestrator.plan.plugin import load_plugin
from orchestrator.sandbox.images import load_lock
from orchestrator.store.evidence import load_evidence

pytestmark = [pytest.mark.docker, pytest.mark.timeout(WHOLE_S + 600)]

RULES = load_plugin(PLUGINS, "careful").rules
TASK_RULES = (REPO / "tasks" / PYTHON_TASK / "environment" / "workdir" / "AGENTS.md").read_text()
TOOL = "lookup"
SEARCHED = ("droid", "mistral-vibe")
"""What a server offers is named once the model has searched for it: test_fleet_servers.py."""


@contextmanager
def swept(clis: Sequence[str]) -> Iterator[Cab]:
    """One cell of each CLI, with rules, a server, its own setting and its own arguments."""
    with Cab.own() as cab:
        plugins = cab.root / "plugins"
        lay_probes(plugins, clis)
        cab.patched(PLUGINS=plugins)
        stack = {"name": "whole", "plugins": ["careful", "facts", "setting", "said"]}
        spec = cab.spec(clis=list(clis), models=["embedded/reference"], stacks=[stack], concurrency=2)
        cab.sweep("run", spec).end(0, timeout_s=WHOLE_S)
        yield cab


@pytest.fixture(scope="module")
def stacked() -> Iterator[Cab]:
    with swept(CLIS) as cab:
        yield cab


def first_request(cab: Cab, cli: str) -> dict[str, Any]:
    return main_requests(cell_dir(cab, cli, PYTHON_TASK, stack="whole"))[0]


@pytest.mark.parametrize("cli", CLIS)
def test_the_rules_of_task_and_stack_are_in_the_first_request(stacked: Cab, cli: str) -> None:
    said = words(first_request(stacked, cli))
    assert TASK_RULES.strip() in said
    assert RULES.strip() in said


def test_minis_system_prompt_begins_as_it_is_shipped(stacked: Cab) -> None:
    """Its adapter states the shipped one anew: its configuration has no way to add to it."""
    script = "import sys, yaml; print(yaml.safe_load(open(sys.argv[1]))['agent']['system_template'], end='')"
    launch = FLEET.adapter("mini-swe-agent").launch(LaunchContext(prompt="p", model="m", credential="c"))
    config = launch.argv[launch.argv.index("--config") + 1]
    shipped = stacked.docker.containers.run(
        load_lock(REPO / "images.lock").image("mini-swe-agent").id,
        ["/opt/mini-swe-agent/bin/python", "-c", script, config],
        remove=True,
        network_disabled=True,
    )
    system = first_request(stacked, "mini-swe-agent")["messages"][0]["content"]
    assert system.startswith(shipped.decode().rstrip("\n") + "\n\n")


@pytest.mark.parametrize("cli", CLIS)
def test_the_servers_tool_is_on_offer_or_the_reason_is_told(stacked: Cab, cli: str) -> None:
    adapter, bodies = FLEET.adapter(cli), main_requests(cell_dir(stacked, cli, PYTHON_TASK, stack="whole"))
    if cli not in SEARCHED:
        # Among the tools, or named in a text, to be loaded by another tool.
        offered = [
            any(TOOL in name for name in tools(body)) or f"mcp__facts__{TOOL}" in words(body)
            for body in bodies
        ]
        assert any(offered) == (adapter.mcp is not None), tools(bodies[-1])
    record = json.loads((cell_dir(stacked, cli, PYTHON_TASK, stack="whole") / "cell.json").read_text())
    skipped = {it["name"]: it["skipped"] for it in record["identity"]["plugins"] if it["skipped"]}
    if adapter.mcp is None:
        assert skipped.pop("facts") == f"{cli} takes no MCP server: {adapter.not_taken['mcp']}"
    assert skipped == {}


@pytest.mark.parametrize("cli", CLIS)
def test_setting_and_arguments_take_effect(stacked: Cab, cli: str) -> None:
    probe, body = PROBES[cli], json.dumps(first_request(stacked, cli), ensure_ascii=False)
    assert [piece for piece in probe.says if piece not in body] == []
    assert [piece for piece in probe.lacks if piece in body] == []
    if probe.titled:
        calls = load_evidence(cell_dir(stacked, cli, PYTHON_TASK, stack="whole")).calls
        assert all(call.main for call in calls)


@pytest.mark.parametrize("cli", CLIS)
def test_a_stack_costs_no_pass_and_is_no_change_of_the_agents(stacked: Cab, cli: str) -> None:
    scores = json.loads((cell_dir(stacked, cli, PYTHON_TASK, stack="whole") / "cell.json").read_text())[
        "scores"
    ]
    assert scores["pass_rate"]["pass"] == 1
    assert scores["blast_radius"]["blast_radius_agent"] == 0
