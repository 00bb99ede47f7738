"""Commands to run next are printed so that they work where they are read."""

import sys
from pathlib import Path

import pytest

from orchestrator import cli
from orchestrator.errors import StoreError
from orchestrator.report.called import as_called, called, command


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A `cab` in a virtual environment of the current directory, called by its path."""
    made = tmp_path / ".venv" / "bin" / "cab"
    made.parent.mkdir(parents=True)
    made.touch(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(sys, "argv", [".venv/bin/cab"])
    return made


def test_by_its_path_below_the_current_directory(installed):
    assert called() == ".venv/bin/cab"
    sys.argv = [str(installed)]
    assert called() == ".venv/bin/cab"


def test_by_its_whole_path_from_elsewhere(installed, tmp_path, monkeypatch):
    (elsewhere := tmp_path / "else where").mkdir()
    sys.argv = [str(installed)]
    monkeypatch.chdir(elsewhere)
    assert called() == str(installed)
    monkeypatch.chdir(installed.parent)
    sys.argv = ["./cab"]
    assert called() == "./cab"


def test_by_its_name_only_where_path_leads_to_the_running_one(installed, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(installed.parent))
    assert called() == "cab"
    (other := tmp_path / "other").mkdir()
    (other / "cab").touch(0o755)
    monkeypatch.setenv("PATH", f"{other}:{installed.parent}")
    assert called() == ".venv/bin/cab"


def test_as_a_module(monkeypatch, tmp_path):
    main = Path(cli.__file__).parent / "__main__.py"
    monkeypatch.setattr(sys, "argv", [str(main)])
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin" / "python"))
    monkeypatch.chdir(tmp_path)
    assert called() == "bin/python -m orchestrator.cli"


def test_words_are_quoted_and_other_results_named(installed, tmp_path):
    assert command("cell", "show", "a/b#run1") == ".venv/bin/cab cell show 'a/b#run1'"
    assert command("sweep", "resume", "x", results=tmp_path / "results") == ".venv/bin/cab sweep resume x"
    assert command("sweep", "resume", "x", results=tmp_path / "r") == ".venv/bin/cab sweep resume x -r r"
    assert command("sweep", "resume", "x", results=Path("/r")) == ".venv/bin/cab sweep resume x -r /r"


def test_commands_within_texts(installed):
    assert as_called("run `cab images build`, or see cab doctor") == (
        "run `.venv/bin/cab images build`, or see .venv/bin/cab doctor"
    )
    for text in ("cab serves no GET", "/opt/cab sweep", "scab sweep", "cab imagesx"):
        assert as_called(text) == text


def test_errors_and_usage_say_it_as_it_was_called(installed, monkeypatch, capsys):
    monkeypatch.setattr(cli.signal, "signal", lambda *_: None)

    def fail(*_):
        raise StoreError("is `cab sweep`", mend="run `cab sweep resume`")

    for arguments, line in (
        (["swep"], "cab: no such command 'swep'; did you mean 'sweep'? (see .venv/bin/cab --help)\n"),
        (["sweep"], "cab: is `cab sweep` (run `.venv/bin/cab sweep resume`)\n"),
    ):
        with pytest.raises(SystemExit):
            cli.main(arguments)
        assert capsys.readouterr().err == line
        monkeypatch.setattr(cli.cab, "get_command", fail)
