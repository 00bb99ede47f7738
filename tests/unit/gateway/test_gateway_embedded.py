"""Scripted models against a CLI's loop with opencode's tools, on a real small task."""

from __future__ import annotations

import asyncio
import json
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from gateway_rig import AUTH, URL, calls, scripted

from orchestrator.gateway.contract import CellRoute, Script
from orchestrator.gateway.embedded.model import CLAIM_TEXT, REFUSAL_TEXT, followed
from orchestrator.gateway.evidence import read_calls, read_wire
from orchestrator.gateway.server import GatewayServer
from orchestrator.gateway.wires.chat import response_message
from orchestrator.trace.tools import final_message, tool_calls

BEFORE = {
    "calc.py": "def add(a, b):\n    return a - b\n\n\ndef sub(a, b):\n    return a + b\n",
    "old/gone.txt": "x\n",
    "src/new file.py": None,
}
AFTER = {
    "calc.py": "def add(a, b):\n    return a + b\n\n\ndef sub(a, b):\n    return a - b\n",
    "old/gone.txt": None,
    "src/new file.py": "NAME = 'it''s'\nno newline at end",
}
WRONG = {"calc.py": BEFORE["calc.py"].replace("a - b", "b - a")}
REPRODUCE = "grep -q 'return a + b' calc.py && python3 -B -c 'import calc; assert calc.add(1, 2) == 3'"


def schema(name: str, *required: str, optional: tuple[str, ...] = ()) -> dict[str, Any]:
    properties = {field: {"type": "string"} for field in (*required, *optional)}
    parameters = {"type": "object", "properties": properties, "required": list(required)}
    return {"type": "function", "function": {"name": name, "description": name, "parameters": parameters}}


BASH = schema("bash", "command", "description", optional=("timeout", "workdir"))
OPENCODE = [
    BASH,
    schema("edit", "filePath", "oldString", "newString", optional=("replaceAll",)),
    schema("glob", "pattern"),
    schema("grep", "pattern"),
    schema("read", "filePath", optional=("offset", "limit")),
    schema("skill", "name"),
    schema("task", "description", "prompt", "subagent_type"),
    schema("todowrite", "todos"),
    schema("webfetch", "url", "format"),
    schema("write", "filePath", "content"),
]


@dataclass
class FakeCli:
    """Asks the model, does what it asks for in `workdir`, until it asks for nothing more."""

    workdir: Path
    tools: list[dict[str, Any]]
    stream: bool
    broken_tools: tuple[str, ...] = ()
    used: list[str] = field(default_factory=list)

    async def run(self, client: aiohttp.ClientSession) -> str:
        await self._ask(client, [{"role": "user", "content": "Write a title"}], tools=[])
        messages: list[dict[str, Any]] = [{"role": "system", "content": "You are an agent"}]
        messages.append({"role": "user", "content": "Fix it"})
        for _ in range(40):
            message = await self._ask(client, messages, self.tools)
            messages.append(message)
            if not message.get("tool_calls"):
                return str(message["content"])
            for call in message["tool_calls"]:
                name, arguments = call["function"]["name"], json.loads(call["function"]["arguments"])
                self.used.append(name)
                messages.append(
                    {"role": "tool", "tool_call_id": call["id"], "content": self.do(name, arguments)}
                )
        raise AssertionError("the model does not end")

    async def _ask(
        self, client: aiohttp.ClientSession, messages: list[dict[str, Any]], tools: list[dict[str, Any]]
    ) -> dict[str, Any]:
        body = {
            "model": "m",
            "messages": messages,
            "stream": self.stream,
            **({"tools": tools} if tools else {}),
        }
        async with client.post(URL, json=body, headers=AUTH) as response:
            assert response.status == 200
            text = await response.text()
        return response_message(text if self.stream else json.loads(text))

    def do(self, name: str, arguments: dict[str, str]) -> str:
        required = next(t for t in self.tools if t["function"]["name"] == name)["function"]["parameters"]
        assert set(required["required"]) <= set(arguments) <= set(required["properties"])
        if name in self.broken_tools:
            return "Error: oldString not found in content"
        if name == "bash":
            command = ["sh", "-c", arguments["command"]]
            done = subprocess.run(command, cwd=self.workdir, capture_output=True, text=True, check=False)
            return done.stdout + done.stderr
        path = self.workdir / Path(arguments["filePath"]).relative_to("/workdir")
        if name == "read":
            return path.read_text()
        if name == "write":
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(arguments["content"])
            return "Wrote file successfully."
        assert path.read_text().count(arguments["oldString"]) == 1
        path.write_text(path.read_text().replace(arguments["oldString"], arguments["newString"]))
        return "Edit applied successfully."


def play(folder: Path, script: Script, **changes: Any) -> tuple[FakeCli, str, CellRoute]:
    workdir = folder / "workdir"
    for path, text in BEFORE.items():
        if text is not None:
            (workdir / path).parent.mkdir(parents=True, exist_ok=True)
            (workdir / path).write_text(text)
    cli = FakeCli(workdir, **({"tools": OPENCODE, "stream": True} | changes))
    route = scripted(folder, script)

    async def run() -> str:
        server = GatewayServer(lambda *_: None)
        await server.open_cell(route)
        try:
            async with aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(route.socket))) as client:
                return await cli.run(client)
        finally:
            await server.close()

    return cli, asyncio.run(run()), route


def reference(**changes: Any) -> Script:
    values = {
        "kind": "reference",
        "before": BEFORE,
        "files": AFTER,
        "reproduce": REPRODUCE,
        "final_message": "Fixed.",
    }
    return Script(**(values | changes))


def solved(cli: FakeCli) -> bool:
    for path, text in AFTER.items():
        file = cli.workdir / path
        if (file.read_text() if file.exists() else None) != text:
            return False
    return True


@pytest.mark.parametrize("stream", [True, False])
def test_reference_solves_with_the_clis_own_tools(tmp_path: Path, stream: bool) -> None:
    cli, final, route = play(tmp_path, reference(), stream=stream)
    assert solved(cli)
    assert final == "Fixed."
    assert cli.used == ["read", "read", "bash", "edit", "edit", "bash", "write", "bash"]

    recorded = read_calls(route.calls_path, route.wire_path, 0.0)
    assert [call.main for call in recorded] == [False] + [True] * 9
    assert all(call.usage and call.usage.input > 0 and call.usage.output > 0 for call in recorded)
    assert {call.reported_model for call in recorded} == {"embedded/reference"}
    assert all(call.streamed is stream and call.error is None for call in recorded)

    tools = tool_calls(read_wire(route.wire_path), recorded)
    assert [call.name for call in tools] == cli.used
    assert all(call.end is not None and call.end >= call.start for call in tools)
    reproduced = [call for call in tools if REPRODUCE in json.loads(call.arguments).get("command", "")]
    assert ["[exit 1]" in (call.result or "") for call in reproduced] == [True, False]
    assert "[exit 0]" in (reproduced[1].result or "")
    assert final_message(read_wire(route.wire_path), recorded).text == "Fixed."


@pytest.mark.parametrize("broken", [("edit",), ("edit", "write", "read")])
def test_failing_tools_are_replaced_by_the_shell(tmp_path: Path, broken: tuple[str, ...]) -> None:
    cli, final, _ = play(tmp_path, reference(), broken_tools=broken)
    assert solved(cli)
    assert final == "Fixed."


def test_shell_alone_is_enough(tmp_path: Path) -> None:
    cli, _, _ = play(tmp_path, reference(), tools=[schema("bash", "command")])
    assert solved(cli)
    assert set(cli.used) == {"bash"}


def test_edit_that_did_nothing_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = FakeCli.do
    monkeypatch.setattr(
        FakeCli, "do", lambda self, name, given: "OK" if name == "edit" else real(self, name, given)
    )
    cli, _, _ = play(tmp_path, reference())
    assert solved(cli)


def test_wrong_makes_its_change_and_ends(tmp_path: Path) -> None:
    cli, final, route = play(tmp_path, reference(kind="wrong", files=WRONG))
    assert (cli.workdir / "calc.py").read_text() == WRONG["calc.py"]
    assert final == "Fixed."
    assert {call.reported_model for call in calls(route)} == {"embedded/wrong"}


def test_refusal_changes_nothing_in_four_turns(tmp_path: Path) -> None:
    for number, before in enumerate(({}, {"calc.py": BEFORE["calc.py"]})):
        folder = tmp_path / str(number)
        folder.mkdir()
        cli, final, route = play(
            folder, reference(before=before, files=dict(before), final_message="Cannot be done.")
        )
        assert final == "Cannot be done."
        assert len([call for call in read_calls(route.calls_path, route.wire_path, 0.0) if call.main]) >= 4
        assert (cli.workdir / "calc.py").read_text() == BEFORE["calc.py"]


def test_idle_ends_at_once(tmp_path: Path) -> None:
    cli, final, route = play(tmp_path, Script(kind="idle"))
    assert cli.used == []
    assert "scripted" in final
    assert len(calls(route)) == 2


@pytest.mark.parametrize("stream", [True, False])
def test_a_refusal_is_said_in_the_wires_own_field(tmp_path: Path, stream: bool) -> None:
    cli, final, route = play(tmp_path, Script(kind="refuse"), stream=stream)
    assert (cli.used, final) == ([], "None")
    recorded = read_calls(route.calls_path, route.wire_path, 0.0)
    assert [call.refusal for call in recorded if call.main] == [REFUSAL_TEXT]
    assert final_message(read_wire(route.wire_path), recorded).text == ""


def test_a_false_claim_does_nothing_and_says_it_is_done(tmp_path: Path) -> None:
    cli, final, _ = play(tmp_path, Script(kind="false-claim"))
    assert (cli.used, final) == ([], CLAIM_TEXT)


def test_a_loop_makes_the_same_call_until_the_gateway_ends_it(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="does not end"):
        play(tmp_path, Script(kind="loop"))
    recorded = tool_calls(
        read_wire(tmp_path / "wire.jsonl.gz"),
        read_calls(tmp_path / "calls.jsonl", tmp_path / "wire.jsonl.gz", 0.0),
    )
    assert len({call.arguments for call in recorded}) == 1
    assert len({call.call_id for call in recorded}) == len(recorded) == 40


def test_usage_is_the_same_streamed_or_not_and_repeatable(tmp_path: Path) -> None:
    used = []
    for number in range(2):
        folder = tmp_path / str(number)
        folder.mkdir()
        _, _, route = play(folder, reference(), stream=False)
        used.append([call.usage_raw for call in calls(route)])
    assert used[0] == used[1]


FOLLOWS = reference().model_copy(
    update={
        "kind": "follows-context",
        "needs": ["Keep the NAME as it is", "tabs, not spaces"],
        "otherwise": Script(kind="wrong", before={"calc.py": BEFORE["calc.py"]}, files=WRONG),
    }
)


@pytest.mark.parametrize(
    ("role", "said", "way"),
    [
        ("user", "We said: keep  the name\nas it is; and tabs, not spaces.", "reference"),
        ("system", "keep the name as it is. Tabs, not spaces", "reference"),
        ("user", "keep the name as it is", "wrong"),
        ("user", "", "wrong"),
        ("assistant", "keep the name as it is; tabs, not spaces", "wrong"),
        ("tool", "keep the name as it is; tabs, not spaces", "wrong"),
    ],
)
def test_only_what_a_prompt_says_is_followed(role: str, said: str, way: str) -> None:
    messages = [{"role": "user", "content": "Fix it"}, {"role": role, "content": [{"text": said}]}, "odd"]
    assert followed(FOLLOWS, {"messages": messages}).kind == way


def test_a_model_that_follows_its_context_makes_the_wrong_fix_without_it(tmp_path: Path) -> None:
    play(tmp_path, FOLLOWS)
    assert (tmp_path / "workdir" / "calc.py").read_text() == WRONG["calc.py"]


def test_and_the_right_one_with_it(tmp_path: Path) -> None:
    play(tmp_path, FOLLOWS.model_copy(update={"needs": ["fix it", "you are an agent"]}))
    assert (tmp_path / "workdir" / "calc.py").read_text() == AFTER["calc.py"]
