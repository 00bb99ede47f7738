"""An interrupted session of one's own as a task file."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from orchestrator.cli.external_cmd import external
from orchestrator.context.importers import import_log
from orchestrator.errors import EnvironmentFault, InputError
from orchestrator.external.checkout import base_tree
from orchestrator.external.session_task import session_task
from orchestrator.external.tasks import load_tasks_json

LOGS = Path(__file__).resolve().parents[2] / "data" / "session_logs"
LOG = LOGS / "claude-code.jsonl"
WHO = ("-c", "user.name=a", "-c", "user.email=a@example.invalid")


def git(repo: Path, *args: str) -> str:
    done = subprocess.run(["git", *WHO, *args], cwd=repo, check=True, capture_output=True, text=True)
    return done.stdout


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository as the recorded session left it: a file changed, one new, one ignored."""
    made = tmp_path / "my labels"
    (made / "src").mkdir(parents=True)
    (made / "src" / "reverse.py").write_text("def reverse_string(text):\n    return text[-1:0:-1]\n")
    (made / ".gitignore").write_text("*.log\n")
    git(made, "init", "-q", "-b", "main")
    git(made, "add", "-A")
    git(made, "commit", "-q", "-m", "base")
    (made / "src" / "reverse.py").write_text("def reverse_string(text):\n    return text[::-1]\n")
    (made / "notes.txt").write_text("new\n")
    (made / "run.log").write_text("ignored\n")
    return made


def make(repo: Path, base: str | None = None, cli: str = "claude-code") -> tuple[dict[str, object], str]:
    log = LOGS / f"{cli}.jsonl"
    made = session_task(cli, log, import_log(cli, log), repo, base)
    return dict(made.row), "\n".join(made.notes)


def test_the_file_loads_and_lays_out_what_the_session_left(repo: Path, tmp_path: Path) -> None:
    output = tmp_path / "task.json"
    asked = ["import", "claude-code", str(LOG), "--repo", str(repo / "src"), "-o", str(output)]
    done = CliRunner().invoke(external, asked)
    assert done.exit_code == 0, done.output
    [task] = load_tasks_json(output)
    assert task.repo == "local/my-labels"
    assert task.base_commit == git(repo, "rev-parse", "HEAD").strip()
    assert task.problem_statement.startswith("Reversed captions lose a letter.")
    assert task.history == import_log("claude-code", LOG).history
    assert task.patch is None
    assert "FAIL_TO_PASS is empty" in str(task.harness_problem("5"))
    clone = tmp_path / "repos" / "local__my-labels"
    clone.parent.mkdir()
    git(tmp_path, "clone", "-q", str(repo), str(clone))
    base_tree(task, tmp_path / "tree", repos=clone.parent)
    assert sorted(path.name for path in (tmp_path / "tree").rglob("*") if path.is_file()) == [
        ".gitignore",
        "notes.txt",
        "reverse.py",
    ]
    assert "[::-1]" in (tmp_path / "tree" / "src" / "reverse.py").read_text()


def test_nothing_of_the_repository_is_changed(repo: Path) -> None:
    def state() -> list[tuple[str, bytes]]:
        return [(str(path), path.read_bytes()) for path in sorted(repo.rglob("*")) if path.is_file()]

    before = state()
    make(repo)
    assert state() == before


def test_no_path_of_the_machine_is_in_the_row(repo: Path, tmp_path: Path) -> None:
    assert str(tmp_path) not in json.dumps(make(repo)[0])


def test_the_same_session_gives_the_same_row(repo: Path) -> None:
    assert make(repo) == make(repo)


def test_an_earlier_base_takes_in_what_was_committed_since(repo: Path) -> None:
    git(repo, "commit", "-q", "-a", "-m", "half")
    row, notes = make(repo)
    assert "[::-1]" not in str(row["prior_patch"])
    assert "base: HEAD" in notes
    row, notes = make(repo, "HEAD~1")
    assert "[::-1]" in str(row["prior_patch"])
    assert "base: HEAD~1, as given" in notes


def test_the_commit_of_the_log_is_the_base(repo: Path) -> None:
    with pytest.raises(InputError, match=r"my labels: has no commit e3b77725b3174dd8.*which the log names"):
        make(repo, cli="codex")
    assert make(repo, "HEAD", cli="codex")[0]["base_commit"] == git(repo, "rev-parse", "HEAD").strip()


@pytest.mark.parametrize("base", ["nowhere", "--output=x", "HEAD~7"])
def test_a_base_that_is_none_is_refused(repo: Path, base: str) -> None:
    with pytest.raises(InputError, match=f"has no commit {base}"):
        make(repo, base)


def test_a_directory_without_a_repository_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is in no git repository"):
        make(tmp_path)


def test_a_key_that_the_work_left_is_told(repo: Path) -> None:
    (repo / "config.py").write_text('API_KEY = "sk-proj-A1b2C3d4E5f6G7h8I9j0"\n')
    assert "holds what looks like a key" in make(repo)[1]


def test_what_the_users_configuration_says_of_differences_changes_nothing(repo: Path) -> None:
    plain = make(repo)
    git(repo, "config", "diff.noprefix", "true")
    git(repo, "config", "color.ui", "always")
    assert make(repo) == plain


def test_lines_that_are_not_known_are_told(repo: Path, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text(LOG.read_text() + '{"type": "new-thing"}\nbroken\n')
    notes = "\n".join(session_task("claude-code", log, import_log("claude-code", log), repo).notes)
    assert "1 lines of a type that is not known were left out: new-thing (1)" in notes
    assert "1 lines are no JSON object" in notes


def test_a_file_in_another_encoding_is_refused(repo: Path) -> None:
    (repo / "latin.txt").write_bytes("größe\n".encode("latin-1"))
    with pytest.raises(InputError, match="what differs is not all UTF-8"):
        make(repo)


def test_a_directory_that_is_gone_is_told(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFault, match="git cannot run there: No such file"):
        make(tmp_path / "gone")
