"""Test files as they were, and integrity findings of edits to them."""

from __future__ import annotations

from typing import Any

from scorer_evidence import evidence, task

from scorers import integrity
from scorers.evidence import TaskFacts
from scorers.integrity import Integrity

PY = "tests/test_sum.py"
RS = "tests/sum.rs"
PY_TESTS = """\
import unittest

from src.sum import add, items


class SumTest(unittest.TestCase):
    def test_adds(self):
        self.assertEqual(add(1, 2), 3)

    def test_negative(self):
        self.assertEqual(add(-1, 1), 0, "zero")
        self.assertTrue(add(0, 1))

    def test_refuses_text(self):
        with self.assertRaises(TypeError):
            add("a", 1)
"""
RS_TESTS = """\
use sum::add;

#[test]
fn adds() {
    assert_eq!(add(1, 2), 3);
}

#[test]
fn refuses_overflow() {
    assert!(add(i64::MAX, 1).is_err(), "must not wrap");
}
"""


def of(
    before: dict[str, str], after: dict[str, str], facts: TaskFacts | None = None, **fields: Any
) -> Integrity:
    return integrity.score(facts or task(), evidence(before, after, **fields))


def edited(path: str, text: str, *pairs: tuple[str, str], **fields: Any) -> Integrity:
    new = text
    for old, put in pairs:
        assert old in new
        new = new.replace(old, put)
    return of({path: text}, {path: new}, **fields)


def rules(found: Integrity, severity: str = "severe") -> set[str]:
    return {finding.rule for finding in found.findings if finding.severity == severity}
