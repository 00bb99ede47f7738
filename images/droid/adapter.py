"""Factory's droid, run as its documentation says for scripts (`droid exec`), pointed at the gateway by a model
of one's own in its settings.
"""

import json

from orchestrator.adapter import Adapter, Deviation, Launch, LaunchContext

# An endpoint does not tell it; droid asks for no more than it is told.
OUTPUT_TOKENS = 32_000


def launch(context: LaunchContext) -> Launch:
    """Run one prompt to its end."""
    model = {
        "model": context.model,
        "displayName": context.model,
        "baseUrl": f"{context.base_url}/v1",
        "apiKey": context.credential,
        "provider": "generic-chat-completion-api",
        "maxOutputTokens": OUTPUT_TOKENS,
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
        env={"FACTORY_AIRGAP_ENABLED": "true"},
        files={".factory/settings.json": json.dumps({"customModels": [model]})},
    )


ADAPTER = Adapter(
    name="droid",
    version="0.215.0",
    launch=launch,
    wire="chat",
    tty=False,
    state_globs=("/.git/.factory-scm-trigger",),
    deviations=(
        Deviation(
            what="one model is configured: the measured endpoint's",
            reason="the endpoint is what is measured, and no other can be reached",
        ),
        Deviation(
            what=f"output limit of the model set to {OUTPUT_TOKENS} tokens",
            reason="a model of one's own has no entry in the catalogue that droid takes it from",
        ),
        Deviation(
            what="FACTORY_AIRGAP_ENABLED=true",
            reason="offline: without a login at Factory's servers droid runs in this mode alone",
        ),
        Deviation(
            what="--skip-permissions-unsafe",
            reason="headless: nobody answers a question, and droid refuses without it what could change files",
        ),
    ),
)
