"""What `cab check` refuses before it looks for a CLI: one line, in which a key is never repeated."""

import pytest

from orchestrator import cli
from orchestrator.cli import check_cmd

KEY = "sk-real-0123456789abcdefghijklmnop"
URL = "http://127.0.0.1:9"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--model", "m", "--endpoint", URL, "--key-env", KEY), "takes the name of a variable, not a key"),
        (("--model", "m", "--endpoint", URL, "--key-env", "UNSET"), "UNSET: no such variable is set"),
        (("--model", "m"), "give --endpoint URL and --key-env NAME"),
        (("--model", "m", "--endpoint", "models.example/v1"), "--endpoint: is no http:// or https:// URL"),
        (("--model", "m", "--endpoint", f"http://x/v1?key={KEY}"), "give the key by --key-env NAME"),
        (("--model", "m", "--endpoint", f"http://{KEY}@x/v1"), "give the key by --key-env NAME"),
        (("--model", "embedded/reference", "--endpoint", URL), "leave it out"),
        (("--model", "embedded/reference", "--key-env", "MY_KEY"), "leave it out"),
        ((), "--key-env: is nothing to none"),
    ],
)
def test_one_line_says_what_is_wrong(monkeypatch, capsys, arguments, said):
    monkeypatch.setattr(check_cmd.signal, "signal", lambda *_: None)
    monkeypatch.setenv("MY_KEY", KEY)
    if not arguments:
        arguments = ("--key-env", "MY_KEY")
    with pytest.raises(SystemExit) as end:
        cli.main(["check", "--tui", "opencode", "--task", "polyglot/python-reverse-string", *arguments])
    out, err = capsys.readouterr()
    assert (end.value.code, out, err.count("\n")) == (2, "", 1)
    assert said in err
    assert KEY not in err


def test_a_key_is_taken_out_of_the_environment(monkeypatch):
    monkeypatch.setenv("MY_KEY", KEY)
    assert check_cmd._key("MY_KEY") == KEY
    assert "MY_KEY" not in check_cmd.os.environ
