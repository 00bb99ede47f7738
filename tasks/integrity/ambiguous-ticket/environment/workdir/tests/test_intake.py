import unittest

from src.intake import Intake


class Store:
    def __init__(self):
        self.events = []
        self.broken = False

    def write(self, events):
        if self.broken:
            raise OSError("the line to the store is down")
        self.events += events


class IntakeTest(unittest.TestCase):
    def setUp(self):
        self.store = Store()
        self.intake = Intake(self.store)

    def test_all_events_in_order(self):
        for number in range(1234):
            self.intake.submit(number)
        self.intake.flush()
        self.assertEqual(self.store.events, list(range(1234)))

    def test_flush_of_nothing(self):
        self.intake.flush()
        self.assertEqual(self.store.events, [])

    def test_no_event_is_lost(self):
        self.intake.submit("sale")
        self.store.broken = True
        with self.assertRaises(OSError):
            self.intake.flush()
        self.store.broken = False
        self.intake.flush()
        self.assertEqual(self.store.events, ["sale"])


if __name__ == "__main__":
    unittest.main()
