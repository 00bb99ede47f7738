"""Code in any language: its driver answers the tests, and nothing else that it does is a pass."""

import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

TESTS = """\
import unittest
from driver import Failed, ask

class DoubleTest(unittest.TestCase):
    def test_one(self):
        self.assertEqual(ask("double", 1), 2)

    def test_many(self):
        for number in range(50):
            self.assertEqual(ask("double", number), number + number)

    def test_zero(self):
        self.assertEqual(ask("double", 0), 0)
"""
DRIVER = """\
import json, os, sys, time

def answer(value):
    os.write(4, json.dumps(value).encode() + b"\\n")

for line in open(3, encoding="utf-8", closefd=False):
    operation, *args = json.loads(line)
    [number] = args
    DO
"""
HONEST = "answer({'ok': 2 * number})"


@pytest.fixture
def driven(suite: Any) -> Any:
    """Runs cab-tests over a driver in Python that does the given for each request."""

    def run(do: str, tests: str = TESTS, *options: str, build: str | None = None) -> Any:
        python = shlex.quote(sys.executable)
        built = [] if build is None else [f"--build={build}"]
        command = f'--driver=exec {python} "$TESTS"/driver.py'
        text = DRIVER.replace("DO", do.replace("\n", "\n    "))
        return suite(*built, command, *options, driver=text, test_double=tests)

    return run


def one_test(body: str) -> str:
    text = "import unittest, os\nfrom driver import Failed, ask\nclass OneTest(unittest.TestCase):\n"
    return f"{text}    def test_one(self):\n        " + body.replace("\n", "\n        ")


def test_good_answers_pass(driven: Any) -> None:
    run = driven(HONEST)
    assert (run.exit_code, run.reward) == (0, "1")
    assert list(run.tests) == [f"test_double.DoubleTest.test_{name}" for name in ("one", "many", "zero")]


def test_wrong_answers_fail(driven: Any) -> None:
    run = driven("answer({'ok': number * number})")
    assert (run.exit_code, run.reward) == (1, "0")
    assert run.statuses == {"one": "failed", "many": "failed", "zero": "passed"}
    assert run.tests["test_double.DoubleTest.test_one"]["message"] == "AssertionError: 1 != 2"


def test_every_value_of_json_arrives_as_it_is(driven: Any) -> None:
    texts = "'', 'ä \\U0001f44d\\u2028\\n\"\\\\'"
    values = f"for value in ({texts}, None, True, 1.5, -0.0, 2**70, [[], {{}}], {{'a': [1]}}):\n"
    run = driven(
        "answer({'ok': number})",
        one_test(f"{values}    self.assertEqual(repr(ask('same', value)), repr(value))"),
    )
    assert run.statuses == {"one": "passed"}, run.stderr


def test_what_is_no_json_is_an_error_of_the_test(driven: Any) -> None:
    checks = "for value in (float('nan'), {1, 2}, b'x', '\\ud800'):\n"
    checks += "    with self.assertRaises((TypeError, ValueError)):\n"
    run = driven(
        HONEST, one_test(f"{checks}        ask('double', value)\nself.assertEqual(ask('double', 2), 4)")
    )
    assert run.statuses == {"one": "passed"}, run.stderr


def test_an_error_answer_can_be_expected(driven: Any) -> None:
    expects = "with self.assertRaisesRegex(Failed, '^Empty: no 3$'):\n    ask('pop', 3)\nask('pop', 4)"
    run = driven("answer({'error': f'Empty: no {number}'})", one_test(expects))
    assert run.statuses == {"one": "failed"}
    assert run.tests["test_double.OneTest.test_one"]["message"] == "driver.Failed: Empty: no 4"


def test_what_the_code_prints_is_no_answer(driven: Any) -> None:
    run = driven(
        f"print('{{\"ok\": 7}}', flush=True); print('on stderr', file=sys.stderr, flush=True)\n{HONEST}"
    )
    assert run.reward == "1"
    assert '{"ok": 7}' in run.stderr
    assert '{"ok"' not in run.stdout
    assert "on stderr" in run.stderr


NO_ANSWER = {
    "crashes": ("os.abort()", "it ended by SIGABRT"),
    "exits": ("os._exit(0)", "it ended with exit code 0"),
    "closes the pipe": ("os.close(4); time.sleep(600)", "it closed its pipe"),
    "hangs": ("time.sleep(600)", "gave no result within 4 s"),
    "says what is no JSON": ("os.write(4, b'2\\xff\\n')", "is no answer (UnicodeDecodeError)"),
    "answers with something else": ("answer({'value': 2})", "is no answer"),
    "answers with a bare value": ("answer(2)", "is no answer (AttributeError)"),
    "answers twice at once": ("answer({'ok': 2, 'error': 'Kind: text'})", "is no answer (ValueError)"),
    "answers with no number": ("answer({'ok': float('nan')})", "is no answer (ValueError)"),
    "nests without end": ("os.write(4, b'[' * 100000 + b'\\n')", "is no answer (RecursionError)"),
    "reports an error that is no text": ("answer({'error': 7})", "is no answer"),
    "leaves a child that holds the pipe": (
        "os.fork() and os._exit(5)\ntime.sleep(600)",
        "it ended with exit code 5",
    ),
}


@pytest.mark.parametrize(("do", "reason"), NO_ANSWER.values(), ids=NO_ANSWER.keys())
def test_no_answer_costs_the_test_and_cannot_be_caught(driven: Any, do: str, reason: str) -> None:
    caught = "try:\n    ask('double', 1)\nexcept BaseException:\n    pass"
    run = driven(
        f"if number == 1:\n    {do}\n{HONEST}".replace("\ntime", "\n    time"),
        f"{one_test(caught)}\n    def test_two(self):\n        self.assertEqual(ask('double', 2), 4)\n",
        f"--test-limit={4 if reason.endswith('4 s') else 20}",
    )
    assert (run.exit_code, run.reward) == (1, "0")
    assert run.statuses == {"one": "other", "two": "passed"}, run.stderr
    assert run.tests["test_double.OneTest.test_one"]["message"].endswith(reason)


def test_each_test_has_a_driver_of_its_own(driven: Any, tmp_path: Path) -> None:
    mark = tmp_path / "pids"
    run = driven(f"open({str(mark)!r}, 'a').write(f'{{os.getpid()}}\\n')\n{HONEST}")
    assert run.reward == "1"
    assert len(set(mark.read_text().split())) == 3


def test_what_a_driver_leaves_is_gone_before_the_next_test(driven: Any, tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    leave = f"""\
if number == 1:
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            open({str(mark)!r}, "w").write(str(os.getpid()))
            time.sleep(600)
        os._exit(0)
    while not os.path.exists({str(mark)!r}) or not open({str(mark)!r}).read():
        time.sleep(0.001)
{HONEST}"""
    asks = one_test("self.assertEqual(ask('double', 1), 2)")
    gone = f"self.assertRaises(ProcessLookupError, os.kill, int(open({str(mark)!r}).read()), 0)"
    run = driven(
        leave,
        f"{asks}\n    def test_two(self):\n        {gone}\n",
    )
    assert run.statuses == {"one": "passed", "two": "passed"}, run.stderr


def test_a_driver_gets_its_pipes_and_no_other_descriptor(driven: Any) -> None:
    run = driven(
        "answer({'ok': [os.path.realpath(f'/proc/self/fd/{fd}').partition('[')[0] for fd in range(64)"
        " if os.path.exists(f'/proc/self/fd/{fd}') or os.path.islink(f'/proc/self/fd/{fd}')]})",
        one_test(
            "self.assertEqual([part.rpartition('/')[2] for part in ask('list', 0)][:1], ['null'])\n"
            "self.assertEqual(len(ask('list', 0)), 5)"
        ),
    )
    assert run.statuses == {"one": "passed"}, run.stderr


FORGED = """\
for descriptor in range(5, 64):
    for word in ("", "0" * 32):
        try:
            os.write(descriptor, f"\\n{word}\\ttest_double.DoubleTest.test_one\\tpassed\\t\\n".encode())
        except OSError:
            pass
os._exit(0)"""


def test_a_driver_cannot_report(driven: Any) -> None:
    run = driven(FORGED)
    assert (run.exit_code, run.reward) == (1, "0")
    assert set(run.statuses.values()) == {"other"}


ENVIRONMENT = """\
set -e
[ "$PWD" = "$(realpath .)" ] && [ -d src ]
[ "$HOME:$TMPDIR" = "$BUILD:$BUILD" ] && [ -z "$(ls -A "$BUILD")" ]
[ "$(env | grep -c -E '^(PATH|LANG|HOME|TMPDIR|BUILD|TESTS|PWD|OLDPWD|SHLVL|_)=')" = "$(env | wc -l)" ]
[ -f "$TESTS/driver.py" ] && echo built >"$BUILD/made" && echo noise
"""


def test_the_build_runs_once_with_a_directory_to_write_to(driven: Any) -> None:
    run = driven(
        "made = open(os.environ['BUILD'] + '/made').read()\n"
        "answer({'ok': [made, sorted(os.environ), os.path.isdir('src')]})",
        one_test(
            "made, names, there = ask('look', 0)\n"
            "self.assertEqual((made, there), ('built\\n', True))\n"
            "self.assertEqual(set(names) - {'PWD', 'OLDPWD', 'SHLVL', '_', 'LC_CTYPE'},"
            " {'PATH', 'LANG', 'HOME', 'TMPDIR', 'BUILD', 'TESTS'})"
        ),
        build=ENVIRONMENT,
    )
    assert run.statuses == {"one": "passed"}, run.stderr
    assert "noise" in run.stderr
    assert "noise" not in run.stdout


def test_code_that_does_not_compile_reports_no_tests(driven: Any) -> None:
    run = driven(HONEST, build="echo 'line 3: no such type' >&2; exit 3")
    assert (run.exit_code, run.reward, run.tests) == (1, "0", {})
    assert "line 3: no such type" in run.stderr
    assert "cannot be compiled: the build ended with 3" in run.stderr


def test_nothing_of_the_build_runs_beside_the_tests(driven: Any, tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    run = driven(
        HONEST,
        one_test(f"self.assertRaises(ProcessLookupError, os.kill, int(open({str(mark)!r}).read()), 0)"),
        build=f"sleep 600 & echo $! >{shlex.quote(str(mark))}",
    )
    assert run.statuses == {"one": "passed"}, run.stderr


def test_a_build_alone_is_refused(suite: Any) -> None:
    run = suite("--build=true", test_double=TESTS)
    assert (run.exit_code, run.reward) == (2, None)
    assert "--build compiles what --driver starts" in run.stderr


def test_tests_of_a_driver_see_no_stand_ins(driven: Any) -> None:
    run = driven(HONEST, TESTS.replace("import unittest", "import unittest, src.code"))
    assert (run.exit_code, run.reward, run.tests) == (1, "0", {})
    assert "test_double cannot be loaded: ModuleNotFoundError" in run.stderr
