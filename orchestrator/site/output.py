"""What a page module makes: pages from templates, and files as they are."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Context = Mapping[str, Any]


@dataclass(frozen=True)
class Page:
    """A page rendered from `templates/<template>`, at `path` below the site's root.

    `context` is asked for the template's variables only when the page is rendered. `inputs` are texts that
    change whenever these variables would: digests of records, or `Source.digest` where a page tells of all
    results. Templates and cab's own code are inputs of every page and need no mention. `apart` is True for a
    page of which there are many and whose context uses no frame: several processes make such outputs.
    """

    path: str
    template: str
    context: Callable[[], Context]
    inputs: tuple[str, ...]
    apart: bool = False


@dataclass(frozen=True)
class File:
    """A file as it is, at `path` below the site's root: bytes, a file to copy, or what a function gives.

    `inputs` are as those of a page. They may be left out of bytes and of a file to copy, whose contents are
    their own; a function needs them. `apart` is as that of a page.
    """

    path: str
    content: bytes | Path | Callable[[], bytes]
    inputs: tuple[str, ...] = ()
    apart: bool = False

    def digest(self) -> str:
        """A digest that changes with the content. Raises OSError where a file to copy cannot be read."""
        if self.inputs:
            return digest_of(*self.inputs)
        if callable(self.content):
            raise TypeError(f"{self.path}: a function's output needs inputs")
        raw = self.content if isinstance(self.content, bytes) else self.content.read_bytes()
        return hashlib.sha256(raw).hexdigest()


def data_file(
    path: str, value: Callable[[], object], inputs: tuple[str, ...], *, apart: bool = False
) -> File:
    """A file that hands a value to scripts as `await cab.load(path)`. `value` is called when it is made.

    A script and not JSON: browsers refuse to fetch from a folder, and load scripts from one. NaN and
    infinities are refused with a ValueError: null is "not measured".
    """
    return File(path, lambda: _data_script(path, value()), inputs, apart)


def _data_script(path: str, value: object) -> bytes:
    """One call that a page's script waits for."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return f"cab.data({json.dumps(path)},{text});\n".encode("ascii")


def digest_of(*parts: str) -> str:
    """One digest of several texts, which cannot run into each other."""
    return hashlib.sha256(ascii(parts).encode("ascii")).hexdigest()
