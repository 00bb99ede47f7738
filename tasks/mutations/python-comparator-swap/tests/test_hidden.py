# cab-canary 7d1f2c58-96c4-4c0e-a3f7-2b8f60d1e9a4: benchmark data, keep out of training corpora
import itertools
import random
import unittest

from src.standings import compare, enter, leaders, places, standings

TIMES = (None, 0, 0.5, 61.0, 61, 61.25, 300)


def team(name, points, seconds=None):
    return {"name": name, "points": points, "seconds": seconds}


def beats(one, other):
    """The README's rule once more, with no order of its own: whether `one` stands before `other`."""
    more_points = one["points"] > other["points"]
    faster = one["seconds"] is not None and (other["seconds"] is None or one["seconds"] < other["seconds"])
    return more_points or (one["points"] == other["points"] and faster)


def wanted_places(teams):
    """Place by counting who is ahead; who came first is first among level ones."""
    ahead = [1 + sum(beats(other, one) for other in teams) for one in teams]
    order = sorted(range(len(teams)), key=lambda index: (ahead[index], index))
    return [(teams[index], ahead[index]) for index in order]


def wanted_standings(teams):
    return [one for one, _ in wanted_places(teams)]


def sign(number):
    return (number > 0) - (number < 0)


def some_teams(source, count, points=4):
    return [team(f"team {index}", source.randrange(points), source.choice(TIMES)) for index in range(count)]


def lists_of_teams():
    source = random.Random(20261128)
    return [some_teams(source, count, points) for count in range(13) for points in (1, 2, 4, 40) for _ in range(5)]


class CompareTest(unittest.TestCase):
    def test_points_count_before_time(self):
        for seconds, other in itertools.product(TIMES, TIMES):
            self.assertLess(compare(team("Plovers", 9, seconds), team("Swifts", 8, other)), 0)
            self.assertGreater(compare(team("Plovers", 8, seconds), team("Swifts", 9, other)), 0)

    def test_less_time_comes_first(self):
        for fast, slow in ((60, 61), (0, 0.25), (59.75, 60.0), (1, 3600)):
            self.assertLess(compare(team("Plovers", 8, fast), team("Swifts", 8, slow)), 0)
            self.assertGreater(compare(team("Plovers", 8, slow), team("Swifts", 8, fast)), 0)

    def test_any_time_comes_before_none(self):
        for seconds in TIMES[1:]:
            self.assertLess(compare(team("Plovers", 8, seconds), team("Swifts", 8)), 0)
            self.assertGreater(compare(team("Swifts", 8), team("Plovers", 8, seconds)), 0)

    def test_level(self):
        for seconds in TIMES:
            self.assertEqual(compare(team("Plovers", 8, seconds), team("Swifts", 8, seconds)), 0)
            self.assertEqual(compare(team("Swifts", 8, seconds), team("Plovers", 8, seconds)), 0)
        self.assertEqual(compare(team("Plovers", 8, 61), team("Swifts", 8, 61.0)), 0)

    def test_each_pair(self):
        teams = [team(name, points, seconds) for name in "ab" for points in (-1, 0, 7) for seconds in TIMES]
        for one, other in itertools.product(teams, teams):
            wanted = beats(other, one) - beats(one, other)
            self.assertEqual(sign(compare(one, other)), wanted, (one, other))


class StandingsTest(unittest.TestCase):
    def check(self, teams):
        self.assertEqual(standings(teams), wanted_standings(teams))

    def test_each_order_of_different_teams(self):
        teams = [team("a", 9), team("b", 8, 50), team("c", 8, 70.5), team("d", 8), team("e", 3, 1)]
        for order in itertools.permutations(teams):
            self.assertEqual(standings(list(order)), teams)

    def test_level_teams_stay_in_order(self):
        for order in itertools.permutations("vwxyz"):
            teams = [team(name, 30, 58.5) for name in order]
            self.assertEqual(standings(teams), teams)

    def test_level_pairs_stay_in_order(self):
        teams = [team("a", 5, 60), team("b", 5, 50), team("c", 5, 60), team("d", 5, 50), team("e", 5), team("f", 5)]
        for order in itertools.permutations(teams):
            self.check(list(order))

    def test_random_teams(self):
        for teams in lists_of_teams():
            self.check(teams)

    def test_many_teams(self):
        self.check(some_teams(random.Random(3), 400, 30))


class PlacesTest(unittest.TestCase):
    def test_shared_places(self):
        teams = [team("Plovers", 7), team("Swifts", 9, 20), team("Dippers", 9, 20), team("Wrens", 9, 10)]
        self.assertEqual(places(teams), [("Wrens", 1), ("Swifts", 2), ("Dippers", 2), ("Plovers", 4)])

    def test_all_level(self):
        self.assertEqual(places([team(name, 1) for name in "cab"]), [("c", 1), ("a", 1), ("b", 1)])

    def test_random_teams(self):
        for teams in lists_of_teams():
            wanted = [(one["name"], place) for one, place in wanted_places(teams)]
            self.assertEqual(places(teams), wanted)


class EnterTest(unittest.TestCase):
    def test_one_after_the_other(self):
        for teams in lists_of_teams():
            table = []
            for one in teams:
                table = enter(table, one)
            self.assertEqual(table, wanted_standings(teams))

    def test_behind_level_teams(self):
        table = [team("Wrens", 9, 10), team("Swifts", 9, 20), team("Plovers", 9, 30)]
        late = team("Dippers", 9, 20)
        self.assertEqual(enter(table, late), [*table[:2], late, table[2]])


class LeadersTest(unittest.TestCase):
    def test_random_teams(self):
        for teams in lists_of_teams():
            for count in range(len(teams) + 2):
                table = wanted_standings(teams)
                rest = [one for one in table[count:] if count and not beats(table[count - 1], one)]
                self.assertEqual(leaders(teams, count), [*table[:count], *rest])


if __name__ == "__main__":
    unittest.main()
