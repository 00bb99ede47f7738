from datetime import datetime

import pytest
from cronlet import CronError, NeverFires, Schedule


def next_of(expression, *moment):
    return Schedule.parse(expression).next_after(datetime(*moment))


def test_matches_to_the_minute():
    schedule = Schedule.parse("30 2 * * *")
    assert schedule.matches(datetime(2026, 3, 2, 2, 30, 59))
    assert not schedule.matches(datetime(2026, 3, 2, 2, 31))


def test_next_is_later_the_same_day():
    assert next_of("15 9,17 * * *", 2026, 3, 2, 12, 0) == datetime(2026, 3, 2, 17, 15)


def test_next_is_never_the_minute_itself():
    assert next_of("0 12 * * *", 2026, 3, 2, 12, 0, 30) == datetime(2026, 3, 3, 12, 0)


def test_next_crosses_a_year():
    assert next_of("0 0 1 jan *", 2026, 5, 5, 0, 0) == datetime(2027, 1, 1)


def test_next_on_a_weekday():
    assert next_of("0 8 * * mon", 2026, 3, 3, 0, 0) == datetime(2026, 3, 9, 8, 0)


def test_next_waits_for_a_leap_day():
    assert next_of("0 0 29 2 *", 2026, 1, 1, 0, 0) == datetime(2028, 2, 29)


def test_a_day_that_never_comes():
    with pytest.raises(NeverFires):
        next_of("0 0 31 2 *", 2026, 1, 1, 0, 0)


def test_times():
    found = list(Schedule.parse("*/30 * * * *").times(datetime(2026, 3, 2, 23, 10), 3))
    assert [f"{moment:%d %H:%M}" for moment in found] == ["02 23:30", "03 00:00", "03 00:30"]


def test_between_starts_after_its_start():
    schedule = Schedule.parse("0 * * * *")
    assert schedule.between(datetime(2026, 3, 2, 8), datetime(2026, 3, 2, 9, 30)) == [
        datetime(2026, 3, 2, 9)
    ]


def test_five_fields():
    with pytest.raises(CronError, match="4 fields"):
        Schedule.parse("* * * *")
