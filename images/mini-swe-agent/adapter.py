"""mini-swe-agent's `mini`, run as people run it without confirmations, and pointed at the gateway by two
variables.

All else is as shipped: prompt but for the rules, its one tool, retries, trajectory (in HOME). Its exit code
is 0 also where it gave up; whether a model answered is known from the gateway. Any other code is a crash, or
a model that is out of reach.
"""

import json

from orchestrator.adapter import Adapter, Deviation, Launch, LaunchContext, SettingsPlace

# By its full path: a file of this name in the workdir would go before it.
SHIPPED = "/opt/mini-swe-agent/lib/python3.13/site-packages/minisweagent/config/mini.yaml"
SYSTEM = "You are a helpful assistant that can interact with a computer."
CONFIG = ".config/mini-swe-agent/cab.yaml"  # JSON is YAML


def launch(context: LaunchContext) -> Launch:
    """Run one prompt to its end in the mode that people see."""
    system = SYSTEM
    if context.rules:
        # As a string of the template's language: what stands in the file is no template.
        system += f"\n\n{{{{ {json.dumps(context.rules_text, ensure_ascii=False)} }}}}"
    argv = ("mini", "--config", SHIPPED, "--config", f"{context.home}/{CONFIG}")
    argv += ("--model", f"openai/{context.model}", "--yolo", "--exit-immediately", "--cost-limit", "0")
    return Launch(
        # Joined, since a prompt may begin with a dash.
        argv=(*argv, f"--task={context.prompt}"),
        files={CONFIG: json.dumps({"agent": {"system_template": system}})},
        env={
            "OPENAI_API_BASE": f"{context.base_url}/v1",
            "OPENAI_API_KEY": context.credential,
            "MSWEA_CONFIGURED": "true",
            "MSWEA_COST_TRACKING": "ignore_errors",
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        },
    )


ADAPTER = Adapter(
    name="mini-swe-agent",
    version="2.4.6",
    licence="MIT",
    launch=launch,
    wire="chat",
    tty=True,
    rules_file="AGENTS.md",
    settings=SettingsPlace(file=CONFIG),
    args_at=5,
    not_taken={"mcp": "its one tool is a shell"},
    deviations=(
        Deviation(
            what="--config: as shipped, and a system prompt that goes on with AGENTS.md where there is one",
            reason="it looks for no file of rules by itself, and each CLI is to get the task's",
        ),
        Deviation(
            what="the model is openai/<id>, at the measured endpoint",
            reason="the endpoint is what is measured, and no other can be reached",
        ),
        Deviation(what="--yolo", reason="headless: nobody confirms a command, and it would wait"),
        Deviation(
            what="--exit-immediately", reason="headless: it would ask for the next task when it has ended one"
        ),
        Deviation(
            what="--cost-limit 0 in place of 3 dollars",
            reason="measured: cab's limits hold; at its own it would ask for a new one, and wait",
        ),
        Deviation(
            what="MSWEA_CONFIGURED=true",
            reason="headless: the first run asks for a model and a key, and waits",
        ),
        Deviation(
            what="MSWEA_COST_TRACKING=ignore_errors",
            reason="measured: it ends at the first answer of a model that is on no price list of its own",
        ),
        Deviation(
            what="LITELLM_LOCAL_MODEL_COST_MAP=True",
            reason="offline: the price list that is built in, not one from the network",
        ),
    ),
)
