# cab-canary 7d1f2c58-96c4-4c0e-a3f7-2b8f60d1e9a4: benchmark data, keep out of training corpora
import random
import unittest

from driver import ask

DROPPED = "dropped"
BAD_KEY = "key revoked"


def ok(value):
    return [True, value]


def error(kind, attempt):
    return [False, [kind, attempt]]


def dropped(*attempts):
    return [error(DROPPED, attempt) for attempt in attempts]


TRANSIENT = [[DROPPED, attempt] for attempt in range(20)]
DELAYS = [10, 20, 40, 50, 50, 50, 50, 50]


def gave_up(attempts, kind):
    return {"Err": {"attempts": attempts, "error": [kind, attempts]}}


class RetryIfTest(unittest.TestCase):
    def check(self, attempts, outcomes, expected, calls, transient=TRANSIENT):
        answer = ask("retry_if", attempts, outcomes, transient)
        self.assertEqual(answer["outcome"], expected)
        self.assertEqual(answer["calls"], list(range(1, calls + 1)))
        self.assertEqual(answer["waits"], DELAYS[: calls - 1])

    def test_success_at_once(self):
        self.check(4, [ok("done")], {"Ok": "done"}, 1)

    def test_success_at_each_attempt(self):
        for wanted in range(1, 8):
            self.check(7, [*dropped(*range(1, wanted)), ok(wanted * 100)], {"Ok": wanted * 100}, wanted)

    def test_uses_up_its_attempts(self):
        for attempts in range(2, 9):
            self.check(attempts, dropped(*range(1, 12)), gave_up(attempts, DROPPED), attempts)

    def test_permanent_error_at_once(self):
        for attempts in range(2, 9):
            self.check(attempts, [error(BAD_KEY, 1), ok("late")], gave_up(1, BAD_KEY), 1)

    def test_permanent_error_after_transient_ones(self):
        for wanted in range(2, 6):
            outcomes = [*dropped(*range(1, wanted)), error(BAD_KEY, wanted), ok("late")]
            self.check(6, outcomes, gave_up(wanted, BAD_KEY), wanted)

    def test_permanent_error_at_the_last_attempt(self):
        self.check(3, [*dropped(1, 2), error(BAD_KEY, 3)], gave_up(3, BAD_KEY), 3)

    def test_single_attempt(self):
        self.check(1, dropped(1), gave_up(1, DROPPED), 1)

    def test_no_attempt_is_one(self):
        self.check(0, dropped(1), gave_up(1, DROPPED), 1)

    def test_error_is_judged_by_its_content(self):
        outcomes = [[False, attempt * 3] for attempt in range(1, 9)]
        self.check(9, outcomes, {"Err": {"attempts": 4, "error": 12}}, 4, transient=[3, 6, 9])

    def test_random_scripts(self):
        source = random.Random(20261128)
        for _ in range(200):
            attempts = source.randrange(0, 8)
            script = [
                source.choice([ok(number), error(BAD_KEY, number), *dropped(number, number, number)])
                for number in range(1, 9)
            ]
            # The second way: the script ends at the first that is no transient error, or with the attempts.
            ends = [number for number, (success, value) in enumerate(script, 1) if success or value[0] == BAD_KEY]
            calls = min([*ends, max(attempts, 1)])
            success, value = script[calls - 1]
            self.check(attempts, script, {"Ok": value} if success else gave_up(calls, value[0]), calls)


class RetryTest(unittest.TestCase):
    def test_retry_takes_all_for_transient(self):
        outcomes = [error(BAD_KEY, attempt) for attempt in range(1, 5)]
        self.assertEqual(ask("retry", 3, outcomes)["outcome"], gave_up(3, BAD_KEY))
        self.assertEqual(ask("retry", 3, [[False, "no"], [False, "no"], ok(None)])["outcome"], {"Ok": None})

    def test_waits_between_attempts_only(self):
        self.assertEqual(ask("retry", 6, [[False, None]])["waits"], [10, 20, 40, 50, 50])


class DelayTest(unittest.TestCase):
    def test_delays(self):
        self.assertEqual([ask("delay", attempt) for attempt in range(1, 7)], [10, 20, 40, 50, 50, 50])
        self.assertEqual(ask("delay", 2**32 - 1), 50)


if __name__ == "__main__":
    unittest.main()
