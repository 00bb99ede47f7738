"""The arrow of the architecture: scorers know nothing of what runs cells."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import scorers

ROOT = Path(scorers.__file__).parent
ALLOWED = sys.stdlib_module_names | {"pydantic", "pathspec", "scorers"}
IMPURE = {"os", "subprocess", "socket", "random", "time", "datetime", "io", "shutil", "tempfile"}


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            names.add((node.module or "").split(".")[0])
    return names


def test_scorers_import_only_the_standard_library_pydantic_pathspec_and_themselves() -> None:
    files = sorted(ROOT.rglob("*.py"))
    assert len(files) > 10
    strangers = {str(path.relative_to(ROOT)): imported(path) - ALLOWED for path in files}
    assert {path: names for path, names in strangers.items() if names} == {}


def test_scorers_cannot_read_a_clock_a_file_or_the_network() -> None:
    impure = {str(path.relative_to(ROOT)): imported(path) & IMPURE for path in ROOT.rglob("*.py")}
    assert {path: names for path, names in impure.items() if names} == {}
