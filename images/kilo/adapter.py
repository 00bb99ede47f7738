"""kilo, a fork of opencode, run as people run it (`kilo run`) and pointed at the gateway by one variable.

No off-switch is set. Offline, the catalogue of models and the check for updates fail at once and change
nothing: what kilo then uses is built in. It exits with 1 also where a model merely declined.
"""

import json
from typing import Any

from orchestrator.adapter import Adapter, Deviation, Launch, LaunchContext, McpSettings, SettingsPlace

PROVIDER = "cab"
# An endpoint does not tell these; without them kilo would never compact a long conversation.
CONTEXT_TOKENS = 200_000
OUTPUT_TOKENS = 32_000
CONFIG = "KILO_CONFIG_CONTENT"


def launch(context: LaunchContext) -> Launch:
    """Run one prompt to its end in the mode that people see."""
    model = f"{PROVIDER}/{context.model}"
    config = {
        "provider": {
            PROVIDER: {
                "npm": "@ai-sdk/openai-compatible",
                "name": PROVIDER,
                "options": {"baseURL": f"{context.base_url}/v1", "apiKey": context.credential},
                "models": {
                    context.model: {
                        "name": context.model,
                        "limit": {"context": CONTEXT_TOKENS, "output": OUTPUT_TOKENS},
                    }
                },
            }
        },
    }
    return Launch(
        argv=("kilo", "run", "--auto", "-m", model, "--", context.prompt),
        env={CONFIG: json.dumps(config, separators=(",", ":"))},
    )


def mcp_server(name: str, command: tuple[str, ...]) -> dict[str, Any]:
    """One MCP server, as kilo's configuration names it."""
    return {"mcp": {name: {"type": "local", "command": list(command)}}}


ADAPTER = Adapter(
    name="kilo",
    version="7.7.7",
    rules_file="AGENTS.md",
    settings=SettingsPlace(env=CONFIG),
    mcp=McpSettings(SettingsPlace(env=CONFIG), mcp_server),
    args_at=2,
    licence="MIT",
    launch=launch,
    wire="chat",
    tty=True,
    exit_code_tells=False,
    state_globs=(".git/kilo", ".git/kilo/**", ".git/refs/kilo", ".git/refs/kilo/**"),
    deviations=(
        Deviation(
            what="one provider is configured: the measured endpoint",
            reason="the endpoint is what is measured, and no other can be reached",
        ),
        Deviation(
            what=f"model limits set to {CONTEXT_TOKENS} tokens of context and {OUTPUT_TOKENS} of output",
            reason="a provider of one's own has no entry in the catalogue that kilo takes them from",
        ),
        Deviation(
            what="--auto: tools act without being asked for",
            reason="headless: nobody answers a question, and kilo takes silence for a refusal",
        ),
    ),
)
