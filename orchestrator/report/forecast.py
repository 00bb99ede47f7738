"""When a sweep will have ended, as far as its cells so far can tell."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from statistics import fmean

from orchestrator.plan.expand import PlannedCell

Kind = tuple[str, str]


class Forecast:
    """Guesses from the mean time of cells that have ended: of their CLI × model, where none of these has of
    their CLI, where none of those has of all. Times are seconds.
    """

    def __init__(self, cells: Iterable[PlannedCell], at_once: int, now: Callable[[], float]) -> None:
        self._at_once = max(1, at_once)
        self._now = now
        self._waiting = Counter(_kind(cell) for cell in cells)
        self._running: dict[str, tuple[Kind, float]] = {}
        self._took: dict[Kind, list[float]] = defaultdict(list)

    def started(self, cell: PlannedCell) -> None:
        self._waiting[_kind(cell)] -= 1
        self._running[cell.cell_id] = (_kind(cell), self._now())

    def again(self, cell: PlannedCell) -> None:
        """A try came to nothing, and another waits."""
        self._running.pop(cell.cell_id, None)
        self._waiting[_kind(cell)] += 1

    def ended(self, cell: PlannedCell) -> None:
        kind, began = self._running.pop(cell.cell_id)
        self._took[kind].append(self._now() - began)

    def stopped(self, cell: PlannedCell) -> None:
        self._running.pop(cell.cell_id, None)

    def left(self) -> float | None:
        """Seconds until the last cell has ended; None before the first has, and when nothing is left."""
        if not self._took or not (self._running or self._waiting.total()):
            return None
        running = [
            max(0.0, self._mean(kind) - (self._now() - began)) for kind, began in self._running.values()
        ]
        waiting = sum(self._mean(kind) * amount for kind, amount in self._waiting.items() if amount)
        return max((sum(running) + waiting) / self._at_once, *running, 0.0)

    def _mean(self, kind: Kind) -> float:
        took = self._took.get(kind)
        took = took or [it for (cli, _), its in self._took.items() if cli == kind[0] for it in its]
        return fmean(took or [it for its in self._took.values() for it in its])


def _kind(cell: PlannedCell) -> Kind:
    return cell.key.cli, cell.key.model
