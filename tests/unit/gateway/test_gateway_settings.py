"""Settings that a sweep sets go upstream by each wire's own names, and nothing else of a request changes."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from gateway_rig import AUTH, MODEL, completion, json_reply, request_body, rig

from orchestrator.adapter import Wire
from orchestrator.gateway.settings import GenerationSettings
from orchestrator.gateway.wires import WIRES

ALL = GenerationSettings(temperature=0.25, top_p=0.5, max_output_tokens=100, reasoning_effort="high", seed=7)
TEXT: dict[Wire, dict[str, Any]] = {
    "chat": {"messages": [{"role": "user", "content": "hi"}]},
    "responses": {"input": "hi"},
    "messages": {"messages": [{"role": "user", "content": "hi"}]},
    "gemini": {"contents": [{"parts": [{"text": "hi"}]}]},
}
CONFIG = {
    "temperature": 0.25,
    "topP": 0.5,
    "maxOutputTokens": 100,
    "seed": 7,
    "thinkingConfig": {"thinkingLevel": "HIGH"},
}
PLAIN = {"temperature": 0.25, "top_p": 0.5}


@pytest.mark.parametrize(
    ("wire", "asked", "sent", "before"),
    [
        (
            "chat",
            {},
            {**PLAIN, "seed": 7, "reasoning_effort": "high", "max_completion_tokens": 100},
            {},
        ),
        (
            "chat",
            {"temperature": 1, "max_tokens": 9, "stop": ["x"]},
            {**PLAIN, "seed": 7, "reasoning_effort": "high", "max_tokens": 100, "stop": ["x"]},
            {"temperature": 1, "max_tokens": 9},
        ),
        (
            "responses",
            {"reasoning": {"effort": "low", "summary": "auto"}},
            {**PLAIN, "max_output_tokens": 100, "reasoning": {"effort": "high", "summary": "auto"}},
            {"reasoning": {"effort": "low", "summary": "auto"}},
        ),
        (
            "messages",
            {"max_tokens": 32000, "thinking": {"type": "adaptive"}},
            {
                **PLAIN,
                "max_tokens": 100,
                "thinking": {"type": "adaptive"},
                "output_config": {"effort": "high"},
            },
            {"max_tokens": 32000},
        ),
        ("gemini", {}, {"generationConfig": CONFIG}, {}),
        (
            "gemini",
            {"generationConfig": {"topK": 3, "thinkingConfig": {"thinkingBudget": 8}, "seed": 7}},
            {"generationConfig": {"topK": 3, **CONFIG}},
            {"thinkingConfig": {"thinkingBudget": 8}},
        ),
        (
            "gemini",
            {"generation_config": {"max_output_tokens": 5, "thinking_config": {"include_thoughts": True}}},
            {
                "generation_config": {
                    "temperature": 0.25,
                    "topP": 0.5,
                    "seed": 7,
                    "max_output_tokens": 100,
                    "thinking_config": {"include_thoughts": True, "thinkingLevel": "HIGH"},
                }
            },
            {"maxOutputTokens": 5, "thinkingConfig": {"include_thoughts": True}},
        ),
    ],
)
def test_each_wire_has_its_own_names(
    wire: Wire, asked: dict[str, Any], sent: dict[str, Any], before: dict[str, Any]
) -> None:
    wanted = ALL if wire in ("chat", "gemini") else ALL.model_copy(update={"seed": None})
    assert WIRES[wire].cannot_set(wanted) is None
    named = {} if wire == "gemini" else {"model": MODEL}
    found = WIRES[wire].prepare(json.dumps({**named, **TEXT[wire], **asked}).encode(), MODEL, wanted)
    assert json.loads(found.body) == {**named, **TEXT[wire], **sent}
    assert {name: value for name, value in found.settings_before.items() if value is not None} == before
    unset = {name for name, value in found.settings_before.items() if value is None}
    assert unset == found.settings.keys() - before.keys() - {"stop", "thinking", "topK"} - (
        {"seed"} if "seed" in asked.get("generationConfig", {}) else set()
    )


@pytest.mark.parametrize("wire", list(WIRES))
def test_what_is_not_set_stays_byte_for_byte(wire: Wire) -> None:
    named = "" if wire == "gemini" else f'"model" :"{MODEL}",'
    body = f'{{ {named} "x":1.50, {json.dumps(TEXT[wire])[1:-1]} }}'.encode()
    found = WIRES[wire].prepare(body, MODEL)
    assert (found.body, found.settings_before) == (body, {})
    same = GenerationSettings(temperature=0.5)
    if wire != "gemini":
        has = body.replace(b'"x":1.50', b'"temperature":0.50')
        found = WIRES[wire].prepare(has, MODEL, same)
        assert (found.body, found.settings_before) == (has, {})
        found = WIRES[wire].prepare(body, MODEL, same)
        assert found.body == body[:-1] + b',"temperature":0.5}'


@pytest.mark.parametrize(
    ("wire", "given", "why"),
    [
        ("responses", {"seed": 1}, "the wire responses has no seed"),
        ("messages", {"seed": 1}, "the wire messages has no seed"),
        ("messages", {"reasoning_effort": "minimal"}, "the wire messages has no reasoning_effort 'minimal'"),
        ("messages", {"temperature": 1.5}, "the wire messages has no temperature above 1"),
        ("gemini", {"reasoning_effort": "none"}, "the wire gemini has no reasoning_effort 'none'"),
    ],
)
def test_what_a_wire_cannot_say(wire: Wire, given: dict[str, Any], why: str) -> None:
    assert WIRES[wire].cannot_set(GenerationSettings(**given)) == why


@pytest.mark.parametrize(
    ("wire", "path"),
    [
        ("responses", "/v1/responses/compact"),
        ("responses", "/v1/responses/input_tokens"),
        ("messages", "/v1/messages/count_tokens"),
        ("gemini", "/v1beta/models/m:countTokens"),
    ],
)
def test_a_request_that_generates_nothing_takes_no_settings(wire: Wire, path: str) -> None:
    found = WIRES[wire].match("POST", path, MODEL)
    assert found is not None
    assert not found.generates


def test_what_went_upstream_and_what_the_cli_had_asked_for_are_recorded(tmp_path: Path) -> None:
    async def scenario() -> None:
        settings = GenerationSettings(temperature=0.0, max_output_tokens=64)
        async with rig(tmp_path, json_reply(completion()), settings=settings) as it:
            await it.post(request_body(temperature=0.9, top_p=0.8))
            assert it.seen[0].json["temperature"] == 0.0
            assert it.seen[0].json["max_completion_tokens"] == 64
            (call,) = await it.close()
            assert call.settings == {"temperature": 0.0, "top_p": 0.8, "max_completion_tokens": 64}
            assert call.settings_before == {"temperature": 0.9, "max_completion_tokens": None}
            (body,) = it.wire()
            assert body.request["temperature"] == 0.9

    asyncio.run(scenario())


def test_a_model_that_is_not_the_cells_is_refused_where_the_adapter_says_so(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with rig(tmp_path, json_reply(completion()), other_models="refuse", max_calls=1) as it:
            for _ in range(2):
                status, body = await it.post(request_body(model="vendor/small"))
                assert (status, json.loads(body)["error"]["code"]) == (404, "model_not_found")
            status, _ = await it.post(request_body(model=MODEL))
            assert status == 200
            assert len(it.seen) == 1
            *refused, call = await it.close()
            assert [one.error for one in refused] == ["other_model"] * 2
            assert {(one.request_model, one.other_model) for one in refused} == {("vendor/small", True)}
            assert (call.error, call.other_model) == (None, False)

    asyncio.run(scenario())


def test_else_it_is_sent_to_the_cells_model_and_flagged(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with rig(tmp_path, json_reply(completion(system_fingerprint="fp_1"))) as it:
            status, _ = await it.post(request_body(model="vendor/small"))
            assert (status, it.seen[0].json["model"]) == (200, MODEL)
            async with it.client.post(
                "http://cell/v1/chat/completions", json=TEXT["chat"], headers=AUTH
            ) as reply:
                assert reply.status == 200
            named, unnamed = await it.close()
            assert (named.request_model, named.other_model) == ("vendor/small", True)
            assert (unnamed.request_model, unnamed.other_model) == (None, False)
            assert (named.reported_model, named.fingerprint) == ("vendor/model-1-build7", "fp_1")

    asyncio.run(scenario())


@pytest.mark.parametrize(("wire", "code"), [("messages", "not_found_error"), ("gemini", "NOT_FOUND")])
def test_each_wire_refuses_a_model_in_its_own_words(wire: Wire, code: str) -> None:
    error = json.loads(WIRES[wire].error_body("no such model", "model_not_found"))["error"]
    assert code in (error.get("type"), error.get("status"))


def test_a_translated_request_has_them_by_the_endpoints_names(tmp_path: Path) -> None:
    async def scenario() -> None:
        settings = GenerationSettings(seed=7, max_output_tokens=64, reasoning_effort="none")
        async with rig(tmp_path, json_reply(completion()), settings=settings, cli_wire="messages") as it:
            body = {**TEXT["messages"], "model": "small", "max_tokens": 32000}
            async with it.client.post("http://cell/v1/messages", json=body, headers=AUTH) as reply:
                assert reply.status == 200
            sent = it.seen[0].json
            assert (sent["model"], sent["seed"], sent["reasoning_effort"]) == (MODEL, 7, "none")
            assert 32000 not in sent.values()
            (call,) = await it.close()
            assert (call.request_model, call.other_model) == ("small", True)
            assert 32000 in call.settings_before.values()

    asyncio.run(scenario())
