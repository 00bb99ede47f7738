"""Which tests there are: read from their files, which no code under test has touched."""

from __future__ import annotations

import ast
from pathlib import Path

from cab_tests.errors import UnusableError


def listed(tests_dir: Path) -> list[str]:
    """`module.Class.method` of every test that the files define, in their order."""
    names = []
    for path in sorted(tests_dir.glob("test_*.py")):
        for node in ast.parse(path.read_bytes(), str(path)).body:
            if isinstance(node, ast.ClassDef) and any("TestCase" in ast.unparse(base) for base in node.bases):
                methods = [item.name for item in node.body if isinstance(item, ast.FunctionDef)]
                names += [f"{path.stem}.{node.name}.{name}" for name in methods if name.startswith("test")]
    return checked(names, tests_dir)


def checked(tests: list[str], tests_dir: Path) -> list[str]:
    """The same tests. Raises UnusableError where there are none, or two of one name."""
    if not tests or len(set(tests)) < len(tests):
        raise UnusableError(f"{tests_dir} defines no tests, or two of one name")
    return tests
