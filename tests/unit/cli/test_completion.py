"""Shell completion, asked as a shell asks it: in a process of its own, by the environment."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.cli.completion_cmd import SHELLS, VARIABLE

ROOT = Path(__file__).resolve().parents[3]


def offered(*words: str, cwd: Path = ROOT) -> list[str]:
    """What bash would be offered for the last of `words`; the first is `cab`."""
    env = os.environ | {
        VARIABLE: "bash_complete",
        "COMP_WORDS": " ".join(words),
        "COMP_CWORD": str(len(words) - 1),
        "PYTHONPATH": str(ROOT),
    }
    code = "from orchestrator.cli import main; main([])"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=cwd, env=env, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    return [line.partition(",")[2] for line in done.stdout.splitlines() if line]


def test_commands_and_names_of_what_is_there() -> None:
    assert offered("cab", "expl") == ["explain"]
    assert "polyglot/*" in offered("cab", "task", "validate", "polyglot/")
    assert offered("cab", "images", "build", "gemini") == ["gemini-cli"]
    assert offered("cab", "check", "--tui", "claude") == ["claude-code"]


def test_ids_of_sweeps_and_cells(tmp_path: Path) -> None:
    sweep = tmp_path / "results" / "free-20261127"
    sweep.mkdir(parents=True)
    (sweep / "sweep.json").write_text("{}")
    cell_id = "free-20261127/opencode/embedded/reference/polyglot/x#run1"
    (sweep / "index.jsonl").write_text(json.dumps({"cell_id": cell_id}) + "\n")
    assert offered("cab", "sweep", "resume", "f", cwd=tmp_path) == ["free-20261127"]
    assert offered("cab", "cell", "show", "free-20261127/", cwd=tmp_path) == [cell_id]
    assert offered("cab", "cell", "show", "-r", "results", "free", cwd=tmp_path) == [cell_id]
    assert offered("cab", "cell", "show", "-r", "elsewhere", "free", cwd=tmp_path) == []


def test_what_cannot_be_read_is_not_offered_and_no_error(tmp_path: Path) -> None:
    index = tmp_path / "results" / "x" / "index.jsonl"
    index.parent.mkdir(parents=True)
    index.write_text('{"cell_id": "x/a"}\n{"torn\n[]\n')
    assert offered("cab", "cell", "show", "x", cwd=tmp_path) == ["x/a"]


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_of_a_shell_is_one_that_it_reads(shell: str, tmp_path: Path) -> None:
    code = f"from orchestrator.cli import main; main(['completion', '{shell}'])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert VARIABLE in done.stdout
    script = tmp_path / "script"
    script.write_text(done.stdout)
    if program := shutil.which(shell):
        subprocess.run([program, "-n", str(script)], check=True, capture_output=True)
