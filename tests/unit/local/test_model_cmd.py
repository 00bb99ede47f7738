"""`cab model`: what it prints, and its errors in one line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from gguf_files import gguf

from orchestrator import cli
from orchestrator.errors import InputError, PinMismatch
from orchestrator.gateway.local import registry, server
from orchestrator.plan.spec import load_spec
from orchestrator.run import start

Said = tuple[int, str, str]


@pytest.fixture
def cab(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Said]:
    monkeypatch.setattr(cli.signal, "signal", lambda *_: None)
    monkeypatch.setenv("CAB_MODELS", str(tmp_path / "models"))
    monkeypatch.chdir(tmp_path)

    def run(*args: str) -> Said:
        with pytest.raises(SystemExit) as ended:
            cli.main(["model", *args])
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err

    return run


def installed(monkeypatch: pytest.MonkeyPatch, there: bool) -> None:
    monkeypatch.setattr(registry, "installed", lambda: there)
    monkeypatch.setattr(server, "installed", lambda: there)


def test_a_model_is_added_listed_and_forgotten(
    cab: Callable[..., Said], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(monkeypatch, True)
    file = gguf(tmp_path / "m.gguf", general__name="Tiny \x1b[31mCoder")
    assert "no local model has been added" in cab("list")[1]
    code, out, _ = cab("add", "m.gguf", "--name", "tiny")
    assert (code, out.startswith("local/tiny  sha256 ")) == (0, True)
    listed = cab("list")[1]
    assert listed.startswith("local/tiny ")
    assert "\x1b" not in listed
    [stored] = json.loads(cab("list", "--json")[1])
    assert (stored["name"], stored["path"]) == ("tiny", str(file))
    assert cab("rm", "local/tiny")[0] == 0
    assert cab("list", "--json")[1] == "[]\n"
    assert file.is_file()


def test_a_listed_model_says_what_keeps_it_from_running(
    cab: Callable[..., Said], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(monkeypatch, False)
    gguf(tmp_path / "m.gguf")
    cab("add", "m.gguf", "--name", "tiny")
    assert "cannot run: llama.cpp is not installed: pip install 'cab[local]'" in cab("list")[1]
    code, out, err = cab("serve", "tiny")
    assert (code, out) == (2, "")
    assert err == "cab: local/tiny: llama.cpp is not installed (pip install 'cab[local]')\n"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("add", "gone.gguf"), "gone.gguf: No such file or directory"),
        (("add", "."), "Is a directory"),
        (("add", "text.gguf"), "text.gguf: is not a GGUF file"),
        (("add", "m.gguf", "--sha256", "00"), "m.gguf: has sha256 "),
        (("rm", "gone"), "no local model is named 'gone' (add one: "),
        (("serve", "gone"), "no local model is named 'gone' (add one: "),
        (("serve", "../m"), "'../m' is no name of a local model"),
    ],
)
def test_bad_input_is_one_line(
    cab: Callable[..., Said], tmp_path: Path, args: tuple[str, ...], said: str
) -> None:
    gguf(tmp_path / "m.gguf")
    (tmp_path / "text.gguf").write_text("weights")
    code, out, err = cab(*args)
    assert (code, out) == (2, "")
    assert err.startswith("cab: ")
    assert err.count("\n") == 1
    assert said in err


SPEC = "name: mine\nclis: [aider]\nmodels: [local/tiny]\ntasks: [polyglot/python-reverse-string]\n"


def test_a_sweep_plans_a_local_model_only_where_it_was_added(
    cab: Callable[..., Said], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(monkeypatch, True)
    (tmp_path / "s.yaml").write_text(SPEC)
    loaded = load_spec(tmp_path / "s.yaml")
    before = start.plan_of(loaded, "mine-1")
    assert before.plan.cells == ()
    [(_, reason)] = before.plan.skipped
    assert reason == "the model has not been added: cab model add FILE --name tiny"
    with pytest.raises(InputError, match="every cell is skipped: the model has not been added"):
        start.of_file(tmp_path / "s.yaml", tmp_path / "results", "mine-1")
    gguf(tmp_path / "m.gguf")
    cab("add", "m.gguf", "--name", "tiny")
    after = start.plan_of(loaded, "mine-1")
    assert [cell.endpoint for cell in after.plan.cells] == ["local/tiny"]
    assert list(after.local) == ["local/tiny"]


def test_a_resume_with_other_weights_under_the_name_is_refused(
    cab: Callable[..., Said], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(monkeypatch, True)
    (tmp_path / "s.yaml").write_text(SPEC)
    cab("add", str(gguf(tmp_path / "m.gguf")), "--name", "tiny")
    loaded = load_spec(tmp_path / "s.yaml")
    matrix = start.plan_of(loaded, "mine-1")
    with start.CellStore(tmp_path / "results", "mine-1") as store:
        store.create(start.sweep_record(matrix, loaded.digest, {}))
    assert start.of_stored(tmp_path / "results", "mine-1").todo() != []
    cab("rm", "tiny")
    with pytest.raises(InputError, match="the model has not been added"):
        start.of_stored(tmp_path / "results", "mine-1").todo()
    cab("add", str(gguf(tmp_path / "other.gguf", weights=b"other")), "--name", "tiny")
    with pytest.raises(PinMismatch, match="local model local/tiny: the sweep was started with sha256:"):
        start.of_stored(tmp_path / "results", "mine-1")
