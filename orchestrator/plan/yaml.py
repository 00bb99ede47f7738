"""YAML as cab reads it: plain values with the line of each, and one clear line for everything else.

Anchors, aliases, tags and merge keys are refused: a sweep says what it means in the place where it says it.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from orchestrator.errors import InputError

Path_ = tuple[str | int, ...]
"""Where a value is: keys and list indexes from the top."""

_TAG = "tag:yaml.org,2002:"
_MAX_DEPTH = 16
_MAX_BYTES = 1 << 20
_ALIAS_MEND = 'write the value out; quote a glob: "*"'


@dataclass(frozen=True)
class Document:
    """A YAML file as plain values. `marks` holds (line, column) of each value, `keys` of each key, from 1.

    `digest` is the file's `sha256:…`.
    """

    path: Path
    digest: str
    value: Any
    marks: dict[Path_, tuple[int, int]] = field(default_factory=dict)
    keys: dict[Path_, tuple[int, int]] = field(default_factory=dict)

    def place(self, at: Path_, *, key: bool = False) -> str:
        """`file:line:column` of a value, of its key, or of the nearest thing around it that the file has."""
        if key and at in self.keys:
            return _place(self.path, self.keys[at])
        while at not in self.marks and at:
            at = at[:-1]
        return _place(self.path, self.marks.get(at, (1, 1)))


def load(path: Path) -> Document:
    """Read one YAML document. Raises InputError with file, line and column."""
    try:
        with path.open("rb") as file:
            raw = file.read(_MAX_BYTES + 1)
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError("is not UTF-8", place=str(path), mend="save it as UTF-8") from None
    except OSError as error:
        raise InputError(error.strerror or str(error), place=str(path), mend="give a readable file") from None
    if len(raw) > _MAX_BYTES:
        raise InputError(f"is larger than {_MAX_BYTES >> 20} MiB", place=str(path), mend="give a sweep file")
    try:
        node = YAML(typ="safe", pure=True).compose(text)
    except MarkedYAMLError as error:
        raise _syntax_error(path, text, error) from None
    except RecursionError:
        raise InputError(
            "is nested too deeply", place=str(path), mend="see sweeps/free.yaml for the form"
        ) from None
    except YAMLError as error:
        raise InputError(
            f"is no YAML: {_first_line(error)}", place=str(path), mend="save it as text"
        ) from None
    document = Document(path, f"sha256:{hashlib.sha256(raw).hexdigest()}", None)
    return document if node is None else replace(document, value=_plain(node, (), document))


def _plain(node: Node, at: Path_, document: Document) -> Any:
    document.marks[at] = _mark(node)
    place = _place(document.path, _mark(node))
    if len(at) > _MAX_DEPTH:
        raise InputError("is nested too deeply", place=place, mend="see sweeps/free.yaml for the form")
    if node.anchor is not None:
        raise InputError("anchors and aliases are not read here", place=place, mend=_ALIAS_MEND)
    if isinstance(node, MappingNode) and node.tag == f"{_TAG}map":
        return _mapping(node, at, document)
    if isinstance(node, SequenceNode) and node.tag == f"{_TAG}seq":
        return [_plain(item, (*at, index), document) for index, item in enumerate(node.value)]
    if isinstance(node, ScalarNode):
        return _scalar(node, place)
    raise InputError(f"the tag {node.tag!r} is not read here", place=place, mend="leave the tag out")


def _mapping(node: MappingNode, at: Path_, document: Document) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for key_node, value_node in node.value:
        place = _place(document.path, _mark(key_node))
        if key_node.tag != f"{_TAG}str":
            raise InputError(f"the key {key_node.value!r} is no text", place=place, mend="quote it")
        key = key_node.value
        if key in value:
            line = document.keys[(*at, key)][0]
            raise InputError(f"the key {key!r} is there twice", place=place, mend=f"line {line} has it too")
        document.keys[(*at, key)] = _mark(key_node)
        value[key] = _plain(value_node, (*at, key), document)
    return value


def _scalar(node: ScalarNode, place: str) -> Any:
    text = node.value
    kind = str(node.tag).removeprefix(_TAG)
    if kind == "str":
        return text
    if kind == "null":
        return None
    if kind == "bool":
        return text.lower() == "true"
    if kind == "int" and re.fullmatch(r"[-+]?(0|[1-9][0-9]*)", text):
        return int(text)
    if kind == "float" and re.fullmatch(r"[-+]?[0-9]+\.[0-9]*([eE][-+]?[0-9]+)?", text):
        return float(text)
    raise InputError(
        f"{text!r} can be read in more than one way",
        place=place,
        mend="quote a text; write a number in digits",
    )


def _syntax_error(path: Path, text: str, error: MarkedYAMLError) -> InputError:
    mark = error.problem_mark or error.context_mark
    place = str(path) if mark is None else _place(path, (mark.line + 1, mark.column + 1))
    problem = error.problem or _first_line(error)
    lines = text.splitlines()
    if "\\t" in problem or (
        mark is not None and mark.line < len(lines) and "\t" in lines[mark.line][: mark.column + 1]
    ):
        return InputError("a tab where YAML wants spaces", place=place, mend="indent with spaces")
    if "alias" in (error.context or ""):
        return InputError("anchors and aliases are not read here", place=place, mend=_ALIAS_MEND)
    return InputError(f"is no YAML: {problem}", place=place, mend="see sweeps/free.yaml for the form")


def _mark(node: Node) -> tuple[int, int]:
    return node.start_mark.line + 1, node.start_mark.column + 1


def _place(path: Path, mark: tuple[int, int]) -> str:
    return f"{path}:{mark[0]}:{mark[1]}"


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]
