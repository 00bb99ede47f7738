"""Plugins as directories: what is read, what is refused, and that a digest is of all of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.errors import InputError
from orchestrator.paths import PLUGINS
from orchestrator.plan.plugin import PLUGINS_DIR, list_plugins, load_plugin
from orchestrator.sandbox.config import RUN_DIR


def make(root: Path, manifest: str, **files: str) -> Path:
    directory = root / "mine"
    directory.mkdir()
    (directory / "plugin.toml").write_text(manifest)
    for name, text in files.items():
        (directory / name).write_text(text)
    return root


@pytest.mark.parametrize("name", list_plugins(PLUGINS))
def test_each_plugin_that_cab_has_is_one(name: str) -> None:
    assert load_plugin(PLUGINS, name).manifest.description


def test_plugins_lie_where_a_container_sees_them() -> None:
    assert PLUGINS_DIR.startswith(f"{RUN_DIR}/")


def test_a_command_finds_its_own_files(tmp_path: Path) -> None:
    make(tmp_path, 'kind = "mcp"\ncommand = ["python3", "{plugin}/server.py", "--data={plugin}/data"]\n')
    command = load_plugin(tmp_path, "mine").command
    assert command == ("python3", f"{PLUGINS_DIR}/mine/server.py", f"--data={PLUGINS_DIR}/mine/data")


def test_the_digest_is_of_names_contents_and_modes(tmp_path: Path) -> None:
    make(tmp_path, 'kind = "rules"\nrules = "a"\n', a="one", b="two")
    digests = [load_plugin(tmp_path, "mine").digest]
    for change in (
        lambda: (tmp_path / "mine" / "b").write_text("three"),
        lambda: (tmp_path / "mine" / "b").rename(tmp_path / "mine" / "c"),
        lambda: (tmp_path / "mine" / "c").chmod(0o755),
    ):
        change()
        digests.append(load_plugin(tmp_path, "mine").digest)
    assert len(set(digests)) == 4


def test_byte_code_is_no_part_of_a_plugin(tmp_path: Path) -> None:
    make(tmp_path, 'kind = "rules"\nrules = "a"\n', a="one")
    before = load_plugin(tmp_path, "mine").digest
    (tmp_path / "mine" / "__pycache__").mkdir()
    (tmp_path / "mine" / "__pycache__" / "x.pyc").write_bytes(b"x")
    assert load_plugin(tmp_path, "mine").digest == before


@pytest.mark.parametrize(
    ("manifest", "said"),
    [
        ('kind = "rules"\n', "a plugin of kind rules needs rules"),
        ('kind = "mcp"\ncommand = []\n', "command"),
        ('kind = "args"\nrules = "a"\n', "a plugin of kind args has no rules"),
        ('kind = "settings"\n', "needs settings or env"),
        ('kind = "rules"\nrules = "../a"\n', "there is no file '../a'"),
        ('kind = "rules"\nrulse = "a"\n', "rulse is not known"),
        ('kind = "rules"\nrules = [\n', "is no TOML"),
    ],
)
def test_what_is_no_plugin_is_refused(tmp_path: Path, manifest: str, said: str) -> None:
    make(tmp_path, manifest, a="one")
    with pytest.raises(InputError) as caught:
        load_plugin(tmp_path, "mine")
    assert said in str(caught.value)
    assert "plugin.toml" in str(caught.value)


def test_an_unknown_plugin_is_told_with_those_there_are(tmp_path: Path) -> None:
    make(tmp_path, 'kind = "rules"\nrules = "a"\n', a="one")
    with pytest.raises(InputError, match="known plugins: mine"):
        load_plugin(tmp_path, "other")


def test_a_symlink_is_refused(tmp_path: Path) -> None:
    make(tmp_path, 'kind = "rules"\nrules = "a"\n', a="one")
    (tmp_path / "mine" / "b").symlink_to(tmp_path)
    with pytest.raises(InputError, match="holds no symlinks"):
        load_plugin(tmp_path, "mine")
