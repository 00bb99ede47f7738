"""Scripted models and the tools of CLIs whose arguments are nested: each is called as its schema asks."""

from typing import Any

from orchestrator.gateway.embedded.dialects.vocabulary import toolbox

TEXT = {"type": "string"}
LIST = {"type": "array"}


def offer(name: str, properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": required}
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


def test_pi_edits_by_a_list_of_replacements() -> None:
    tools = toolbox([offer("edit", {"path": TEXT, "edits": LIST}, ["path", "edits"])])
    assert tools.call("edit", path="/workdir/a", old="1", new="2") == (
        "edit",
        {"path": "/workdir/a", "edits": [{"oldText": "1", "newText": "2"}]},
    )


def test_cline_takes_lists_of_commands_and_of_files() -> None:
    offered = [offer("run_commands", {"commands": LIST}, ["commands"])]
    offered.append(offer("read_files", {"files": LIST}, ["files"]))
    tools = toolbox(offered)
    assert tools.call("shell", command="ls", description="List") == ("run_commands", {"commands": ["ls"]})
    assert tools.call("read", path="/workdir/a") == ("read_files", {"files": [{"path": "/workdir/a"}]})


def test_cline_edits_and_writes_with_one_tool() -> None:
    properties = {"path": TEXT, "old_text": TEXT, "new_text": TEXT, "insert_line": {"type": "integer"}}
    tools = toolbox([offer("editor", properties, ["path", "new_text"])])
    edit = tools.call("edit", path="/workdir/a", old="1", new="2")
    assert edit == ("editor", {"path": "/workdir/a", "old_text": "1", "new_text": "2"})
    write = tools.call("write", path="/workdir/b", content="3")
    assert write == ("editor", {"path": "/workdir/b", "new_text": "3"})


def test_a_tool_of_another_schema_is_not_called() -> None:
    tools = toolbox([offer("edit", {"path": TEXT, "patch": TEXT}, ["path", "patch"])])
    assert not tools.has("edit")
