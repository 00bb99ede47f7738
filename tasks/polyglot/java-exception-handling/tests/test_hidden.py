# cab-canary 7d1f2c58-96c4-4c0e-a3f7-2b8f60d1e9a4: benchmark data, keep out of training corpora
import itertools
import random
import unittest

from driver import ask

KINDS = ("io", "eof", "state", "error")
NAMES = "abcdefgh"


class Plan:
    """Gauges, what fails of them, and what has to come of it. At most one gauge fails to open, or one to be read."""

    def __init__(self, *readings, names=NAMES):
        self.names = names[: len(readings)]
        self.readings = dict(zip(self.names, readings, strict=True))
        self.open_fails = self.read_fails = self.read_place = None
        self.close_fails = set()
        self.same = False
        self.kind = {}

    def request(self):
        for name, readings in self.readings.items():
            words = [name, *(f"{time}:{level}" for time, level in readings)]
            if name == self.open_fails:
                words.append(f"open={self._kind(name, 'open')}")
            if name == self.read_fails:
                words.append(f"read{self.read_place}={self._kind(name, 'read')}")
            if name in self.close_fails:
                words.append(f"close={'same' if self._lost(name) else self._kind(name, 'close')}")
            yield " ".join(words)

    def _kind(self, name, operation):
        return self.kind.get((name, operation), "io")

    def _lost(self, name):
        return self.same and name == self.read_fails

    def opens(self):
        """Names in the order in which they are opened, the failing one included."""
        ends = self.names.index(self.open_fails) + 1 if self.open_fails else len(self.names)
        return list(self.names[:ends])

    def closes(self):
        return [name for name in reversed(self.opens()) if name != self.open_fails]

    def failures(self):
        """What fails, in the order in which it does."""
        failed = [f"{self.open_fails} open"] if self.open_fails else []
        failed += [f"{self.read_fails} read"] if self.read_fails else []
        return failed + [f"{name} close" for name in self.closes() if name in self.close_fails and not self._lost(name)]

    def merged(self):
        """By sorting all of them, where the code merges."""
        marked = [
            (time, rank, place, level)
            for rank, name in enumerate(self.names)
            for place, (time, level) in enumerate(self.readings[name])
        ]
        return [[time, level] for time, _, _, level in sorted(marked)]


class PlanCase:
    """What the tests below check a plan with."""

    def check_merged(self, plan):
        came = ask("merge", *plan.request())
        self.assertEqual((came["readings"], came["thrown"]), (plan.merged(), None))

    def check(self, plan):
        came = ask("merge", *plan.request())
        said = f"{list(plan.request())} gave {came}"
        failures = plan.failures()
        if failures:
            first, *later = failures
            self.assertIsNone(came["readings"], said)
            self.assertEqual(came["thrown"], [first, [[name, []] for name in later]], said)
        else:
            self.assertIsNone(came["thrown"], said)
            self.assertEqual(came["readings"], plan.merged(), said)
        self.check_calls(plan, came["log"], said)

    def check_calls(self, plan, log, said):
        opened = [call[5:] for call in log if call.startswith("open ")]
        closed = [call[6:] for call in log if call.startswith("close ")]
        self.assertEqual((opened, closed), (plan.opens(), plan.closes()), said)
        kinds = [call.partition(" ")[0] for call in log if call != "failed"]
        self.assertEqual(kinds, sorted(kinds, key=("open", "read", "close").index), said)
        if "failed" in log:
            self.assertNotIn("read", [call.partition(" ")[0] for call in log[log.index("failed") :]], said)


def readings(source, count):
    return [(time, source.randrange(3000)) for time in sorted(source.choices(range(40), k=count))]


class MergedTest(PlanCase, unittest.TestCase):
    def test_one_gauge(self):
        for count in range(8):
            self.check_merged(Plan([(time, time * 7) for time in range(count)]))

    def test_one_reading_each(self):
        for order in itertools.permutations((10, 20, 30, 30)):
            self.check_merged(Plan(*([(time, 1000 + place)] for place, time in enumerate(order))))

    def test_random_readings(self):
        source = random.Random(20261128)
        for _ in range(100):
            self.check_merged(Plan(*(readings(source, source.randrange(9)) for _ in range(source.randrange(1, 8)))))

    def test_limits_of_64_and_32_bits(self):
        low, high = -(2**63), 2**63 - 1
        self.check_merged(Plan([(low, -(2**31)), (high, 2**31 - 1)], [(0, 0), (high, 1)]))

    def test_many_gauges(self):
        names = [f"gauge{number}" for number in range(200)]
        self.check_merged(Plan(*([(number % 7, number)] for number in range(200)), names=names))


class OpenTest(PlanCase, unittest.TestCase):
    def test_each_place_and_kind(self):
        for count in range(1, 7):
            for place, kind in itertools.product(range(count), KINDS):
                plan = Plan(*[[(1, 1)]] * count)
                plan.open_fails = NAMES[place]
                plan.kind[NAMES[place], "open"] = kind
                self.check(plan)

    def test_others_cannot_be_closed_then(self):
        for place in range(5):
            for closing in range(2**place):
                plan = Plan(*[[(1, 1)]] * 5)
                plan.open_fails = NAMES[place]
                plan.close_fails = {NAMES[other] for other in range(place) if closing >> other & 1}
                self.check(plan)


class ReadTest(PlanCase, unittest.TestCase):
    def test_each_gauge_moment_and_kind(self):
        for place, moment, kind in itertools.product(range(3), range(4), KINDS):
            plan = Plan(*([(time, 5) for time in range(3)] for _ in range(3)))
            plan.read_fails, plan.read_place = NAMES[place], moment
            plan.kind[NAMES[place], "read"] = kind
            self.check(plan)

    def test_others_cannot_be_closed_then(self):
        for place, closing in itertools.product(range(4), range(2**4)):
            plan = Plan(*[[(1, 1), (2, 2)]] * 4)
            plan.read_fails, plan.read_place = NAMES[place], 1
            plan.close_fails = {NAMES[other] for other in range(4) if closing >> other & 1}
            self.check(plan)

    def test_lost_connection(self):
        """Where `close` throws the exception that reading threw, of any kind and with any other failure."""
        for place, closing, kind in itertools.product(range(3), range(2**3), KINDS):
            plan = Plan(*[[(1, 1), (2, 2)]] * 3)
            plan.read_fails, plan.read_place, plan.same = NAMES[place], 1, True
            plan.close_fails = {NAMES[place]} | {NAMES[other] for other in range(3) if closing >> other & 1}
            plan.kind[NAMES[place], "read"] = kind
            self.check(plan)


class CloseTest(PlanCase, unittest.TestCase):
    def test_nothing_fails(self):
        for count in range(1, 9):
            self.check(Plan(*[[(1, 1), (2, 2)]] * count))

    def test_each_place_and_kind(self):
        for count in range(1, 6):
            for place, kind in itertools.product(range(count), KINDS):
                plan = Plan(*[[(1, 1), (2, 2)]] * count)
                plan.close_fails = {NAMES[place]}
                plan.kind[NAMES[place], "close"] = kind
                self.check(plan)

    def test_several(self):
        for closing in range(2**5):
            plan = Plan(*[[(1, 1)]] * 5)
            plan.close_fails = {NAMES[place] for place in range(5) if closing >> place & 1}
            self.check(plan)

    def test_kinds_after_each_other(self):
        for kinds in itertools.product(KINDS, repeat=3):
            plan = Plan([(1, 1)], [(2, 2)], [])
            plan.close_fails = set("abc")
            plan.kind = {(name, "close"): kind for name, kind in zip("abc", kinds, strict=True)}
            self.check(plan)

    def test_gauges_without_readings(self):
        for count in range(1, 5):
            plan = Plan(*[[]] * count)
            plan.close_fails = set(NAMES[:count])
            self.check(plan)


class RandomTest(PlanCase, unittest.TestCase):
    def test_all_together(self):
        source = random.Random(4711)
        for _ in range(500):
            plan = Plan(*(readings(source, source.randrange(5)) for _ in range(source.randrange(1, 9))))
            for name in plan.names:
                plan.kind |= {(name, what): source.choice(KINDS) for what in ("open", "read", "close")}
            plan.close_fails = {name for name in plan.names if source.random() < 0.3}
            chance = source.random()
            if chance < 0.3:
                plan.open_fails = source.choice(plan.names)
            elif chance < 0.7:
                plan.read_fails = source.choice(plan.names)
                plan.read_place = source.randrange(len(plan.readings[plan.read_fails]) + 1)
                plan.same = source.random() < 0.5
            self.check(plan)
