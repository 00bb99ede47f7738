"""An expression in English, for people who do not read cron."""

from __future__ import annotations

from collections.abc import Iterable

from cronlet.fields import DAYS, MONTHS, Field
from cronlet.schedule import Schedule

_DAY_NAMES = dict(
    zip(DAYS, ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"), strict=True)
)


def describe(schedule: Schedule) -> str:
    """A sentence such as `at 02:30, on Monday and Friday, in March`."""
    parts = [_time(schedule)]
    if schedule.day.restricted:
        parts.append(f"on day {joined(str(day) for day in sorted(schedule.day.values))} of the month")
    if schedule.weekday.restricted:
        parts.append(f"on {joined(_DAY_NAMES[DAYS[day]] for day in sorted(schedule.weekday.values))}")
    if schedule.month.restricted:
        names = (MONTHS[month - 1].capitalize() for month in sorted(schedule.month.values))
        parts.append(f"in {joined(names)}")
    return ", ".join(parts)


def _time(schedule: Schedule) -> str:
    hours, minutes = sorted(schedule.hour.values), sorted(schedule.minute.values)
    if len(hours) == 1 and len(minutes) == 1:
        return f"at {hours[0]:02}:{minutes[0]:02}"
    return f"{_minutes(schedule.minute)} {_hours(schedule.hour)}"


def _minutes(field: Field) -> str:
    if not field.restricted:
        return "every minute"
    if field.text.startswith("*/"):
        return f"every {field.text[2:]} minutes"
    return f"at minute {joined(str(minute) for minute in sorted(field.values))}"


def _hours(field: Field) -> str:
    if not field.restricted:
        return "of every hour"
    return f"of hour {joined(str(hour) for hour in sorted(field.values))}"


def joined(words: Iterable[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last
