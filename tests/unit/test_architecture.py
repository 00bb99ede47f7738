"""docs/architecture.md holds: which package may import which, and where the files are that the docs name."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text("utf-8")


def layers() -> list[set[str]]:
    """The packages as the document's arrows have them, the topmost first."""
    arrows = re.search(r"Arrows run one way: (.*?)\. ", ARCHITECTURE, re.DOTALL)
    assert arrows is not None
    return [set(re.findall(r"\w+", layer)) for layer in arrows[1].split("→")]


def imported(path: Path) -> Iterator[str]:
    """Every module that a file imports, wherever in it, also for its types alone."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            names = [alias.name for alias in node.names] if node.module == "orchestrator" else [""]
            yield from (f"{node.module}.{name}".rstrip(".") for name in names)


def package_of(module: str) -> str | None:
    """The package of a module of cab's; the name of one that stands beside the packages."""
    top, *rest = module.split(".")
    return top if top == "scorers" else rest[0] if top == "orchestrator" and rest else None


def test_every_package_has_its_place() -> None:
    known = set().union(*layers())
    packages = {path.parent.name for path in ROOT.glob("orchestrator/*/__init__.py")}
    assert known == packages | {"scorers"}


@pytest.mark.parametrize("package", sorted(set().union(*layers()) - {"scorers"}))
def test_arrows_run_one_way(package: str) -> None:
    ranks = layers()
    [rank] = [number for number, layer in enumerate(ranks) if package in layer]
    ranked, below = set().union(*ranks), set().union(*ranks[rank + 1 :])
    files = sorted((ROOT / "orchestrator" / package).rglob("*.py"))
    assert files
    wrong = {
        f"{path.relative_to(ROOT)} imports {module}"
        for path in files
        for module in imported(path)
        if (of := package_of(module)) in ranked and of != package and of not in below
    }
    assert not wrong


def test_what_stands_beside_the_packages_imports_none_of_them() -> None:
    ranked = set().union(*layers())
    for path in (ROOT / "orchestrator").glob("*.py"):
        assert not {package_of(module) for module in imported(path)} & ranked, path.name


def test_what_runs_inside_images_imports_nothing_of_cab_but_the_contract_of_adapters() -> None:
    for path in (ROOT / "images").glob("*/adapter.py"):
        assert {module for module in imported(path) if package_of(module)} == {"orchestrator.adapter"}
    for path in (ROOT / "images" / "base" / "cab_tests").glob("*.py"):
        assert {module.split(".")[0] for module in imported(path)} <= sys.stdlib_module_names | {"cab_tests"}


def named_in_the_layout() -> Iterator[str]:
    """Each Python file that the tree of the document names, in the directories that it names it in."""
    tree = ARCHITECTURE.split("```")[1].partition("\nimages/")[0]
    above = below = ""
    for line in tree.splitlines():
        if head := re.match(r"(\w+)/ ", line):
            above, below = head[1], ""
        elif head := re.match(r"  (\w+)/ ", line):
            below = f"{head[1]}/"
        elif re.match(r"  \w+\.py", line):
            below = ""
        yield from (f"{above}/{below}{name}" for name in re.findall(r"\w+\.py", line))


def test_the_layout_names_files_that_are_there() -> None:
    named = list(named_in_the_layout())
    assert len(named) > 60
    assert [path for path in named if not (ROOT / path).is_file()] == []


@pytest.mark.parametrize("document", DOCS, ids=lambda path: path.name)
def test_documents_name_files_that_are_there(document: Path) -> None:
    text = document.read_text("utf-8")
    ours = r"orchestrator|scorers|images|scripts|tests/(?:unit|docker|data)|examples|sweeps|docs|tasks"
    named = set(re.findall(rf"`((?:{ours})/[\w./-]+)`", text))
    named |= {
        str((document.parent / link).resolve().relative_to(ROOT))
        for link in re.findall(r"\]\(([\w./-]+)(?:#[\w-]+)?\)", text)
    }
    assert sorted(path for path in named if not (ROOT / path).exists()) == []


def test_browser_tests_wait_for_what_a_page_shows() -> None:
    """Playwright's own wait for a function is by eval, which the pages forbid: it fails as soon as it has to
    ask twice, on a slow machine alone.
    """
    tests = sorted((ROOT / "tests" / "browser").glob("*.py"))
    assert tests
    assert [path.name for path in tests if "wait_for_function" in path.read_text("utf-8")] == []
