"""noop: a CLI that does nothing. No task may give it a pass."""

from orchestrator.adapter import Adapter, Launch, LaunchContext


def launch(context: LaunchContext) -> Launch:
    """Run `true`; it asks no model, so everything in the context is left unread."""
    del context
    return Launch(argv=("true",))


ADAPTER = Adapter(
    name="noop",
    version="1",
    licence="Apache-2.0",
    launch=launch,
    wire=None,
    tty=False,
    final_message="stdout",
)
