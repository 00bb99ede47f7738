"""Codex, run as `codex exec` and pointed at the gateway by a provider in its configuration.

Its tools, prompt and features are as shipped. It speaks responses alone. Of tokens it prints one number,
input that was not cached and output together, which is no total to compare.
"""

from orchestrator.adapter import Adapter, Deviation, Launch, LaunchContext

PROVIDER = "cab"
KEY = "CAB_API_KEY"


def launch(context: LaunchContext) -> Launch:
    """Run one prompt to its end in the mode that people see."""
    config = f"""\
model_provider = "{PROVIDER}"
check_for_update_on_startup = false

[model_providers.{PROVIDER}]
name = "{PROVIDER}"
base_url = "{context.base_url}/v1"
env_key = "{KEY}"
wire_api = "responses"

[analytics]
enabled = false
"""
    argv = ("codex", "exec", "--dangerously-bypass-approvals-and-sandbox", "--model", context.model)
    return Launch(
        argv=(*argv, "--", context.prompt),
        env={KEY: context.credential},
        files={".codex/config.toml": config},
    )


ADAPTER = Adapter(
    name="codex",
    version="0.171.0",
    licence="Apache-2.0",
    launch=launch,
    wire="responses",
    tty=True,
    deviations=(
        Deviation(
            what="one provider is configured: the measured endpoint",
            reason="the endpoint is what is measured, and no other can be reached",
        ),
        Deviation(
            what="--dangerously-bypass-approvals-and-sandbox",
            reason="headless: nobody approves a command; the cell's container is the sandbox, in which the "
            "CLI's own cannot be set up",
        ),
        Deviation(
            what="check_for_update_on_startup = false", reason="offline: there is nothing to update from"
        ),
        Deviation(what="analytics.enabled = false", reason="offline: events would go nowhere"),
    ),
)
