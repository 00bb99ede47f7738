"""nanocoder, run once (`run`) in the mode that people see, pointed at the gateway by its configuration file.

It has no switch for its check for updates and its catalogue of models; offline both fail and change nothing.
"""

import json
from typing import Any

from orchestrator.adapter import Adapter, Deviation, Launch, LaunchContext, McpSettings, SettingsPlace

PROVIDER = "cab"
CONFIG = ".config/nanocoder/agents.config.json"


def launch(context: LaunchContext) -> Launch:
    """Run one prompt to its end in the mode that people see."""
    provider = {
        "name": PROVIDER,
        "baseUrl": f"{context.base_url}/v1",
        "apiKey": context.credential,
        "models": [context.model],
    }
    return Launch(
        argv=(
            "nanocoder",
            "--trust-directory",
            "--mode",
            "yolo",
            "--provider",
            PROVIDER,
            "--model",
            context.model,
            "run",
            context.prompt,
        ),
        files={CONFIG: json.dumps({"nanocoder": {"providers": [provider]}})},
    )


def mcp_server(name: str, command: tuple[str, ...]) -> dict[str, Any]:
    """One MCP server, as nanocoder's list of them names it."""
    server = {"transport": "stdio", "command": command[0], "args": list(command[1:])}
    return {"mcpServers": {name: server}}


ADAPTER = Adapter(
    name="nanocoder",
    version="1.30.0",
    rules_file="AGENTS.md",
    settings=SettingsPlace(file=CONFIG),
    mcp=McpSettings(SettingsPlace(file=".config/nanocoder/.mcp.json"), mcp_server),
    args_at=1,
    licence="MIT",
    launch=launch,
    wire="chat",
    tty=True,
    state_globs=("/.nanocoder/",),
    deviations=(
        Deviation(
            what="one provider is configured: the measured endpoint",
            reason="the endpoint is what is measured, and no other can be reached",
        ),
        Deviation(
            what="--mode yolo: tools act without being asked for",
            reason="headless: nobody answers a question, and nanocoder ends where a tool needs a yes",
        ),
        Deviation(
            what="--trust-directory",
            reason="headless: nobody answers the question whether the directory is trusted",
        ),
    ),
)
