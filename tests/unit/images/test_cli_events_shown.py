"""What adapters make of their CLIs' events for a recording. The events are theirs, shortened."""

import json
from pathlib import Path
from typing import Any

from orchestrator.adapter import load_adapter

IMAGES = Path(__file__).resolve().parents[3] / "images"


def shown(cli: str, *events: dict[str, Any]) -> str:
    render = load_adapter(IMAGES, cli).render
    assert render is not None
    return "".join(render(json.dumps(event)) for event in events)


def test_pi_shows_words_calls_and_results() -> None:
    def update(**event: Any) -> dict[str, Any]:
        return {"type": "message_update", "usage": {}, "assistantMessageEvent": event}

    events = [
        {"type": "message_end", "message": {"role": "user", "content": "the prompt"}},
        update(type="text_start", contentIndex=0),
        update(type="text_delta", contentIndex=0, delta="I lo"),
        update(type="text_delta", contentIndex=0, delta="ok."),
        update(type="toolcall_delta", contentIndex=1, delta='{"pa'),
        {"type": "message_end", "message": {"role": "assistant"}},
        {"type": "tool_execution_start", "toolName": "read", "args": {"path": "ä"}},
        {"type": "tool_execution_update", "partialResult": {"content": [{"type": "text", "text": "o"}]}},
        {"type": "tool_execution_end", "result": {"content": [{"type": "text", "text": "one"}]}},
        {"type": "message_end", "message": {"role": "assistant", "errorMessage": "403"}},
    ]
    assert shown("pi", *events) == 'I look.\n\x1b[36mread\x1b[0m {"path": "ä"}\none\n403\n'


def test_qwen_code_shows_words_calls_and_results() -> None:
    def message(role: str, *content: dict[str, Any]) -> dict[str, Any]:
        return {"type": role, "message": {"content": list(content)}}

    events = [
        {"type": "system", "subtype": "init"},
        message("assistant", {"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "I look."}),
        message("assistant", {"type": "tool_use", "name": "read_file", "input": {"file_path": "ä"}}),
        message("user", {"type": "tool_result", "content": "one"}),
        message("user", {"type": "tool_result", "content": [{"type": "text", "text": "two"}]}),
        {"type": "result", "result": "I look."},
    ]
    assert shown("qwen-code", *events) == (
        'Hm.\nI look.\n\x1b[36mread_file\x1b[0m {"file_path": "ä"}\none\ntwo\n'
    )
