"""Claude Code, run as `claude -p` and pointed at the gateway by its base URL.

In this mode it prints its last words alone, so it runs with its events. Its tools and prompt are as shipped;
a request for its small model goes to the cell's model.
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
    as_text,
)

_OFF = {"DISABLE_AUTOUPDATER": "1", "DISABLE_TELEMETRY": "1", "DISABLE_ERROR_REPORTING": "1"}


def launch(context: LaunchContext) -> Launch:
    """Run one prompt to its end, with an event a line."""
    argv = ("claude", "-p", "--model", context.model, "--dangerously-skip-permissions")
    return Launch(
        argv=(*argv, "--output-format", "stream-json", "--verbose", "--", as_text(context.prompt, "/")),
        env={"ANTHROPIC_BASE_URL": context.base_url, "ANTHROPIC_API_KEY": context.credential, **_OFF},
    )


def reported_usage(printed: str) -> CliUsage | None:
    """What its last event says of the model that its first one names: all requests to it, sub-agents' too."""
    model, found = None, None
    for line in printed.splitlines():
        try:
            event = json.loads(line)
            match event["type"]:
                case "system":
                    model = event.get("model", model)
                case "result":
                    usage = event["modelUsage"][model]
                    given = usage["inputTokens"] + usage["cacheReadInputTokens"]
                    given += usage["cacheCreationInputTokens"]
                    found = CliUsage(input=int(given), output=int(usage["outputTokens"]))
        except (ValueError, TypeError, KeyError, RecursionError):
            continue  # A line of another kind, or what an agent made look like one.
    return found


def render(line: str) -> str:
    """One event as a screen shows it: what the model said, a call of a tool, what came of it."""
    event = json.loads(line)
    if event["type"] not in ("assistant", "user"):
        return ""
    shown = ""
    for part in event["message"]["content"]:
        match part["type"]:
            case "text" if event["type"] == "assistant":
                shown += f"\n{part['text']}\n"
            case "tool_use":
                shown += f"\n\x1b[36m{part['name']}\x1b[0m {json.dumps(part['input'])}\n"
            case "tool_result":
                said = part["content"]
                shown += f"{said if isinstance(said, str) else json.dumps(said)}\n"
    return shown


ADAPTER = Adapter(
    name="claude-code",
    version="2.1.332",
    licence="proprietary",
    launch=launch,
    wire="messages",
    tty=False,
    render=render,
    # It ends with 1 where the model refused, which is an answer.
    exit_code_tells=False,
    rules_file="CLAUDE.md",
    settings=SettingsPlace(file=".claude/settings.json"),
    mcp=McpSettings(SettingsPlace(file=".claude.json")),
    args_at=1,
    reported_usage=reported_usage,
    deviations=(
        Deviation(
            what="ANTHROPIC_BASE_URL and --model name the measured endpoint and model",
            reason="the endpoint is what is measured, and no other can be reached",
        ),
        Deviation(
            what="--dangerously-skip-permissions",
            reason="headless: nobody answers a question, and every change would be refused",
        ),
        Deviation(
            what="--output-format stream-json --verbose",
            reason="headless it shows no work, only its last words; its events show both",
        ),
        Deviation(
            what=f"{' '.join(_OFF)} are set", reason="offline: what they switch off would reach nothing"
        ),
    ),
)
