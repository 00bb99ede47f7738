"""A plugin: a directory `plugins/<name>/` with a `plugin.toml`, read whole and once.

What a sweep runs is what was read, and its digest is that of the same bytes. docs/stacks.md shows the forms.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from orchestrator.adapter import PluginKind
from orchestrator.errors import InputError
from orchestrator.plan.toml_file import load_toml

MANIFEST = "plugin.toml"
DOCS = "docs/stacks.md"
PLUGINS_DIR = "/run/cab/plugins"
"""Where a cell's container has the files of its stack's MCP servers, read-only."""

HERE = "{plugin}"
"""In the command of an MCP server: the plugin's own directory in the container."""

MAX_BYTES = 8 << 20
"""Of one plugin: it is held in memory and laid out for each cell."""

_FIELDS: dict[PluginKind, tuple[str, ...]] = {
    "rules": ("rules",),
    "mcp": ("command",),
    "settings": ("settings", "env"),
    "args": ("args",),
}


class Manifest(BaseModel):
    """`plugin.toml`. `rules` is a file beside it; `settings`, `env` and `args` are by the name of a CLI,
    since each has its own.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: PluginKind
    description: str = ""
    rules: str | None = None
    command: Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    settings: dict[str, dict[str, JsonValue]] = Field(default_factory=dict)
    env: dict[str, dict[str, str]] = Field(default_factory=dict)
    args: dict[str, tuple[str, ...]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _of_one_kind(self) -> Self:
        own = _FIELDS[self.kind]
        others = {field for kind, fields in _FIELDS.items() if kind != self.kind for field in fields}
        if wrong := sorted(field for field in others if getattr(self, field)):
            raise ValueError(f"a plugin of kind {self.kind} has no {wrong[0]}")
        if not any(getattr(self, field) for field in own):
            raise ValueError(f"a plugin of kind {self.kind} needs {' or '.join(own)}")
        return self


@dataclass(frozen=True)
class PluginFile:
    content: bytes
    executable: bool


@dataclass(frozen=True)
class Plugin:
    """One plugin as it was read. `files` are all of its directory, by their path in it."""

    name: str
    manifest: Manifest
    files: dict[str, PluginFile]
    digest: str

    @property
    def kind(self) -> PluginKind:
        return self.manifest.kind

    @property
    def rules(self) -> str:
        """The text of a plugin of rules."""
        assert self.manifest.rules is not None
        return self.files[self.manifest.rules].content.decode("utf-8")

    @property
    def command(self) -> tuple[str, ...]:
        """The command of an MCP server, as it is in the container."""
        assert self.manifest.command is not None
        return tuple(word.replace(HERE, f"{PLUGINS_DIR}/{self.name}") for word in self.manifest.command)


def load_plugin(plugins_dir: Path, name: str) -> Plugin:
    """Read `plugins/<name>/`. Raises InputError for what cannot be read or is no plugin."""
    root = plugins_dir / name
    path = root / MANIFEST
    if not path.is_file():
        known = ", ".join(list_plugins(plugins_dir)) or "none"
        raise InputError(f"unknown plugin {name!r}", place=str(path), mend=f"known plugins: {known}")
    manifest = load_toml(path, Manifest, docs=DOCS)
    files = _files(root)
    if manifest.rules is not None:
        file = files.get(manifest.rules)
        if file is None:
            mend = "name a file of the plugin's own directory"
            raise InputError(f"there is no file {manifest.rules!r}", place=str(path), mend=mend)
        try:
            file.content.decode("utf-8")
        except UnicodeDecodeError:
            place = str(root / manifest.rules)
            raise InputError("is no UTF-8 text", place=place, mend="save it as UTF-8") from None
    return Plugin(name, manifest, files, _digest(files))


def list_plugins(plugins_dir: Path) -> list[str]:
    """The names of all plugins."""
    return sorted(path.parent.name for path in plugins_dir.glob(f"*/{MANIFEST}"))


def _files(root: Path) -> dict[str, PluginFile]:
    found, left = {}, MAX_BYTES
    for path in sorted(root.rglob("*")):
        if path.is_symlink():
            raise InputError("a plugin holds no symlinks", place=str(path), mend="put the file itself there")
        if "__pycache__" in path.parts or not path.is_file():
            continue
        content = path.read_bytes()
        left -= len(content)
        if left < 0:
            raise InputError(f"a plugin holds at most {MAX_BYTES >> 20} MiB", place=str(root))
        name = path.relative_to(root).as_posix()
        found[name] = PluginFile(content, executable=bool(path.stat().st_mode & 0o100))
    return found


def _digest(files: dict[str, PluginFile]) -> str:
    """Of names, modes and contents."""
    whole = hashlib.sha256()
    for name, file in sorted(files.items()):
        content = hashlib.sha256(file.content).hexdigest()
        whole.update(f"{name}\0{'x' if file.executable else '-'}\0{content}\n".encode())
    return f"sha256:{whole.hexdigest()}"
