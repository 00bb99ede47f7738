"""Which pair for my work: three questions, answered by the set of pairs that the data cannot tell apart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from orchestrator.analysis.standing import Span, leaders
from orchestrator.site import links
from orchestrator.site.axes import AXES, PASS
from orchestrator.site.boards import Board, Row, boards
from orchestrator.site.output import Page
from orchestrator.site.pages.leaderboard import data_path, interval
from orchestrator.site.source import Source

MATTERS = (
    ("pass", "solving most tasks"),
    ("usd", "what a solved task costs"),
    ("tokens", "tokens for a solved task"),
    ("wall", "speed, among those that solve about as many"),
)
"""Axes to decide by, in words; time alone would favour who gives up at once."""


@dataclass(frozen=True)
class Answer:
    """For one kind of work on one board: the pairs, best first, of which none is clearly better in passing.

    `apart` is the number of pairs that could be compared; the rest ran on fewer tasks or has no interval.
    """

    work: str
    board: Board
    apart: int
    rows: list[Row]


def pages(source: Source) -> Iterator[Page]:
    yield Page(links.GUIDE, "guide.html", lambda: _context(source), (source.everything,))


def _context(source: Source) -> dict[str, Any]:
    scopes = (None, *source.scopes)
    answers = [
        answer(board, "all work" if scope is None else scope.replace("/", ": "))
        for scope in scopes
        for board in boards(source, scope=scope)
        if board.kind == "result"
    ]
    models = {row.model for answer in answers for row in answer.board.rows if row.model}
    return {
        "answers": answers,
        "works": [(scope or "", data_path(scope)) for scope in scopes],
        "matters": [(AXES[key], words) for key, words in MATTERS],
        "models": sorted(models),
        "passing": PASS,
        "interval": interval,
    }


def answer(board: Board, work: str) -> Answer:
    """The pairs of a board of which no other clearly solves more."""
    spans: dict[str, Span] = {}
    for row in board.rows:
        span = PASS.span(row.line)
        if span is not None and row.line.units == board.units:
            spans[row.line.name] = span
    best = set(leaders(spans, PASS.better))
    return Answer(work, board, len(spans), [row for row in board.by_pass if row.line.name in best])
