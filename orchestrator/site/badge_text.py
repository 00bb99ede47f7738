"""What a badge and a card say: never a number without its claim, its uncertainty and how much it stands on.

Pipeline checks get no number at all, since a badge is read where nothing else explains it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.analysis.cells import Cell
from orchestrator.analysis.summary import Line
from orchestrator.run.outcome import TABLE
from orchestrator.site.badges import Badge, Tone
from orchestrator.site.render import percent
from scorers import METHODOLOGY_VERSION

NO_RESULT = "pipeline check, no result"
_NO_MODEL = "No model was asked: this checks that cab works, and says nothing of any CLI or model."


@dataclass(frozen=True)
class Said:
    """The parts of a badge's message. `value` is what came out, `claim` how far it may be trusted; `basis` is
    what it stands on, and `title` all of it in whole sentences.
    """

    value: str
    basis: str
    claim: str
    tone: Tone
    title: str

    def badge(self, label: str) -> Badge:
        return Badge(f"cab {label}", ", ".join(part for part in self.parts if part), self.tone, self.title)

    @property
    def parts(self) -> tuple[str, ...]:
        """As badges have them, one after the other."""
        return (self.value,) if self.claim == "pipeline_only" else (self.value, self.basis, self.claim)


def of_cell(cell: Cell) -> Said:
    """What came of one cell."""
    if cell.kind != "result":
        return Said(NO_RESULT, "", "pipeline_only", "pipeline", _NO_MODEL)
    run = f"run {cell.row.run}"
    methodology = f"Methodology {cell.methodology}."
    if not cell.counted:
        why = f"did not count ({cell.outcome.replace('_', ' ')})"
        return Said(
            why, run, cell.claim, "unmeasured", f"{_sentence(TABLE[cell.outcome].meaning)} {methodology}"
        )
    passed = cell.row.passed == 1
    value = "passed" if passed else "failed, void" if cell.void else "failed"
    tone: Tone = "imported" if cell.claim == "imported" else "passed" if passed else "failed"
    title = f"One run of one task: {value}. Claim: {cell.claim}. {methodology}"
    return Said(value, run, cell.claim, tone, title)


def of_lines(lines: Sequence[Line]) -> Said:
    """The pass rate of a pair or a CLI, given its lines of all kinds and methodology versions, one at least.

    Versions are not merged: that of this cab is said, else the last by name.
    """
    results = [line for line in lines if line.kind == "result"]
    if not results:
        return Said(NO_RESULT, "", "pipeline_only", "pipeline", _NO_MODEL)
    line = max(results, key=lambda it: (it.methodology == METHODOLOGY_VERSION, it.methodology))
    title = f"{_basis_in_words(line)} {_methodology(line, results)}"
    rate = line.pass_rate
    if rate.value is None:
        why = rate.reason or "not measured"
        return Said(f"no rate: {why}", "", line.claim, "unmeasured", title)
    tone: Tone = "imported" if line.claim == "imported" else "result"
    return Said(f"pass {_rate(line)}", _basis(line), line.claim, tone, title)


def _rate(line: Line) -> str:
    rate = line.pass_rate
    if rate.low is None or rate.high is None:
        return f"{percent(rate.value, 0)}, no interval"
    return f"{percent(rate.value, 0)} ({rate.low * 100:.0f}–{rate.high * 100:.0f} %)"


def _basis(line: Line) -> str:
    """`10 tasks × 3 runs`, and where cells were lost the coverage."""
    fewest, most = line.runs
    runs = _plural(most, "run") if fewest == most else f"{fewest}–{most} runs"
    units = _plural(line.units, "task" if line.units == line.tasks else "unit")
    lost = f", coverage {percent(line.coverage, 0)}" if line.infra else ""
    return f"{units} × {runs}{lost}"


def _basis_in_words(line: Line) -> str:
    rate = line.pass_rate
    interval = "" if rate.low is None else f" 95 % interval: {rate.method}."
    low, high = line.censored
    bounds = (
        f" Of {line.counted + line.infra} cells {line.infra} ended by a fault that is not the agent's: with "
        f"all of them failed the rate is {percent(low)}, with all passed {percent(high)}."
        if line.infra
        else ""
    )
    return (
        f"Mean over tasks of the mean over runs, {line.counted} cells. Claim: {line.claim}.{interval}{bounds}"
    )


def _methodology(line: Line, results: Sequence[Line]) -> str:
    others = sorted({it.methodology for it in results} - {line.methodology})
    more = f" Results of methodology {', '.join(others)} are not in it." if others else ""
    return f"Methodology {line.methodology}.{more}"


def _plural(amount: int, noun: str) -> str:
    return f"{amount} {noun}{'' if amount == 1 else 's'}"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
