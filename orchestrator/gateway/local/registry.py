"""Which GGUF files may be asked as `local/NAME`: one small JSON file each, outside the repository.

The weights stay where they are: they take gigabytes, and people have them somewhere already. What makes a
link as good as a copy is the checksum, which is taken again before each sweep.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from orchestrator.errors import EnvironmentFault, InputError, StoreError
from orchestrator.gateway.local.gguf import read_header
from orchestrator.nearest import nearest

PREFIX = "local/"
"""What the id of a local model begins with, in a sweep file."""

VARIABLE = "CAB_MODELS"
EXTRA = "pip install 'cab[local]'"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class LocalModel(BaseModel):
    """A file that was added. `sha256` is hexadecimal, `size` in bytes, `context_length` in tokens; `title` is
    the model's name as the file states it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    schema_version: Literal[1] = 1
    name: str
    path: str
    sha256: str
    size: int
    title: str | None
    architecture: str
    context_length: int | None

    @property
    def id(self) -> str:
        return PREFIX + self.name

    @property
    def build_id(self) -> str:
        """What the server reports as its model, and records hold as the model's build."""
        return f"sha256:{self.sha256}"

    def fault(self) -> str | None:
        """What keeps the file from being served, seen without reading it; None when nothing does."""
        try:
            size = Path(self.path).stat().st_size
        except OSError:
            return "its file is gone"
        return None if size == self.size else "its file has changed"

    def open(self) -> BinaryIO:
        """The file, opened and found to be what was added. Raises EnvironmentFault when it is not."""
        mend = f"give the file back, or `cab model rm {self.name}` and add another"
        try:
            file = Path(self.path).open("rb")  # noqa: SIM115 - the caller closes it
        except OSError as error:
            raise EnvironmentFault(error.strerror or str(error), place=self.path, mend=mend) from None
        found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != self.sha256:
            file.close()
            raise EnvironmentFault(
                f"has sha256 {found}, but {self.id} was added with {self.sha256}", place=self.path, mend=mend
            )
        return file


@dataclass(frozen=True)
class Registry:
    """The models under `root`, which is made with the first one."""

    root: Path

    @classmethod
    def default(cls, env: Mapping[str, str] = os.environ) -> Registry:
        """`CAB_MODELS`, else `cab/models` in the user's data directory (XDG)."""
        if chosen := env.get(VARIABLE):
            return cls(Path(chosen).absolute())
        data = env.get("XDG_DATA_HOME", "")
        base = Path(data) if Path(data).is_absolute() else Path.home() / ".local" / "share"
        return cls(base / "cab" / "models")

    def models(self) -> list[LocalModel]:
        """All of them, by name. Raises StoreError for a file that cab did not write."""
        return [self._read(file) for file in sorted(self.root.glob("*.json"))]

    def get(self, name: str) -> LocalModel:
        """Raises InputError, with the nearest name, for a model that has not been added."""
        file = self._file(name)
        if not file.is_file():
            names = [found.stem for found in self.root.glob("*.json")]
            mend = nearest(name, names) if names else "add one: cab model add FILE"
            raise InputError(f"no local model is named {name!r}", mend=mend)
        return self._read(file)

    def add(self, path: Path, *, name: str | None = None, sha256: str | None = None) -> LocalModel:
        """Add a file under `name`, else under the name that the file states.

        Raises InputError for what is no GGUF file of one piece with a chat template, for another checksum
        than `sha256`, and for a name that another file has. The same file may be added again, from wherever.
        """
        place, header = str(path), read_header(path)
        if header.parts > 1:
            raise InputError(
                f"is one of {header.parts} parts", place=place, mend="join them: llama-gguf-split --merge"
            )
        if not header.chat:
            raise InputError(
                "has no chat template, so it cannot be asked in chats",
                place=place,
                mend="give an instruction-tuned model",
            )
        name = check_name(name if name is not None else _name_of(header.name or path.stem))
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
            size = os.fstat(file.fileno()).st_size
        if sha256 is not None and sha256.lower().removeprefix("sha256:") != found:
            raise InputError(f"has sha256 {found}, not {sha256}", place=place, mend="fetch it again")
        if self._file(name).exists() and (there := self._read(self._file(name))).sha256 != found:
            raise InputError(
                f"the name {name!r} belongs to another file, {there.path}",
                place=place,
                mend=f"give another --name, or `cab model rm {name}` first",
            )
        model = LocalModel(
            name=name,
            path=str(path.resolve()),
            sha256=found,
            size=size,
            title=header.name,
            architecture=header.architecture,
            context_length=header.context_length,
        )
        self._write(model)
        return model

    def remove(self, name: str) -> LocalModel:
        """Forget a model; its file stays. Raises InputError where it has not been added."""
        model = self.get(name)
        self._file(name).unlink()
        return model

    def reason_to_skip(self, model_id: str) -> str | None:
        """Why the model of a sweep, `local/NAME`, cannot run here, with the mend; None when it can."""
        name = model_id.removeprefix(PREFIX)
        if not self._file(name).is_file():
            return f"the model has not been added: cab model add FILE --name {name}"
        if fault := self.get(name).fault():
            return f"{fault}: cab model rm {name}, then add it again"
        return None if installed() else f"llama.cpp is not installed: {EXTRA}"

    def _file(self, name: str) -> Path:
        return self.root / f"{check_name(name)}.json"

    def _read(self, file: Path) -> LocalModel:
        try:
            model = LocalModel.model_validate_json(file.read_bytes())
        except (OSError, ValidationError):
            model = None
        if model is None or model.name != file.stem:
            raise StoreError(
                "holds no local model", place=str(file), mend="remove it, and add the model again"
            )
        return model

    def _write(self, model: LocalModel) -> None:
        file = self._file(model.name)
        unfinished = file.with_name(f".{secrets.token_hex(8)}")
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            unfinished.write_text(model.model_dump_json(indent=1) + "\n", "utf-8")
            unfinished.replace(file)
        except OSError as error:
            raise EnvironmentFault(
                error.strerror or str(error),
                place=str(self.root),
                mend=f"set {VARIABLE} to another directory",
            ) from None


def check_name(name: str) -> str:
    """Return `name` if a local model may have it. Raises InputError otherwise."""
    if not _NAME.fullmatch(name):
        raise InputError(
            f"{name!r} is no name of a local model", mend="use letters, digits and . _ -, as in qwen-0.5b"
        )
    return name


def installed() -> bool:
    """Whether the extra that serves local models is there."""
    return importlib.util.find_spec("xllamacpp") is not None


def _name_of(title: str) -> str:
    """A name made of a model's title: `Qwen2.5 Coder 0.5B` becomes `qwen2.5-coder-0.5b`."""
    return re.sub(r"[^a-z0-9._-]+", "-", title.lower()).strip("-._")[:100]
