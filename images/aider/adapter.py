"""aider, run as its documentation says for scripts: one `--message`, every question answered with yes.

All else is as shipped: repository map, edit format, lint, commits, its files and its line in the workdir. No
file is named, so it takes those into the chat that the message or the model mentions. Its exit code is 0 also
when no model answered; whether one did is known from the gateway. Any other code is a crash.
"""

from orchestrator.adapter import Adapter, Deviation, Launch, LaunchContext


def launch(context: LaunchContext) -> Launch:
    """Run one prompt to its end in the mode that people see."""
    # Joined, since a prompt may begin with a dash.
    argv = ("aider", "--model", f"openai/{context.model}", "--yes-always", "--no-analytics")
    return Launch(
        argv=(*argv, f"--message={context.prompt}"),
        env={"OPENAI_API_BASE": f"{context.base_url}/v1", "OPENAI_API_KEY": context.credential},
    )


ADAPTER = Adapter(
    name="aider",
    version="0.86.2",
    launch=launch,
    wire="chat",
    tty=True,
    state_globs=("/.aider.chat.history.md", "/.aider.input.history", "/.aider.tags.cache.v*/"),
    state_lines={".gitignore": (".aider*", ".env")},
    side_prompts=(
        "generates concise, one-line Git commit messages",
        "*Briefly* summarize this partial conversation",
    ),
    deviations=(
        Deviation(
            what="the model is openai/<id>, at the measured endpoint",
            reason="the endpoint is what is measured, and no other can be reached",
        ),
        Deviation(what="--yes-always", reason="headless: nobody answers a question, and aider would wait"),
        Deviation(
            what="--no-analytics",
            reason="measured: a random tenth of new users is asked to consent, and --yes-always would",
        ),
    ),
)
