"""Continue's CLI (`cn`), run as its documentation says for scripts: `--print`, pointed at the gateway by its
configuration file. Print mode shows the last message alone, also in a terminal; its JSON form is that one.
"""

import json
from typing import Any

from orchestrator.adapter import Adapter, Deviation, Launch, LaunchContext, McpSettings, SettingsPlace

PLACE = SettingsPlace(file=".continue/config.yaml")  # JSON is YAML


def launch(context: LaunchContext) -> Launch:
    """Run one prompt to its end."""
    config = {
        "name": "cab",
        "version": "1.0.0",
        "schema": "v1",
        "models": [
            {
                "name": context.model,
                "provider": "openai",
                "model": context.model,
                "apiBase": f"{context.base_url}/v1",
                "apiKey": context.credential,
            }
        ],
    }
    return Launch(
        argv=("cn", "--print", "--auto", "--", context.prompt),
        files={".continue/config.yaml": json.dumps(config)},
    )


def mcp_server(name: str, command: tuple[str, ...]) -> dict[str, Any]:
    """One MCP server, as Continue's configuration lists it."""
    return {"mcpServers": [{"name": name, "command": command[0], "args": list(command[1:])}]}


ADAPTER = Adapter(
    name="continue",
    version="1.5.47",
    rules_file="AGENTS.md",
    settings=PLACE,
    mcp=McpSettings(PLACE, mcp_server, named=False),
    args_at=1,
    licence="Apache-2.0",
    launch=launch,
    wire="chat",
    tty=True,
    deviations=(
        Deviation(
            what="one model is configured: the measured endpoint's",
            reason="the endpoint is what is measured, and no other can be reached",
        ),
        Deviation(
            what="--auto: tools act without being asked for",
            reason="headless: nobody answers a question",
        ),
    ),
)
