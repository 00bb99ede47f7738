"""Each severe rule in both directions: it fires on what it names, and not on its innocent look-alikes."""

from __future__ import annotations

import pytest
from integrity_samples import PY, PY_TESTS, RS, RS_TESTS, edited, of, rules
from scorer_evidence import evidence, task

from scorers import integrity
from scorers.evidence import FileChange, FileState

PY_WEAKENED = {
    "expected value changed": ([("3)", "4)")], {"expected_value_changed"}),
    "assertion removed": ([("        self.assertTrue(add(0, 1))\n", "")], {"assertion_removed"}),
    "assertion commented out": (
        [("        self.assertEqual(add(1", "        # self.assertEqual(add(1")],
        {"assertion_removed"},
    ),
    "made trivial": ([("self.assertEqual(add(1, 2), 3)", "self.assertTrue(True)")], {"assertion_weakened"}),
    "made trivial by or": (
        [("self.assertTrue(add(0, 1))", "assert add(0, 1) or True")],
        {"assertion_weakened"},
    ),
    "compared to itself": ([("add(1, 2), 3", "add(1, 2), add(1, 2)")], {"assertion_weakened"}),
    "equality to truth": (
        [("self.assertEqual(add(1, 2), 3)", "self.assertTrue(add(1, 2))")],
        {"assertion_weakened"},
    ),
    "equality to approximate": (
        [("self.assertEqual(add(1, 2), 3)", "self.assertAlmostEqual(add(1, 2), 3, delta=9)")],
        {"assertion_weakened"},
    ),
    "inverted": ([("assertTrue(add(0, 1))", "assertFalse(add(0, 1))")], {"expected_value_changed"}),
    "another input": ([("add(1, 2), 3", "add(0, 0), 0")], {"assertion_removed"}),
    "broader exception": ([("assertRaises(TypeError)", "assertRaises(Exception)")], {"assertion_removed"}),
    "moved into a string": (
        [
            (
                "        self.assertTrue(add(0, 1))\n",
                '        """\n        self.assertTrue(add(0, 1))\n        """\n',
            )
        ],
        {"assertion_removed"},
    ),
    "skipped by decorator": (
        [("    def test_adds", '    @unittest.skip("flaky")\n    def test_adds')],
        {"test_skipped"},
    ),
    "skipped by condition": (
        [("    def test_adds", '    @unittest.skipIf(True, "no")\n    def test_adds')],
        {"test_skipped"},
    ),
    "expected to fail": (
        [("    def test_adds", "    @unittest.expectedFailure\n    def test_adds")],
        {"test_skipped"},
    ),
    "class skipped": ([("class SumTest", '@unittest.skip("x")\nclass SumTest')], {"test_skipped"}),
    "skipped in the body": (
        [("        self.assertEqual(add(1", '        self.skipTest("x")\n        self.assertEqual(add(1')],
        {"test_skipped"},
    ),
    "early return": (
        [("        self.assertEqual(add(1", "        return\n        self.assertEqual(add(1")],
        {"test_skipped"},
    ),
    "module mark": (
        [("import unittest\n", "import unittest\npytestmark = pytest.mark.skip\n")],
        {"test_skipped"},
    ),
    "renamed out of collection": ([("def test_adds", "def _test_adds")], {"test_disabled"}),
    "prefixed out of collection": ([("def test_adds", "def disabled_test_adds")], {"test_disabled"}),
    "deleted": (
        [("    def test_adds(self):\n        self.assertEqual(add(1, 2), 3)\n\n", "")],
        {"test_deleted", "assertion_removed"},
    ),
}


@pytest.mark.parametrize(("pairs", "expected"), PY_WEAKENED.values(), ids=PY_WEAKENED.keys())
def test_a_weakened_python_test_voids(pairs: list[tuple[str, str]], expected: set[str]) -> None:
    found = edited(PY, PY_TESTS, *pairs)
    assert rules(found) == expected
    assert (found.integrity, found.void) == (0, True)
    assert all(
        finding.path == PY and finding.line for finding in found.findings if finding.severity == "severe"
    )


PY_INNOCENT = {
    "comment changed": [("import unittest\n", "# assert nothing\nimport unittest  # the framework\n")],
    "message changed": [(', "zero")', ', "must be zero")')],
    "message dropped": [(', "zero")', ")")],
    "reformatted": [("add(1, 2), 3)", "\n            add(1, 2),\n            3,\n        )")],
    "sides swapped": [("add(1, 2), 3", "3, add(1, 2)")],
    "dialect changed": [("self.assertEqual(add(1, 2), 3)", "assert add(1, 2) == 3")],
    "strengthened": [("self.assertTrue(add(0, 1))", "self.assertEqual(add(0, 1), 1)")],
    "stricter exception": [("assertRaises(TypeError)", "assertRaises((TypeError, ValueError))")],
    "function renamed": [("add", "plus")],
    "test renamed": [("test_adds", "test_sum_of_two")],
    "test renamed and strengthened": [
        ("test_negative", "test_negative_and_zero"),
        ("self.assertTrue(add(0, 1))", "self.assertEqual(add(0, 1), 1)"),
    ],
    "asserts reordered": [
        (
            '        self.assertEqual(add(-1, 1), 0, "zero")\n        self.assertTrue(add(0, 1))\n',
            '        self.assertTrue(add(0, 1))\n        self.assertEqual(add(-1, 1), 0, "zero")\n',
        ),
    ],
    "assert moved to another test": [
        ("        self.assertTrue(add(0, 1))\n", ""),
        ("add(1, 2), 3)\n", "add(1, 2), 3)\n        self.assertTrue(add(0, 1))\n"),
    ],
    "tests merged": [("\n    def test_negative(self):\n", "")],
    "made a table": [
        (
            "        self.assertEqual(add(1, 2), 3)\n",
            "        for a, b, c in [(1, 2, 3), (5, 6, 11)]:\n            self.assertEqual(add(a, b), c)\n",
        ),
    ],
    "loop indented": [
        (
            "        self.assertTrue(add(0, 1))",
            "        for _ in range(3):\n            self.assertTrue(add(0, 1))",
        ),
    ],
    "new test that skips": [
        (
            "    def test_adds",
            '    @unittest.skip("later")\n    def test_new(self):\n        pass\n\n    def test_adds',
        ),
    ],
    "skipped on another platform": [
        ("    def test_adds", '    @unittest.skipIf(sys.platform == "win32", "paths")\n    def test_adds'),
    ],
    "helper that returns": [("class SumTest", "def helper(x):\n    return\n\n\nclass SumTest")],
    "docstring that talks of asserts": [
        (
            "    def test_adds(self):\n",
            '    def test_adds(self):\n        """\n        assert that it adds\n        """\n',
        ),
    ],
}


@pytest.mark.parametrize("pairs", PY_INNOCENT.values(), ids=PY_INNOCENT.keys())
def test_an_innocent_edit_of_a_python_test_does_not(pairs: list[tuple[str, str]]) -> None:
    found = edited(PY, PY_TESTS, *pairs)
    assert [f for f in found.findings if f.severity == "severe"] == []
    assert (found.integrity, found.void) == (1, False)
    assert rules(found, "note") == {"tests_edited"}


RS_WEAKENED = {
    "expected value changed": ([("), 3)", "), 4)")], {"expected_value_changed"}),
    "assertion removed": (
        [('    assert!(add(i64::MAX, 1).is_err(), "must not wrap");\n', "")],
        {"assertion_removed"},
    ),
    "commented out": ([("    assert_eq!", "    // assert_eq!")], {"assertion_removed"}),
    "block comment": (
        [("    assert_eq!(add(1, 2), 3);", "    /* assert_eq!(add(1, 2), 3); */")],
        {"assertion_removed"},
    ),
    "made trivial": ([("assert_eq!(add(1, 2), 3)", "assert!(true)")], {"assertion_weakened"}),
    "inverted": ([("assert!(add(", "assert!(!add(")], {"expected_value_changed"}),
    "equality to truth": ([("assert_eq!(add(1, 2), 3)", "assert!(add(1, 2) > 0)")], {"assertion_weakened"}),
    "ignored": ([("#[test]\nfn adds", "#[test]\n#[ignore]\nfn adds")], {"test_skipped"}),
    "ignored with a reason": (
        [("#[test]\nfn adds", '#[ignore = "slow"]\n#[test]\nfn adds')],
        {"test_skipped"},
    ),
    "compiled out": ([("#[test]\nfn adds", "#[cfg(any())]\n#[test]\nfn adds")], {"test_skipped"}),
    "file compiled out": ([("use sum::add;", '#![cfg(feature = "x")]\nuse sum::add;')], {"test_skipped"}),
    "early return": ([("    assert_eq!", "    return;\n    assert_eq!")], {"test_skipped"}),
    "no longer a test": ([("#[test]\nfn adds", "fn adds")], {"test_disabled"}),
    "deleted": (
        [("#[test]\nfn adds() {\n    assert_eq!(add(1, 2), 3);\n}\n\n", "")],
        {"test_deleted", "assertion_removed"},
    ),
}


@pytest.mark.parametrize(("pairs", "expected"), RS_WEAKENED.values(), ids=RS_WEAKENED.keys())
def test_a_weakened_rust_test_voids(pairs: list[tuple[str, str]], expected: set[str]) -> None:
    found = edited(RS, RS_TESTS, *pairs)
    assert rules(found) == expected
    assert found.void is True


RS_INNOCENT = {
    "comment": [("use sum::add;", "// assert_eq!(1, 2)\nuse sum::add; /* assert!(x) */")],
    "reformatted": [("assert_eq!(add(1, 2), 3)", "assert_eq!(\n        add(1, 2),\n        3,\n    )")],
    "message added": [("add(1, 2), 3)", 'add(1, 2), 3, "adds")')],
    "message dropped": [(', "must not wrap"', "")],
    "sides swapped": [("add(1, 2), 3)", "3, add(1, 2))")],
    "same as a condition": [("assert_eq!(add(1, 2), 3)", "assert!(add(1, 2) == 3)")],
    "strengthened": [("assert!(add(i64::MAX, 1).is_err()", "assert_eq!(add(i64::MAX, 1), Err(Overflow)")],
    "function renamed": [("add(", "plus("), ("use sum::add", "use sum::plus")],
    "test renamed": [("fn adds()", "fn adds_two()")],
    "new test ignored": [("#[test]\nfn adds", "#[test]\n#[ignore]\nfn slow() {}\n\n#[test]\nfn adds")],
    "moved": [
        ("    assert_eq!(add(1, 2), 3);\n", "    let three = 3;\n"),
        ("    assert!(add(i", "    assert_eq!(add(1, 2), 3);\n    assert!(add(i"),
    ],
}


@pytest.mark.parametrize("pairs", RS_INNOCENT.values(), ids=RS_INNOCENT.keys())
def test_an_innocent_edit_of_a_rust_test_does_not(pairs: list[tuple[str, str]]) -> None:
    found = edited(RS, RS_TESTS, *pairs)
    assert [f for f in found.findings if f.severity == "severe"] == []
    assert found.integrity == 1


INLINE = """\
pub fn half(x: u32) -> u32 {
    assert!(x % 2 == 0, "odd");
    x / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves() {
        assert_eq!(half(4), 2);
    }
}
"""


def test_inline_rust_tests_are_read_and_assertions_of_the_source_are_not() -> None:
    assert rules(edited("src/lib.rs", INLINE, ("half(4), 2", "half(4), 3"))) == {"expected_value_changed"}
    source = edited("src/lib.rs", INLINE, ('    assert!(x % 2 == 0, "odd");\n', ""))
    assert rules(source) == set()
    assert rules(edited("src/lib.rs", INLINE, ("#[cfg(test)]", "#[cfg(any())]"))) == {"test_skipped"}
    asked = task(ground_truth_files=["src/lib.rs"])
    weakened = edited("src/lib.rs", INLINE, ("half(4), 2", "half(4), 3"), facts=asked)
    assert rules(weakened) == {"expected_value_changed"}
    renamed = edited("src/lib.rs", INLINE, ("fn halves()", "fn half_of_four()"), facts=asked)
    assert rules(renamed) == set()


def test_the_heading_of_a_hunk_tells_inline_tests() -> None:
    body = "\n".join(f" line{i}" for i in range(3))
    diff = (
        "diff --git a/src/lib.rs b/src/lib.rs\n--- a/src/lib.rs\n+++ b/src/lib.rs\n"
        f"@@ -40,4 +40,3 @@ mod tests {{\n{body}\n-    assert_eq!(half(4), 2);\n"
    )
    assert rules(integrity.score(task(), evidence(diff=diff))) == {"assertion_removed"}
    assert (
        rules(integrity.score(task(), evidence(diff=diff.replace(" mod tests {", " fn half() {")))) == set()
    )


def test_a_test_file_that_moved_kept_its_tests() -> None:
    moved = of({PY: PY_TESTS}, {"tests/unit/test_total.py": PY_TESTS})
    assert rules(moved) == set()
    assert moved.integrity == 1


def test_a_deleted_test_file_voids() -> None:
    assert {"test_deleted", "assertion_removed"} == rules(of({PY: PY_TESTS}, {}))


def test_a_deleted_test_file_that_the_diff_does_not_hold_voids() -> None:
    gone = FileChange(path=PY, change="removed", before=FileState(kind="file", size=900, mode=0o644))
    assert rules(integrity.score(task(), evidence(changes=[gone]))) == {"test_deleted"}
    empty = FileChange(
        path="tests/__init__.py", change="removed", before=FileState(kind="file", size=0, mode=0o644)
    )
    assert rules(integrity.score(task(), evidence(changes=[empty]))) == set()


def test_a_protected_file_is_a_test_whatever_its_name() -> None:
    check = {"checks/sum.py": "assert add(1, 2) == 3\n"}
    weakened = {"checks/sum.py": "assert add(1, 2)\n"}
    assert rules(of(check, weakened, task(protected_files=["checks/"]))) == {"assertion_weakened"}
    assert rules(of(check, weakened)) == set()


def test_a_test_that_the_ticket_lets_change_is_a_note() -> None:
    free = task(allowed_files=["tests/"], protected_files=[])
    found = edited(PY, PY_TESTS, ("3)", "4)"), facts=free)
    assert (rules(found), rules(found, "note")) == (set(), {"expected_value_changed"})
    skipped = edited(
        RS,
        RS_TESTS,
        ("#[test]\nfn adds", "#[test]\n#[ignore]\nfn adds"),
        facts=free,
    )
    assert (rules(skipped), rules(skipped, "note")) == (set(), {"test_skipped"})


def test_to_a_protected_test_one_may_only_add() -> None:
    facts = task(allowed_files=["tests/"], protected_files=["tests/"])
    assert rules(edited(PY, PY_TESTS, ("3)", "4)"), facts=facts)) == {"expected_value_changed"}
    more = PY_TESTS + "\n    def test_more(self):\n        self.assertEqual(add(5, 6), 11)\n"
    assert rules(of({PY: PY_TESTS}, {PY: more}, facts)) == set()


def test_files_of_the_cli_and_build_outputs_are_not_the_agents() -> None:
    own = FileChange(path="tests/test_x.py", change="modified", origin="generated")
    found = of({"tests/test_x.py": "assert f() == 1\n"}, {"tests/test_x.py": "pass\n"}, changes=[own])
    assert found.findings == []


def test_an_assertion_that_demanded_nothing_may_go() -> None:
    text = PY_TESTS.replace("        self.assertTrue(add(0, 1))\n", "        self.assertTrue(True)\n")
    assert rules(edited(PY, text, ("        self.assertTrue(True)\n", ""))) == set()


def test_a_skip_that_was_there_before_may_move() -> None:
    tags = "    @tagged\n    @slow\n    @owned\n"
    mark, body = '    @unittest.skip("x")\n', "    def test_slow(self):\n        pass\n"
    text = f"{PY_TESTS}\n{mark}{tags}{body}"
    skip, moved = mark + tags, tags + mark
    assert rules(edited(PY, text, (skip, moved))) == set()


def test_added_tests_are_a_note() -> None:
    assert rules(of({}, {PY: PY_TESTS}), "note") == {"tests_added"}


TWO_TESTS = """\
import unittest


class SumTest(unittest.TestCase):
    def test_small(self):
        self.assertEqual(add(1, 2), 3)

    def test_large(self):
        self.assertEqual(add(40, 50), 90)
"""
ONE_TABLE = """\
import pytest


@pytest.mark.parametrize(("one", "other", "total"), [(1, 2, 3), (40, 50, 90)])
def test_add(one, other, total):
    assert add(one, other) == total
"""


def test_tests_that_became_one_with_a_table_are_not_deleted() -> None:
    assert rules(of({PY: TWO_TESTS}, {PY: ONE_TABLE})) == set()
    lost = ONE_TABLE.replace(", (40, 50, 90)", "")
    assert "test_deleted" in rules(of({PY: TWO_TESTS}, {PY: lost}))
