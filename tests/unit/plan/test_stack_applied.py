"""What a CLI takes of a stack, where each plugin ends up in its launch, and why a plugin is left out."""

from __future__ import annotations

import ast
import json
import tomllib
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.adapter import Adapter, Launch, LaunchContext, McpSettings, SettingsPlace, load_adapter
from orchestrator.paths import IMAGES
from orchestrator.plan.plugin import Manifest, Plugin, PluginFile
from orchestrator.plan.stack import ASKS_NO_MODEL, apply, rules_of, would_apply
from orchestrator.plan.toml_text import dump_toml

LAUNCH = Launch(
    argv=("tool", "run", "--", "prompt"),
    env={"URL": "u", "CONFIG": '{"provider":{"cab":{"key":"k"}},"permission":"allow"}'},
    files={".tool/config.toml": 'model = "m"\n[provider.cab]\nkey = "k"\n'},
)
TOML, ENV = SettingsPlace(file=".tool/config.toml"), SettingsPlace(env="CONFIG")
TOOL = Adapter(
    "tool", "1", lambda _: LAUNCH, rules_file="TOOL.md", settings=ENV, mcp=McpSettings(TOML), args_at=2
)
BARE = Adapter("tool", "1", lambda _: LAUNCH)


def plugin(name: str, **manifest: Any) -> Plugin:
    files = {"rules.md": PluginFile(f"rules of {name}\n".encode(), executable=False)}
    return Plugin(name, Manifest.model_validate(manifest), files, f"sha256:{'0' * 64}")


RULES = plugin("rules", kind="rules", rules="rules.md")
MCP = plugin("facts", kind="mcp", command=("python3", "{plugin}/server.py"))
SETTINGS = plugin(
    "loud", kind="settings", settings={"tool": {"provider": {"other": 1}}}, env={"tool": {"LOUD": "1"}}
)
ARGS = plugin("thorough", kind="args", args={"tool": ("--effort", "high")})


def test_all_kinds_come_together() -> None:
    applied = apply(TOOL, LAUNCH, [RULES, MCP, SETTINGS, ARGS])
    launch = applied.launch
    assert [it.name for it in applied.plugins] == ["rules", "facts", "loud", "thorough"]
    assert (applied.skipped, applied.reason_to_skip) == ((), None)
    assert launch.argv == ("tool", "run", "--effort", "high", "--", "prompt")
    config = json.loads(launch.env["CONFIG"])
    assert config == {"provider": {"cab": {"key": "k"}, "other": 1}, "permission": "allow"}
    assert launch.env["LOUD"] == "1"
    assert tomllib.loads(launch.files[".tool/config.toml"]) == {
        "model": "m",
        "provider": {"cab": {"key": "k"}},
        "mcpServers": {"facts": {"command": "python3", "args": ["/run/cab/plugins/facts/server.py"]}},
    }
    assert (applied.env_keys, applied.extra_args) == (("LOUD",), ("--effort", "high"))
    assert rules_of(TOOL, [RULES, MCP, replace(RULES, name="again")]) == "rules of rules\n\nrules of rules\n"


def test_nothing_is_changed_without_plugins() -> None:
    assert apply(TOOL, LAUNCH, ()).launch is LAUNCH


def test_a_file_that_is_not_there_is_made() -> None:
    place = McpSettings(SettingsPlace(file=".tool/mcp.json"))
    launch = apply(replace(TOOL, mcp=place), LAUNCH, [MCP]).launch
    assert json.loads(launch.files[".tool/mcp.json"])["mcpServers"].keys() == {"facts"}


@pytest.mark.parametrize(
    ("left_out", "reason"),
    [
        (RULES, "tool reads no file of rules"),
        (MCP, "tool takes no MCP server"),
        (SETTINGS, "tool takes no settings"),
        (ARGS, "tool takes no arguments"),
    ],
)
def test_what_a_cli_does_not_take_is_left_out_with_the_reason(left_out: Plugin, reason: str) -> None:
    applied = apply(BARE, LAUNCH, [left_out])
    assert applied.skipped == ((left_out.name, reason),)
    assert applied.reason_to_skip == reason
    assert (applied.launch, applied.plugins) == (LAUNCH, ())


def test_the_reason_is_the_clis_own_where_it_gives_one() -> None:
    bare = replace(BARE, not_taken={"mcp": "it is deaf"})
    assert apply(bare, LAUNCH, [MCP, ARGS]).skipped == (
        ("facts", "tool takes no MCP server: it is deaf"),
        ("thorough", "tool takes no arguments"),
    )


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"args_at": 1, "not_taken": {"args": "why"}}, "a reason for args, which the adapter declares"),
        ({"not_taken": {"arg": "why"}}, "not_taken has 'arg'; known: rules, mcp, settings, args"),
    ],
)
def test_a_reason_that_explains_nothing_is_refused(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        replace(BARE, **fields)


def test_a_list_of_tables_gets_further_entries_and_a_list_of_words_none() -> None:
    one = 'words = ["a"]\n[[servers]]\nname = "one"\n'
    tool = replace(TOOL, settings=TOML)
    launch = replace(LAUNCH, files={".tool/config.toml": one})
    more = plugin("more", kind="settings", settings={"tool": {"servers": [{"name": "two"}]}})
    words = plugin("words", kind="settings", settings={"tool": {"words": ["b"]}})
    applied = apply(tool, launch, [more, words])
    assert tomllib.loads(applied.launch.files[".tool/config.toml"]) == {
        "words": ["a"],
        "servers": [{"name": "one"}, {"name": "two"}],
    }
    assert applied.skipped == (("words", "it sets words, which is set already"),)


@pytest.mark.parametrize(
    ("manifest", "reason"),
    [
        ({"kind": "settings", "env": {"tool": {"URL": "mine"}}}, "it sets the variable URL, which is set"),
        ({"kind": "settings", "env": {"tool": {"HOME": "/tmp"}}}, "it sets the variable HOME, which is set"),
        ({"kind": "settings", "settings": {"tool": {"permission": 1}}}, "it sets permission, which is set"),
        (
            {"kind": "settings", "settings": {"tool": {"provider": {"cab": {"key": 1}}}}},
            "it sets provider.cab.key, which is set",
        ),
        ({"kind": "settings", "env": {"other": {"A": "1"}}}, "it has no settings for tool"),
        ({"kind": "args", "args": {"other": ("-v",)}}, "it has no arguments for tool"),
    ],
)
def test_what_cab_sets_is_not_overruled(manifest: dict[str, Any], reason: str) -> None:
    applied = apply(TOOL, LAUNCH, [plugin("bold", **manifest), ARGS])
    assert applied.launch.env == LAUNCH.env
    assert [it.name for it in applied.plugins] == ["thorough"]
    assert applied.skipped[0][1].startswith(reason)
    assert applied.reason_to_skip is None


def test_of_two_plugins_that_set_one_thing_the_second_is_left_out() -> None:
    applied = apply(TOOL, LAUNCH, [SETTINGS, replace(SETTINGS, name="again")])
    assert applied.skipped == (("again", "it sets the variable LOUD, which is set already"),)


def test_a_cli_that_asks_no_model_takes_no_stack() -> None:
    assert would_apply(load_adapter(IMAGES, "noop"), [RULES, MCP]).reason_to_skip == ASKS_NO_MODEL


def test_opencode_takes_rules_and_server_aider_the_rules() -> None:
    opencode, aider = load_adapter(IMAGES, "opencode"), load_adapter(IMAGES, "aider")
    both = would_apply(opencode, [RULES, MCP])
    assert both.skipped == ()
    assert json.loads(both.launch.env["OPENCODE_CONFIG_CONTENT"])["mcp"]["facts"]["type"] == "local"
    why = "aider takes no MCP server: it offers its model no tools"
    assert would_apply(aider, [RULES, MCP]).skipped == (("facts", why),)


def test_aider_is_told_of_a_file_of_rules_where_there_is_one() -> None:
    aider = load_adapter(IMAGES, "aider")
    context = LaunchContext(prompt="p", model="m", credential="c")
    assert "--read" not in aider.launch(context).argv
    argv = aider.launch(replace(context, rules="AGENTS.md")).argv
    assert argv[argv.index("--read") + 1] == "AGENTS.md"


def test_letta_and_mini_are_given_the_text_of_the_rules() -> None:
    text = 'Say "why" of {{ task }}.\\n'
    context = LaunchContext(prompt="p", model="m", credential="c")
    given = replace(context, rules="AGENTS.md", rules_text=text)
    letta, mini = load_adapter(IMAGES, "letta-code"), load_adapter(IMAGES, "mini-swe-agent")
    skill = letta.launch(given).files[".letta/skills/project-rules/SKILL.md"]
    assert skill.endswith(f"\n---\n\n{text}")
    argv = letta.launch(given).argv
    assert argv[argv.index("--pre-load-skills") + 1] == "project-rules"
    assert "project-rules" not in str(letta.launch(context))
    [config] = mini.launch(given).files.values()
    # The text is one string of the template's language, as of Python's.
    shipped, said = json.loads(config)["agent"]["system_template"].split("\n\n", 1)
    assert ast.literal_eval(said.removeprefix("{{ ").removesuffix(" }}")) == text
    [config] = mini.launch(context).files.values()
    assert json.loads(config) == {"agent": {"system_template": shipped}}


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"a": 1, "b": {"c": {"d": "x"}, "e": True}, "f": [1.5, "y", {"g": "z"}]},
        {"a.b": {'c "d"': 'line\nüñ\x7f"\\'}, "empty": {}},
    ],
)
def test_toml_reads_back_as_it_was(values: dict[str, Any]) -> None:
    assert tomllib.loads(dump_toml(values)) == values
