"""mini-swe-agent's `mini`, run as people run it without confirmations, and pointed at the gateway by two
variables.

All else is as shipped: prompt, its one tool, retries, trajectory (in HOME). Its exit code is 0 also where it
gave up; whether a model answered is known from the gateway. Any other code is a crash, or a model that is out
of reach.
"""

from orchestrator.adapter import Adapter, Deviation, Launch, LaunchContext


def launch(context: LaunchContext) -> Launch:
    """Run one prompt to its end in the mode that people see."""
    argv = ("mini", "--model", f"openai/{context.model}", "--yolo", "--exit-immediately", "--cost-limit", "0")
    return Launch(
        # Joined, since a prompt may begin with a dash.
        argv=(*argv, f"--task={context.prompt}"),
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
    deviations=(
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
