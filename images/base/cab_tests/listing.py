"""Which tests there are: read from their files, which no code under test has touched."""

from __future__ import annotations

import ast
from pathlib import Path

from cab_tests.errors import UnusableError


def listed(tests_dir: Path) -> list[str]:
    """`module.Class.method` of every test that the files define, in their order.

    Raises UnusableError where there are none, or two of one name.
    """
    names = []
    for path in sorted(tests_dir.glob("test_*.py")):
        for node in ast.parse(path.read_bytes(), str(path)).body:
            if isinstance(node, ast.ClassDef) and any("TestCase" in ast.unparse(base) for base in node.bases):
                methods = [item.name for item in node.body if isinstance(item, ast.FunctionDef)]
                names += [f"{path.stem}.{node.name}.{name}" for name in methods if name.startswith("test")]
    if not names or len(set(names)) < len(names):
        raise UnusableError(f"{tests_dir} defines no tests, or two of one name")
    return names
