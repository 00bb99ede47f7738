"""Signed off by payroll. A leave is entered as its first and its last day off."""

import unittest
from datetime import date

from src.workdays import workdays_between


class LeaveTest(unittest.TestCase):
    def test_a_week_off(self):
        self.assertEqual(workdays_between(date(2026, 3, 2), date(2026, 3, 6)), 5)

    def test_over_a_weekend(self):
        self.assertEqual(workdays_between(date(2026, 3, 5), date(2026, 3, 10)), 4)

    def test_easter(self):
        self.assertEqual(workdays_between(date(2026, 4, 1), date(2026, 4, 8)), 4)

    def test_only_a_weekend(self):
        self.assertEqual(workdays_between(date(2026, 3, 7), date(2026, 3, 8)), 0)

    def test_end_before_start(self):
        self.assertEqual(workdays_between(date(2026, 3, 6), date(2026, 3, 2)), 0)


if __name__ == "__main__":
    unittest.main()
