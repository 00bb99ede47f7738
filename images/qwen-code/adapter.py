"""Qwen Code, one-shot, its events as JSON lines: as text it shows nothing of its work but its last words."""

import json
from typing import Any

from orchestrator.adapter import (
    Adapter,
    CliUsage,
    Deviation,
    Launch,
    LaunchContext,
    McpSettings,
    SettingsPlace,
)

PLACE = SettingsPlace(file=".qwen/settings.json")
SETTINGS = {"general": {"enableAutoUpdate": False}, "privacy": {"usageStatisticsEnabled": False}}


def launch(context: LaunchContext) -> Launch:
    """Run one prompt to its end."""
    # Joined, since a prompt may begin with a dash.
    argv = ("qwen", "--auth-type", "openai", "--yolo", "--output-format", "stream-json")
    return Launch(
        argv=(*argv, f"--prompt={context.prompt}"),
        env={
            "OPENAI_BASE_URL": f"{context.base_url}/v1",
            "OPENAI_API_KEY": context.credential,
            "OPENAI_MODEL": context.model,
        },
        files={".qwen/settings.json": json.dumps(SETTINGS)},
    )


def render(line: str) -> str:
    """Each message once it is whole: the words of the model, its tool calls and their results."""
    event = json.loads(line)
    if event["type"] not in ("assistant", "user"):
        return ""
    content = event["message"]["content"]
    return content if isinstance(content, str) else "".join(map(_shown, content))


def _shown(part: dict[str, Any]) -> str:
    match part["type"]:
        case "text" | "thinking":
            return f"{part[part['type']]}\n"
        case "tool_use":
            return f"\x1b[36m{part['name']}\x1b[0m {json.dumps(part['input'], ensure_ascii=False)}\n"
        case "tool_result" if isinstance(part["content"], str):
            return f"{part['content']}\n"
        case "tool_result":
            return "".join(map(_shown, part["content"]))
    return ""


def reported_usage(printed: str) -> CliUsage | None:
    """The totals of the last event, which stands there only where the run ended by itself."""
    last = json.loads(printed.rstrip("\n").rpartition("\n")[2])
    if last["type"] != "result":
        return None
    return CliUsage(input=last["usage"]["input_tokens"], output=last["usage"]["output_tokens"])


ADAPTER = Adapter(
    name="qwen-code",
    version="0.24.4",
    licence="Apache-2.0",
    launch=launch,
    rules_file="AGENTS.md",
    settings=PLACE,
    mcp=McpSettings(PLACE),
    args_at=1,
    wire="chat",
    tty=False,
    render=render,
    exit_code_tells=False,  # measured: 1 also when the model refuses, which it asks five times
    reported_usage=reported_usage,
    # It has the tools of files and shell too.
    side_prompts=("managed memory extraction subagent",),
    deviations=(
        Deviation(
            what="--auth-type openai, with the measured endpoint and model",
            reason="the endpoint is what is measured, and no other can be reached",
        ),
        Deviation(what="--yolo", reason="headless: nobody approves a tool call"),
        Deviation(
            what="--output-format stream-json, without a terminal",
            reason="headless: as text it shows nothing of the work but its last message",
        ),
        Deviation(
            what="general.enableAutoUpdate = false, privacy.usageStatisticsEnabled = false",
            reason="offline: neither can reach anything",
        ),
    ),
)
