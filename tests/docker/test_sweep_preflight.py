"""Preflight with real CLIs, whose models at one endpoint edit, only talk, are refused, or are old."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from command import ENDED_S, Cab, completion, serving

OPENCODE, AIDER = "opencode", "aider"
WHOLE_FILE = "hello.txt\n```\ncab-ready\n```\n"
ALL = ("edits", "talks", "refused", "old")


def stream(*deltas: Mapping[str, Any], finish: str = "stop", usage: bool = True) -> bytes:
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "stub-1"}
    choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    chunks: list[dict[str, Any]] = [{"choices": [choice]} for choice in choices]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    if usage:
        counts = {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}
        chunks.append({"choices": [], "usage": counts})
    lines = [b"data: " + json.dumps(head | chunk).encode() + b"\n\n" for chunk in chunks]
    return b"".join([*lines, b"data: [DONE]\n\n"])


def error(status: int, message: str) -> tuple[int, bytes]:
    body = {"error": {"message": message, "type": "invalid_request_error", "code": None}}
    return status, json.dumps(body).encode()


@dataclass
class Models:
    """What each model of the endpoint answers. `asked` counts by model, `unfit` those that `old` refused."""

    asked: Counter[str] = field(default_factory=Counter)
    unfit: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, body: bytes) -> tuple[int, bytes]:
        request = json.loads(body)
        with self._lock:
            self.asked[request["model"]] += 1
        match request["model"]:
            case "refused":
                return error(401, "no such key")
            case "old" if "stream_options" in request:
                self.unfit += 1
                return error(400, "unknown field stream_options")
            case "old" if not request.get("stream"):  # a commit's message
                return 200, completion()
            case "old":
                return 200, stream({"role": "assistant", "content": WHOLE_FILE}, usage=False)
            case "edits" if request.get("tools"):
                return 200, self._tools(request)
            case "edits":
                return 200, stream({"role": "assistant", "content": WHOLE_FILE})
        return 200, stream({"role": "assistant", "content": "I would edit hello.txt."})

    @staticmethod
    def _tools(request: Mapping[str, Any]) -> bytes:
        """One call of the shell, and after it the end."""
        if request["messages"][-1]["role"] == "tool":
            return stream({"role": "assistant", "content": "Done."})
        arguments = json.dumps({"command": "echo cab-ready > hello.txt", "description": "edit"})
        call = {
            "index": 0,
            "id": "c1",
            "type": "function",
            "function": {"name": "bash", "arguments": arguments},
        }
        return stream({"role": "assistant", "tool_calls": [call]}, finish="tool_calls")


@pytest.mark.timeout(6 * ENDED_S)
def test_what_cannot_work_is_found_once_and_left_out() -> None:
    models = Models()
    bodies: list[bytes] = []
    with Cab.own() as cab, serving(lambda number, _: models.answer(bodies[number - 1])) as endpoint:
        bodies = endpoint.bodies
        spec = cab.spec(
            clis=[OPENCODE, AIDER],
            models=[{"id": model, "endpoint": "stub"} for model in ALL],
            endpoints={"stub": {"base_url": endpoint.url, "key": {"env": "STUB_KEY"}}},
            exclude=[{"cli": OPENCODE, "model": "old"}, {"cli": AIDER, "model": "talks"}],
            concurrency=2,
        )
        env = {"STUB_KEY": "sk-preflight"}
        done = cab.sweep("preflight", spec, "--json", **env).end(1, 2 * ENDED_S)
        found = {(it["cli"], it["model"]): it for it in done.data["pairs"]}
        verdicts = {pair: (it["verdict"], it["cause"], it["tries"]) for pair, it in found.items()}
        # One of the two CLIs found that the key is refused; the other was spared it.
        refused = sorted(verdicts.pop((cli, "refused")) for cli in (OPENCODE, AIDER))
        assert refused == [("undecided", "key_refused", 0), ("undecided", "key_refused", 1)]
        assert verdicts == {
            (OPENCODE, "edits"): ("compatible", None, 1),
            (OPENCODE, "talks"): ("incompatible", "no_edit", 3),
            (AIDER, "edits"): ("compatible", None, 1),
            (AIDER, "old"): ("compatible", None, 1),
        }
        assert found[OPENCODE, "talks"]["last_words"] == "I would edit hello.txt."
        assert (found[AIDER, "old"]["asks_usage"], found[AIDER, "old"]["states_usage"]) == (False, False)
        assert found[AIDER, "old"]["tokens"] is None
        assert (found[AIDER, "edits"]["asks_usage"], found[AIDER, "edits"]["states_usage"]) == (True, True)
        assert models.unfit == 1
        assert done.data["known_tokens"] == sum(it["known_tokens"] for it in found.values()) > 0

        asked = models.asked.copy()
        left_out = cab.sweep("run", spec, "--only", "*/talks/*", "--json", preflight=True, **env).end(1)
        assert [it["reason"].split(":")[0] for it in left_out.data["skipped"]] == ["incompatible (no_edit)"]
        required = cab.sweep(
            "run", spec, "--only", "*/old/*", "--require", "tokens.wire", preflight=True, **env
        ).end(2)
        assert "requires tokens.wire" in required.err
        assert models.asked == asked
        held = cab.sweep("run", spec, "--only", "*/refused/*", preflight=True, **env).end(1)
        assert "check the key" in held.err
        assert set(models.asked - asked) == {"refused"}
        assert cab.records() == {}

        # What it found of the endpoint holds without it, too.
        cab.sweep("run", spec, "--only", "*/old/*", **env).end(0)
        (old,) = cab.records().values()
        assert old["scores"]["tokens"]["model_calls"] > 0
        assert models.unfit == 1
        assert cab.left() == {}
