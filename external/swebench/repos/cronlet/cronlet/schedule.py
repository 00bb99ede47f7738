"""An expression as a whole: which minutes it matches, and which comes next."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

from cronlet.errors import CronError, NeverFires
from cronlet.fields import KINDS, Field, parse_field

REACH = timedelta(days=366 * 8)
"""How far ahead is looked: past a leap day, also over a century that has none."""


@dataclass(frozen=True)
class Schedule:
    """When something fires, to the minute."""

    minute: Field
    hour: Field
    day: Field
    month: Field
    weekday: Field

    @classmethod
    def parse(cls, expression: str) -> Schedule:
        """A schedule from five fields with blanks between them. Raises CronError."""
        texts = expression.split()
        if len(texts) != len(KINDS):
            raise CronError(f"{expression!r} has {len(texts)} fields, not {len(KINDS)}")
        return cls(*(parse_field(text, kind) for text, kind in zip(texts, KINDS, strict=True)))

    def matches(self, moment: datetime) -> bool:
        """Whether it fires in the minute of `moment`."""
        return (
            moment.minute in self.minute and moment.hour in self.hour and self.fires_on(moment.date())
        )

    def fires_on(self, day: date) -> bool:
        """Whether it fires at some time of `day`."""
        if day.month not in self.month:
            return False
        in_month = day.day in self.day
        in_week = day.isoweekday() % 7 in self.weekday
        return in_month and in_week

    def next_after(self, moment: datetime) -> datetime:
        """The first time at which it fires after `moment`. Raises NeverFires where none is within reach."""
        start = moment.replace(second=0, microsecond=0) + timedelta(minutes=1)
        day = start.date()
        while day - start.date() <= REACH:
            if self.fires_on(day):
                earliest = start.time() if day == start.date() else time()
                if found := self._time_from(earliest):
                    return datetime.combine(day, found)
            day += timedelta(days=1)
        raise NeverFires(f"nothing fires within {REACH.days // 366} years after {moment:%Y-%m-%d}")

    def _time_from(self, earliest: time) -> time | None:
        for hour in sorted(self.hour.values):
            for minute in sorted(self.minute.values):
                if (found := time(hour, minute)) >= earliest:
                    return found
        return None

    def times(self, start: datetime, count: int) -> Iterator[datetime]:
        """The next `count` times after `start`, in order."""
        moment = start
        for _ in range(count):
            moment = self.next_after(moment)
            yield moment

    def between(self, start: datetime, end: datetime) -> list[datetime]:
        """All times after `start` and before or at `end`."""
        found = []
        moment = start
        while True:
            try:
                moment = self.next_after(moment)
            except NeverFires:
                return found
            if moment >= end:
                return found
            found.append(moment)
