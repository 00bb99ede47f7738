"""What `cab run-cell` needs is in requirements-cell.lock, and nothing else: an image has no more."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PIN = re.compile(r"^([a-z0-9-]+)==(\S+)", re.MULTILINE)

_BARE = """
import importlib, importlib.abc, json, sys

class Bare(importlib.abc.MetaPathFinder):
    def __init__(self, absent):
        self.absent = frozenset(absent)
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.absent:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Bare(json.loads(sys.argv[1])))
exec(sys.argv[2])
"""

_ALL_OF_IT = """
from pathlib import Path
from tempfile import TemporaryDirectory
from orchestrator.cli.cell_options import asked_of
from orchestrator.cli.run_cell_cmd import run_cell
from orchestrator.gateway.contract import Endpoint
from orchestrator.report.cell import print_alone
from orchestrator.run.alone import machine_place, run_alone
from orchestrator.store.out import Out
task = "--task=polyglot/python-reverse-string"
asked = lambda *words: run_cell.make_context("run-cell", [*words, task]).params
values = asked("--tui=opencode", "--model=m", "--seed=1")
matrix = asked_of(values, Endpoint(name="endpoint", base_url="http://localhost/v1", key="")).matrix()
assert "image" in matrix.prices["m"], matrix.prices
noop = asked_of(asked("--tui=noop"), None)
with TemporaryDirectory() as evidence:
    run_alone(noop, machine_place("1", {"PATH": "/usr/bin:/bin"}), Path(evidence))
    print_alone(Path(evidence), None, as_json=False)
"""


def pinned(name: str) -> dict[str, str]:
    return dict(PIN.findall((ROOT / name).read_text("utf-8")))


def bare(code: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a process that has the standard library, cab and the lock's packages alone."""
    there = pinned("requirements-cell.lock")
    names = packages_distributions()
    absent = [
        module
        for module, owners in names.items()
        if module not in ("orchestrator", "scorers")
        and not {_plain(owner) for owner in owners} & there.keys()
    ]
    assert {"docker", "polars", "httpx", "ruamel", "genai_prices"} <= set(absent)
    return subprocess.run(
        [sys.executable, "-c", _BARE, json.dumps(absent), code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_a_cell_is_run_and_shown_with_what_the_lock_has() -> None:
    done = bare(_ALL_OF_IT)
    assert done.returncode == 0, done.stderr
    assert "noop/none/polyglot/python-reverse-string" in done.stdout


def test_its_help_is_shown_with_what_the_lock_has() -> None:
    done = bare('from orchestrator.cli import main; main(["run-cell", "--help"])')
    assert done.returncode == 0, done.stderr
    assert "--tui" in done.stdout


def test_the_test_would_see_what_is_missing() -> None:
    assert "No module named 'docker'" in bare("import orchestrator.sandbox.docker").stderr


def test_the_lock_is_of_the_extra_in_the_versions_that_all_is_tested_with() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extra = project["optional-dependencies"]["cell"]
    lock = pinned("requirements-cell.lock")
    assert {re.split(r"[<>=]", name)[0] for name in extra} <= lock.keys()
    assert set(extra) <= set(project["dependencies"]), "the same bounds as cab's own"
    assert lock.items() <= pinned("requirements.lock").items()
    assert "://" not in (ROOT / "requirements-cell.lock").read_text("utf-8")
