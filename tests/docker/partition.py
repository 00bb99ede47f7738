"""Whether the parts of each cell's time add up to it, for tests and for a sweep that was run by hand:

python -m tests.docker.partition results/SWEEP_ID
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

TOLERANCE = 0.01  # of the time between `started_at` and `ended_at`


def parts_ms(latency: dict[str, Any]) -> float:
    """The sum of the parts that were measured."""
    return math.fsum(
        value for name, value in latency["partition"].items() if name != "reasons" and value is not None
    )


def missing_share(record: dict[str, Any]) -> float:
    """By how much the parts of one record miss its own duration and its total, as a share of the duration."""
    latency, whole = record["scores"]["latency"], record["timing"]["duration_s"] * 1000
    summed = parts_ms(latency)
    return max(abs(summed - whole), abs(summed - (latency["total_ms"] or 0))) / whole if whole else 0.0


def wrong_cells(sweep_dir: Path) -> dict[str, float]:
    """The cells of a sweep whose parts do not add up, by which share. Raises ValueError without a cell."""
    records = [json.loads(path.read_bytes()) for path in sorted(sweep_dir.glob("cells/**/cell.json"))]
    if not records:
        raise ValueError(f"{sweep_dir} holds no cell")
    shares = {record["identity"]["cell_id"]: missing_share(record) for record in records}
    return {cell: share for cell, share in shares.items() if share > TOLERANCE}


if __name__ == "__main__":
    wrong = wrong_cells(Path(sys.argv[1]))
    for cell, share in wrong.items():
        sys.stdout.write(f"{cell}: {share:.1%} of its time is in no part, or in two\n")
    sys.exit(1 if wrong else 0)
