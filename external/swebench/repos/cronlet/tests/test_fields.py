import pytest
from cronlet import CronError
from cronlet.fields import KINDS, parse_field

MINUTE, HOUR, DAY, MONTH, WEEKDAY = KINDS


@pytest.mark.parametrize(
    ("text", "kind", "values"),
    [
        ("5", MINUTE, {5}),
        ("*/20", MINUTE, {0, 20, 40}),
        ("50/5", MINUTE, {50, 55}),
        ("8-10", HOUR, {8, 9, 10}),
        ("8-16/4", HOUR, {8, 12, 16}),
        ("1,15", DAY, {1, 15}),
        ("jan,Mar", MONTH, {1, 3}),
        ("mon-fri", WEEKDAY, {1, 2, 3, 4, 5}),
    ],
)
def test_values(text, kind, values):
    assert parse_field(text, kind).values == values


@pytest.mark.parametrize(
    ("text", "kind"),
    [("60", MINUTE), ("", MINUTE), ("a", HOUR), ("0", DAY), ("*/0", MINUTE), ("9-8", HOUR), ("8", WEEKDAY)],
)
def test_refused(text, kind):
    with pytest.raises(CronError, match=kind.name):
        parse_field(text, kind)


def test_a_star_asks_nothing():
    assert not parse_field("*", DAY).restricted
    assert parse_field("*/2", DAY).restricted
