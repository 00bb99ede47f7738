"""oracle: the reference solution as if it were a CLI. Every task has to give it full marks."""

from orchestrator.adapter import Adapter, Launch, LaunchContext


def launch(context: LaunchContext) -> Launch:
    """Run the task's reference solution; it asks no model, so everything in the context is left unread."""
    del context
    return Launch(argv=("oracle",))


ADAPTER = Adapter(
    name="oracle",
    version="1",
    licence="Apache-2.0",
    launch=launch,
    wire=None,
    tty=False,
    needs_solution=True,
    final_message="stdout",
)
