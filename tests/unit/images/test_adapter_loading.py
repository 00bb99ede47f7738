"""An adapter that cannot be used is refused in one line, wherever it is asked for."""

import os
import re
import sys
from pathlib import Path

import pytest

from orchestrator.adapter import load_adapter
from orchestrator.errors import InputError
from orchestrator.sandbox.images.recipe import load_recipes

HEAD = """from orchestrator.adapter import Adapter, Launch


def launch(context):
    return Launch(argv=("hello",))


"""


def adapter(**fields: object) -> str:
    said = "".join(f", {name}={value!r}" for name, value in fields.items())
    return f'{HEAD}ADAPTER = Adapter(name="hello", version="1.0", launch=launch{said})\n'


def write(images: Path, text: str) -> Path:
    (images / "hello").mkdir()
    (images / "hello" / "Dockerfile").write_text("FROM scratch\n")
    path = images / "hello" / "adapter.py"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "line", "wanted"),
    [
        ("a = 1\ndef f(:\n", 2, "invalid syntax"),
        ("a = 1\n\nimport no_such_module\n", 3, "No module named 'no_such_module'"),
        ("def f():\n    raise KeyError\n\n\nf()\n", 2, "KeyError"),
        ("raise SystemExit(3)\n", 1, "3"),
        (adapter(wire="chta"), 8, "wire is 'chta'; known: None, chat, responses, messages, gemini"),
        (adapter(wire=None), 8, 'wire is None, so nothing is said on it: final_message must be "stdout"'),
        (adapter(final_message="stderr"), 8, "final_message is 'stderr'; known: wire, stdout"),
        (
            adapter().replace("launch=launch", "launch=launch, render=str"),
            8,
            "render is for events on a pipe: tty must be False",
        ),
    ],
)
def test_it_is_one_line_with_its_place(tmp_path: Path, text: str, line: int, wanted: str) -> None:
    path = write(tmp_path, text)
    said = rf"^{re.escape(f'{path}:{line}: {wanted}')} \(mend the adapter\)$"
    with pytest.raises(InputError, match=said):
        load_adapter(tmp_path, "hello")
    with pytest.raises(InputError, match=said):
        load_recipes(tmp_path)


def test_one_that_asks_no_model_is_fine_with_stdout(tmp_path: Path) -> None:
    write(tmp_path, adapter(wire=None, final_message="stdout"))
    assert not load_adapter(tmp_path, "hello").uses_model


def test_an_edit_counts_though_size_and_time_are_as_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    path = write(tmp_path, adapter())
    before = path.stat()
    assert load_adapter(tmp_path, "hello").version == "1.0"
    path.write_text(path.read_text().replace("1.0", "2.0"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert load_adapter(tmp_path, "hello").version == "2.0"
