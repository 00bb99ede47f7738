"""GitHub Copilot CLI with a provider of one's own, one prompt, in the mode that people see."""

import re
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

_AMOUNT = r"(\d{1,9}(?:\.\d)?k|\d{1,9})(?![\w.])"
_TOKENS = re.compile(rf"^Tokens +↑ {_AMOUNT}.*? • ↓ {_AMOUNT}", re.MULTILINE)


def launch(context: LaunchContext) -> Launch:
    """Run one prompt to its end."""
    return Launch(
        # Joined, since a prompt may begin with a dash.
        argv=("copilot", "--allow-all-tools", f"--prompt={context.prompt}"),
        env={
            "COPILOT_PROVIDER_TYPE": "openai",
            "COPILOT_PROVIDER_BASE_URL": f"{context.base_url}/v1",
            "COPILOT_PROVIDER_API_KEY": context.credential,
            "COPILOT_MODEL": context.model,
        },
    )


def reported_usage(printed: str) -> CliUsage | None:
    """Its last line of totals, `Tokens     ↑ 65.1k • ↓ 536`; thousands are rounded."""
    lines = _TOKENS.findall(printed)
    if not lines:
        return None
    (sent, sent_margin), (received, received_margin) = map(_tokens, lines[-1])
    return CliUsage(sent, received, input_margin=sent_margin, output_margin=received_margin)


def _tokens(said: str) -> tuple[int, int]:
    """A number as copilot writes it, and how far it may be off."""
    if not said.endswith("k"):
        return int(said), 0
    return round(float(said[:-1]) * 1000), 50 if "." in said else 500


def mcp_server(name: str, command: tuple[str, ...]) -> dict[str, Any]:
    """One MCP server, as `copilot mcp add` writes it."""
    server = {"type": "local", "command": command[0], "args": list(command[1:]), "tools": ["*"]}
    return {"mcpServers": {name: server}}


ADAPTER = Adapter(
    name="copilot",
    version="1.0.102",
    licence="proprietary",
    launch=launch,
    rules_file="AGENTS.md",
    settings=SettingsPlace(file=".copilot/settings.json"),
    mcp=McpSettings(SettingsPlace(file=".copilot/mcp-config.json"), mcp_server),
    args_at=1,
    wire="chat",
    tty=True,
    reported_usage=reported_usage,
    exit_code_tells=False,  # measured: 1 also after a refusal, whose text it does not show
    deviations=(
        Deviation(
            what="a provider of one's own: the measured endpoint and model",
            reason="the endpoint is what is measured, and no other can be reached",
        ),
        Deviation(
            what="--allow-all-tools",
            reason="headless: nobody approves a tool call, and copilot demands it",
        ),
        Deviation(
            what="the program is unpacked in the image and not in HOME",
            reason="HOME is new in each cell: each start would unpack 235 MB, as only a first one does",
        ),
    ),
)
