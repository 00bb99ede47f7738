"""opencode: one native binary, run as people run it (`opencode run`), pointed at the gateway by one variable."""

import json

from orchestrator.adapter import Adapter, Deviation, Launch, LaunchContext

PROVIDER = "cab"
# opencode cannot ask an endpoint for these; without them it never compacts and lets answers grow without bound.
CONTEXT_TOKENS = 200_000
OUTPUT_TOKENS = 32_000


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
        "model": model,
        "small_model": model,
        "permission": "allow",
        "autoupdate": False,
        "share": "disabled",
    }
    return Launch(
        argv=("opencode", "run", "-m", model, context.prompt),
        env={
            "OPENCODE_CONFIG_CONTENT": json.dumps(config, separators=(",", ":")),
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        },
    )


ADAPTER = Adapter(
    name="opencode",
    version="1.18.33",
    launch=launch,
    wire="chat",
    tty=True,
    state_globs=(".git/opencode", ".git/opencode/**"),
    deviations=(
        Deviation(
            what="provider, model and small_model are set to the measured endpoint",
            reason="the endpoint is the thing measured, and no other can be reached",
        ),
        Deviation(
            what=f"model limits set to {CONTEXT_TOKENS} tokens of context and {OUTPUT_TOKENS} of output",
            reason="a custom provider has no entry in the catalogue that opencode takes them from",
        ),
        Deviation(
            what='permission = "allow"', reason="headless: nobody is there to answer a permission prompt"
        ),
        Deviation(
            what='autoupdate = false, share = "disabled", no fetch of the model catalogue and of language servers',
            reason="offline: none of these can be reached, and an update would change what is measured",
        ),
    ),
)
