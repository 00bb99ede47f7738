"""`cab gate`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from orchestrator.cli import complete
from orchestrator.cli.options import json_option, results_option

if TYPE_CHECKING:
    from orchestrator.analysis.gate_tests import Limit

_file = click.Path(path_type=Path, dir_okay=False, allow_dash=True)


@click.command()
@click.option(
    "--baseline",
    "baselines",
    multiple=True,
    required=True,
    metavar="SWEEP|DIR|last-good[:N]",
    shell_complete=complete.sweeps,
    help="What to compare with: a sweep, a directory of one or of several, or the last N nights that passed; "
    "may be given again.",
)
@click.option(
    "--candidate",
    required=True,
    metavar="SWEEP|DIR",
    help="The sweep that is judged.",
    shell_complete=complete.sweeps,
)
@click.option(
    "--alpha",
    type=click.FloatRange(0, 0.5, min_open=True),
    default=0.05,
    show_default=True,
    help="How probable a false alarm of any of its tests may be.",
)
@click.option(
    "--coverage",
    type=click.FloatRange(0, 100),
    default=95,
    show_default=True,
    metavar="PERCENT",
    help="How much of each pair must have come to a result.",
)
@click.option(
    "--axis",
    "axes",
    multiple=True,
    metavar="NAME=FACTOR",
    help="Fail also where tokens, usd, wall_s or active_s are significantly more than FACTOR times what they "
    "were.",
)
@click.option("--junit", type=_file, help="Write JUnit XML; - is standard output.")
@click.option("--markdown", type=_file, help="Write a summary for a CI job, in Markdown.")
@click.option("--keep", is_flag=True, help="Keep the verdict beside the candidate, for a later last-good.")
@results_option
@json_option
def gate(
    baselines: tuple[str, ...],
    candidate: str,
    alpha: float,
    coverage: float,
    axes: tuple[str, ...],
    junit: Path | None,
    markdown: Path | None,
    keep: bool,
    results: Path,
    as_json: bool,
) -> None:
    """Say whether the sweep CANDIDATE is worse than the nights before it.

    It fails on a pair whose pass rate dropped significantly, on a scripted cell that passed before and does
    not now, and on too little coverage. Exit code 0 when it passed, 1 when it failed, 2 for bad input.
    """
    from orchestrator.analysis.gate import Rules
    from orchestrator.analysis.gate import gate as judged
    from orchestrator.analysis.gate_words import reasons
    from orchestrator.analysis.nights import find_baseline, read_night
    from orchestrator.errors import InputError
    from orchestrator.export.gate_files import gate_junit, gate_markdown
    from orchestrator.export.writing import write_chunks
    from orchestrator.report.gate import print_gate
    from orchestrator.store.chosen import chosen_sweeps
    from orchestrator.store.gated import Gated, write_gated

    limits = tuple(_limit(text) for text in axes)
    stores = chosen_sweeps([candidate], results)
    if len(stores) > 1:
        raise InputError(
            f"{candidate!r} holds {len(stores)} sweeps", place="--candidate", mend="name one of them"
        )
    night = read_night(stores[0])
    found = judged(night, find_baseline(baselines, results, night), Rules(alpha, coverage / 100, limits))
    if junit:
        write_chunks(junit, gate_junit(found, night.sweep.started_at.isoformat(timespec="seconds")[:19]))
    if markdown:
        write_chunks(markdown, [gate_markdown(found).encode()])
    if keep:
        kept = Gated(
            sweep_id=found.candidate,
            passed=found.passed,
            baseline=found.baseline,
            reasons=tuple(reasons(found)),
        )
        write_gated(stores[0].root, kept)
    if Path("-") not in (junit, markdown):
        print_gate(found, as_json=as_json)
    sys.exit(0 if found.passed else 1)


def _limit(text: str) -> Limit:
    """Raises InputError for what is no axis with its factor."""
    from orchestrator.analysis.gate_tests import LIMITED, Limit
    from orchestrator.errors import InputError
    from orchestrator.nearest import nearest

    name, _, factor = text.partition("=")
    axis = next((axis for axis in LIMITED if axis == name), None)
    if axis is None:
        raise InputError(f"{name!r} is no axis with a limit", place="--axis", mend=nearest(name, LIMITED))
    try:
        value = float(factor)
    except ValueError:
        value = 0.0
    if not 1 <= value <= 1000:
        raise InputError(f"{text!r} gives no factor of 1 or more", place="--axis", mend=f"write {name}=1.25")
    return Limit(axis, value)
