"""cline, one prompt, in the mode that people see."""

import json

from orchestrator.adapter import Adapter, Deviation, Launch, LaunchContext, McpSettings, SettingsPlace

PROVIDER = "openai-compatible"


def launch(context: LaunchContext) -> Launch:
    """Run one prompt to its end. The settings are what `cline auth` writes."""
    provider = {
        "settings": {
            "provider": PROVIDER,
            "apiKey": context.credential,
            "model": context.model,
            "baseUrl": f"{context.base_url}/v1",
        },
        "updatedAt": "2026-01-01T00:00:00.000Z",
        "tokenSource": "manual",
    }
    providers = {"version": 1, "lastUsedProvider": PROVIDER, "modes": {}, "providers": {PROVIDER: provider}}
    return Launch(
        argv=("cline", "--provider", PROVIDER, "--model", context.model, "--", context.prompt),
        env={"CLINE_NO_AUTO_UPDATE": "1"},
        files={
            ".cline/data/settings/providers.json": json.dumps(providers),
            ".cline/data/settings/global-settings.json": json.dumps(
                {"telemetryOptOut": True, "autoUpdateEnabled": False}
            ),
        },
    )


ADAPTER = Adapter(
    name="cline",
    version="3.0.65",
    licence="Apache-2.0",
    launch=launch,
    rules_file="AGENTS.md",
    settings=SettingsPlace(file=".cline/data/settings/global-settings.json"),
    mcp=McpSettings(SettingsPlace(file=".cline/data/settings/cline_mcp_settings.json")),
    args_at=1,
    wire="chat",
    tty=True,
    exit_code_tells=False,  # measured: 1 also when the model refuses, which cline asks three times
    deviations=(
        Deviation(
            what="one provider is configured: the measured endpoint and model",
            reason="the endpoint is what is measured, and no other can be reached",
        ),
        Deviation(
            what="telemetryOptOut, and no check for updates",
            reason="offline: neither can reach anything",
        ),
    ),
)
