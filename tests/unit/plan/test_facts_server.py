"""The MCP server of the plugin `facts`, spoken to as a CLI does."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from orchestrator.paths import PLUGINS


def replies(*messages: dict[str, Any] | str) -> list[dict[str, Any]]:
    lines = [it if isinstance(it, str) else json.dumps({"jsonrpc": "2.0", **it}) for it in messages]
    server = [sys.executable, "-B", str(PLUGINS / "facts" / "server.py")]
    done = subprocess.run(
        server, input="\n".join(lines), capture_output=True, text=True, check=True, timeout=60
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_session() -> None:
    hello, listed, called = replies(
        {"id": 0, "method": "initialize", "params": {"protocolVersion": "2025-03-26"}},
        {"method": "notifications/initialized"},
        {"id": 1, "method": "tools/list"},
        {"id": "a", "method": "tools/call", "params": {"name": "lookup", "arguments": {"title": "Slice"}}},
    )
    assert hello["result"]["protocolVersion"] == "2025-03-26"
    assert [tool["name"] for tool in listed["result"]["tools"]] == ["lookup"]
    assert called["id"] == "a"
    assert called["result"]["content"][0]["text"].startswith("python slice: ")


def test_what_it_does_not_know_is_an_answer_too() -> None:
    hello, none, wrong, unknown, torn = replies(
        {"id": 0, "method": "initialize", "params": {"protocolVersion": "1999-01-01"}},
        {"id": 1, "method": "tools/call", "params": {"name": "lookup", "arguments": {"title": "cobol"}}},
        {"id": 2, "method": "tools/call", "params": {"name": "other"}},
        {"id": 3, "method": "resources/list"},
        "{",
    )
    assert hello["result"]["protocolVersion"] == "2025-06-18"
    assert none["result"]["content"][0]["text"].startswith("Nothing found. Titles: c realloc, ")
    assert [it["error"]["code"] for it in (wrong, unknown, torn)] == [-32602, -32601, -32700]
