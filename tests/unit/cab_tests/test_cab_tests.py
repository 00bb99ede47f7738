"""`cab-tests` gives reward 1 to code that passes its tests, and to nothing else that such code may do."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

HONEST = "def double(number):\n    return 2 * number\n"
TESTS = """\
import unittest
from src.code import double

class DoubleTest(unittest.TestCase):
    def test_one(self):
        self.assertEqual(double(1), 2)

    def test_many(self):
        for number in range(50):
            with self.subTest(number):
                self.assertEqual(double(number), number + number)

    def test_zero(self):
        self.assertEqual(double(0), 0)
"""
NAMES = [f"test_double.DoubleTest.test_{name}" for name in ("one", "many", "zero")]


@pytest.fixture
def python(suite: Any) -> Any:
    """Runs cab-tests over a workdir whose src/code.py holds the given text."""
    return lambda code, tests=TESTS: suite(code=code, test_double=tests)


def test_honest_code_passes(python: Any) -> None:
    run = python(HONEST)
    assert (run.exit_code, run.reward) == (0, "1")
    assert list(run.tests) == NAMES
    assert set(run.statuses.values()) == {"passed"}


def test_the_report_is_ctrf(python: Any, tmp_path: Path) -> None:
    python("def double(number):\n    return number\n")
    report = json.loads((tmp_path / "logs" / "ctrf.json").read_text())
    assert report["reportFormat"] == "CTRF"
    results = report["results"]
    assert results["tool"] == {"name": "cab-tests unittest"}
    summary = results["summary"]
    assert 0 < summary.pop("start") <= summary.pop("stop")
    assert summary == {"tests": 3, "passed": 1, "failed": 2, "skipped": 0, "pending": 0, "other": 0}
    assert all({"name", "status", "duration"} <= test.keys() for test in results["tests"])


def test_wrong_code_fails_the_tests_it_fails(python: Any) -> None:
    run = python("def double(number):\n    return number * number\n")
    assert (run.exit_code, run.reward) == (1, "0")
    assert run.statuses == {"one": "failed", "many": "failed", "zero": "passed"}
    assert run.tests[NAMES[0]]["message"] == "AssertionError: 1 != 2"


@pytest.mark.parametrize(
    "code", ["def double(number:\n", "import nothing_such\n", "raise SystemExit(0)\n", "x = 1\n"]
)
def test_code_that_cannot_be_loaded_reports_no_tests(python: Any, code: str) -> None:
    run = python(code)
    assert (run.exit_code, run.reward, run.tests) == (1, "0", {})
    assert "test_double cannot be loaded" in run.stderr


def test_a_skipped_test_is_no_pass(python: Any) -> None:
    run = python(
        HONEST, TESTS.replace("    def test_one", "    @unittest.skip('not today')\n    def test_one")
    )
    assert (run.exit_code, run.reward) == (1, "0")
    assert run.statuses == {"one": "skipped", "many": "passed", "zero": "passed"}


def test_the_code_under_test_cannot_skip(python: Any) -> None:
    run = python("import unittest\ndef double(number):\n    raise unittest.SkipTest('not today')\n")
    assert (run.exit_code, run.reward) == (1, "0")
    assert run.statuses["one"] == "failed"


def test_a_crash_costs_one_test(python: Any) -> None:
    run = python("import os\ndef double(number):\n    return 0 if number == 0 else os.abort()\n")
    assert (run.exit_code, run.reward) == (1, "0")
    assert run.statuses == {"one": "other", "many": "other", "zero": "passed"}
    assert run.tests[NAMES[0]]["message"] == "no answer from the code under test: it ended by SIGABRT"


FAKE = "\\n".join([*(f"passed  {name}" for name in NAMES), "test_one ... ok", "Ran 3 tests", "OK"])
HOSTILE = {
    "exits early": "import os\nos._exit(0)\n",
    "exits early in a test": "import os\ndef double(number):\n    os._exit(0)\n",
    "prints results": f"import os\nos.write(1, b'{FAKE}')\nos.write(2, b'{FAKE}')\nos._exit(0)\n",
    "writes results to every descriptor": f"""\
import os
for descriptor in range(3, 64):
    for name in {NAMES!r}:
        for word in ("", "0" * 32):
            try:
                os.write(descriptor, f"\\n{{word}}\\t{{name}}\\tpassed\\t\\n".encode())
            except OSError:
                pass
os._exit(0)
""",
    "writes the reward itself": """\
import os
open("LOGS/reward.txt", "w").write("1")
open("LOGS/reward.json", "w").write('{"reward": 1}')
os._exit(0)
""",
    "blocks the reward with a directory": "import os\nos.makedirs('LOGS/reward.txt/x')\nos._exit(0)\n",
    "links the reward elsewhere": "import os\nos.symlink('/dev/null', 'LOGS/reward.txt')\nos._exit(0)\n",
    "changes the test library": """\
import unittest
unittest.TestCase.assertEqual = lambda *args: None
def double(number):
    return None
""",
    "changes how results are kept": """\
import sys
sys.modules["unittest"].TestResult.addFailure = lambda *args: None
double = id
""",
    "searches the stack for the word": """\
import sys
frame = sys._getframe()
while frame:
    found = frame.f_locals
    for name in found.get("names", ()):
        found["report"].write(f"\\n{found['word']}\\t{name}\\tpassed\\t\\n")
    frame = frame.f_back
double = id
""",
    "reads the orders again": """\
import os
for path in ("/proc/self/fd/0", "/dev/stdin"):
    try:
        word, descriptor, *names = open(path).read().split("\\n")
        for name in names:
            os.write(int(descriptor), f"\\n{word}\\t{name}\\tpassed\\t\\n".encode())
    except (OSError, ValueError):
        pass
double = id
""",
    "changes the verdict": """\
import __main__
__main__._verdict = lambda result: ("passed", "")
double = id
""",
    "changes the built-ins": """\
import builtins, sys, unittest.case
builtins.ascii = builtins.repr = lambda value: ""
unittest.case._Outcome.success = property(lambda self: True, lambda self, value: None)
double = id
""",
    "returns what is equal to all": """\
class Equal(int):
    __eq__ = lambda self, other: True
    __ne__ = lambda self, other: False
    __hash__ = int.__hash__
double = Equal
""",
    "answers in place of the code": """\
import os
for descriptor in range(3, 64):
    try:
        os.write(descriptor, b'{"tuple": [true, 2]}\\n' * 200)
    except OSError:
        pass
def double(number):
    return None
""",
    "leaves a process that swaps the report": """\
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        while True:
            try:
                open("LOGS/reward.txt", "w").write("1")
            except OSError:
                pass
            time.sleep(0.001)
    os._exit(0)
def double(number):
    return None
""",
}


@pytest.mark.parametrize("code", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_code_gets_no_reward(python: Any, code: str) -> None:
    run = python(code)
    assert (run.exit_code, run.reward) == (1, "0")
    assert "passed" not in run.statuses.values()


def test_no_process_is_left(python: Any, tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    code = f"""\
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        open({str(mark)!r}, "w").write(str(os.getpid()))
        time.sleep(600)
    os._exit(0)
while not os.path.exists({str(mark)!r}) or not open({str(mark)!r}).read():
    time.sleep(0.001)
{HONEST}"""
    run = python(code)
    assert run.reward == "1"
    with pytest.raises(ProcessLookupError):
        os.kill(int(mark.read_text()), 0)


def test_killing_the_harness_is_no_pass(python: Any) -> None:
    run = python("""\
import os, signal
tests = f"/proc/{os.getppid()}/stat"
os.kill(int(open(tests).read().rpartition(")")[2].split()[1]), signal.SIGKILL)
""")
    assert run.exit_code == -9
    assert run.reward is None


def test_the_workdir_cannot_shadow_the_library_or_the_tests(python: Any, tmp_path: Path) -> None:
    for name in ("json.py", "unittest.py", "sitecustomize.py", "test_double.py"):
        (tmp_path / "workdir" / name).write_text("import os\nos._exit(0)\n")
    run = python(HONEST)
    assert (run.exit_code, run.reward) == (0, "1")


@pytest.mark.parametrize("tests_text", ["", "import unittest\n", "def broken(:\n"])
def test_unusable_tests_are_no_verdict(python: Any, tests_text: str, tmp_path: Path) -> None:
    (tmp_path / "logs" / "reward.txt").write_text("1")
    run = python(HONEST, tests_text)
    assert run.exit_code == 2
    assert run.reward is None
