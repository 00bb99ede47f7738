"""How the command ends where no command of its own is reached, or it is interrupted."""

from __future__ import annotations

import contextlib
import os
import signal

import click
import pytest

from orchestrator import cli
from orchestrator.errors import CellFault, EnvironmentFault, InputError


@pytest.fixture(autouse=True)
def _handler():
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def ends_with(arguments):
    with pytest.raises(SystemExit) as end:
        cli.main(arguments)
    return end.value.code or 0


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--help"], 0),
        (["sweep", "--help"], 0),
        (["nonsense"], 2),
        (["sweep", "run"], 2),
        (["sweep", "run", "--x"], 2),
    ],
)
def test_usage(arguments, code, capsys):
    assert ends_with(arguments) == code
    out, err = capsys.readouterr()
    assert (out == "") is (code == 2)
    assert (err.count("\n") == 1 and err.startswith("cab")) is (code == 2)


@pytest.mark.parametrize(
    ("raised", "code", "line"),
    [
        (InputError("is wrong", place="a.yaml:3", mend="mend it"), 2, "cab: a.yaml:3: is wrong (mend it)\n"),
        (CellFault("gateway", "does not start"), 1, "cab: does not start\n"),
        (KeyboardInterrupt(), 130, "\n"),
    ],
)
def test_what_a_command_raises(raised, code, line, capsys, monkeypatch):
    def fail():
        raise raised

    monkeypatch.setattr(cli.cab, "get_command", lambda _, name: click.Command(name, callback=fail))
    assert ends_with(["sweep"]) == code
    assert capsys.readouterr().err == line


def test_sigterm_unwinds_like_ctrl_c(monkeypatch):
    unwound = []

    def wait():
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            unwound.append(True)

    monkeypatch.setattr(cli.cab, "get_command", lambda _, name: click.Command(name, callback=wait))
    assert ends_with(["sweep"]) == 130
    assert unwound


def test_an_interrupt_that_is_swallowed_still_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    """KeyboardInterrupt raised inside a finaliser goes no further: what fails afterwards is not reported."""

    def swallows(**_: object) -> None:
        with contextlib.suppress(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
        raise EnvironmentFault("no engine answers")

    monkeypatch.setattr(cli.cab, "main", swallows)
    assert ends_with([]) == cli.INTERRUPTED
