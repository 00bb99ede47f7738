"""An MCP server on stdin and stdout: JSON-RPC 2.0, one message a line, one tool. It needs Python alone, which
every image of cab's has.
"""

import json
import sys
from pathlib import Path
from typing import Any

VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18")
"""Of the protocol; what is used of it is the same in all of them."""

TOOL = {
    "name": "lookup",
    "description": "Look up a rule of a standard library by words of its title, as 'python slice'.",
    "inputSchema": {
        "type": "object",
        "properties": {"title": {"type": "string", "description": "Words of the title."}},
        "required": ["title"],
    },
}

METHOD_NOT_FOUND, INVALID_PARAMS, PARSE_ERROR = -32601, -32602, -32700
FACTS: dict[str, str] = json.loads((Path(__file__).parent / "facts.json").read_text(encoding="utf-8"))


class Refused(Exception):
    """A request that is answered by an error: code and message."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def lookup(title: str) -> str:
    """Every fact whose title holds all of the words, or the titles there are."""
    words = title.lower().split()
    found = [
        f"{name}: {text}" for name, text in FACTS.items() if words and all(word in name for word in words)
    ]
    return "\n".join(found) or f"Nothing found. Titles: {', '.join(FACTS)}"


def result_of(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """The answer to one request. Raises Refused."""
    if method == "initialize":
        asked = params.get("protocolVersion")
        return {
            "protocolVersion": asked if asked in VERSIONS else VERSIONS[-1],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "facts", "version": "1"},
        }
    if method == "ping":
        return {}
    if method == "tools/list":
        return {"tools": [TOOL]}
    if method == "tools/call":
        arguments = params.get("arguments")
        title = arguments.get("title") if isinstance(arguments, dict) else None
        if params.get("name") != TOOL["name"] or not isinstance(title, str):
            raise Refused(INVALID_PARAMS, "the one tool is lookup, and wants a title")
        return {"content": [{"type": "text", "text": lookup(title)}]}
    raise Refused(METHOD_NOT_FOUND, f"there is no method {method}")


def answer(line: str) -> dict[str, Any] | None:
    """The reply to one line; None where it wants none."""
    try:
        message = json.loads(line)
    except ValueError:
        return {"jsonrpc": "2.0", "id": None, "error": {"code": PARSE_ERROR, "message": "is no JSON"}}
    if not isinstance(message, dict) or "id" not in message or "method" not in message:
        return None
    head = {"jsonrpc": "2.0", "id": message["id"]}
    params = message.get("params")
    try:
        return {
            **head,
            "result": result_of(str(message["method"]), params if isinstance(params, dict) else {}),
        }
    except Refused as refused:
        return {**head, "error": {"code": refused.code, "message": str(refused)}}


def main() -> None:
    """Answer until the CLI closes the line."""
    for line in sys.stdin:
        if (reply := answer(line)) is not None:
            sys.stdout.write(json.dumps(reply) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
