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
)

_OFF = {"DISABLE_AUTOUPDATER": "1", "DISABLE_TELEMETRY": "1", "DISABLE_ERROR_REPORTING": "1"}


def launch(context: LaunchContext) -> Launch:
    """Run one prompt to its end, with an event a line."""
    argv = ("claude", "-p", "--model", context.model, "--dangerously-skip-permissions")
    return Launch(
        argv=(*argv, "--output-format", "stream-json", "--verbose", "--", context.prompt),
        env={"ANTHROPIC_BASE_URL": context.base_url, "ANTHROPIC_API_KEY": context.credential, **_OFF},
    )


ADAPTER = Adapter(
    name="claude-code",
    version="2.1.332",
    launch=launch,
    wire="messages",
    tty=False,
    rules_file="CLAUDE.md",
    settings=SettingsPlace(file=".claude/settings.json"),
    mcp=McpSettings(SettingsPlace(file=".claude.json")),
    args_at=1,
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
        Deviation(what=f"{' '.join(_OFF)} are set", reason="offline: what they switch off would reach nothing"),
    ),
)
