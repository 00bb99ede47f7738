"""grok-cli (vibe-kit), run as its documentation says for scripts: one `--prompt`.

It prints the whole conversation as JSON lines when it is over, in a terminal or not. Its exit code is 0 also
when no model answered; whether one did is known from the gateway.
"""

import json

from orchestrator.adapter import Adapter, Deviation, Launch, LaunchContext, SettingsPlace


def launch(context: LaunchContext) -> Launch:
    """Run one prompt to its end in the mode that people see."""
    # Joined, since a prompt may begin with a dash.
    return Launch(
        argv=("grok", f"--model={context.model}", f"--prompt={context.prompt}"),
        env={"GROK_BASE_URL": f"{context.base_url}/v1", "GROK_API_KEY": context.credential},
    )


def render(line: str) -> str:
    """One message as a screen shows it: calls, their results, what the model said."""
    message = json.loads(line)
    calls = "".join(
        f"\x1b[36m{call['function']['name']}\x1b[0m {call['function']['arguments']}\n"
        for call in message.get("tool_calls", ())
    )
    return f"{message['content']}\n{calls}\n"


ADAPTER = Adapter(
    name="grok-cli",
    version="0.0.34",
    licence="MIT",
    launch=launch,
    wire="chat",
    tty=False,
    render=render,
    rules_file=".grok/GROK.md",
    settings=SettingsPlace(file=".grok/user-settings.json"),
    args_at=1,
    not_taken={"mcp": "it lists its tools once, before any server has started"},
    state_globs=("/.grok/settings.json",),
    deviations=(
        Deviation(
            what="GROK_BASE_URL is the measured endpoint",
            reason="the endpoint is what is measured, and no other can be reached",
        ),
        Deviation(
            what="--prompt: no question is asked before a tool acts",
            reason="headless: nobody answers a question; grok-cli asks none in this mode",
        ),
    ),
)
