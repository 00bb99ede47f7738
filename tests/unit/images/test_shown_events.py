"""What is made of the events of droid and grok-cli: what a screen shows, and the totals they state."""

import json
from pathlib import Path

import pytest

from orchestrator.adapter import CliUsage, load_adapter

IMAGES = Path(__file__).resolve().parents[3] / "images"
DROID = load_adapter(IMAGES, "droid")
GROK = load_adapter(IMAGES, "grok-cli")

DROID_EVENTS = (
    ({"type": "system", "subtype": "init"}, ""),
    (
        {"type": "tool_call", "toolName": "Read", "parameters": {"file_path": "a.py"}},
        '\n\x1b[36mRead\x1b[0m {"file_path": "a.py"}\n',
    ),
    ({"type": "tool_result", "isError": False, "value": "x = 1"}, "x = 1\n"),
    ({"type": "tool_result", "isError": True, "error": {"message": "exit code: 1"}}, "exit code: 1\n"),
    ({"type": "message", "role": "assistant", "text": "Done."}, "\nDone.\n"),
    ({"type": "error", "source": "cli", "message": "Exec failed"}, "\x1b[31mExec failed\x1b[0m\n"),
    ({"type": "completion", "finalText": "Done."}, ""),
)


@pytest.mark.parametrize(("event", "shown"), DROID_EVENTS)
def test_droids_events_as_a_screen_shows_them(event: object, shown: str) -> None:
    assert DROID.render is not None
    assert DROID.render(json.dumps(event)) == shown


def test_droids_input_holds_what_a_cache_held() -> None:
    usage = {"input_tokens": 2532, "output_tokens": 153}
    usage |= {"cache_read_input_tokens": 700, "cache_creation_input_tokens": 68}
    lines = ('{"type":"system"}', json.dumps({"type": "completion", "usage": usage}, separators=(",", ":")))
    assert DROID.reported_usage is not None
    assert DROID.reported_usage("\n".join(lines) + "\n") == CliUsage(input=3300, output=153)


@pytest.mark.parametrize("printed", ["", '{"type":"error","message":"Exec failed"}\n'])
def test_droid_without_a_last_event_states_nothing(printed: str) -> None:
    assert DROID.reported_usage is not None
    assert DROID.reported_usage(printed) is None


def test_groks_messages_as_a_screen_shows_them() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}
    message = {"role": "assistant", "content": "Looking.", "tool_calls": [call]}
    assert GROK.render is not None
    assert GROK.render(json.dumps(message)) == 'Looking.\n\x1b[36mbash\x1b[0m {"command": "ls"}\n\n'
    assert GROK.render('{"role":"user","content":"Mend it"}') == "Mend it\n\n"
