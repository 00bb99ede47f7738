"""A TOML file checked against a pydantic model, with errors that name the line, the field and the mend."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from orchestrator.errors import InputError
from orchestrator.nearest import nearest

_HEADER = re.compile(r"^\s*\[{1,2}([^\[\]]+)\]{1,2}\s*(?:#.*)?$")
_KEY = re.compile(r"^\s*([\w\-\"'. ]+?)\s*=")

ModelT = TypeVar("ModelT", bound=BaseModel)


def load_toml(path: Path, model: type[ModelT], *, docs: str = "docs/tasks.md") -> ModelT:
    """Read `path` into `model`. `docs` is where its form is told.

    Raises InputError when the file cannot be read, is no TOML, or holds an unknown key or a bad value.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read: {error}", place=str(path), mend="it must be UTF-8 text") from error
    try:
        return model.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"is no TOML: {error}", place=str(path), mend="correct the syntax") from error
    except ValidationError as error:
        # A misspelt key is also a missing one: say the more telling of the two.
        errors = sorted(error.errors(), key=lambda item: item["type"] != "extra_forbidden")
        raise _explain(path, text, model, errors[0], docs) from error


def _explain(path: Path, text: str, model: type[BaseModel], error: ErrorDetails, docs: str) -> InputError:
    loc = tuple(str(part) for part in error["loc"])
    place = f"{path}:{line_of(text, loc)}"
    field = ".".join(loc) or "the file"
    known = sorted(_fields_of(model, loc[:-1]))
    if error["type"] == "extra_forbidden":
        return InputError(f"{field} is not known", place=place, mend=nearest(loc[-1], known))
    if error["type"] == "missing":
        return InputError(f"{field} is missing", place=place, mend=f"add it; see {docs}")
    what = error["msg"].removeprefix("Value error, ")
    got = "" if isinstance(error["input"], dict) else f"got {error['input']!r}"
    return InputError(f"{field}: {what}", place=place, mend=got or f"see {docs}")


def line_of(text: str, loc: tuple[str, ...]) -> int:
    """Line (from 1) of the longest part of the key path `loc` that the file spells out.

    `tomllib` keeps no positions. A look at headers and keys is enough: a text block that imitates one could
    only make an error name the wrong line.
    """
    best, best_line = 0, 1
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), start=1):
        if header := _HEADER.match(line):
            table = _parts(header[1])
            path = table
        elif key := _KEY.match(line):
            path = table + _parts(key[1])
        else:
            continue
        if len(path) > best and loc[: len(path)] == path:
            best, best_line = len(path), number
    return best_line


def _parts(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip().strip("\"'") for part in dotted.split("."))


def _fields_of(model: type[BaseModel], loc: tuple[str, ...]) -> set[str]:
    for part in loc:
        field = model.model_fields.get(part)
        if field is None:
            return set()
        candidates = (field.annotation, *get_args(field.annotation))
        nested = [item for item in candidates if isinstance(item, type) and issubclass(item, BaseModel)]
        if not nested:
            return set()
        model = nested[0]
    return set(model.model_fields)
