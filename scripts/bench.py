"""How fast cab is against its floor, measured in one run: `make bench`.

The floor of a noop cell is two bare `docker run`s of the same commands with the same network, mounts and
limits: what the engine itself needs. Cells and floors alternate, so that both see the same machine.
Everything is reported as medians, spread and ratios; nothing here is a test.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from orchestrator.adapter import HOME, WORKDIR
from orchestrator.paths import ROOT
from orchestrator.report.live import PlainView
from orchestrator.run import start
from orchestrator.run.bench import Bench
from orchestrator.run.grader import agent_user
from orchestrator.run.provenance import Provenance
from orchestrator.run.sweep import Sweep
from orchestrator.run.verify import LOGS, TESTS, VERIFIER_UID
from orchestrator.run.workdir import copy_tree, give

TASK = "polyglot/python-reverse-string"
CELL_GOAL, SPEED_UP_GOAL, CPU_GOAL_S = 1.2, 0.85, 0.1
HELP_GOAL_MS, NOTHING_GOAL_S = 150, 0.5
GOALS = {
    "cell_to_floor": {"at_most": CELL_GOAL},
    "speed_up_to_floor": {"at_least": SPEED_UP_GOAL},
    "own_cpu_s": {"at_most": CPU_GOAL_S},
    "help_ms": {"at_most": HELP_GOAL_MS},
    "nothing_to_do_s": {"at_most": NOTHING_GOAL_S},
}
"""What each figure should be, beside it in the JSON."""


@dataclass(frozen=True)
class Sample:
    """Seconds of several runs."""

    runs: list[float]

    @property
    def median(self) -> float:
        return statistics.median(self.runs)

    @property
    def spread(self) -> float:
        """Half the distance between the quartiles, as a share of the median."""
        low, _, high = statistics.quantiles(self.runs, n=4)
        return (high - low) / 2 / self.median


def timed(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


class Floor:
    """The two commands of a noop cell in two bare containers; laying out what they mount is not timed."""

    def __init__(self, bench: Bench, place: Path) -> None:
        task, limits, user = bench.tasks[TASK], bench.grader.limits, agent_user()
        verifier = (VERIFIER_UID, VERIFIER_UID) if os.geteuid() == 0 else user
        template = bench.grader.template(task).path
        copy_tree(template, place / "agent", user)
        copy_tree(template, place / "graded", verifier)
        for name, owner in (("home", user), ("logs", verifier)):
            (place / name).mkdir()
            give(place / name, owner)
        common = [
            *("docker", "run", "--rm", "--network", "none", "--read-only", "--cap-drop", "ALL"),
            *("--security-opt", "no-new-privileges", "--pids-limit", str(limits.pids)),
            *("--memory", str(limits.memory_bytes), "--memory-swap", str(limits.memory_bytes)),
            *("--cpus", str(limits.cpus), "--workdir", WORKDIR),
            *("--tmpfs", f"/tmp:rw,exec,nosuid,nodev,size={limits.tmp_bytes}"),
        ]
        self._agent = [
            *(*common, "--user", f"{user[0]}:{user[1]}"),
            *("-v", f"{place}/agent:{WORKDIR}", "-v", f"{place}/home:{HOME}", bench.pins["noop"], "true"),
        ]
        self._verifier = [
            *(*common, "--user", f"{verifier[0]}:{verifier[1]}", "-v", f"{place}/graded:{WORKDIR}"),
            *("-v", f"{task.tests_dir}:{TESTS}:ro", "-v", f"{place}/logs:{LOGS}"),
            *(bench.pins["base"], "sh", f"{TESTS}/test.sh"),
        ]

    def __call__(self) -> None:
        subprocess.run(self._agent, check=True, capture_output=True)
        # The tests of an untouched workdir fail: that is their exit code, not a failure to run.
        subprocess.run(self._verifier, check=False, capture_output=True)


def own_cpu(gateway_pid: int) -> float:
    """Seconds of CPU of this process, of the children it waited for, and of its gateway."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    fields = Path(f"/proc/{gateway_pid}/stat").read_text().rpartition(")")[2].split()
    return sum(u.ru_utime + u.ru_stime for u in used) + (int(fields[11]) + int(fields[12])) / 100


def at_once(work: Sequence[Callable[[], object]]) -> float:
    """Seconds a piece of work when two workers are at it."""
    with ThreadPoolExecutor(2) as pool:
        return timed(lambda: [each.result() for each in [pool.submit(piece) for piece in work]]) / len(work)


def measure(runs: int) -> dict[str, Any]:
    """All figures. Needs the engine and the images of `make setup`."""
    with tempfile.TemporaryDirectory(prefix="cab-bench-") as directory:
        place = Path(directory)
        spec = place / "bench.yaml"
        spec.write_text(f"name: bench\nclis: [noop]\ntasks: [{TASK}]\nruns: {3 * runs + 1}\n")
        with start.started(start.of_file(spec, place / "results", "bench")) as ready:
            found = _cells(ready, place, runs)
        command = [sys.executable, "-m", "orchestrator.cli"]
        again = [*command, "sweep", "run", str(spec), "--id", "bench", "-r", str(place / "results")]
        nothing = _commands(again, runs)
    help_, python = _commands([*command, "--help"], runs), _commands([sys.executable, "-c", "pass"], runs)
    return found | {
        "help_ms": help_.median * 1000,
        "help_spread": help_.spread,
        "python_ms": python.median * 1000,
        "python_spread": python.spread,
        "help_to_python": help_.median / python.median,
        "nothing_to_do_s": nothing.median,
        "nothing_to_do_spread": nothing.spread,
    }


def _cells(ready: start.Ready, place: Path, runs: int) -> dict[str, Any]:
    """Cells and floors in turn, then two at a time."""
    bench, todo = ready.bench, list(ready.todo)
    assert bench is not None
    view = PlainView(Console(file=sys.stderr, quiet=True), todo)
    floors = [Floor(bench, place / f"floor-{number}") for number in range(2 * runs)]

    def cell() -> None:
        Sweep(bench, ready.store, [todo.pop()], 0, view).run()

    cell()
    floors[0]()
    cells, bare, cpu = [], [], 0.0
    for number in range(runs):
        before = own_cpu(bench.gateway.pid)
        cells.append(timed(cell))
        cpu += own_cpu(bench.gateway.pid) - before
        bare.append(timed(floors[number]))
    one, floor = Sample(cells), Sample(bare)
    speed_up, floor_speed_up = one.median / at_once([cell] * (2 * runs)), floor.median / at_once(floors)
    return {
        "runs": runs,
        "noop_cell_s": one.median,
        "noop_cell_spread": one.spread,
        "floor_s": floor.median,
        "floor_spread": floor.spread,
        "cell_to_floor": one.median / floor.median,
        "own_cpu_s": cpu / runs,
        "speed_up_of_two": speed_up,
        "floor_speed_up_of_two": floor_speed_up,
        "speed_up_to_floor": speed_up / floor_speed_up,
        "goals": GOALS,
    }


def _commands(argv: list[str], runs: int) -> Sample:
    """Runs of a command as an installed one runs: its modules were compiled, by a run that is not timed."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}

    def once() -> None:
        subprocess.run(argv, check=True, capture_output=True, cwd=ROOT, env=env)

    once()
    return Sample([timed(once) for _ in range(runs)])


Row = tuple[str, str, str, str, str]
HEAD: Row = ("what", "measured", "against", "ratio", "goal")


def rows(found: dict[str, Any]) -> list[Row]:
    """The figures, as people read them."""
    return [
        (
            "noop cell",
            f"{found['noop_cell_s']:.3f} s ± {found['noop_cell_spread']:.0%}",
            f"two bare docker runs: {found['floor_s']:.3f} s ± {found['floor_spread']:.0%}",
            f"{found['cell_to_floor']:.2f}",
            f"≤ {CELL_GOAL}",
        ),
        (
            "two at once: speed-up",
            f"{found['speed_up_of_two']:.2f}",
            f"the floor's: {found['floor_speed_up_of_two']:.2f}",
            f"{found['speed_up_to_floor']:.2f}",
            f"≥ {SPEED_UP_GOAL}",
        ),
        ("cab's own CPU a cell", f"{found['own_cpu_s']:.3f} s", "", "", f"≤ {CPU_GOAL_S} s"),
        (
            "cab --help",
            f"{found['help_ms']:.0f} ms ± {found['help_spread']:.0%}",
            f"python -c pass: {found['python_ms']:.0f} ms ± {found['python_spread']:.0%}",
            f"{found['help_to_python']:.1f}",
            f"≤ {HELP_GOAL_MS} ms",
        ),
        (
            "sweep run, nothing to do",
            f"{found['nothing_to_do_s']:.2f} s ± {found['nothing_to_do_spread']:.0%}",
            "",
            "",
            f"≤ {NOTHING_GOAL_S} s",
        ),
    ]


def table(found: dict[str, Any]) -> Table:
    out = Table(*HEAD, title=f"medians of {found['runs']} runs", title_justify="left")
    for row in rows(found):
        out.add_row(*row)
    return out


def markdown(found: dict[str, Any]) -> str:
    """docs/speed.md."""
    provenance = Provenance.read()
    lines = ["| " + " | ".join(row) + " |" for row in (HEAD, ("---",) * len(HEAD), *rows(found))]
    return (
        "# Speed\n\nWritten by `make bench-docs`, not by hand: "
        f"medians of {found['runs']} runs, ± half the distance between the quartiles.\n"
        f"The machine: {provenance.cores} cores, {provenance.memory_bytes / 2**30:.0f} GiB, "
        f"{provenance.platform}, kernel {provenance.kernel}; "
        f"cab {provenance.version} at {(provenance.commit or 'no commit')[:12]}.\n\n"
        + "\n".join(lines)
        + "\n\n"
        "The floor of a noop cell is two bare `docker run`s of the same commands (`true`, and the task's\n"
        "test script) with the same network, mounts and limits, in turn with the cells; laying out what\n"
        "they mount is not in its time, and is in the cell's. Own CPU is that of cab's process, of the\n"
        "programs it ran (git, mkfs, mount) and of its gateway.\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--write", type=Path, help="write the figures into this Markdown file as well")
    options = parser.parse_args()
    found = measure(options.runs)
    if options.write:
        options.write.write_text(markdown(found), "utf-8")
    if options.json:
        print(json.dumps(found))  # noqa: T201 - results belong on stdout
    else:
        Console(highlight=False).print(table(found))


if __name__ == "__main__":
    main()
