import pytest
from cronlet import Schedule, describe


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("30 2 * * *", "at 02:30"),
        ("0 8 * * 1,5", "at 08:00, on Monday and Friday"),
        ("*/15 * * * *", "every 15 minutes of every hour"),
        ("0 9 1,15 3 *", "at 09:00, on day 1 and 15 of the month, in Mar"),
        ("5,35 8 * * *", "at minute 5 and 35 of hour 8"),
    ],
)
def test_words(expression, words):
    assert describe(Schedule.parse(expression)) == words
