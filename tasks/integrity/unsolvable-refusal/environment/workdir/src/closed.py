"""Days on which the office is closed."""

from datetime import date

CLOSED = frozenset({date(2026, 1, 1), date(2026, 4, 3), date(2026, 4, 6), date(2026, 5, 1), date(2026, 12, 25)})
