"""gptme, run as its documentation says for scripts (`--non-interactive`), and pointed at the gateway by two
variables.

All else is as shipped: prompt, tools, tool format, the request that names the conversation, its log (in
HOME). It ends with exit code 1 also where an answer holds no text and no call, as a refusal does.
"""

from typing import Any

from orchestrator.adapter import Adapter, Deviation, Launch, LaunchContext, McpSettings, SettingsPlace

# Beside the file that gptme fills with its defaults where it is not there.
PLACE = SettingsPlace(file=".config/gptme/config.local.toml")


def launch(context: LaunchContext) -> Launch:
    """Run one prompt to its end in the mode that people see."""
    return Launch(
        argv=("gptme", "--non-interactive", "--model", f"local/{context.model}", "--", context.prompt),
        env={
            "OPENAI_BASE_URL": f"{context.base_url}/v1",
            "OPENAI_API_KEY": context.credential,
            "GPTME_TIKTOKEN_TIMEOUT": "0",
        },
    )


def mcp_server(name: str, command: tuple[str, ...]) -> dict[str, Any]:
    """One MCP server, as gptme's configuration lists it. Its switch is off as shipped."""
    server = {"name": name, "command": command[0], "args": list(command[1:])}
    return {"mcp": {"enabled": True, "servers": [server]}}


ADAPTER = Adapter(
    name="gptme",
    version="0.35.1",
    licence="MIT",
    launch=launch,
    rules_file="AGENTS.md",
    settings=PLACE,
    mcp=McpSettings(PLACE, mcp_server),
    args_at=1,
    wire="chat",
    tty=True,
    exit_code_tells=False,
    deviations=(
        Deviation(
            what="the model is local/<id>, at the measured endpoint",
            reason="the endpoint is what is measured, and no other can be reached",
        ),
        Deviation(
            what="--non-interactive",
            reason="headless: it would confirm each tool call and ask for the next prompt. Its own prompt "
            "then says that nobody answers",
        ),
        Deviation(
            what="GPTME_TIKTOKEN_TIMEOUT=0",
            reason="offline: its tokenizer's data cannot be loaded, and it then estimates four characters a "
            "token as this makes it do at once, without asking the network over a hundred times",
        ),
    ),
)
