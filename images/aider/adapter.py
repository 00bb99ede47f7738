"""aider, run as its documentation says for scripts: one `--message`, every question answered with yes.

All else is as shipped: repository map, edit format, lint, commits, its files and its line in the workdir. No
file is named but that of the rules, so it takes those into the chat that the message or the model mentions.
Its exit code is 0 also when no model answered; whether one did is known from the gateway. Any other code is a
crash.
"""

import re

from orchestrator.adapter import Adapter, CliUsage, Deviation, Launch, LaunchContext, SettingsPlace

_AMOUNT = r"(\d{1,9}(?:\.\d)?k?)"
_TOKENS = re.compile(rf"Tokens: {_AMOUNT} sent,(?: {_AMOUNT} cache (?:write|hit),)* {_AMOUNT} received\.")


def launch(context: LaunchContext) -> Launch:
    """Run one prompt to its end in the mode that people see."""
    # Joined, since a prompt may begin with a dash.
    argv = ("aider", "--model", f"openai/{context.model}", "--yes-always", "--no-analytics")
    rules = ("--read", context.rules) if context.rules else ()
    return Launch(
        argv=(*argv, *rules, f"--message={context.prompt}"),
        env={"OPENAI_API_BASE": f"{context.base_url}/v1", "OPENAI_API_KEY": context.credential},
    )


def reported_usage(printed: str) -> CliUsage | None:
    """The sum of aider's lines `Tokens: 7.2k sent, 105 received.`, one a message; thousands are rounded."""
    lines = [(_tokens(line[1]), _tokens(line[3])) for line in _TOKENS.finditer(printed)]
    if not lines:
        return None
    return CliUsage(
        input=sum(sent for (sent, _), _ in lines),
        output=sum(received for _, (received, _) in lines),
        input_margin=sum(margin for (_, margin), _ in lines),
        output_margin=sum(margin for _, (_, margin) in lines),
    )


def _tokens(said: str) -> tuple[int, int]:
    """A number as aider writes it, and how far it may be off: `105`, `7.2k`, `12k`."""
    if not said.endswith("k"):
        return int(float(said)), 0
    return round(float(said[:-1]) * 1000), 50 if "." in said else 500


ADAPTER = Adapter(
    name="aider",
    version="0.86.2",
    licence="Apache-2.0",
    launch=launch,
    wire="chat",
    tool_calls=False,
    tty=True,
    rules_file="AGENTS.md",
    settings=SettingsPlace(file=".aider.conf.yml"),  # JSON is YAML
    args_at=1,
    not_taken={"mcp": "it offers its model no tools"},
    state_globs=("/.aider.chat.history.md", "/.aider.input.history", "/.aider.tags.cache.v*/"),
    state_lines={".gitignore": (".aider*", ".env")},
    reported_usage=reported_usage,
    side_prompts=(
        "generates concise, one-line Git commit messages",
        "*Briefly* summarize this partial conversation",
    ),
    deviations=(
        Deviation(
            what="the model is openai/<id>, at the measured endpoint",
            reason="the endpoint is what is measured, and no other can be reached",
        ),
        Deviation(
            what="--read AGENTS.md, where the workdir has one",
            reason="aider looks for no file of rules by itself, and each CLI is to get the task's",
        ),
        Deviation(what="--yes-always", reason="headless: nobody answers a question, and aider would wait"),
        Deviation(
            what="--no-analytics",
            reason="measured: a random tenth of new users is asked to consent, and --yes-always would",
        ),
    ),
)
