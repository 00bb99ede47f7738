"""Continue's CLI (`cn`), run as its documentation says for scripts: `--print`, pointed at the gateway by its
configuration file. Print mode shows the last message alone, also in a terminal; its JSON form is that one.
"""

import json

from orchestrator.adapter import Adapter, Deviation, Launch, LaunchContext


def launch(context: LaunchContext) -> Launch:
    """Run one prompt to its end."""
    config = {
        "name": "cab",
        "version": "1.0.0",
        "schema": "v1",
        "models": [
            {
                "name": context.model,
                "provider": "openai",
                "model": context.model,
                "apiBase": f"{context.base_url}/v1",
                "apiKey": context.credential,
            }
        ],
    }
    return Launch(
        argv=("cn", "--print", "--auto", "--", context.prompt),
        # JSON is YAML.
        files={".continue/config.yaml": json.dumps(config)},
    )


ADAPTER = Adapter(
    name="continue",
    version="1.5.47",
    licence="Apache-2.0",
    launch=launch,
    wire="chat",
    tty=True,
    deviations=(
        Deviation(
            what="one model is configured: the measured endpoint's",
            reason="the endpoint is what is measured, and no other can be reached",
        ),
        Deviation(
            what="--auto: tools act without being asked for",
            reason="headless: nobody answers a question",
        ),
    ),
)
