"""Letta Code, in its own headless mode with a new agent on its local backend, pointed at the gateway by one
provider.

All else is as shipped: prompt but for the rules, tools, memory (a git repository in HOME), skills. Headless,
its plain text is the final message alone, so it prints its events. It asks the endpoint which models there
are.
"""

import json
from typing import Any

from orchestrator.adapter import Adapter, CliUsage, Deviation, Launch, LaunchContext, SettingsPlace

PROVIDER = "openai-compatible"
RULES = "project-rules"
SINCE = "2026-01-01T00:00:00.000Z"


def launch(context: LaunchContext) -> Launch:
    """Run one prompt to its end, its events on stdout."""
    provider = {
        "id": f"local-provider-{PROVIDER}",
        "name": PROVIDER,
        "provider_type": PROVIDER,
        "provider_category": "byok",
        "auth": {"type": "api", "key": context.credential},
        "base_url": f"{context.base_url}/v1",
        "created_at": SINCE,
        "updated_at": SINCE,
    }
    providers = json.dumps({"version": 1, "providers": {PROVIDER: provider}})
    files = {".letta/lc-local-backend/providers/auth.json": providers}
    argv = ("letta", "--backend", "local", "--new-agent", "--model", f"{PROVIDER}/{context.model}", "--yolo")
    if context.rules:
        head = f"---\nname: {RULES}\ndescription: The rules of this project.\n---\n\n"
        files[f".letta/skills/{RULES}/SKILL.md"] = head + context.rules_text
        argv += ("--pre-load-skills", RULES)
    return Launch(
        argv=(*argv, "--output-format", "stream-json", "--prompt", "--", context.prompt), files=files
    )


def reported_usage(printed: str) -> CliUsage | None:
    """The sum of its events of usage, one a call."""
    calls = [event for event in _events(printed) if event.get("message_type") == "usage_statistics"]
    if not calls:
        return None
    return CliUsage(
        input=sum(int(call["prompt_tokens"]) for call in calls),
        output=sum(int(call["completion_tokens"]) for call in calls),
    )


def _events(printed: str) -> list[dict[str, Any]]:
    lines = (line for line in printed.splitlines() if line.startswith("{"))
    events = []
    for line in lines:
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(event, dict):
            events.append(event)
    return events


def render(line: str) -> str:
    """One event: a piece of what the model said, or what a tool was asked and answered."""
    event = json.loads(line)
    match event.get("message_type"):
        case "tool_call_message":
            call = event["tool_call"]
            return f"\n\x1b[36m{call['name']}\x1b[0m {call['arguments']}\n"
        case "tool_return_message":
            return f"{event['tool_return']}\n"
        case "assistant_message":
            return "".join(part.get("text", "") for part in event["content"])
    return f"\n{event.get('message', '')}\n" if event["type"] == "error" else ""


ADAPTER = Adapter(
    name="letta-code",
    version="0.34.12",
    licence="Apache-2.0",
    launch=launch,
    wire="chat",
    tty=False,
    render=render,
    reported_usage=reported_usage,
    rules_file="AGENTS.md",
    settings=SettingsPlace(file=".letta/settings.json"),
    args_at=1,
    not_taken={"mcp": "it keeps servers by agent, and a measured agent is new"},
    state_globs=("/.letta/",),
    deviations=(
        Deviation(
            what="--backend local, with one provider: the measured endpoint",
            reason="the endpoint is what is measured, and its cloud cannot be reached",
        ),
        Deviation(
            what="--new-agent", reason="headless: nobody chooses an agent, and there is none to resume"
        ),
        Deviation(
            what="--prompt and --output-format stream-json, without a terminal",
            reason="headless: a terminal opens its full screen, which waits for the next prompt; the events "
            "are the one form in which its headless mode shows its work",
        ),
        Deviation(what="--yolo", reason="headless: nobody approves a tool's call"),
        Deviation(
            what=f"AGENTS.md, where the workdir has one, is a skill `{RULES}` that --pre-load-skills loads",
            reason="it looks for no file of rules by itself, and each CLI is to get the task's",
        ),
    ),
)
