"""pi, run as its documentation says for programs: one prompt, its events as JSON lines.

Print mode shows the last message alone, also in a terminal; the events show the work. All else is as shipped.
Its exit code is 0 also when the model call failed; whether a model answered is known from the gateway.
"""

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

PROVIDER = "cab"


def launch(context: LaunchContext) -> Launch:
    """Run one prompt to its end, with the endpoint as a provider of its own."""
    provider = {
        "baseUrl": f"{context.base_url}/v1",
        "api": "openai-completions",
        "apiKey": context.credential,
        "models": [{"id": context.model}],
    }
    return Launch(
        argv=("pi", "--mode", "json", "--provider", PROVIDER, "--model", context.model, "--", context.prompt),
        files={".pi/agent/models.json": json.dumps({"providers": {PROVIDER: provider}})},
    )


def render(line: str) -> str:
    """The words of the model as they come, its tool calls and their results."""
    event = json.loads(line)
    match event["type"]:
        case "message_update" if event["assistantMessageEvent"]["type"] in ("text_delta", "thinking_delta"):
            return str(event["assistantMessageEvent"]["delta"])
        case "message_end" if event["message"]["role"] == "assistant":
            return f"{event['message'].get('errorMessage', '')}\n"
        case "tool_execution_start":
            return f"\x1b[36m{event['toolName']}\x1b[0m {json.dumps(event['args'], ensure_ascii=False)}\n"
        case "tool_execution_end":
            return "".join(f"{part['text']}\n" for part in event["result"]["content"] if "text" in part)
    return ""


def reported_usage(printed: str) -> CliUsage | None:
    """The sum of the finished messages of the model; None where the beginning of the events is lost."""
    events = [json.loads(line) for line in printed.split("\n") if line.strip()]
    if not events or events[0]["type"] != "session":
        return None
    ended = [event["message"] for event in events if event["type"] == "message_end"]
    usages = [message["usage"] for message in ended if message["role"] == "assistant"]
    return CliUsage(
        input=sum(usage["input"] + usage["cacheRead"] + usage["cacheWrite"] for usage in usages),
        output=sum(usage["output"] for usage in usages),
    )


def mcp_server(name: str, command: tuple[str, ...]) -> dict[str, Any]:
    """One MCP server whose tools the first request offers. pi by itself would hide them behind a tool that
    runs scripts, and not wait for the server.
    """
    server = {"command": command[0], "args": list(command[1:]), "exposure": "direct"}
    return {"mcpServers": {name: server}}


ADAPTER = Adapter(
    name="pi",
    version="1.6.0",
    licence="MIT",
    launch=launch,
    rules_file="AGENTS.md",
    settings=SettingsPlace(file=".pi/agent/settings.json"),
    mcp=McpSettings(SettingsPlace(file=".pi/agent/mcp.json"), mcp_server),
    args_at=1,
    wire="chat",
    tty=False,
    render=render,
    reported_usage=reported_usage,
    deviations=(
        Deviation(
            what="one provider is configured: the measured endpoint",
            reason="the endpoint is what is measured, and no other can be reached",
        ),
        Deviation(
            what="--mode json, without a terminal",
            reason="headless: print mode shows nothing of the work but its last message",
        ),
    ),
)
