"""Requests of responses, messages and Gemini as chat completions: what becomes what, and what is left out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from orchestrator.adapter import Wire
from orchestrator.gateway.sse import event_data, split_events
from orchestrator.gateway.translate import TRANSLATED
from orchestrator.gateway.translate.answer import AnswerTranslator
from orchestrator.gateway.translate.contract import Asked, Translated
from orchestrator.gateway.translate.table import TRANSLATIONS
from orchestrator.gateway.wire import Path

PNG = "iVBORw0KGgo="
IMAGE = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}
CALL = {"type": "function", "function": {"name": "read", "arguments": '{"a": "b"}'}}
PATHS: dict[Wire, Path] = {
    "responses": Path("call", "/responses"),
    "messages": Path("call", "/messages"),
    "gemini": Path("call", "/models/m:generateContent"),
}


def translated(wire: Wire, request: dict[str, Any], path: Path | None = None) -> Translated:
    return TRANSLATIONS[wire, "chat"].request(Asked(request, path or PATHS[wire], ""))


def spoken(wire: Wire, request: dict[str, Any]) -> list[dict[str, Any]]:
    """The messages, as text alone where they are."""
    messages: list[dict[str, Any]] = translated(wire, request).request["messages"]
    return messages


def answered(asked: Translated, *calls: tuple[str, str]) -> list[dict[str, Any]]:
    """The items of a stream in which the model makes these calls."""
    made = [
        {"id": f"call_{at}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for at, (name, arguments) in enumerate(calls)
    ]
    body = {"choices": [{"message": {"tool_calls": made}, "finish_reason": "tool_calls"}]}
    translator = AnswerTranslator(asked.writer, "tag")
    stream = split_events(translator.plain(json.dumps(body).encode()))
    return [json.loads(event_data(event) or b"") for event in stream]


def test_every_pair_that_is_planned_has_its_translation() -> None:
    assert set(TRANSLATIONS) == TRANSLATED


def text(role: str, words: str) -> dict[str, Any]:
    return {"role": role, "content": words}


def test_responses_conversation() -> None:
    items: list[dict[str, Any]] = [
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "be safe"}]},
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "look"},
                {"type": "input_image", "image_url": IMAGE["image_url"]["url"]},
            ],
        },
        {"type": "reasoning", "summary": [], "encrypted_content": "c2VjcmV0"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "so"}]},
        {"type": "function_call", "call_id": "c1", "name": "read", "arguments": '{"a": "b"}'},
        {"type": "function_call", "call_id": "c2", "name": "read", "arguments": ""},
        {"type": "function_call_output", "call_id": "c1", "output": "one"},
        {
            "type": "function_call_output",
            "call_id": "c2",
            "output": [
                {"type": "input_text", "text": "two"},
                {"type": "input_image", "image_url": IMAGE["image_url"]["url"]},
            ],
        },
        {"type": "web_search_call", "id": "ws_1", "status": "completed"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "and?"}]},
    ]
    asked = translated(
        "responses", {"model": "m", "instructions": "be brief", "input": items, "store": False}
    )
    assert asked.request["messages"] == [
        text("system", "be brief\n\nbe safe"),
        {"role": "user", "content": [{"type": "text", "text": "look"}, IMAGE]},
        {
            "role": "assistant",
            "content": "so",
            "tool_calls": [
                {"id": "c1", **CALL},
                {"id": "c2", "type": "function", "function": {"name": "read", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "one"},
        {"role": "tool", "tool_call_id": "c2", "content": "two"},
        {
            "role": "user",
            "content": [{"type": "text", "text": "From the result of tool call c2:"}, IMAGE],
        },
        text("user", "and?"),
    ]
    assert asked.dropped == ("store", "input[reasoning]", "input[web_search_call]")


def test_responses_settings() -> None:
    request = {
        "model": "m",
        "input": "go",
        "stream": True,
        "max_output_tokens": 5,
        "temperature": 0,
        "top_p": 0.5,
        "reasoning": {"effort": "high", "summary": "auto"},
        "text": {
            "verbosity": "low",
            "format": {"type": "json_schema", "name": "n", "schema": SCHEMA, "strict": True},
        },
        "include": ["reasoning.encrypted_content"],
        "prompt_cache_key": "k",
        "parallel_tool_calls": True,
    }
    asked = translated("responses", request)
    assert asked.request == {
        "model": "m",
        "stream": True,
        "temperature": 0,
        "top_p": 0.5,
        "messages": [text("user", "go")],
        "max_tokens": 5,
        "reasoning_effort": "high",
        "verbosity": "low",
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "n", "schema": SCHEMA, "strict": True},
        },
    }
    assert asked.dropped == ("include", "prompt_cache_key", "reasoning.summary")


TOOLS: list[dict[str, Any]] = [
    {"type": "function", "name": "read", "description": "Reads", "parameters": SCHEMA, "strict": False},
    {
        "type": "custom",
        "name": "apply",
        "description": "Patches",
        "format": {"type": "grammar", "syntax": "lark", "definition": "start: X"},
    },
    {"type": "namespace", "name": "agents", "tools": [{"type": "function", "name": "spawn"}]},
    {"type": "local_shell"},
    {"type": "web_search"},
]


def test_responses_tools_and_calls_of_each_kind() -> None:
    asked = translated("responses", {"input": "go", "tools": TOOLS, "tool_choice": "auto"})
    functions = [tool["function"] for tool in asked.request["tools"]]
    assert [function["name"] for function in functions] == ["read", "apply", "agents__spawn", "local_shell"]
    assert functions[0] == {"name": "read", "description": "Reads", "parameters": SCHEMA, "strict": False}
    assert functions[1]["description"] == "Patches\n\n`input` follows this lark grammar:\nstart: X"
    assert (asked.request["tool_choice"], asked.dropped) == ("auto", ("tools[web_search]",))
    events = answered(
        asked,
        ("read", '{"a": "b"}'),
        ("apply", json.dumps({"input": "*** Begin\n\u00e9"})),
        ("agents__spawn", "{}"),
        ("local_shell", '{"command": ["ls"]}'),
    )
    items = events[-1]["response"]["output"]
    assert [item["type"] for item in items] == [
        "function_call",
        "custom_tool_call",
        "function_call",
        "local_shell_call",
    ]
    assert (items[1]["name"], items[1]["input"]) == ("apply", "*** Begin\n\u00e9")
    assert (items[2]["name"], items[2]["namespace"]) == ("spawn", "agents")
    assert items[3]["action"] == {"type": "exec", "env": {}, "command": ["ls"]}
    kinds = [event["type"] for event in events]
    assert "response.custom_tool_call_input.done" in kinds
    # What the CLI sends back is what the model said.
    results = [
        {"type": "function_call_output", "call_id": "call_0", "output": "r"},
        {"type": "custom_tool_call_output", "call_id": "call_1", "output": "p"},
        {"type": "function_call_output", "call_id": "call_2", "output": "s"},
        {"type": "local_shell_call_output", "call_id": "call_3", "output": "l"},
    ]
    back = spoken("responses", {"input": [*items, *results], "tools": TOOLS})
    calls = [
        (call["function"]["name"], json.loads(call["function"]["arguments"]))
        for call in back[0]["tool_calls"]
    ]
    assert calls == [
        ("read", {"a": "b"}),
        ("apply", {"input": "*** Begin\n\u00e9"}),
        ("agents__spawn", {}),
        ("local_shell", {"type": "exec", "env": {}, "command": ["ls"]}),
    ]
    assert [message["content"] for message in back[1:]] == ["r", "p", "s", "l"]


CHOICES: list[tuple[Wire, Any, Any]] = [
    ("responses", "required", "required"),
    ("responses", {"type": "function", "name": "read"}, {"type": "function", "function": {"name": "read"}}),
    ("responses", {"type": "custom", "name": "apply"}, {"type": "function", "function": {"name": "apply"}}),
    ("responses", {"type": "allowed_tools", "mode": "required", "tools": []}, "required"),
    ("responses", {"type": "local_shell"}, {"type": "function", "function": {"name": "local_shell"}}),
    ("responses", {"type": "web_search"}, None),
    ("messages", {"type": "any"}, "required"),
    ("messages", {"type": "auto"}, "auto"),
    ("messages", {"type": "none"}, "none"),
    ("messages", {"type": "tool", "name": "read"}, {"type": "function", "function": {"name": "read"}}),
    ("gemini", {"mode": "ANY"}, "required"),
    ("gemini", {"mode": "NONE"}, "none"),
    ("gemini", {"mode": "AUTO"}, "auto"),
    (
        "gemini",
        {"mode": "ANY", "allowedFunctionNames": ["read"]},
        {"type": "function", "function": {"name": "read"}},
    ),
]


@pytest.mark.parametrize(("wire", "choice", "expected"), CHOICES)
def test_the_choice_of_tools(wire: Wire, choice: Any, expected: Any) -> None:
    requests: dict[Wire, dict[str, Any]] = {
        "responses": {"input": "go", "tools": TOOLS, "tool_choice": choice},
        "messages": {"messages": [], "tools": [{"name": "read", "input_schema": {}}], "tool_choice": choice},
        "gemini": {
            "contents": [],
            "tools": [{"functionDeclarations": [{"name": "read"}, {"name": "list"}]}],
            "toolConfig": {"functionCallingConfig": choice},
        },
    }
    made = translated(wire, requests[wire]).request
    assert made.get("tool_choice") == expected
    if "allowedFunctionNames" in choice:
        assert [tool["function"]["name"] for tool in made["tools"]] == ["read"]
    bare = {name: value for name, value in requests[wire].items() if name != "tools"}
    assert "tool_choice" not in translated(wire, bare).request


def test_messages_conversation() -> None:
    source = {"type": "base64", "media_type": "image/png", "data": PNG}
    picture = {"type": "image", "source": source}
    request = {
        "model": "m",
        "max_tokens": 9,
        "system": [
            {"type": "text", "text": "be brief"},
            {"type": "text", "text": "be safe", "cache_control": {"type": "ephemeral"}},
        ],
        "messages": [
            {
                "role": "user",
                "content": [{"type": "text", "text": "look"}, {"type": "image", "source": source}],
            },
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
                    {"type": "text", "text": "so"},
                    {"type": "tool_use", "id": "c1", "name": "read", "input": {"a": "b"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "and?"},
                    {
                        "type": "tool_result",
                        "tool_use_id": "c1",
                        "is_error": True,
                        "content": [{"type": "text", "text": "gone"}, picture],
                    },
                ],
            },
        ],
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "metadata": {"user_id": "u"},
        "stop_sequences": ["END"],
        "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": SCHEMA}},
        "tools": [
            {"name": "read", "description": "Reads", "input_schema": SCHEMA},
            {"type": "bash_20250124"},
        ],
        "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
    }
    asked = translated("messages", request)
    assert asked.request == {
        "model": "m",
        "max_tokens": 9,
        "messages": [
            text("system", "be brief\n\nbe safe"),
            {"role": "user", "content": [{"type": "text", "text": "look"}, IMAGE]},
            {"role": "assistant", "content": "so", "tool_calls": [{"id": "c1", **CALL}]},
            {"role": "tool", "tool_call_id": "c1", "content": "Error: gone"},
            {
                "role": "user",
                "content": [{"type": "text", "text": "From the result of tool call c1:"}, IMAGE],
            },
            text("user", "and?"),
        ],
        "stop": ["END"],
        "reasoning_effort": "low",
        "response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA}},
        "tools": [
            {"type": "function", "function": {"name": "read", "description": "Reads", "parameters": SCHEMA}}
        ],
        "tool_choice": "auto",
        "parallel_tool_calls": False,
    }
    assert asked.dropped == (
        "thinking",
        "metadata",
        "cache_control",
        "messages[thinking]",
        "tools[bash_20250124]",
    )


def test_gemini_conversation() -> None:
    inline = {"inlineData": {"mimeType": "image/png", "data": PNG}}
    own = {"type": "OBJECT", "properties": {"a": {"type": "STRING"}}}
    request = {
        "systemInstruction": {"parts": [{"text": "be brief"}]},
        "contents": [
            {"role": "user", "parts": [{"text": "look"}, inline]},
            {
                "role": "model",
                "parts": [
                    {"text": "hm", "thought": True},
                    {"text": "so"},
                    {"functionCall": {"name": "read", "args": {"a": "b"}}, "thoughtSignature": "c2ln"},
                    {"functionCall": {"name": "read", "args": {"a": "b"}}},
                ],
            },
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {"name": "read", "response": {"output": "one"}}},
                    {"functionResponse": {"name": "read", "response": {"a": 1}, "parts": [inline]}},
                ],
            },
        ],
        "generationConfig": {
            "temperature": 0,
            "topP": 0.5,
            "topK": 3,
            "maxOutputTokens": 9,
            "stopSequences": ["END"],
            "responseMimeType": "application/json",
            "responseSchema": own,
            "thinkingConfig": {"thinkingLevel": "LOW", "includeThoughts": True},
        },
        "tools": [{"functionDeclarations": [{"name": "read", "parameters": own}]}, {"googleSearch": {}}],
        "safetySettings": [{"category": "X"}],
    }
    asked = translated("gemini", request, Path("call", "/models/m:streamGenerateContent"))
    assert asked.request == {
        "messages": [
            text("system", "be brief"),
            {"role": "user", "content": [{"type": "text", "text": "look"}, IMAGE]},
            {
                "role": "assistant",
                "content": "so",
                "tool_calls": [{"id": "call_0", **CALL}, {"id": "call_1", **CALL}],
            },
            {"role": "tool", "tool_call_id": "call_0", "content": "one"},
            {"role": "tool", "tool_call_id": "call_1", "content": '{"a": 1}'},
            {
                "role": "user",
                "content": [{"type": "text", "text": "From the result of tool call call_1:"}, IMAGE],
            },
        ],
        "stream": True,
        "temperature": 0,
        "top_p": 0.5,
        "max_tokens": 9,
        "stop": ["END"],
        "response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA}},
        "reasoning_effort": "low",
        "tools": [{"type": "function", "function": {"name": "read", "parameters": SCHEMA}}],
    }
    assert asked.dropped == (
        "safetySettings",
        "contents[thought]",
        "contents[thoughtSignature]",
        "generationConfig.thinkingConfig.includeThoughts",
        "generationConfig.topK",
        "tools[googleSearch]",
    )


def test_schemas_of_geminis_own_form() -> None:
    own = {
        "type": "ARRAY",
        "minItems": "1",
        "items": {"type": "STRING", "nullable": True, "enum": ["x"]},
        "propertyOrdering": ["a"],
    }
    declared = {
        "name": "f",
        "parameters": {"type": "OBJECT", "properties": {"type": own}, "required": ["type"]},
    }
    made = translated("gemini", {"contents": [], "tools": [{"functionDeclarations": [declared]}]}).request
    items = {"type": ["string", "null"], "enum": ["x"]}
    assert made["tools"][0]["function"]["parameters"] == {
        "type": "object",
        "properties": {"type": {"type": "array", "minItems": 1, "items": items}},
        "required": ["type"],
    }


HOSTILE: list[tuple[Wire, dict[str, Any]]] = [
    (
        "responses",
        {"input": [1, {"type": 5}, {"type": "message", "content": 7}, {"role": [], "content": [{}]}]},
    ),
    ("responses", {"input": [{"type": "function_call", "name": 3}], "tools": [{"type": "function"}, 9, {}]}),
    ("responses", {"input": "x", "text": [], "reasoning": 5, "tools": "no", "tool_choice": [1]}),
    ("messages", {"messages": [3, {"role": 3, "content": [{"type": "image", "source": 3}]}], "system": 5}),
    (
        "messages",
        {"messages": [{"role": "assistant", "content": [{"type": "tool_use"}]}], "output_config": 1},
    ),
    ("gemini", {"contents": [{"parts": [5, {}, {"functionResponse": {}}, {"inlineData": {}}]}, 3]}),
    (
        "gemini",
        {"contents": [], "generationConfig": [], "tools": [{"functionDeclarations": 3}], "toolConfig": 1},
    ),
]


@pytest.mark.parametrize(("wire", "request_"), HOSTILE)
def test_requests_of_any_form_are_translated_or_refused(wire: Wire, request_: dict[str, Any]) -> None:
    json.dumps(translated(wire, request_).request)
