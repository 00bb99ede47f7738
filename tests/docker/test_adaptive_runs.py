"""A sweep of adaptive runs with the real command: it ends by itself, and a kill changes nothing of it."""

from __future__ import annotations

import signal
from collections import Counter

import pytest
from command import PYTHON_TASK, Cab, wait_for

pytestmark = pytest.mark.docker

TASKS = [PYTHON_TASK, "integrity/ambiguous-ticket", "integrity/unsolvable-refusal"]
"""Quick to grade."""


def test_runs_go_on_until_the_ranking_is_decided_also_over_a_kill() -> None:
    with Cab.own() as cab:
        spec = cab.spec(
            clis=["noop", "oracle"],
            tasks=TASKS,
            runs={"min": 2, "max": 20, "until": "ranking"},
            concurrency=2,
        )
        begun = cab.sweep("run", spec)
        wait_for(lambda: any(it["run"] == 2 for it in cab.index()), "a cell of the second run")
        begun.signal(signal.SIGKILL)
        begun.process.wait()
        done = cab.sweep("resume", "--json").end(0)
        ranking = done.data["ranking"]
        assert (ranking["state"], ranking["decided"], ranking["pairs"]) == ("decided", 1, 1)
        assert ranking["comparisons"][0]["better"] == "oracle × none"
        # Of 20 runs, three tell those apart of which one passes all tasks and the other none.
        assert Counter((it["cli"], it["run"]) for it in cab.index()) == Counter(
            {(cli, run): 3 for cli in ("noop", "oracle") for run in (1, 2, 3)}
        )
        assert ranking["saved"]["cells"] == 18
        assert ranking["saved"]["uniform_cells"] == 120
        cab.assert_each_cell_once()
        assert "nothing to do" in cab.sweep("resume").end(0).err
        assert cab.left() == {}
