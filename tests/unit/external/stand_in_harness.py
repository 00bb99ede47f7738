"""A program that stands in for the harness where its own work is not what is tested: it reads what the
harness reads and writes what that writes.

A patch says what becomes of it: `resolved`, `unresolved`, `fault`; at `die` the program ends at once, with no
run report, and at `slow` it takes a second to resolve. Each call adds a line to the file `calls` beside its
run's directory.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

rows, predictions, run_id, report_dir = sys.argv[1:]
known = {row["instance_id"] for row in json.loads(Path(rows).read_text())}
given = [json.loads(line) for line in Path(predictions).read_text().splitlines()]
with Path("../calls").open("a") as calls:
    calls.write(" ".join(sorted(known)) + "\n")
report: dict[str, list[str]] = {
    f"{name}_ids": [] for name in ("resolved", "unresolved", "error", "empty_patch", "incomplete")
}
name = given[0]["model_name_or_path"]
for one in given:
    instance, patch = one["instance_id"], one["model_patch"].strip()
    own = Path("logs/run_evaluation", run_id, name, instance, "report.json")
    if patch == "die":
        sys.exit("out of memory")
    if patch == "slow":
        time.sleep(1)
        patch = "resolved"
    if patch in ("resolved", "unresolved"):
        own.parent.mkdir(parents=True, exist_ok=True)
        own.write_text(json.dumps({instance: {"resolved": patch == "resolved"}}))
        report[f"{patch}_ids"].append(instance)
    else:
        report["error_ids" if patch else "empty_patch_ids"].append(instance)
Path(report_dir, f"{name}.{run_id}.json").write_text(json.dumps(report))
