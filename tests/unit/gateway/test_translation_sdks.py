"""The clients of responses, messages and Gemini work with an endpoint of chat completions, and read all
that it said.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from chat_answers import ANSWERS, CALLS, TEXT, THOUGHT, ChatAnswer
from gateway_rig import CREDENTIAL, Rig, completion, in_turn, json_reply, rig
from google.genai import types
from test_gateway_sdks import anthropic, google, openai, transport
from wire_corpus import counted

from orchestrator.adapter import Wire
from scorers.evidence import Usage


@dataclass(frozen=True)
class Read:
    """What a client read of an answer; counts are (input, cached, output, reasoning) in chat's terms."""

    thought: str
    text: str
    calls: list[tuple[str | None, str, Any]]
    end: str
    counts: tuple[int, int, int, int] | None


async def responses(http: httpx2.AsyncClient, answer: ChatAnswer) -> Read:
    client = openai(http)
    tools: Any = [{"type": "function", "name": name, "parameters": {}} for _, name, _ in CALLS]
    asked: dict[str, Any] = {"model": "alias", "instructions": "Be brief", "input": "go", "tools": tools}
    if answer.streamed:
        kinds = []
        async with client.responses.stream(**asked) as stream:
            async for event in stream:
                kinds.append(event.type)
            response: Any = await stream.get_final_response()
        assert kinds == responses_events(answer)
    else:
        response = await client.responses.create(**asked)
    thoughts = [part.text for item in response.output if item.type == "reasoning" for part in item.content]
    calls = [item for item in response.output if item.type == "function_call"]
    used = response.usage
    counts = used and (
        used.input_tokens,
        used.input_tokens_details.cached_tokens,
        used.output_tokens,
        used.output_tokens_details.reasoning_tokens,
    )
    told = [(call.call_id, call.name, json.loads(call.arguments)) for call in calls]
    return Read("".join(thoughts), response.output_text, told, response.status, counts)


def responses_events(answer: ChatAnswer) -> list[str]:
    """The kinds of events of the wire, in its order."""
    kinds = ["response.created", "response.in_progress"]
    for kind in (*(("reasoning_text",) if answer.reasoning else ()), "output_text"):
        kinds += ["response.output_item.added", "response.content_part.added"]
        kinds += [f"response.{kind}.delta"] * 2 + [f"response.{kind}.done"]
        kinds += ["response.content_part.done", "response.output_item.done"]
    for _ in CALLS if answer.tools else ():
        kinds += ["response.output_item.added", *["response.function_call_arguments.delta"] * 2]
        kinds += ["response.function_call_arguments.done", "response.output_item.done"]
    return [*kinds, "response.completed"]


async def messages(http: httpx2.AsyncClient, answer: ChatAnswer) -> Read:
    client = anthropic(http)
    tools: Any = [{"name": name, "input_schema": {"type": "object"}} for _, name, _ in CALLS]
    asked: dict[str, Any] = {
        "model": "alias",
        "max_tokens": 64,
        "system": "Be brief",
        "messages": [{"role": "user", "content": "go"}],
        "tools": tools,
    }
    if answer.streamed:
        raw = [event.type async for event in await client.messages.create(**asked, stream=True)]
        assert raw == messages_events(answer)
        async with client.messages.stream(**asked) as stream:
            message: Any = await stream.get_final_message()
    else:
        message = await client.messages.create(**asked)
    blocks = {
        kind: [b for b in message.content if b.type == kind] for kind in ("thinking", "text", "tool_use")
    }
    told = [(block.id, block.name, block.input) for block in blocks["tool_use"]]
    used = message.usage
    counts = None
    if used.output_tokens:
        read = used.cache_read_input_tokens
        details = used.output_tokens_details
        counts = (used.input_tokens + read, read, used.output_tokens, details.thinking_tokens)
    thought = "".join(block.thinking for block in blocks["thinking"])
    return Read(thought, "".join(b.text for b in blocks["text"]), told, message.stop_reason, counts)


def messages_events(answer: ChatAnswer) -> list[str]:
    blocks = 1 + answer.reasoning + (len(CALLS) if answer.tools else 0)
    block = ["content_block_start", "content_block_delta", "content_block_delta", "content_block_stop"]
    return ["message_start", *block * blocks, "message_delta", "message_stop"]


async def gemini(http: httpx2.AsyncClient, answer: ChatAnswer) -> Read:
    models = google(http).aio.models
    declared = [types.FunctionDeclaration(name=name) for _, name, _ in CALLS]
    config = types.GenerateContentConfig(
        system_instruction="Be brief",
        tools=[types.Tool(function_declarations=declared)],
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
    )
    asked: Any = {"model": "alias", "contents": "go", "config": config}
    if answer.streamed:
        found = [part async for part in await models.generate_content_stream(**asked)]
    else:
        found = [await models.generate_content(**asked)]
    candidates = [candidate for response in found for candidate in response.candidates or []]
    parts = [part for c in candidates for part in (c.content.parts if c.content else None) or []]
    thought = "".join(part.text or "" for part in parts if part.thought)
    text = "".join(part.text or "" for part in parts if not part.thought)
    calls = [part.function_call for part in parts if part.function_call]
    used = found[-1].usage_metadata
    counts = None
    if used:
        thoughts = used.thoughts_token_count or 0
        said = (used.candidates_token_count or 0) + thoughts
        assert used.total_token_count == (used.prompt_token_count or 0) + said
        counts = (used.prompt_token_count or 0, used.cached_content_token_count or 0, said, thoughts)
    told = [(call.id, call.name or "", call.args) for call in calls]
    end = candidates[-1].finish_reason
    return Read(thought, text, told, end.value if end else "", counts)


CLIENTS: dict[Wire, Callable[[httpx2.AsyncClient, ChatAnswer], Awaitable[Read]]] = {
    "responses": responses,
    "messages": messages,
    "gemini": gemini,
}
ENDS: dict[Wire, dict[str, str]] = {
    "responses": {"stop": "completed", "tool_calls": "completed"},
    "messages": {"stop": "end_turn", "tool_calls": "tool_use"},
    "gemini": {"stop": "STOP", "tool_calls": "STOP"},
}


@pytest.mark.parametrize("answer", ANSWERS, ids=str)
@pytest.mark.parametrize("wire", CLIENTS)
def test_client_reads_all_that_the_endpoint_said(tmp_path: Path, wire: Wire, answer: ChatAnswer) -> None:
    async def run() -> tuple[Read, Rig]:
        async with rig(tmp_path, answer.handler(), cli_wire=wire) as gateway, transport(gateway) as http:
            read = await CLIENTS[wire](http, answer)
            await gateway.close()
            return read, gateway

    read, gateway = asyncio.run(run())
    assert read == Read(
        THOUGHT if answer.reasoning else "",
        TEXT,
        CALLS if answer.tools else [],
        ENDS[wire][answer.finish],
        (120, 64, 33, 20) if answer.usage else None,
    )
    for call in counted(gateway):
        assert (call.error, call.cli_wire, call.finish_reason) == (None, wire, answer.finish)
        assert call.usage == (
            Usage(input=120, output=33, cached_read=64, reasoning=20) if answer.usage else None
        )
    told = [(call.call_id, call.name) for body in gateway.wire() for call in body.answer().calls]
    assert told[: len(CALLS)] == ([call[:2] for call in CALLS] if answer.tools else [])


ASKS = ChatAnswer(streamed=False, tools=True, reasoning=True, usage=True)
ANSWERED: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief"},
    {"role": "user", "content": "go"},
    {
        "role": "assistant",
        "content": TEXT,
        "tool_calls": ASKS.body["choices"][0]["message"]["tool_calls"],
    },
    {"role": "tool", "tool_call_id": "call_a", "content": "a = 1"},
    {"role": "tool", "tool_call_id": "call_b", "content": "Error: gone"},
]


async def responses_loop(http: httpx2.AsyncClient) -> str:
    client: Any = openai(http)
    tools: Any = [{"type": "function", "name": name, "parameters": {}} for _, name, _ in CALLS]
    said: list[Any] = [{"role": "user", "content": "go"}]
    asked = {"model": "m", "instructions": "Be brief", "tools": tools, "store": False}
    first = await client.responses.create(input=said, **asked)
    said += [item.model_dump(exclude_none=True) for item in first.output]
    said.append({"type": "function_call_output", "call_id": "call_a", "output": "a = 1"})
    failed = [{"type": "input_text", "text": "Error: gone"}]
    said.append({"type": "function_call_output", "call_id": "call_b", "output": failed})
    return str((await client.responses.create(input=said, **asked)).output_text)


async def messages_loop(http: httpx2.AsyncClient) -> str:
    client: Any = anthropic(http)
    tools: Any = [{"name": name, "input_schema": {"type": "object"}} for _, name, _ in CALLS]
    asked = {"model": "m", "max_tokens": 9, "system": "Be brief", "tools": tools}
    said: list[Any] = [{"role": "user", "content": "go"}]
    first = await client.messages.create(messages=said, **asked)
    said.append({"role": "assistant", "content": [b.model_dump(exclude_none=True) for b in first.content]})
    results: list[Any] = [
        {"type": "tool_result", "tool_use_id": "call_a", "content": [{"type": "text", "text": "a = 1"}]},
        {"type": "tool_result", "tool_use_id": "call_b", "content": "gone", "is_error": True},
    ]
    said.append({"role": "user", "content": results})
    return str((await client.messages.create(messages=said, **asked)).content[0].text)


async def gemini_loop(http: httpx2.AsyncClient) -> str:
    models = google(http).aio.models
    declared = [types.FunctionDeclaration(name=name) for _, name, _ in CALLS]
    config = types.GenerateContentConfig(
        system_instruction="Be brief",
        tools=[types.Tool(function_declarations=declared)],
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
    )
    said: list[Any] = [types.Content(role="user", parts=[types.Part(text="go")])]
    first: Any = await models.generate_content(model="m", contents=said, config=config)
    said.append(first.candidates[0].content)
    results = [("read", {"output": "a = 1"}), ("list", {"error": "gone"})]
    parts = [types.Part.from_function_response(name=name, response=told) for name, told in results]
    said.append(types.Content(role="user", parts=parts))
    return (await models.generate_content(model="m", contents=said, config=config)).text or ""


LOOPS: dict[Wire, Callable[[httpx2.AsyncClient], Awaitable[str]]] = {
    "responses": responses_loop,
    "messages": messages_loop,
    "gemini": gemini_loop,
}


@pytest.mark.parametrize("wire", LOOPS)
def test_a_conversation_with_tools_reaches_the_endpoint_as_its_own(tmp_path: Path, wire: Wire) -> None:
    handler = in_turn(ASKS.handler(), json_reply(completion("All done")))

    async def run() -> None:
        async with rig(tmp_path, handler, cli_wire=wire) as gateway, transport(gateway) as http:
            assert await LOOPS[wire](http) == "All done"
            first, second = (seen.json for seen in gateway.seen)
            assert first["messages"] == ANSWERED[:2]
            assert second["messages"] == ANSWERED
            assert [tool["function"]["name"] for tool in second["tools"]] == ["read", "list"]
            assert {seen.path for seen in gateway.seen} == {"/v1/chat/completions"}

    asyncio.run(run())
    assert CREDENTIAL not in (tmp_path / "calls.jsonl").read_text()
