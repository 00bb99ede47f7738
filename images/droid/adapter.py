"""droid, run as its documentation says for scripts (`droid exec`), pointed at the gateway by a model
of one's own in its settings.

Under a terminal it shows the last message alone; its events show the work.
"""

import json

from orchestrator.adapter import (
    Adapter,
    CliUsage,
    Deviation,
    Launch,
    LaunchContext,
    McpSettings,
    SettingsPlace,
)


def launch(context: LaunchContext) -> Launch:
    """Run one prompt to its end."""
    model = {
        "model": context.model,
        "displayName": context.model,
        "baseUrl": f"{context.base_url}/v1",
        "apiKey": context.credential,
        "provider": "generic-chat-completion-api",
    }
    return Launch(
        argv=(
            "droid",
            "exec",
            "--skip-permissions-unsafe",
            "--output-format=stream-json",
            "--model",
            f"custom:{context.model}",
            "--",
            context.prompt,
        ),
        files={".factory/settings.json": json.dumps({"customModels": [model]})},
    )


def render(line: str) -> str:
    """One event as a screen shows it: calls, their results, what the model said."""
    event = json.loads(line)
    kind = event["type"]
    if kind == "tool_call":
        return f"\n\x1b[36m{event['toolName']}\x1b[0m {json.dumps(event['parameters'], ensure_ascii=False)}\n"
    if kind == "tool_result":
        return f"{event['error']['message'] if event['isError'] else event['value']}\n"
    if kind == "error":
        return f"\x1b[31m{event['message']}\x1b[0m\n"
    return f"\n{event['text']}\n" if kind == "message" else ""


def reported_usage(printed: str) -> CliUsage | None:
    """The totals of the last event; what a cache held is stated beside the input, not in it."""
    last = printed.rstrip().rpartition("\n")[2]
    event = json.loads(last) if last.startswith('{"type":"completion"') else {}
    usage = event.get("usage")
    if usage is None:
        return None
    cached = usage["cache_read_input_tokens"] + usage["cache_creation_input_tokens"]
    return CliUsage(input=usage["input_tokens"] + cached, output=usage["output_tokens"])


ADAPTER = Adapter(
    name="droid",
    version="0.215.0",
    rules_file="AGENTS.md",
    settings=SettingsPlace(file=".factory/settings.json"),
    mcp=McpSettings(SettingsPlace(file=".factory/mcp.json"), named=False),
    args_at=2,
    licence="proprietary",
    launch=launch,
    wire="chat",
    tty=False,
    render=render,
    reported_usage=reported_usage,
    state_globs=("/.git/.factory-scm-trigger",),
    deviations=(
        Deviation(
            what="--output-format=stream-json, without a terminal",
            reason="headless: the text form shows nothing of the work but its last message",
        ),
        Deviation(
            what="one model is configured: the measured endpoint's",
            reason="the endpoint is what is measured, and no other can be reached",
        ),
        Deviation(
            what="--skip-permissions-unsafe",
            reason="headless: nobody answers a question, and without it droid may only read",
        ),
    ),
)
