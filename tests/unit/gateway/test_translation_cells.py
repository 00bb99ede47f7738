"""A translated cell as a whole: scripted models serve CLIs of every wire, its record is read as any other's,
and a replay of it is answered from it.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from chat_answers import ASKS_STREAMED, CALLS, TEXT
from gateway_rig import completion, in_turn, json_reply, make_route, rig
from test_translation_faults import STREAMED
from wire_corpus import ask, counted

from orchestrator.adapter import Wire
from orchestrator.errors import InputError
from orchestrator.gateway.contract import Replay, ReplayReport, Script
from orchestrator.gateway.evidence import recorded_wire
from orchestrator.gateway.wires import WIRES
from orchestrator.trace.tools import final_message, tool_calls

PARAMETERS = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
TOOLS: dict[Wire, Any] = {
    "responses": [{"type": "function", "name": "bash", "parameters": PARAMETERS}],
    "messages": [{"name": "bash", "input_schema": PARAMETERS}],
    "gemini": [{"functionDeclarations": [{"name": "bash", "parametersJsonSchema": PARAMETERS}]}],
}


def following(wire: Wire, call_id: str, name: str, arguments: dict[str, Any], result: str) -> Any:
    """What a CLI sends after a tool call was answered: the conversation so far."""
    match wire:
        case "responses":
            call = {"type": "function_call", "call_id": call_id, "name": name, "arguments": str(arguments)}
            output = {"type": "function_call_output", "call_id": call_id, "output": result}
            return {"input": [{"role": "user", "content": "go"}, call, output]}
        case "messages":
            use = {"type": "tool_use", "id": call_id, "name": name, "input": arguments}
            told = {"type": "tool_result", "tool_use_id": call_id, "content": result}
            said = [("user", "go"), ("assistant", [use]), ("user", [told])]
            return {"messages": [{"role": role, "content": content} for role, content in said]}
        case _:
            asked = {"functionCall": {"id": call_id, "name": name, "args": arguments}}
            told = {"functionResponse": {"id": call_id, "name": name, "response": {"output": result}}}
            parts = [("user", {"text": "go"}), ("model", asked), ("user", told)]
            return {"contents": [{"role": role, "parts": [part]} for role, part in parts]}


@pytest.mark.parametrize("wire", STREAMED)
def test_a_scripted_model_acts_with_the_tools_of_the_cli(tmp_path: Path, wire: Wire) -> None:
    script = Script(kind="loop")
    changes = {"endpoint": None, "script": script, "model": "embedded/loop", "cli_wire": wire}

    async def run() -> None:
        async with rig(tmp_path, json_reply(completion()), **changes) as gateway:
            path, body = STREAMED[wire]
            path = path.replace("vendor/model-1", "embedded/loop")
            status, stream, _ = await ask(gateway, path, body | {"tools": TOOLS[wire]})
            (call,) = WIRES[wire].answer(stream.decode()).calls
            assert (status, call.name, "ls -A" in call.arguments) == (200, "bash", True)
            await gateway.close()
            (counted_call,) = counted(gateway)
        assert counted_call.cli_wire == wire
        assert counted_call.usage is not None

    asyncio.run(run())


@pytest.mark.parametrize("wire", STREAMED)
def test_tool_calls_and_the_final_message_are_read_from_the_record(tmp_path: Path, wire: Wire) -> None:
    handler = in_turn(ASKS_STREAMED.handler(), json_reply(completion("The end")))
    call_id, name, arguments = CALLS[0]

    async def run() -> None:
        async with rig(tmp_path, handler, cli_wire=wire) as gateway:
            path, body = STREAMED[wire]
            await ask(gateway, path, body | {"tools": TOOLS[wire]})
            more = following(wire, call_id, name, arguments, "a = 1")
            status, answer, _ = await ask(gateway, path, body | more | {"tools": TOOLS[wire]})
            # The endpoint did not stream where it was asked to: the CLI gets its stream nonetheless.
            assert (status, WIRES[wire].answer(answer.decode()).text) == (200, "The end")
            await gateway.close()
            made, seen = counted(gateway), gateway.wire()
        assert final_message(seen, made).text == "The end"
        found = [(call.call_id, call.name, call.result) for call in tool_calls(seen, made)]
        assert found == [(call_id, name, "a = 1"), ("call_b", "list", None)]

    asyncio.run(run())


@pytest.mark.parametrize("wire", STREAMED)
def test_a_translated_cell_is_replayed(tmp_path: Path, wire: Wire) -> None:
    recorded, again = tmp_path / "recorded", tmp_path / "again"
    recorded.mkdir()
    again.mkdir()
    path, body = STREAMED[wire]

    async def talk(folder: Path, **changes: Any) -> bytes:
        async with rig(folder, ASKS_STREAMED.handler(), cli_wire=wire, **changes) as gateway:
            _, stream, _ = await ask(gateway, path, body)
            await gateway.close()
            assert len(gateway.seen) == (0 if "replay" in changes else 1)
            return stream

    first = asyncio.run(talk(recorded))
    source = Replay(
        cell_id="s/c/m/t#run1",
        calls_path=recorded / "calls.jsonl",
        wire_path=recorded / "wire.jsonl.gz",
        report_path=again / "replay.json",
        wire=recorded_wire(recorded / "wire.jsonl.gz") or wire,
    )
    assert asyncio.run(talk(again, endpoint=None, replay=source)) == first
    assert WIRES[wire].answer(first.decode()).text == TEXT
    report = ReplayReport.model_validate_json((again / "replay.json").read_bytes())
    assert (report.asked, report.not_asked, report.difference) == (1, (), None)


def test_a_pair_without_a_translation_opens_no_cell(tmp_path: Path) -> None:
    async def run() -> None:
        async with rig(tmp_path, json_reply({}), wire="messages") as gateway:
            with pytest.raises(InputError, match="the CLI speaks chat, its endpoint messages"):
                await gateway.server.open_cell(make_route(tmp_path, cell_id="other", cli_wire="chat"))

    asyncio.run(run())
