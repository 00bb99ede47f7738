"""opencode, run as people run it (`opencode run`) and pointed at the gateway by one variable.

No off-switch is set. Offline, the catalogue of models and the check for updates fail at once and change
nothing: what opencode then uses is built in.
"""

import json
from typing import Any

from orchestrator.adapter import Adapter, Deviation, Launch, LaunchContext, McpSettings, SettingsPlace

PROVIDER = "cab"
# An endpoint does not tell these; without them opencode would never compact a long conversation.
CONTEXT_TOKENS = 200_000
OUTPUT_TOKENS = 32_000
CONFIG = "OPENCODE_CONFIG_CONTENT"
# As an argument opencode puts a prompt of several words in quotes, and crashes on a word that is a number.
RUN = 'exec opencode run "${@:1:$#-2}" < <(printf %s "${@: -1}")'


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
        "permission": "allow",
    }
    return Launch(
        # Word by word, which it joins: one with spaces would reach the model in quotes, those in it escaped.
        argv=("bash", "-c", RUN, "opencode", "-m", model, "--", context.prompt),
        env={CONFIG: json.dumps(config, separators=(",", ":"))},
    )


def mcp_server(name: str, command: tuple[str, ...]) -> dict[str, Any]:
    """One MCP server, as opencode's configuration names it."""
    return {"mcp": {name: {"type": "local", "command": list(command)}}}


ADAPTER = Adapter(
    name="opencode",
    version="1.18.33",
    licence="MIT",
    program="opencode",
    launch=launch,
    wire="chat",
    tty=True,
    rules_file="AGENTS.md",
    settings=SettingsPlace(env=CONFIG),
    mcp=McpSettings(SettingsPlace(env=CONFIG), mcp_server),
    args_at=4,
    state_globs=(".git/opencode", ".git/opencode/**"),
    deviations=(
        Deviation(
            what="one provider is configured: the measured endpoint",
            reason="the endpoint is what is measured, and no other can be reached",
        ),
        Deviation(
            what=f"model limits set to {CONTEXT_TOKENS} tokens of context and {OUTPUT_TOKENS} of output",
            reason="a provider of one's own has no entry in the catalogue that opencode takes them from",
        ),
        Deviation(
            what='permission = "allow"',
            reason="headless: nobody answers a question, and opencode takes silence for a refusal",
        ),
    ),
)
