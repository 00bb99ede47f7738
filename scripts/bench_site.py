"""How fast the site, the report and the exports are on ten thousand cells: `make bench`.

The cells are made up (scripts/generate_results.py). Each time stands beside a floor that is measured in the
same run: of a build, reading every file that pages are made of and writing as many files with as many bytes;
of the others, a process that reads the indexes alone.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from html.parser import HTMLParser
from pathlib import Path

from bench import timed
from generate_results import generate
from rich.console import Console
from rich.table import Table

from orchestrator.paths import ROOT
from orchestrator.run.provenance import Provenance
from orchestrator.store.cells import CELLS
from orchestrator.store.index import INDEX

CELLS_ASKED = 10_000
BUILD_GOAL_S, AGAIN_GOAL_S, FIRST_PAGE_GOAL = 60.0, 10.0, 200_000
_INDEXES = """
import sys
from pathlib import Path
from orchestrator.store.frame import load_frame
load_frame(Path(sys.argv[1]))
"""


@dataclass(frozen=True)
class Row:
    """One figure: what was measured, in which unit, and the floor beside it where there is one."""

    what: str
    value: float
    unit: str
    against: str = ""
    floor: float | None = None
    goal: float | None = None

    def shown(self) -> tuple[str, ...]:
        ratio = "" if self.floor is None else f"{self.value / self.floor:.1f}"
        against = "" if self.floor is None else f"{self.against}: {_amount(self.floor, self.unit)}"
        goal = "" if self.goal is None else f"≤ {_amount(self.goal, self.unit)}"
        return (self.what, _amount(self.value, self.unit), against, ratio, goal)


HEAD = ("what", "measured", "against", "ratio", "goal")


def _amount(value: float, unit: str) -> str:
    return f"{value / 1000:.0f} kB" if unit == "bytes" else f"{value:.1f} s"


def command(*words: str | Path) -> Callable[[], None]:
    """A `cab` command as a process of its own, as people run it."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    argv = [sys.executable, "-m", "orchestrator.cli", *map(str, words)]

    def run() -> None:
        subprocess.run(argv, check=True, capture_output=True, cwd=ROOT, env=env)

    return run


def floor_of_build(results: Path, site: Path, out: Path) -> Callable[[], None]:
    """Read every file of a cell but its conversations, and write the files of a site, and no more."""
    sizes = [(path.relative_to(site), path.stat().st_size) for path in site.rglob("*") if path.is_file()]
    block = b"x" * max(size for _, size in sizes)

    def run() -> None:
        for path in results.rglob("*"):
            if path.suffix in (".json", ".jsonl", ".cast", ".patch"):
                path.read_bytes()
        for path, size in sizes:
            target = out / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(block[:size])

    return run


class _Loads(HTMLParser):
    """What a browser fetches with a page before anybody touches it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.paths: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        name = {"link": "href", "script": "src", "img": "src"}.get(tag, "")
        if (path := found.get(name)) and found.get("rel") != "canonical":
            self.paths.add(path)


def first_page_bytes(site: Path) -> int:
    """The leaderboard with all that it loads: what crosses the wire where nothing is compressed."""
    index = site / "index.html"
    return sum(
        (site / path).stat().st_size for path in ("index.html", *_Loads(index.read_text("utf-8")).paths)
    )


class OneCellLess:
    """The results without their last cell, until `give_back`."""

    def __init__(self, results: Path) -> None:
        self._index = results / "made-up-runs" / INDEX
        self._whole = self._index.read_bytes()
        lines = self._whole.splitlines(keepends=True)
        last = json.loads(lines[-1])
        part = Path(last["cli"], last["model"].replace("/", "~"), last["task"].replace("/", "~"))
        self._cell = results / "made-up-runs" / CELLS / part / f"run{last['run']}"
        self._aside = results.with_name("aside")
        self._cell.rename(self._aside)
        self._index.write_bytes(b"".join(lines[:-1]))

    def give_back(self) -> None:
        self._aside.rename(self._cell)
        self._index.write_bytes(self._whole)


def measure(cells: int, runs: int) -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="cab-bench-") as directory:
        place = Path(directory)
        results, site = place / "results", place / "site"
        made = generate(results, cells)
        what = f"of {made:,} cells".replace(",", " ")
        less = OneCellLess(results)
        build = command("site", "build", results, "-o", site)
        whole = timed(build)
        nothing = _median(build, runs)
        less.give_back()
        one_more = timed(build)
        bare = timed(floor_of_build(results, site, place / "floor"))
        shutil.rmtree(place / "floor")
        first = first_page_bytes(site)
        floor = _median(_indexes(results), runs)
        others = {
            "report": command("report", results),
            "compare of two CLIs": command("compare", "made-up-cli-a", "made-up-cli-c", results),
            "export parquet": command("export", "parquet", results, "-o", place / "cells.parquet"),
            "export csv": command("export", "csv", results, "-o", place / "cells.csv"),
            "export jsonl": command("export", "jsonl", results, "-o", place / "cells.jsonl"),
        }
        return [
            Row(f"site {what}", whole, "s", "the same bytes read and written", bare, BUILD_GOAL_S),
            Row("the same with one cell more", one_more, "s", "the indexes read", floor, AGAIN_GOAL_S),
            Row("the same with nothing to do", nothing, "s", "the indexes read", floor),
            Row("its first page with all that it loads", first, "bytes", goal=FIRST_PAGE_GOAL),
            *(
                Row(f"{name} {what}", _median(run, runs), "s", "the indexes read", floor)
                for name, run in others.items()
            ),
        ]


def _indexes(results: Path) -> Callable[[], None]:
    argv = [sys.executable, "-c", _INDEXES, str(results)]

    def run() -> None:
        subprocess.run(argv, check=True, cwd=ROOT)

    return run


def _median(work: Callable[[], None], runs: int) -> float:
    return statistics.median(timed(work) for _ in range(runs))


def table(rows: Sequence[Row]) -> Table:
    out = Table(*HEAD, title="sites, reports and exports", title_justify="left")
    for row in rows:
        out.add_row(*row.shown())
    return out


def markdown(rows: Sequence[Row], runs: int) -> str:
    """docs/speed-site.md."""
    provenance = Provenance.read()
    lines = [
        "| " + " | ".join(row) + " |" for row in (HEAD, ("---",) * len(HEAD), *(it.shown() for it in rows))
    ]
    return (
        "# Speed of sites, reports and exports\n\nWritten by `make bench-docs`, not by hand: "
        f"one build of each kind, of the others medians of {runs} runs.\n"
        f"The machine: {provenance.cores} cores, {provenance.memory_bytes / 2**30:.0f} GiB, "
        f"{provenance.platform}, kernel {provenance.kernel}; "
        f"cab {provenance.version} at {(provenance.commit or 'no commit')[:12]}.\n\n"
        + "\n".join(lines)
        + "\n\n"
        "The cells are made up by `scripts/generate_results.py`. The floor of a build reads what pages are\n"
        "made of and writes as many files with as many bytes, and does no more. That of the others is a\n"
        "process that reads the indexes. Bytes are those on the disk: a host that compresses sends fewer.\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cells", type=int, default=CELLS_ASKED)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--write", type=Path, help="write the figures into this Markdown file as well")
    options = parser.parse_args()
    rows = measure(options.cells, options.runs)
    if options.write:
        options.write.write_text(markdown(rows, options.runs), "utf-8")
    if options.json:
        print(json.dumps([asdict(row) for row in rows]))  # noqa: T201 - results belong on stdout
    else:
        Console(highlight=False).print(table(rows))


if __name__ == "__main__":
    main()
