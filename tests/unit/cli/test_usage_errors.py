"""A mistyped command costs one line, and a bug is not dressed up as a mistake of the user's."""

import click
import pytest

from orchestrator import cli
from orchestrator.errors import StoreError


@pytest.fixture
def err(capsys, monkeypatch):
    monkeypatch.setattr(cli.signal, "signal", lambda *_: None)

    def run(*arguments):
        with pytest.raises(SystemExit) as end:
            cli.main(list(arguments))
        captured = capsys.readouterr()
        assert captured.out == ""
        return end.value.code, captured.err

    return run


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["swep"], "cab: no such command 'swep'; did you mean 'sweep'? (see cab --help)\n"),
        (
            ["sweep", "stats"],
            "cab sweep: no such command 'stats'; did you mean 'status'? (see cab sweep --help)\n",
        ),
        (
            ["cell", "sho", "x"],
            "cab cell: no such command 'sho'; did you mean 'show'? (see cab cell --help)\n",
        ),
        (["task", "lst"], "cab task: no such command 'lst'; did you mean 'list'? (see cab task --help)\n"),
        (
            ["images", "bild"],
            "cab images: no such command 'bild'; did you mean 'build'? (see cab images --help)\n",
        ),
        (
            ["zz"],
            f"cab: no such command 'zz'; known: {', '.join(cli.COMMANDS)} (see cab --help)\n",
        ),
    ],
)
def test_the_nearest_command_is_named(err, arguments, line):
    assert err(*arguments) == (2, line)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["sweep", "run"], "SPEC"),
        (["sweep", "run", "x.yaml", "y.yaml"], "y.yaml"),
        (["sweep", "status", "--jsn"], "--json"),
        (["--vrsion"], "--version"),
        (["sweep", "status", "-r", __file__], "results"),
    ],
)
def test_other_mistakes_are_one_line_too(err, arguments, word):
    code, text = err(*arguments)
    assert code == 2
    assert text.count("\n") == 1
    assert text.startswith("cab")
    assert word in text


@pytest.mark.parametrize("group", [[], ["sweep"], ["cell"]])
def test_no_command_at_all_shows_the_help(err, group):
    code, text = err(*group)
    assert code == 2
    assert "Commands:" in text


def test_a_missing_file_or_sweep_is_one_line(err, tmp_path):
    for arguments in (
        ["sweep", "run", str(tmp_path / "none.yaml")],
        ["sweep", "status", "-r", str(tmp_path)],
        ["sweep", "resume", "x", "-r", str(tmp_path)],
        ["cell", "show", "x/y/z", "-r", str(tmp_path)],
        ["cell", "score", "x/y/z", "-r", str(tmp_path)],
    ):
        code, text = err(*arguments)
        assert (code, text.count("\n")) == (2, 1)
        assert text.startswith("cab: ")


def _raising(monkeypatch, error):
    def fail():
        raise error

    monkeypatch.setattr(cli.cab, "get_command", lambda _, name: click.Command(name, callback=fail))


def test_a_bug_keeps_its_traceback(monkeypatch):
    monkeypatch.setattr(cli.signal, "signal", lambda *_: None)
    _raising(monkeypatch, ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        cli.main(["sweep"])


def test_a_cab_error_never_has_one(err, monkeypatch):
    _raising(monkeypatch, StoreError("is damaged\x1b[2J\nTraceback", place="a.json", mend="restore it"))
    code, text = err("sweep")
    assert code == 2
    assert text == "cab: a.json: is damaged\ufffd[2J Traceback (restore it)\n"
