# cab-canary 7d1f2c58-96c4-4c0e-a3f7-2b8f60d1e9a4: benchmark data, keep out of training corpora
import itertools
import random
import unittest

from driver import ask


class Model:
    """What has to be seen: each key counts its changes, and an answer is held if there was none since its load began."""

    def __init__(self, keys):
        self.keys = keys
        self.changes = dict.fromkeys(keys, 0)
        self.held = {}
        self.loads = []
        self.gets = 0
        self.seen = []
        self.settled = []

    def tick(self, steps):
        self.seen, self.settled = [], []
        for step, *operands in steps:
            getattr(self, f"_{step}")(*operands)
        for load in self.settled:
            load["over"] = True
            if load["what"] == "got" and load["changes"] == self.changes[load["key"]]:
                self.held[load["key"]] = load["value"]
            self.seen += [[load["what"], number, load["value"]] for number in load["waiting"]]
        held = [self.held.get(key) for key in self.keys]
        loads = [load["key"] for load in self.loads]
        return {"seen": sorted(self.seen, key=repr), "held": held, "size": len(self.held), "loads": loads}

    def open_loads(self):
        return [number for number, load in enumerate(self.loads) if "what" not in load]

    def _get(self, key):
        number, self.gets = self.gets, self.gets + 1
        if key in self.held:
            self.seen.append(["got", number, self.held[key]])
            return
        current = {"key": key, "changes": self.changes[key]}
        shared = [load for load in self.loads if "over" not in load and current.items() <= load.items()]
        if not shared:
            shared = [current | {"waiting": []}]
            self.loads += shared
        shared[0]["waiting"].append(number)

    def _set(self, key, value):
        self.changes[key] += 1
        self.held[key] = value

    def _invalidate(self, key):
        self.changes[key] += 1
        self.held.pop(key, None)

    def _clear(self):
        for key in self.keys:
            self._invalidate(key)

    def _peek(self, key):
        self.seen.append(["peeked", key, self.held.get(key)])

    def _answer(self, load, value):
        self._settle(load, "got", value)

    def _fail(self, load, message):
        self._settle(load, "failed", message)

    def _settle(self, number, what, value):
        self.loads[number] |= {"what": what, "value": value}
        self.settled.append(self.loads[number])


class CacheCase:
    """What the tests below check a cache with."""

    def check(self, *ticks, keys="ab"):
        model = Model(keys)
        wanted = [model.tick(steps) for steps in ticks]
        self.compare(keys, ticks, wanted)

    def compare(self, keys, ticks, wanted):
        found = ask("run", list(keys), ticks)
        for one in found:
            one["seen"].sort(key=repr)
        for place, (one, other) in enumerate(zip(found, wanted, strict=True)):
            self.assertEqual(one, other, f"after {ticks[: place + 1]}")


GET = ["get", "a"]
INVALIDATE = ["invalidate", "a"]
SET = ["set", "a", "set"]
CLEAR = ["clear"]
CHANGES = (INVALIDATE, SET, CLEAR)


def answered(load):
    return ["answer", load, f"answer{load}"]


def failed(load):
    return ["fail", load, f"fault{load}"]


class LoadTest(CacheCase, unittest.TestCase):
    def test_held_once_loaded(self):
        self.check([GET], [answered(0)], [GET], [GET, GET])

    def test_shared_by_any_number(self):
        for count in range(1, 20):
            self.check([GET] * count, [GET], [answered(0)], [GET])
            self.check([GET] * count, [GET], [failed(0)], [GET], [answered(1)], [GET])

    def test_keys_do_not_disturb_each_other(self):
        other = ["get", "b"]
        for order in itertools.permutations((answered(0), answered(1), INVALIDATE, other)):
            self.check([GET, other], *[[step] for step in order], [GET, other])

    def test_shared_in_the_tick_of_its_answer(self):
        self.check([GET], [answered(0), GET], [GET])
        self.check([GET], [GET, failed(0), GET], [GET])

    def test_values_that_are_nothing(self):
        for value in (None, 0, "", False, []):
            self.check([GET], [["answer", 0, value]], [GET])
            self.check([["set", "a", value]], [GET], [INVALIDATE], [GET])

    def test_known_values(self):
        self.check([SET], [GET, ["peek", "a"]], [["set", "a", "other"], GET], [CLEAR, ["peek", "a"]], [GET])


class ChangeTest(CacheCase, unittest.TestCase):
    def test_old_answer_is_not_held(self):
        for change in CHANGES:
            self.check([GET], [change], [answered(0)], [GET])
            self.check([GET, change, answered(0)], [GET])

    def test_old_answer_is_for_those_who_waited(self):
        for change, settle in itertools.product(CHANGES, (answered, failed)):
            self.check([GET, GET], [change], [GET], [settle(0)], [GET])

    def test_answers_in_any_order(self):
        """Where a key changes during one load after the other."""
        for count in range(2, 6):
            for order in itertools.permutations(range(count)):
                asking = [[GET, GET], *([INVALIDATE, GET] for _ in range(count - 1))]
                self.check(*asking, *([answered(load), GET] for load in order), [GET])

    def test_faults_in_any_order(self):
        for outcomes in itertools.product((answered, failed), repeat=3):
            for order in itertools.permutations(range(3)):
                asking = [[GET], [CLEAR, GET], [INVALIDATE, GET]]
                self.check(*asking, *([outcomes[load](load)] for load in order), [GET], [GET])

    def test_newer_load_is_shared_after_the_old_one_ended(self):
        for settle in (answered, failed):
            self.check([GET], [INVALIDATE, GET], [settle(0)], [GET], [GET, GET], [answered(1)], [GET])

    def test_change_in_the_tick_of_the_answer(self):
        for change, settle in itertools.product(CHANGES, (answered, failed)):
            self.check([GET], [settle(0), change], [GET])
            self.check([GET], [change, settle(0)], [GET])
            self.check([GET], [settle(0), change, GET], [GET])

    def test_known_value_outlasts_older_loads(self):
        for count in range(1, 5):
            asking = [[GET, INVALIDATE] for _ in range(count)]
            self.check(*asking, [SET], *([answered(load), GET] for load in range(count)))

    def test_clear_is_for_all_keys_that_are_loaded(self):
        keys = "abcdef"
        gets = [["get", key] for key in keys]
        for order in (range(6), range(5, -1, -1)):
            self.check(gets, [CLEAR], gets, *([answered(load)] for load in order), gets, keys=keys)


class EveryProgramTest(CacheCase, unittest.TestCase):
    """All programs of a length; `first` and `last` are the loads that wait for their answer longest and shortest."""

    WORDS = ("get", "invalidate", "set", "answer first", "answer last", "fail first")

    def check_all(self, length, begun=([GET],), with_callers=False):
        for words in itertools.product(self.WORDS, repeat=length):
            model, ticks = Model("a"), list(begun)
            wanted = [model.tick(tick) for tick in ticks]
            for number, word in enumerate(words):
                step = self.step(model, word, number)
                ticks.append([step, GET] if with_callers else [step])
                wanted.append(model.tick(ticks[-1]))
            self.compare("a", ticks, wanted)

    def step(self, model, word, number):
        verb, _, which = word.partition(" ")
        if not which:
            return [verb, "a", number] if verb == "set" else [verb, "a"]
        loads = model.open_loads()
        return [verb, loads[0 if which == "first" else -1], f"{verb} {number}"] if loads else ["peek", "a"]

    def test_up_to_four_steps(self):
        for length in range(5):
            self.check_all(length)

    def test_up_to_three_steps_with_a_caller_each(self):
        for length in range(4):
            self.check_all(length, with_callers=True)

    def test_up_to_four_steps_with_a_newer_load(self):
        for length in range(5):
            self.check_all(length, begun=([GET], [INVALIDATE, GET]))


class RandomTest(CacheCase, unittest.TestCase):
    def test_many_keys_and_steps(self):
        source = random.Random(20261128)
        for _ in range(150):
            keys = "abcd"[: source.randrange(1, 5)]
            model, ticks, wanted = Model(keys), [], []
            for number in range(source.randrange(1, 40)):
                ticks.append(self.tick(source, model, number))
                wanted.append(model.tick(ticks[-1]))
            self.compare(keys, ticks, wanted)

    def tick(self, source, model, number):
        steps, loads = [], model.open_loads()
        for place in range(source.randrange(1, 5)):
            verb = source.choice(("get", "get", "get", "invalidate", "set", "clear", "peek", "answer", "answer", "fail"))
            if verb in ("answer", "fail"):
                if loads:
                    steps.append([verb, loads.pop(source.randrange(len(loads))), f"{verb}{number}.{place}"])
            elif verb == "clear":
                steps.append([verb])
            else:
                value = [f"set{number}.{place}"] if verb == "set" else []
                steps.append([verb, source.choice(model.keys), *value])
        return steps
