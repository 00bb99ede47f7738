"""The wires' own Python clients take the gateway for the endpoint: they find their paths, are let in, and
read what they are sent.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from anthropic import APIStatusError as AnthropicError
from anthropic import AsyncAnthropic
from gateway_rig import CREDENTIAL, MODEL, Handler, Rig, json_reply, rig
from google import genai
from google.genai import errors, types
from openai import APIStatusError as OpenAIError
from openai import AsyncOpenAI
from wire_corpus import ARGUMENTS, CORPUS, TEXT, Exchange, counted, label, reply

from orchestrator.adapter import Wire

Told = tuple[str, list[tuple[str, Any]]]
"""The text and the tool calls that a client read."""

SDK_EXCHANGES = [exchange for exchange in CORPUS if exchange.usage and not exchange.label.endswith("listed")]


def transport(gateway: Rig) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(transport=httpx2.AsyncHTTPTransport(uds=str(gateway.route.socket)))


def openai(http: httpx2.AsyncClient) -> AsyncOpenAI:
    return AsyncOpenAI(base_url="http://cell/v1", api_key=CREDENTIAL, http_client=http, max_retries=0)


def anthropic(http: httpx2.AsyncClient) -> AsyncAnthropic:
    return AsyncAnthropic(base_url="http://cell", api_key=CREDENTIAL, http_client=http, max_retries=0)


def google(http: httpx2.AsyncClient) -> genai.Client:
    options = types.HttpOptions(base_url="http://cell", httpx_async_client=http)
    return genai.Client(api_key=CREDENTIAL, http_options=options)


async def chat(http: httpx2.AsyncClient, exchange: Exchange) -> Told:
    create: Any = openai(http).chat.completions.create
    if not exchange.streamed:
        message = (await create(**exchange.request)).choices[0].message
        calls = [call.function for call in message.tool_calls or []]
        return message.content, [(call.name, json.loads(call.arguments)) for call in calls]
    text, name, arguments = "", "", ""
    async for chunk in await create(**exchange.request):
        for choice in chunk.choices:
            text += choice.delta.content or ""
            for part in choice.delta.tool_calls or []:
                name += part.function.name or ""
                arguments += part.function.arguments or ""
    return text, [(name, json.loads(arguments))] if name else []


async def responses(http: httpx2.AsyncClient, exchange: Exchange) -> Told:
    response: Any = await openai(http).responses.create(**exchange.request)
    if exchange.streamed:
        events = [event async for event in response]
        response = events[-1].response
        assert "".join(event.delta for event in events if event.type.endswith("text.delta")) == TEXT
    calls = [item for item in response.output if item.type == "function_call"]
    return response.output_text, [(call.name, json.loads(call.arguments)) for call in calls]


async def messages(http: httpx2.AsyncClient, exchange: Exchange) -> Told:
    client = anthropic(http)
    request = {name: value for name, value in exchange.request.items() if name != "stream"}
    if exchange.streamed:
        async with client.messages.stream(**request) as stream:
            message = await stream.get_final_message()
    else:
        message = await client.messages.create(**request)
    assert (message.usage.output_tokens, message.usage.cache_read_input_tokens) == (33, 64)
    text = "".join(block.text for block in message.content if block.type == "text")
    return text, [(block.name, block.input) for block in message.content if block.type == "tool_use"]


async def gemini(http: httpx2.AsyncClient, exchange: Exchange) -> Told:
    models = google(http).aio.models
    asked: dict[str, Any] = {"model": "another", "contents": "go"}
    found = [await models.generate_content(**asked)] if not exchange.streamed else []
    if exchange.streamed:
        found = [part async for part in await models.generate_content_stream(**asked)]
    parts = [
        part
        for response in found
        for candidate in response.candidates or []
        for part in (candidate.content.parts if candidate.content else None) or []
    ]
    text = "".join(part.text or "" for part in parts if not part.thought)
    calls = [part.function_call for part in parts if part.function_call]
    return text, [(call.name or "", call.args) for call in calls]


CLIENTS: dict[Wire, Callable[[httpx2.AsyncClient, Exchange], Awaitable[Told]]] = {
    "chat": chat,
    "responses": responses,
    "messages": messages,
    "gemini": gemini,
}


@pytest.mark.parametrize("exchange", SDK_EXCHANGES, ids=label)
def test_client_reads_what_the_endpoint_said(tmp_path: Path, exchange: Exchange) -> None:
    async def run() -> None:
        async with rig(tmp_path, reply(exchange), wire=exchange.wire) as gateway, transport(gateway) as http:
            assert await CLIENTS[exchange.wire](http, exchange) == (TEXT, exchange.calls)
            assert exchange.calls in ([], [("read", ARGUMENTS)])
            await gateway.close()
            (call,) = counted(gateway)
            assert (call.error, call.usage) == (None, exchange.usage)

    asyncio.run(run())


async def openai_models(http: httpx2.AsyncClient) -> list[str]:
    one = await openai(http).models.retrieve(MODEL)
    return [model.id async for model in openai(http).models.list()] + [one.id]


async def anthropic_models(http: httpx2.AsyncClient) -> list[str]:
    one = await anthropic(http).models.retrieve(MODEL)
    return [model.id async for model in anthropic(http).models.list()] + [one.id]


async def google_models(http: httpx2.AsyncClient) -> list[str]:
    models = google(http).aio.models
    names = [model.name or "" async for model in await models.list(config={"query_base": True})]
    names.append((await models.get(model=MODEL)).name or "")
    return [name.removeprefix("models/") for name in names]


MODELS: list[tuple[Wire, Callable[[httpx2.AsyncClient], Awaitable[list[str]]]]] = [
    ("chat", openai_models),
    ("responses", openai_models),
    ("messages", anthropic_models),
    ("gemini", google_models),
]


@pytest.mark.parametrize(("wire", "models"), MODELS)
def test_client_finds_the_cells_model(
    tmp_path: Path, wire: Wire, models: Callable[[httpx2.AsyncClient], Awaitable[list[str]]]
) -> None:
    async def run() -> None:
        async with rig(tmp_path, json_reply({}), wire=wire) as gateway, transport(gateway) as http:
            assert await models(http) == [MODEL, MODEL]
            assert gateway.seen == []

    asyncio.run(run())


async def count_responses(http: httpx2.AsyncClient) -> int | None:
    return (await openai(http).responses.input_tokens.count(model="m", input="go")).input_tokens


async def count_messages(http: httpx2.AsyncClient) -> int | None:
    client = anthropic(http)
    return (
        await client.messages.count_tokens(model="m", messages=[{"role": "user", "content": "go"}])
    ).input_tokens


async def count_gemini(http: httpx2.AsyncClient) -> int | None:
    return (await google(http).aio.models.count_tokens(model="m", contents="go")).total_tokens


Count = Callable[[httpx2.AsyncClient], Awaitable[int | None]]
COUNTS: list[tuple[Wire, dict[str, Any], Count]] = [
    ("responses", {"object": "response.input_tokens", "input_tokens": 7}, count_responses),
    ("messages", {"input_tokens": 7}, count_messages),
    ("gemini", {"totalTokens": 7}, count_gemini),
]


@pytest.mark.parametrize(("wire", "answer", "count"), COUNTS)
def test_client_has_its_tokens_counted(
    tmp_path: Path, wire: Wire, answer: dict[str, Any], count: Count
) -> None:
    async def run() -> None:
        async with rig(tmp_path, json_reply(answer), wire=wire) as gateway, transport(gateway) as http:
            assert await count(http) == 7

    asyncio.run(run())


def refused(wire: Wire) -> Handler:
    bodies: dict[Wire, dict[str, Any]] = {
        "messages": {"type": "error", "error": {"type": "invalid_request_error", "message": "too odd"}},
        "gemini": {"error": {"code": 400, "status": "INVALID_ARGUMENT", "message": "too odd"}},
    }
    openai_error = {"error": {"message": "too odd", "type": "invalid_request_error", "code": None}}
    return json_reply(bodies.get(wire, openai_error), 400)


@pytest.mark.parametrize("wire", CLIENTS)
def test_client_reads_errors_of_the_endpoint_and_of_the_gateway(tmp_path: Path, wire: Wire) -> None:
    exchange = next(exchange for exchange in SDK_EXCHANGES if exchange.wire == wire)

    async def run() -> None:
        found: list[tuple[int, bool]] = []
        async with rig(tmp_path, refused(wire), wire=wire, max_calls=1) as gateway:
            for message in ("too odd", "limit on calls"):
                async with transport(gateway) as http:
                    with pytest.raises((OpenAIError, AnthropicError, errors.APIError)) as raised:
                        await CLIENTS[wire](http, exchange)
                status = getattr(raised.value, "status_code", None) or getattr(raised.value, "code", 0)
                found.append((status, message in str(raised.value)))
        assert found == [(400, True), (403, True)]

    asyncio.run(run())
