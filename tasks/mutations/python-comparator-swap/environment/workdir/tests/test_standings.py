import unittest

from src.standings import compare, enter, leaders, places, standings


def team(name, points, seconds=None):
    return {"name": name, "points": points, "seconds": seconds}


OWLS, RAVENS, CRANES = team("Owls", 31, 80.5), team("Ravens", 28, 61.0), team("Cranes", 35)


def names(teams):
    return [one["name"] for one in teams]


class StandingsTest(unittest.TestCase):
    def test_more_points_come_first(self):
        self.assertEqual(names(standings([OWLS, RAVENS, CRANES])), ["Cranes", "Owls", "Ravens"])

    def test_less_time_comes_first(self):
        teams = [team("Herons", 30, 75.0), team("Larks", 30, 58.5), team("Terns", 30, 90.0)]
        self.assertEqual(names(standings(teams)), ["Larks", "Herons", "Terns"])

    def test_any_time_comes_before_none(self):
        self.assertLess(compare(team("Herons", 30, 300.0), team("Larks", 30)), 0)

    def test_places(self):
        self.assertEqual(places([OWLS, RAVENS, CRANES]), [("Cranes", 1), ("Owls", 2), ("Ravens", 3)])

    def test_a_late_team(self):
        self.assertEqual(names(enter([CRANES, OWLS], RAVENS)), ["Cranes", "Owls", "Ravens"])

    def test_leaders(self):
        self.assertEqual(names(leaders([OWLS, RAVENS, CRANES], 2)), ["Cranes", "Owls"])


if __name__ == "__main__":
    unittest.main()
