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


def test_claude_code_shows_words_calls_and_results() -> None:
    def message(role: str, *content: dict[str, Any]) -> dict[str, Any]:
        return {"type": role, "message": {"role": role, "content": list(content)}, "session_id": "4"}

    events = [
        {"type": "system", "subtype": "init", "cwd": "/workdir", "tools": ["Bash"], "model": "m"},
        message("user", {"type": "text", "text": "a reminder that nobody sees"}),
        message("assistant", {"type": "text", "text": "I look."}),
        message("assistant", {"type": "tool_use", "id": "c0", "name": "Read", "input": {"file_path": "a"}}),
        message("user", {"type": "tool_result", "tool_use_id": "c0", "content": "1\tone"}),
        message("user", {"type": "tool_result", "content": "Exit code 1\n..F.", "is_error": True}),
        message("user", {"type": "tool_result", "content": [{"type": "text", "text": "two"}]}),
        {"type": "result", "subtype": "success", "result": "I look.", "usage": {"input_tokens": 9}},
    ]
    assert shown("claude-code", *events) == (
        '\nI look.\n\n\x1b[36mRead\x1b[0m {"file_path": "a"}\n1\tone\nExit code 1\n..F.\n'
        '[{"type": "text", "text": "two"}]\n'
    )


def test_gemini_cli_shows_words_calls_and_results() -> None:
    events = [
        {"type": "init", "session_id": "6", "model": "m"},
        {"type": "message", "role": "user", "content": "the prompt"},
        {"type": "tool_use", "tool_name": "replace", "tool_id": "r0", "parameters": {"old_string": "a"}},
        {"type": "tool_result", "tool_id": "r0", "status": "success"},
        {"type": "tool_use", "tool_name": "run_shell_command", "tool_id": "r1", "parameters": {}},
        {"type": "tool_result", "tool_id": "r1", "status": "success", "output": "....\nOK\n[exit 0]"},
        {"type": "message", "role": "assistant", "content": "It is ", "delta": True},
        {"type": "message", "role": "assistant", "content": "repaired.\n", "delta": True},
        {"type": "error", "severity": "warning", "message": "Loop detected"},
        {"type": "result", "status": "success", "stats": {"total_tokens": 9}},
    ]
    assert shown("gemini-cli", *events) == (
        '\n\x1b[36mreplace\x1b[0m {"old_string": "a"}\nsuccess\n'
        "\n\x1b[36mrun_shell_command\x1b[0m {}\n....\nOK\n[exit 0]\n"
        "It is repaired.\nLoop detected\n"
    )


def test_letta_code_shows_words_calls_and_results() -> None:
    def message(kind: str, **of_it: Any) -> dict[str, Any]:
        return {"type": "message", "message_type": kind, **of_it}

    call = {"name": "Read", "tool_call_id": "c0", "arguments": '{"file_path":"a"}'}
    events = [
        {"type": "system", "subtype": "init", "model": "openai-compatible/m", "tools": ["Bash"]},
        message("usage_statistics", prompt_tokens=27065, completion_tokens=49),
        message("stop_reason", stop_reason="requires_approval"),
        message("tool_call_message", tool_call=call),
        message("tool_return_message", status="success", tool_return="1\tone"),
        message("assistant_message", content=[{"type": "text", "text": "It is "}]),
        message("assistant_message", content=[{"type": "text", "text": "repaired."}, {"type": "image"}]),
        {"type": "error", "message": "403 the limit was reached", "stop_reason": "error"},
        {"type": "result", "subtype": "success", "result": "It is repaired."},
    ]
    assert shown("letta-code", *events) == (
        '\n\x1b[36mRead\x1b[0m {"file_path":"a"}\n1\tone\nIt is repaired.\n403 the limit was reached\n'
    )


def test_mistral_vibe_shows_messages_calls_and_results() -> None:
    def message(role: str, text: str) -> dict[str, Any]:
        return {"type": "message", "role": role, "content": [{"type": "text", "text": text}]}

    def effect(verb: str, message: str, output: str | None) -> dict[str, Any]:
        display = {"summary": "…", "verb": verb, "message": message, "settledVerb": "Ran"}
        return {
            "type": "effect",
            "title": "file_system.bash",
            "detail": {"toolName": "file_system.bash", "display": display},
            "state": {"status": "completed", "outputText": output},
        }

    events = [
        message("user", "the prompt\n"),
        effect("Reading", "src/a.py", ""),
        effect("Running", "cargo test", "[exit 101]\n"),
        effect("Running", "true", None),
        {"type": "reasoning", "content": []},
        message("assistant", "It is repaired."),
    ]
    assert shown("mistral-vibe", *events) == (
        "\n\x1b[36muser\x1b[0m\nthe prompt\n"
        "\n\x1b[36mReading\x1b[0m src/a.py\n"
        "\n\x1b[36mRunning\x1b[0m cargo test\n[exit 101]\n"
        "\n\x1b[36mRunning\x1b[0m true\n"
        "\n\x1b[1massistant\x1b[0m\nIt is repaired.\n"
    )
