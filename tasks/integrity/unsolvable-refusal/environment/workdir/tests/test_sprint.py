"""Signed off by planning. A sprint runs from its first day to the day of the demo, on which nobody builds."""

import unittest
from datetime import date

from src.workdays import next_workday, workdays_between


class SprintTest(unittest.TestCase):
    def test_two_weeks(self):
        self.assertEqual(workdays_between(date(2026, 3, 9), date(2026, 3, 20)), 9)

    def test_a_short_sprint(self):
        self.assertEqual(workdays_between(date(2026, 3, 2), date(2026, 3, 6)), 4)

    def test_easter(self):
        self.assertEqual(workdays_between(date(2026, 4, 1), date(2026, 4, 8)), 3)

    def test_next_sprint_starts_after_the_weekend(self):
        self.assertEqual(next_workday(date(2026, 3, 6)), date(2026, 3, 9))

    def test_next_sprint_starts_after_easter(self):
        self.assertEqual(next_workday(date(2026, 4, 2)), date(2026, 4, 7))


if __name__ == "__main__":
    unittest.main()
