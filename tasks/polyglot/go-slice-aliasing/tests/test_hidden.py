# cab-canary 7d1f2c58-96c4-4c0e-a3f7-2b8f60d1e9a4: benchmark data, keep out of training corpora
import random
import unittest

from driver import ask


class Known:
    """Loggers and what each should hold, worked out with a dictionary for each."""

    def __init__(self, case):
        self.case = case
        self.held = {}

    def new(self, fields, how="new"):
        return self._keep(ask(how, fields), dict(fields))

    def with_(self, logger, fields, how="with"):
        return self._keep(ask(how, logger, fields), {**self.held[logger], **dict(fields)})

    def without(self, logger, keys):
        left = {key: value for key, value in self.held[logger].items() if key not in keys}
        return self._keep(ask("without", logger, keys), left)

    def check(self):
        """All loggers, the oldest too, by fields and by line."""
        for logger, wanted in self.held.items():
            self.case.assertEqual(ask("fields", logger), [list(pair) for pair in wanted.items()])
            line = "".join(f"{key}={value} " for key, value in wanted.items()) + "msg=hello"
            self.case.assertEqual(ask("line", logger, "hello"), line)

    def _keep(self, logger, wanted):
        self.case.assertNotIn(logger, self.held)
        self.held[logger] = wanted
        return logger


def numbered(count, start=0):
    return [[f"k{number}", f"v{number}"] for number in range(start, start + count)]


class DerivingTest(unittest.TestCase):
    def setUp(self):
        self.known = Known(self)

    def test_siblings_at_every_depth(self):
        """Where each logger of a chain has one field more than the last, and three children besides."""
        logger = self.known.new([])
        for depth in range(40):
            for child in ("ann", "ben", "cyd"):
                self.known.with_(logger, [["user", child]])
            logger = self.known.with_(logger, numbered(1, depth))
        self.known.check()

    def test_siblings_of_every_length(self):
        for length in range(40):
            logger = self.known.new(numbered(length))
            for child in ("ann", "ben"):
                self.known.with_(logger, [["user", child], ["trace", child * 2]])
        self.known.check()

    def test_siblings_that_add_several_fields(self):
        for count in range(1, 10):
            for length in range(1, 18):
                logger = self.known.new(numbered(length))
                for child in ("x", "y"):
                    self.known.with_(logger, [[f"{child}{key}", child] for key, _ in numbered(count)])
        self.known.check()

    def test_grandchildren(self):
        first = self.known.new(numbered(3))
        families = [self.known.with_(first, [["user", f"user{number}"]]) for number in range(6)]
        for family in families:
            for number in range(3):
                self.known.with_(family, [["step", str(number)]])
        self.known.check()

    def test_nothing_added_and_nothing_left_out(self):
        logger = self.known.with_(self.known.new(numbered(5)), [["last", "one"]])
        for same in (self.known.with_(logger, []), self.known.without(logger, []), self.known.without(logger, ["no"])):
            self.known.with_(same, [["user", f"of{same}"]])
            self.known.with_(same, [["k2", f"of{same}"]])
            self.known.without(same, ["k0"])
        self.known.check()


class KnownKeyTest(unittest.TestCase):
    def setUp(self):
        self.known = Known(self)

    def test_parent_keeps_its_value_at_every_place(self):
        for length in range(1, 20):
            for place in range(length):
                logger = self.known.new(numbered(length))
                self.known.with_(logger, [[f"k{place}", "changed"]])
                self.known.with_(logger, [[f"k{place}", "otherwise"]])
        self.known.check()

    def test_all_values_at_once(self):
        for length in range(1, 20):
            logger = self.known.new(numbered(length))
            self.known.with_(logger, [[key, "changed"] for key, _ in reversed(numbered(length))])
        self.known.check()

    def test_the_same_key_twice_in_one_call(self):
        logger = self.known.new([["a", "1"], ["b", "2"], ["a", "3"]])
        self.known.with_(logger, [["c", "4"], ["a", "5"], ["c", "6"]])
        self.known.check()

    def test_new_and_known_keys_together(self):
        for length in range(1, 12):
            logger = self.known.new(numbered(length))
            for child in ("x", "y", "z"):
                self.known.with_(logger, [["user", child], ["k0", child], ["trace", child], [f"k{length - 1}", child]])
        self.known.check()

    def test_keys_differ_by_case_and_white_space(self):
        logger = self.known.new([["key", "1"]])
        self.known.with_(logger, [["Key", "2"], ["key2", "3"]])
        self.known.check()


class WithoutTest(unittest.TestCase):
    def setUp(self):
        self.known = Known(self)

    def test_parent_keeps_its_field_at_every_place(self):
        for length in range(1, 20):
            for place in range(length):
                self.known.without(self.known.new(numbered(length)), [f"k{place}"])
        self.known.check()

    def test_several_keys(self):
        for mask in range(64):
            logger = self.known.new(numbered(6))
            self.known.without(logger, [f"k{place}" for place in range(6) if mask >> place & 1])
        self.known.check()

    def test_what_is_added_afterwards(self):
        for length in range(1, 20):
            logger = self.known.new(numbered(length))
            for place in range(length):
                shorter = self.known.without(logger, [f"k{place}"])
                self.known.with_(shorter, [["user", "ann"]])
                self.known.with_(shorter, [["user", "ben"]])
        self.known.check()

    def test_left_out_and_added_again(self):
        logger = self.known.new(numbered(4))
        for key, value in numbered(4):
            self.known.with_(self.known.without(logger, [key]), [[key, value]])
        self.known.check()


class CallersSlicesTest(unittest.TestCase):
    def setUp(self):
        self.known = Known(self)

    def test_slices_handed_to_new(self):
        for length in range(12):
            logger = self.known.new(numbered(length), how="new_from_reused")
            self.known.with_(logger, [["user", "ann"]])
        self.known.check()

    def test_slices_handed_to_with(self):
        for start in range(6):
            for length in range(8):
                logger = self.known.new(numbered(start))
                derived = self.known.with_(logger, numbered(length, start), how="with_reused")
                self.known.with_(derived, [["user", "ann"]])
        self.known.check()

    def test_slices_handed_out(self):
        for length in range(8):
            logger = self.known.with_(self.known.new(numbered(length)), [["user", "ann"]])
            ask("overwrite_fields", logger)
        self.known.check()


class RandomTest(unittest.TestCase):
    def test_families(self):
        source = random.Random(20261128)
        for _ in range(60):
            known = Known(self)
            known.new(numbered(source.randrange(7)))
            for _ in range(source.randrange(5, 40)):
                self.derive(known, source)
            known.check()

    def derive(self, known, source):
        logger = source.choice(list(known.held))
        keys = [f"k{source.randrange(12)}" for _ in range(source.randrange(4))]
        if source.random() < 0.3:
            known.without(logger, keys)
        else:
            how = source.choice(("with", "with_reused"))
            known.with_(logger, [[key, str(source.randrange(1000))] for key in keys], how=how)


class LineTest(unittest.TestCase):
    def test_values_as_they_are(self):
        for value in ("x", "10.0.0.7", "a/b?c", "it's", "a\\b", "{}", "größe", "日本", "-"):
            self.assertEqual(ask("line", ask("new", [["key", value]]), value), f"key={value} msg={value}")

    def test_quoted_values(self):
        quoted = {
            "": '""',
            " ": '" "',
            "two words": '"two words"',
            "k=v": '"k=v"',
            'say "no"': '"say \\"no\\""',
            "tab\there": '"tab\\there"',
            "line\nend": '"line\\nend"',
            "\x00": '"\\x00"',
            "\u00a0": '"\\u00a0"',
            "\u200d": '"\\u200d"',
        }
        for value, wanted in quoted.items():
            self.assertEqual(ask("line", ask("new", [["key", value]]), value), f"key={wanted} msg={wanted}")

    def test_no_fields(self):
        self.assertEqual(ask("line", ask("new", []), "started"), "msg=started")
        self.assertEqual(ask("fields", ask("new", [])), [])
