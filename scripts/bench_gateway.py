"""What the gateway costs between CLI and endpoint, beside its floor and its peers, in one run.

`make bench`. A small endpoint on loopback answers at once: plain with 1 kB, streamed with 22 events, each
flushed by itself.
Direct calls and calls through every hop take turns in small rounds, forth and back (ABBA), so that other work
on the machine falls on all alike. Hops: a byte hop, which is the floor; bare proxies on aiohttp and on httpx,
which neither meter nor record; the gateway, recording; mitmdump and LiteLLM's proxy. What a hop adds is the
difference from the direct calls of the same round; shown are medians over the rounds.

With `--soak N` only the memory of the gateway is measured, over N calls.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench_hops import Address, free_port, hop, role
from bench_load import call_many

from orchestrator.gateway.client import Gateway
from orchestrator.run.provenance import Provenance

HOPS = ("byte hop", "aiohttp", "httpx", "gateway", "mitmdump", "LiteLLM")
MODES = tuple((stream, at_once) for stream in (False, True) for at_once in (1, 16))
ADDED_GOAL_MS = {1: (1.0, 3.0), 16: (5.0, None)}
"""Goals for what the gateway adds, p50 and p95, by connections."""
PEER_GOAL = {"mitmdump": 1.0, "LiteLLM": 20.0}
"""How many times what the gateway adds a peer should add, at the least."""
MANY = 256
START_GOAL_S = 0.5
MEMORY_GOAL = 1.25
"""Room for calls that wait to be recorded; a leak of 200 bytes a call fails over 100,000 of them."""
WARM_CALLS, SHORT_CALLS = 1000, 3000


class Round(NamedTuple):
    """One round of one hop or of direct calls: milliseconds, and of processor time a call."""

    p50: float
    p95: float
    first: float | None
    cpu: float


def measure(address: Address, pid: int | None, calls: int, at_once: int, *, stream: bool) -> Round:
    before = cpu_seconds(pid)
    times = asyncio.run(call_many(address, calls, at_once, stream=stream))
    cpu = (cpu_seconds(pid) - before) * 1000 / calls
    milliseconds = [seconds * 1000 for seconds in times.calls]
    first = statistics.median(times.first_events) * 1000 if times.first_events else None
    p95 = statistics.quantiles(milliseconds, n=20)[18]
    return Round(statistics.median(milliseconds), p95, first, cpu)


def cpu_seconds(pid: int | None) -> float:
    """Processor time that a process has used so far; 0 for none."""
    if pid is None:
        return 0.0
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def bench(calls: int, rounds: int) -> dict[str, Any]:
    """All figures: rows of latency, many connections, memory, start-up, and the load of the machine."""
    address = f"127.0.0.1:{free_port()}"
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        stack.enter_context(role("endpoint", address))
        targets: dict[str, tuple[Address, int | None]] = {"direct": (address, None)}
        for name in HOPS:
            targets[name] = stack.enter_context(hop(name, address, folder))
        rows = [row for mode in MODES for row in _mode_rows(targets, calls, rounds, *mode)]
        socket = targets["gateway"][0]
        paused = {name: _paused_first(at[0]) for name, at in targets.items()}
        for stream in (False, True):
            asyncio.run(call_many(socket, MANY, MANY, stream=stream))
    return {
        "rounds": rounds,
        "calls": calls,
        "rows": rows,
        "paused_first_ms": paused,
        "many_connections": MANY,
        "memory": soak(SHORT_CALLS),
        "start": start_up(),
        "load": os.getloadavg()[0],
    }


def _mode_rows(
    targets: dict[str, tuple[Address, int | None]], calls: int, rounds: int, stream: bool, at_once: int
) -> list[dict[str, Any]]:
    seen: dict[str, list[Round]] = {name: [] for name in targets}
    for number in range(rounds):
        for name in list(targets) if number % 2 == 0 else reversed(targets):
            address, pid = targets[name]
            seen[name].append(measure(address, pid, calls, at_once, stream=stream))
    own = _added(seen, "gateway")
    rows = []
    for name in HOPS:
        added = _added(seen, name)
        ratios = [theirs / max(ours, 0.01) for theirs, ours in zip(added, own, strict=True)]
        rows.append(
            {
                "hop": name,
                "streamed": stream,
                "at_once": at_once,
                "direct_p50_ms": statistics.median(found.p50 for found in seen["direct"]),
                "added_p50_ms": statistics.median(added),
                "added_p50_range_ms": [min(added), max(added)],
                "added_p95_ms": statistics.median(
                    through.p95 - direct.p95
                    for through, direct in zip(seen[name], seen["direct"], strict=True)
                ),
                "cpu_ms": statistics.fmean(found.cpu for found in seen[name]),
                "times_gateway": statistics.median(ratios),
                "times_gateway_range": [min(ratios), max(ratios)],
                "first_event_ms": _first(seen[name]),
                "direct_first_event_ms": _first(seen["direct"]),
            }
        )
    return rows


def _added(seen: dict[str, list[Round]], name: str) -> list[float]:
    """What a hop adds to the p50 of direct calls, round by round."""
    return [through.p50 - direct.p50 for through, direct in zip(seen[name], seen["direct"], strict=True)]


def _first(rounds: Sequence[Round]) -> float | None:
    found = [each.first for each in rounds if each.first is not None]
    return statistics.median(found) if found else None


def _paused_first(address: Address) -> float:
    """Median milliseconds to the first event of a stream that pauses after it: a hop that waits for more
    adds the pause.
    """
    times = asyncio.run(call_many(address, 20, 1, stream=True, pause=True))
    return statistics.median(times.first_events) * 1000


def soak(calls: int) -> dict[str, Any]:
    """Resident memory of a gateway after a warm-up and after so many calls more, half of them streamed."""
    address = f"127.0.0.1:{free_port()}"
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        stack.enter_context(role("endpoint", address))
        socket, pid = stack.enter_context(hop("gateway", address, folder))
        resident = []
        for _ in range(0, calls + WARM_CALLS, WARM_CALLS):
            for stream in (False, True):
                asyncio.run(call_many(socket, WARM_CALLS // 2, 16, stream=stream))
            resident.append(resident_bytes(pid) / 2**20)
    warm, end = resident[0], resident[-1]
    return {"calls": calls, "warm_mib": warm, "end_mib": end, "ratio": end / warm, "each_1000_mib": resident}


def start_up() -> dict[str, float]:
    """Median seconds from starting the gateway's process to its `ready`, and of a bare interpreter that
    imports what the gateway stands on.
    """
    own, bare = [], []
    for _ in range(5):
        start = time.perf_counter()
        with Gateway.start():
            own.append(time.perf_counter() - start)
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", "import aiohttp.web, pydantic"], check=True)
        bare.append(time.perf_counter() - start)
    return {
        "s": statistics.median(own),
        "bare_s": statistics.median(bare),
        "ratio": statistics.median(ours / floor for ours, floor in zip(own, bare, strict=True)),
    }


def goals(found: dict[str, Any]) -> list[tuple[str, str]]:
    """Every goal and how far it is met: `met`, `missed`, or `clearly missed` where no round met it.

    Only ratios can be clearly missed: milliseconds say as much of the machine's other work.
    """
    out = []
    for row in found["rows"]:
        mode = f"{mode_of(row)}, {row['at_once']} at once"
        if row["hop"] == "gateway":
            for name, goal in zip(("p50", "p95"), ADDED_GOAL_MS[row["at_once"]], strict=True):
                if goal is not None:
                    met = row[f"added_{name}_ms"] <= goal
                    out.append((f"{mode}: added {name} ≤ {goal:g} ms", "met" if met else "missed"))
        if row["hop"] in PEER_GOAL:
            goal = PEER_GOAL[row["hop"]]
            missed = "missed" if row["times_gateway_range"][1] >= goal else "clearly missed"
            text = f"{mode}: {row['hop']} adds ≥ {goal:g} times as much"
            out.append((text, "met" if row["times_gateway"] >= goal else missed))
    start = "met" if found["start"]["s"] <= START_GOAL_S else "missed"
    out.append((f"start-up ≤ {START_GOAL_S} s", start))
    return [*out, memory_goal(found["memory"])]


def memory_goal(memory: dict[str, Any]) -> tuple[str, str]:
    met = memory["ratio"] <= MEMORY_GOAL
    text = f"memory over {memory['calls']} calls ≤ {MEMORY_GOAL} times that after the warm-up"
    return text, "met" if met else "clearly missed"


def memory_line(memory: dict[str, Any]) -> str:
    return (
        f"Memory over {memory['calls']} calls: {memory['warm_mib']:.1f} MiB after {WARM_CALLS}, "
        f"{memory['end_mib']:.1f} MiB at the end."
    )


HEADS = ("direct p50", "added p50", "least to most", "added p95", "× gateway", "first event", "CPU")


def numbers_of(row: dict[str, Any]) -> tuple[str, ...]:
    low, high = row["added_p50_range_ms"]
    ratio = f"{row['times_gateway']:.1f}" if row["hop"] in PEER_GOAL else "–"
    first = "–" if row["first_event_ms"] is None else f"{row['first_event_ms']:.2f}"
    return (
        f"{row['direct_p50_ms']:.2f}",
        f"{row['added_p50_ms']:.2f}",
        f"{low:.2f} to {high:.2f}",
        f"{row['added_p95_ms']:.2f}",
        ratio,
        first,
        f"{row['cpu_ms']:.2f}",
    )


def mode_of(row: dict[str, Any]) -> str:
    return "streamed" if row["streamed"] else "plain"


def lines_of(found: dict[str, Any]) -> list[str]:
    """The figures for a terminal."""
    lines = [f"{'hop':10}{'mode':10}{'at once':>8}" + "".join(f"{head:>18}" for head in HEADS) + "  (ms)"]
    for row in found["rows"]:
        numbers = "".join(f"{number:>18}" for number in numbers_of(row))
        lines.append(f"{row['hop']:10}{mode_of(row):10}{row['at_once']:>8}{numbers}")
    return [*lines, *further(found), *(f"{met}: {goal}" for goal, met in goals(found))]


def further(found: dict[str, Any]) -> list[str]:
    paused = ", ".join(f"{name} {number:.2f}" for name, number in found["paused_first_ms"].items())
    memory, start = found["memory"], found["start"]
    return [
        f"First event of a stream that pauses after it, ms from its sending: {paused}.",
        f"{found['many_connections']} connections at once, plain and streamed: no error.",
        memory_line(memory),
        f"From start to ready: {start['s']:.2f} s, {start['ratio']:.2f} times an interpreter that imports "
        f"aiohttp and pydantic ({start['bare_s']:.2f} s).",
    ]


def markdown(found: dict[str, Any]) -> str:
    """docs/speed-gateway.md."""
    machine = Provenance.read()
    head = ("hop", "mode", "at once", *HEADS)
    body = [(row["hop"], mode_of(row), str(row["at_once"]), *numbers_of(row)) for row in found["rows"]]
    table = ["| " + " | ".join(cells) + " |" for cells in (head, ("---",) * len(head), *body)]
    reached = ["| goal | |", "| --- | --- |", *(f"| {goal} | {met} |" for goal, met in goals(found))]
    return (
        "# Speed of the gateway\n\n"
        "Written by `make bench-docs`, not by hand. Milliseconds; *added* is against direct calls to the\n"
        f"same endpoint on loopback in the same round, medians of {found['rounds']} rounds of "
        f"{found['calls']} calls in which\n"
        "direct calls and all hops take turns, forth and back; *least to most* is the added p50 of single\n"
        "rounds, *× gateway* how many times what the gateway adds a peer adds, *first event* the time from\n"
        "the endpoint's sending of a stream's first event to its arrival, *CPU* processor time of the hop's\n"
        "process a call. The byte hop is the floor; *aiohttp* and *httpx* are bare proxies on these\n"
        "libraries, which neither meter nor record; the gateway records. With 16 at once, calls wait for\n"
        "each other: what is added is then about 16 times a call's processor time.\n\n"
        f"The machine: {machine.cores} cores, {machine.memory_bytes / 2**30:.0f} GiB, {machine.platform}, "
        f"kernel {machine.kernel},\nshared with other work (load {found['load']:.1f} at the end); endpoint, "
        "load generator and hop share its cores.\n\n"
        + "\n".join(table)
        + "\n\n"
        + "\n\n".join(further(found))
        + "\n\n"
        + "\n".join(reached)
        + "\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--calls", type=int, default=32, help="calls of each round (default 32)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of each measurement (default 3)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--write", type=Path, help="write the figures into this Markdown file as well")
    parser.add_argument("--soak", type=int, metavar="N", help="only the gateway's memory, over N calls")
    arguments = parser.parse_args()
    if arguments.soak:
        found: dict[str, Any] = soak(arguments.soak)
        reached = [memory_goal(found)]
        lines = [memory_line(found)]
    else:
        found = bench(arguments.calls, arguments.rounds)
        reached, lines = goals(found), lines_of(found)
    if arguments.write:
        arguments.write.write_text(markdown(found), "utf-8")
    sys.stdout.write((json.dumps(found, indent=1) if arguments.json else "\n".join(lines)) + "\n")
    if missed := [goal for goal, met in reached if met == "clearly missed"]:
        sys.stderr.write("clearly missed: " + "; ".join(missed) + "\n")
        raise SystemExit(1)


if __name__ == "__main__":
    main()
