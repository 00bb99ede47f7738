"""What the output of test runners says, as they print it."""

from __future__ import annotations

import pytest

from orchestrator.context.importers.commands import only_looks, written
from orchestrator.context.importers.runners import results_in

PYTEST_VERBOSE = """\
test_x.py::T::test_fine PASSED                                           [ 25%]
test_x.py::T::test_in FAILED                                             [ 50%]
test_x.py::test_ok[a b] PASSED                                           [100%]

=========================== short test summary info ============================
FAILED test_x.py::T::test_in - AssertionError: 1 != 2
========================= 1 failed, 2 passed in 1.36s ==========================
"""
PYTEST_ALL = """\
F..F                                                                     [100%]
=========================== short test summary info ============================
PASSED test_x.py::test_ok
FAILED test_x.py::test_bad - assert [1, 2] == [1, 3]
ERROR test_y.py - ImportError: no module
1 failed, 1 passed, 1 error in 1.34s
"""
PYTEST_UNNAMED = ".F.F                                       [100%]\n2 failed, 2 passed in 1.37s\n"
PYTEST_EARLY = """\
FAILED test_x.py::test_bad - assert [1, 2] == [1, 3]
!!!!!!!!!!!!!!!!!!!!!!!!!! stopping after 1 failures !!!!!!!!!!!!!!!!!!!!!!!!!!!
1 failed, 1 passed in 1.35s
"""
UNITTEST = """\
test_fine (test_x.T.test_fine) ... ok
test_in (test_x.T.test_in) ... FAIL

======================================================================
FAIL: test_in (test_x.T.test_in)
----------------------------------------------------------------------
Traceback (most recent call last):
  File "test_x.py", line 5, in test_in
    def test_in(self): self.assertEqual(1,2)
AssertionError: 1 != 2

----------------------------------------------------------------------
Ran 2 tests in 0.001s

FAILED (failures=1)
"""
UNITTEST_BEFORE_3_11 = UNITTEST.replace("test_x.T.test_in)", "test_x.T)").replace("T.test_fine)", "T)")
CARGO = """\
running 3 tests
test tests::bad ... FAILED
test tests::good ... ok
test tests::pan - should panic ... ok

failures:

---- tests::bad stdout ----

thread 'tests::bad' panicked at src/lib.rs:1:64:
assertion `left == right` failed: nope
  left: 1
 right: 2

test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
"""
GO = """\
--- FAIL: TestB (0.00s)
    x_test.go:4: got 3
    --- FAIL: TestB/sub (0.00s)
        x_test.go:4: no
FAIL
FAIL\tx\t0.006s
FAIL
"""
GO_VERBOSE = "=== RUN   TestA\n--- PASS: TestA (0.00s)\nPASS\nok  \tx\t0.003s\n"
GO_UNBUILT = "# x\n./x.go:3:1: syntax error\nFAIL\tx [build failed]\nFAIL\n"
JEST = """\
 FAIL  src/sum.test.js
  sum
    ✓ adds (2 ms)
    ✕ carries (3 ms)

  ● sum › carries

    expect(received).toBe(expected) // Object.is equality

Tests:       1 failed, 1 passed, 2 total
Time:        0.5 s
"""


@pytest.mark.parametrize(
    ("output", "failed", "passed", "ended"),
    [
        (
            PYTEST_VERBOSE,
            ["test_x.py::T::test_in"],
            ["test_x.py::T::test_fine", "test_x.py::test_ok[a b]"],
            True,
        ),
        (PYTEST_ALL, ["test_x.py::test_bad", "test_y.py"], ["test_x.py::test_ok"], True),
        (PYTEST_UNNAMED, [], [], False),
        (PYTEST_EARLY, ["test_x.py::test_bad"], [], False),
        ("...  [100%]\n3 passed in 0.1s\n", [], [], True),
        (UNITTEST, ["test_x.T.test_in"], ["test_x.T.test_fine"], True),
        (UNITTEST_BEFORE_3_11, ["test_x.T.test_in"], ["test_x.T.test_fine"], True),
        ("..\n" + "-" * 70 + "\nRan 2 tests in 0.1s\n\nOK\n", [], [], True),
        (CARGO, ["tests::bad"], ["tests::good", "tests::pan"], False),
        (GO, ["TestB", "TestB/sub"], [], True),
        (GO_VERBOSE, [], ["TestA"], True),
        (GO_UNBUILT, [], [], False),
        (JEST, ["sum › carries"], ["adds"], True),
        ("FAILED to open the file\nPASSED\n--- nothing\nok\n", [], [], False),
    ],
)
def test_what_each_runner_says(output: str, failed: list[str], passed: list[str], *, ended: bool) -> None:
    run = results_in(output)
    assert (sorted(run.failed), sorted(run.passed), run.ended) == (failed, passed, ended)


def test_why_a_test_failed() -> None:
    assert results_in(PYTEST_VERBOSE).failed == {"test_x.py::T::test_in": "AssertionError: 1 != 2"}
    assert results_in(UNITTEST).failed == {"test_x.T.test_in": "AssertionError: 1 != 2"}
    assert results_in(CARGO).failed == {"tests::bad": "assertion `left == right` failed: nope"}
    assert results_in(GO).failed == {"TestB": "x_test.go:4: got 3", "TestB/sub": "x_test.go:4: no"}
    assert results_in(JEST).failed == {
        "sum › carries": "expect(received).toBe(expected) // Object.is equality"
    }


@pytest.mark.parametrize(
    ("command", "files"),
    [
        ("echo x > a.txt && echo y >> b.txt 2>/dev/null", ["a.txt", "b.txt"]),
        ("cat > src/a.py <<'EOF'\nit's > not.txt\nEOF\necho done > c.txt", ["src/a.py", "c.txt"]),
        ("printf %s 'a\n> inside.txt\nb' > out.txt", ["out.txt"]),
        ("make 2>&1 | tee -a log.txt | tail", ["log.txt"]),
        ("sed -i 's/a/b/' src/a.py && make", ["src/a.py"]),
        ("sed -n 1,5p src/a.py", []),
        ("echo 'unfinished", []),
    ],
)
def test_files_that_a_command_plainly_writes(command: str, files: list[str]) -> None:
    assert written(command) == files


def test_commands_that_only_look() -> None:
    assert only_looks("( ( grep -rn x .\n); exit $? )")
    assert only_looks("cd src && LC_ALL=C rg x")
    assert not only_looks("make check")
