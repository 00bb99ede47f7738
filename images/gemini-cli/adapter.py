"""gemini-cli, run as `gemini --prompt` and pointed at the gateway by its base URL.

In this mode it prints its last words alone, so it runs with its events. Its tools and prompt are as shipped;
requests for its small models go to the cell's model.
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

PLACE = SettingsPlace(file=".gemini/settings.json")
SETTINGS = {
    "security": {"auth": {"selectedType": "gemini-api-key"}},
    "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
    "privacy": {"usageStatisticsEnabled": False},
}


def launch(context: LaunchContext) -> Launch:
    """Run one prompt to its end, with an event a line."""
    # Joined, since a prompt may begin with a dash.
    argv = ("gemini", "--model", context.model, "--yolo", "--skip-trust", "--output-format", "stream-json")
    return Launch(
        argv=(*argv, f"--prompt={as_text(context.prompt, '/')}"),
        env={"GOOGLE_GEMINI_BASE_URL": context.base_url, "GEMINI_API_KEY": context.credential},
        files={".gemini/settings.json": json.dumps(SETTINGS)},
    )


def reported_usage(printed: str) -> CliUsage | None:
    """What its last event says of the model that its first one names. Its own count of output leaves thoughts
    out, and its total does not.
    """
    model, found = None, None
    for line in printed.splitlines():
        try:
            event = json.loads(line)
            match event["type"]:
                case "init":
                    model = event["model"]
                case "result":
                    stats = event["stats"]["models"][model]
                    given = int(stats["input_tokens"])
                    found = CliUsage(input=given, output=int(stats["total_tokens"]) - given)
        except (ValueError, TypeError, KeyError, RecursionError):
            continue  # A line of another kind, or what an agent made look like one.
    return found


def render(line: str) -> str:
    """One event as a screen shows it: what the model said, a call of a tool, what came of it."""
    event = json.loads(line)
    match event["type"]:
        case "message" if event["role"] == "assistant":
            return str(event["content"])
        case "tool_use":
            return f"\n\x1b[36m{event['tool_name']}\x1b[0m {json.dumps(event['parameters'])}\n"
        case "tool_result":
            return f"{event.get('output') or event['status']}\n"
        case "error":
            return f"{event['message']}\n"
    return ""


ADAPTER = Adapter(
    name="gemini-cli",
    version="0.61.0",
    licence="Apache-2.0",
    launch=launch,
    wire="gemini",
    tty=False,
    render=render,
    rules_file="GEMINI.md",
    settings=PLACE,
    mcp=McpSettings(PLACE),
    args_at=1,
    reported_usage=reported_usage,
    deviations=(
        Deviation(
            what="GOOGLE_GEMINI_BASE_URL and --model name the measured endpoint and model, by an API key",
            reason="the endpoint is what is measured, and no other can be reached",
        ),
        Deviation(
            what="--yolo --skip-trust",
            reason="headless: nobody answers a question; it refuses to start in a folder that nobody trusted",
        ),
        Deviation(
            what="--output-format stream-json",
            reason="headless it shows no work, only its last words; its events show both",
        ),
        Deviation(
            what="enableAutoUpdate, enableAutoUpdateNotification and usageStatisticsEnabled are off",
            reason="offline: what they switch off would reach nothing",
        ),
    ),
)
