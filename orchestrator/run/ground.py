"""Whether what all cells stand on is still there."""

from __future__ import annotations

from orchestrator.errors import EnvironmentFault
from orchestrator.fleet import where_elsewhere
from orchestrator.paths import resume_command
from orchestrator.run.bench import LOCAL_LOG, Bench
from orchestrator.run.outcome import Outcome
from orchestrator.store.cells import CellStore


def check_ground(bench: Bench, store: CellStore, outcome: Outcome) -> None:
    """After a try that ended as `outcome`.

    Raises EnvironmentFault where each further one would fail alike.
    """
    mend = resume_command(store.root, *where_elsewhere(bench.adapters))
    if not bench.gateway.alive:
        place = str(store.root / "gateway.log")
        raise EnvironmentFault("the model gateway died", place=place, mend=mend)
    if dead := next((server for server in bench.servers if not server.alive), None):
        place = str(store.root / LOCAL_LOG)
        raise EnvironmentFault(f"the server of {dead.model.id} died", place=place, mend=mend)
    if outcome.cause == "engine" and not bench.grader.sandbox.answers:
        raise EnvironmentFault("the Docker engine is gone", mend=f"start it, then {mend}")
