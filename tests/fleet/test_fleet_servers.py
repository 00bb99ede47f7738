"""Every CLI that takes an MCP server calls its tool when the model asks for it. The model is an endpoint of
the tests, which looks for the tool as a CLI has it found: in the request, or by a search of the CLI's own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from command import HOSTED, PYTHON_TASK, Cab, Endpoint, serving
from fleet_sweep import CLIS, FLEET, WHOLE_S, cell_dir
from wire_requests import main_requests, tools, words

pytestmark = [pytest.mark.docker, pytest.mark.timeout(WHOLE_S + 600)]

TAKING = tuple(cli for cli in CLIS if FLEET.adapter(cli).mcp is not None)
TITLE, FACT = "python slice", "with a negative step a missing start is the last item"
MODEL = "stub-model"
TURNS = 6
"""A CLI asks no more often, whatever it makes of the answers."""

_SCRIPT = f'async function main() {{ return await tools.mcp_facts.lookup({{ title: "{TITLE}" }}); }}'
SEARCHES: dict[str, dict[str, Any]] = {
    "ToolSearch": {"query": "+facts lookup"},  # claude-code, droid
    "tool_search": {"query": "lookup"},  # qwen-code
    "search_tool_functions": {"mode": "best_match", "query": "lookup"},  # mistral-vibe
    "list_directory": {"path": "."},  # nanocoder, whose servers start while the first request is under way
}
BRIDGES: dict[str, dict[str, Any]] = {
    "tool_call": {"name": "mcp__facts__lookup", "arguments": {"title": TITLE}},  # qwen-code
    "run_typescript": {"code": _SCRIPT},  # mistral-vibe
}


def reply(body: dict[str, Any]) -> dict[str, Any]:
    """The message of a model that wants to know of slices."""
    offered, said = tools(body), json.dumps(body["messages"])
    turn = sum(message["role"] == "tool" for message in body["messages"])
    found = [(name, {"title": TITLE}) for name in offered if "lookup" in name]
    bridges = [(name, BRIDGES[name]) for name in offered if name in BRIDGES]
    searches = [(name, SEARCHES[name]) for name in offered if name in SEARCHES]
    if FACT in said or turn >= TURNS:
        return {"role": "assistant", "content": "done"}
    ways = found or (searches if turn == 0 else bridges or searches)
    return _call(turn, *ways[0]) if ways else {"role": "assistant", "content": "done"}


def _call(turn: int, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {
        "role": "assistant",
        "tool_calls": [{"id": f"call_{turn}", "type": "function", "function": function}],
    }


def answer(body: dict[str, Any]) -> bytes:
    """As one completion, or as the two chunks of a stream."""
    message = reply(body)
    ended = "tool_calls" if "tool_calls" in message else "stop"
    usage = {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}
    common = {"id": "c", "created": 1, "model": MODEL}
    if not body.get("stream"):
        choice = {"index": 0, "message": message, "finish_reason": ended}
        return json.dumps(
            {**common, "object": "chat.completion", "choices": [choice], "usage": usage}
        ).encode()
    calls = [{"index": at, **call} for at, call in enumerate(message.pop("tool_calls", ()))]
    delta = {**message, **({"tool_calls": calls} if calls else {})}
    chunks = [
        {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": ended}]},
        {"choices": [], "usage": usage},
    ]
    lines = [json.dumps({**common, "object": "chat.completion.chunk", **chunk}) for chunk in chunks]
    return "".join(f"data: {line}\n\n" for line in (*lines, "[DONE]")).encode()


@contextmanager
def asked(clis: Sequence[str]) -> Iterator[Cab]:
    """One cell of each CLI with the server, one after the other."""
    held: list[Endpoint] = []
    with (
        serving(lambda number, _: (200, answer(json.loads(held[0].bodies[number - 1])))) as endpoint,
        Cab.own() as cab,
    ):
        held.append(endpoint)
        cab.env |= {"CAB_ENDPOINT": endpoint.url, "CAB_KEY": "a-key-of-the-tests"}
        spec = cab.spec(clis=list(clis), stacks=[{"name": "facts", "plugins": ["facts"]}], **HOSTED)
        cab.sweep("run", spec).end(0, timeout_s=WHOLE_S)
        yield cab


@pytest.fixture(scope="module")
def called() -> Iterator[Cab]:
    with asked(TAKING) as cab:
        yield cab


@pytest.mark.parametrize("cli", TAKING)
def test_the_servers_answer_reaches_the_model(called: Cab, cli: str) -> None:
    cell = cell_dir(called, cli, PYTHON_TASK, stack="facts", model=MODEL)
    assert FACT in words(main_requests(cell)[-1])
