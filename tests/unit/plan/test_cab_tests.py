"""`cab-tests` gives reward 1 to code that passes its tests, and to nothing else that such code may do."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
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


@dataclass
class Run:
    exit_code: int
    reward: str | None
    tests: dict[str, dict[str, Any]]
    stderr: str

    @property
    def statuses(self) -> dict[str, str]:
        return {name.rpartition("_")[2]: test["status"] for name, test in self.tests.items()}


@pytest.fixture
def suite(root: Path, tmp_path: Path) -> Any:
    """Runs cab-tests over a workdir whose src/code.py holds the given text."""
    workdir, tests, logs = (tmp_path / name for name in ("workdir", "tests", "logs"))
    for directory in (workdir / "src", tests, logs):
        directory.mkdir(parents=True)
    (workdir / "src" / "__init__.py").touch()
    program = root / "images" / "base" / "cab-tests"

    def run(code: str, tests_text: str = TESTS) -> Run:
        (workdir / "src" / "code.py").write_text(code.replace("LOGS", str(logs)))
        (tests / "test_double.py").write_text(tests_text)
        done = subprocess.run(
            [
                sys.executable,
                program,
                "unittest",
                f"--tests={tests}",
                f"--workdir={workdir}",
                f"--logs={logs}",
            ],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        reward, report = logs / "reward.txt", logs / "ctrf.json"
        return Run(
            done.returncode,
            reward.read_text().strip() if reward.is_file() else None,
            {test["name"]: test for test in json.loads(report.read_text())["results"]["tests"]}
            if report.is_file()
            else {},
            done.stderr,
        )

    return run


def test_honest_code_passes(suite: Any) -> None:
    run = suite(HONEST)
    assert (run.exit_code, run.reward) == (0, "1")
    assert list(run.tests) == NAMES
    assert set(run.statuses.values()) == {"passed"}


def test_the_report_is_ctrf(suite: Any, tmp_path: Path) -> None:
    suite("def double(number):\n    return number\n")
    report = json.loads((tmp_path / "logs" / "ctrf.json").read_text())
    assert report["reportFormat"] == "CTRF"
    results = report["results"]
    assert results["tool"] == {"name": "cab-tests unittest"}
    summary = results["summary"]
    assert 0 < summary.pop("start") <= summary.pop("stop")
    assert summary == {"tests": 3, "passed": 1, "failed": 2, "skipped": 0, "pending": 0, "other": 0}
    assert all({"name", "status", "duration"} <= test.keys() for test in results["tests"])


def test_wrong_code_fails_the_tests_it_fails(suite: Any) -> None:
    run = suite("def double(number):\n    return number * number\n")
    assert (run.exit_code, run.reward) == (1, "0")
    assert run.statuses == {"one": "failed", "many": "failed", "zero": "passed"}
    assert run.tests[NAMES[0]]["message"] == "AssertionError: 1 != 2"


@pytest.mark.parametrize(
    "code", ["def double(number:\n", "import nothing_such\n", "raise SystemExit(0)\n", "x = 1\n"]
)
def test_code_that_cannot_be_loaded_reports_no_tests(suite: Any, code: str) -> None:
    run = suite(code)
    assert (run.exit_code, run.reward, run.tests) == (1, "0", {})
    assert "test_double cannot be loaded" in run.stderr


def test_a_skipped_test_is_no_pass(suite: Any) -> None:
    run = suite(
        HONEST, TESTS.replace("    def test_one", "    @unittest.skip('not today')\n    def test_one")
    )
    assert (run.exit_code, run.reward) == (1, "0")
    assert run.statuses == {"one": "skipped", "many": "passed", "zero": "passed"}


def test_the_code_under_test_cannot_skip(suite: Any) -> None:
    run = suite("import unittest\ndef double(number):\n    raise unittest.SkipTest('not today')\n")
    assert (run.exit_code, run.reward) == (1, "0")
    assert run.statuses["one"] == "failed"


def test_a_crash_costs_one_test(suite: Any) -> None:
    run = suite("import os\ndef double(number):\n    return 0 if number == 0 else os.abort()\n")
    assert (run.exit_code, run.reward) == (1, "0")
    assert run.statuses == {"one": "other", "many": "other", "zero": "passed"}
    assert run.tests[NAMES[0]]["message"] == "ended without reporting a result"


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
def test_hostile_code_gets_no_reward(suite: Any, code: str) -> None:
    run = suite(code)
    assert (run.exit_code, run.reward) == (1, "0")
    assert "passed" not in run.statuses.values()


def test_no_process_is_left(suite: Any, tmp_path: Path) -> None:
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
    run = suite(code)
    assert run.reward == "1"
    with pytest.raises(ProcessLookupError):
        os.kill(int(mark.read_text()), 0)


def test_killing_the_harness_is_no_pass(suite: Any) -> None:
    run = suite("""\
import os, signal
tests = f"/proc/{os.getppid()}/stat"
os.kill(int(open(tests).read().rpartition(")")[2].split()[1]), signal.SIGKILL)
""")
    assert run.exit_code == -9
    assert run.reward is None


def test_the_workdir_cannot_shadow_the_library_or_the_tests(suite: Any, tmp_path: Path) -> None:
    for name in ("json.py", "unittest.py", "sitecustomize.py", "test_double.py"):
        (tmp_path / "workdir" / name).write_text("import os\nos._exit(0)\n")
    run = suite(HONEST)
    assert (run.exit_code, run.reward) == (0, "1")


@pytest.mark.parametrize("tests_text", ["", "import unittest\n", "def broken(:\n"])
def test_unusable_tests_are_no_verdict(suite: Any, tests_text: str, tmp_path: Path) -> None:
    (tmp_path / "logs" / "reward.txt").write_text("1")
    run = suite(HONEST, tests_text)
    assert run.exit_code == 2
    assert run.reward is None
