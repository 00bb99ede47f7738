"""The agent of a dry run: none. Its patch says so, is the same on every machine and fits every repository."""

from __future__ import annotations

from orchestrator.external.claims import NOT_RUN
from orchestrator.external.work import Work


def fake_work(instance_id: str) -> Work:
    """A patch that adds one file, with the instance in its name and text."""
    path = f"cab-dry-run-{instance_id}.txt"
    text = f"A dry run of {instance_id}: no agent worked on it."
    diff = (
        f"diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n"
        f"@@ -0,0 +1 @@\n+{text}\n"
    )
    return Work(outcome=NOT_RUN, diff=diff.encode())
