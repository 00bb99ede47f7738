"""Mistral Vibe, in its own headless mode, pointed at the gateway by one provider in its settings.

All else is as shipped: prompt, tools, skills, session journal (in HOME). Headless, its plain text is the
final message alone, so it prints its events.
"""

import json
from typing import Any

from orchestrator.adapter import Adapter, Deviation, Launch, LaunchContext, McpSettings, SettingsPlace

KEY = "CAB_API_KEY"
PLACE = SettingsPlace(file=".vibe/config.toml")


def launch(context: LaunchContext) -> Launch:
    """Run one prompt to its end, its events on stdout."""
    model = json.dumps(context.model, ensure_ascii=False)  # a string of JSON is one of TOML
    config = f"""\
active_model = {model}
enable_telemetry = false
enable_update_checks = false

[[providers]]
name = "cab"
api_base = "{context.base_url}/v1"
api_key_env_var = "{KEY}"
api_style = "openai"
backend = "generic"

[[models]]
name = {model}
alias = {model}
provider = "cab"
"""
    # Joined, since a prompt may begin with a dash.
    argv = ("vibe", "--auto-approve", "--trust", "--output", "streaming", f"--prompt={context.prompt}")
    return Launch(argv=argv, env={KEY: context.credential}, files={".vibe/config.toml": config})


def render(line: str) -> str:
    """One event: what the model said, or what a tool was asked and answered."""
    event = json.loads(line)
    if event["type"] == "effect":
        shown, answer = event["detail"]["display"], event["state"].get("outputText") or ""
        return f"\n\x1b[36m{shown['verb']}\x1b[0m {shown['message']}\n{_ended(answer)}"
    if event["type"] == "message":
        colour = "36" if event["role"] == "user" else "1"
        text = "".join(part.get("text", "") for part in event["content"])
        return f"\n\x1b[{colour}m{event['role']}\x1b[0m\n{_ended(text)}"
    return ""


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"


def mcp_server(name: str, command: tuple[str, ...]) -> dict[str, Any]:
    """One MCP server, as Vibe's settings list it."""
    return {"mcp_servers": [{"name": name, "transport": "stdio", "command": list(command)}]}


ADAPTER = Adapter(
    name="mistral-vibe",
    version="3.0.2",
    licence="Apache-2.0",
    launch=launch,
    rules_file="AGENTS.md",
    settings=PLACE,
    mcp=McpSettings(PLACE, mcp_server, named=False),
    args_at=1,
    wire="chat",
    tty=False,
    render=render,
    deviations=(
        Deviation(
            what="one provider and one model are configured: the measured endpoint",
            reason="the endpoint is what is measured, and no other can be reached",
        ),
        Deviation(
            what="--prompt and --output streaming, without a terminal",
            reason="headless: a terminal opens its full screen, which waits for the next prompt; the events "
            "are the one form in which its headless mode shows its work",
        ),
        Deviation(what="--auto-approve", reason="headless: nobody approves a tool's call"),
        Deviation(what="--trust", reason="headless: nobody answers whether the directory is to be trusted"),
        Deviation(
            what="enable_telemetry = false, enable_update_checks = false",
            reason="offline: neither can be reached",
        ),
    ),
)
