from __future__ import annotations

import pytest

from scorers.paths import is_test

TESTS = """\
sum_test.go testdata/golden.txt internal/x_test.go src/test/java/SumTest.java SumTests.java TestSum.java
SumIT.java SumTestCase.java sum.test.ts sum.spec.js sum.test.mjs
a/__tests__/sum.tsx test_sum.mjs __snapshots__/a.snap
tests/test_sum.c tests/main.c test_sum.c sum_test.cpp test_sum.h tests/sum.rs tests/test_sum.py
conftest.py test.js
"""
SOURCES = """\
sum.go testing.go src/main/java/Sum.java Testing.java Latest.java Contest.java EDIT.java latest.js attest.c
contest.py testimony.ts src/protest.go spec.md
"""


@pytest.mark.parametrize("path", TESTS.split())
def test_a_test_is_known_by_the_customs_of_its_language(path: str) -> None:
    assert is_test(path)


@pytest.mark.parametrize("path", SOURCES.split())
def test_a_source_is_none(path: str) -> None:
    assert not is_test(path)
