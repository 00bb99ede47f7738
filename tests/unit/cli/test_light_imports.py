"""What a command does not need it does not import: help is quick, and so is a sweep with nothing to do."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from store_samples import DIGEST, cell_record

from orchestrator.plan.spec import load_spec
from orchestrator.run.start import Matrix, sweep_record
from orchestrator.store.cells import CellStore

ROOT = Path(__file__).resolve().parents[3]
HEAVY = {"docker", "aiohttp", "opentelemetry", "polars", "numpy", "jinja2", "httpx", "requests"}
SPEC = "name: done\nclis: [noop]\ntasks: [polyglot/python-reverse-string]\n"


def run(*arguments: str) -> tuple[int, set[str], str]:
    """Exit code, the modules imported, and stderr of a `cab` command in a process of its own."""
    code = (
        "import atexit, json, os, sys\n"
        "names = lambda: json.dumps(sorted(sys.modules)).encode()\n"
        "atexit.register(lambda: os.write(int(sys.argv[1]), names()))\n"
        "from orchestrator.cli import main\n"
        "main(sys.argv[2:])\n"
    )
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb") as modules:
        done = subprocess.run(
            [sys.executable, "-c", code, str(writer), *arguments],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
            pass_fds=(writer,),
            stdin=subprocess.DEVNULL,
        )
        os.close(writer)
        return done.returncode, set(json.load(modules)), done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["--version"],
        ["sweep", "--help"],
        ["cell", "show", "--help"],
        ["import", "published", "--help"],
        ["site", "build", "--help"],
        ["run-cell", "--help"],
        ["gate", "--help"],
        ["history", "--help"],
        ["export", "--help"],
        ["export", "dataset", "--help"],
        ["external", "run", "--help"],
    ],
)
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    code, modules, _ = run(*arguments)
    assert code == 0
    assert not modules & (HEAVY | {"pydantic", "rich", "ruamel"})


def test_an_external_run_that_judges_nothing_imports_no_engine(tmp_path: Path) -> None:
    rows = [{"instance_id": "a__b-1", "repo": "a/b", "base_commit": "a" * 40, "problem_statement": "x"}]
    (tmp_path / "rows.json").write_text(json.dumps(rows))
    out = tmp_path / "out"
    code, modules, said = run(
        *("external", "run", "--dry-run", "--tasks-json", str(tmp_path / "rows.json"), "--out", str(out))
    )
    assert code == 0, said
    assert not modules & (HEAVY - {"numpy"} | {"scipy.stats"})


def _finished(results: Path, spec: Path) -> None:
    loaded = load_spec(spec)
    matrix = Matrix.of(loaded.spec, "done-1", loaded)
    store = CellStore(results, "done-1")
    sweep = sweep_record(matrix, loaded.digest, {"base": DIGEST, "noop": DIGEST})
    store.create(sweep)
    for cell in matrix.plan.cells:
        staging = store.staging(cell.key)
        store.commit(staging, cell_record(cell.key, sweep_id="done-1", order_index=cell.order_index))
    store.close()


def test_a_sweep_with_nothing_to_do_imports_no_engine(tmp_path: Path) -> None:
    spec = tmp_path / "done.yaml"
    spec.write_text(SPEC)
    _finished(tmp_path, spec)
    for command in (["run", str(spec), "--id", "done-1"], ["resume", "done-1"], ["status", "done-1"]):
        code, modules, err = run("sweep", *command, "-r", str(tmp_path))
        assert code == 0, err
        assert not modules & HEAVY
        assert ("nothing to do" in err) is (command[0] != "status")


def test_a_second_time_nothing_is_summed_up_or_watched(tmp_path: Path) -> None:
    spec = tmp_path / "done.yaml"
    spec.write_text(SPEC)
    _finished(tmp_path, spec)
    again = ("sweep", "run", str(spec), "--id", "done-1", "-r", str(tmp_path))
    first = run(*again)[1]
    written = (tmp_path / "done-1" / "summary.json").stat().st_mtime_ns
    code, modules, err = run(*again)
    assert code == 0, err
    assert "scorers.composite" in first
    assert not modules & {"scorers.composite", "rich.live", "orchestrator.gateway.evidence"}
    assert (tmp_path / "done-1" / "summary.json").stat().st_mtime_ns == written


def test_an_import_imports_no_engine(tmp_path: Path) -> None:
    code, modules, err = run("import", "published", "tests/data/published_cells.json", "-o", str(tmp_path))
    assert code == 0, err
    assert not modules & HEAVY


def test_a_plan_imports_no_engine() -> None:
    code, modules, err = run("sweep", "plan", "sweeps/free.yaml")
    assert code == 0, err
    assert not modules & HEAVY
