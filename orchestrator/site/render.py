"""Templates: how numbers and names become text, and the one environment that renders pages."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Mapping, MutableMapping
from functools import lru_cache
from html import unescape
from importlib import metadata
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, nodes
from jinja2.bccache import Bucket, BytecodeCache
from jinja2.compiler import CodeGenerator, Frame
from markupsafe import escape

from orchestrator.report import beside
from orchestrator.site import glossary, links, words
from orchestrator.site.elements import Elements, Place
from orchestrator.site.texts import escaped

TEMPLATES = Path(__file__).parent / "templates"
DASH = "–"

_HEAD = re.compile('<th scope="col"([^>]*)>([^<]+)</th>')

LIBRARIES = ("jinja2", "markdown-it-py", "pygments")
"""Libraries whose version decides bytes of pages."""


class _Compiled(BytecodeCache):
    """Templates that this process has compiled: that takes longer than all else of a small site."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, bytes]] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        checksum, code = self._known.get(bucket.key, ("", b""))
        if checksum == bucket.checksum:
            bucket.bytecode_from_string(code)

    def dump_bytecode(self, bucket: Bucket) -> None:
        self._known[bucket.key] = bucket.checksum, bucket.bytecode_to_string()


_COMPILED = _Compiled()


class _Code(CodeGenerator):
    """Has `escaped` called for what a template prints, and nothing else. By itself jinja escapes what
    finalize gives, into an object of its own, and a page of a cell prints six hundred values.
    """

    def _output_child_pre(self, node: nodes.Expr, frame: Frame, finalize: Any) -> None:
        del node, frame
        self.write(finalize.src)

    def _output_child_post(self, node: nodes.Expr, frame: Frame, finalize: Any) -> None:
        del node, frame, finalize
        self.write(")")


class _Environment(Environment):
    code_generator_class = _Code

    def make_globals(self, d: MutableMapping[str, Any] | None) -> MutableMapping[str, Any]:
        """Those of the environment, to which no template adds any. Each template of each page takes a copy,
        which of jinja's own chain of two mappings takes far longer.
        """
        assert not d
        return self.globals


def environment(site: Mapping[str, Any], made: Container[str]) -> Environment:
    """The environment of all pages: everything is escaped, and an unknown variable is an error.

    `site` is what every page has as `site`; `made` tells whether a path is one of the site's.
    """
    env = _Environment(
        loader=FileSystemLoader(TEMPLATES),
        bytecode_cache=_COMPILED,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        finalize=escaped,
    )
    env.filters |= FILTERS
    env.globals |= FILTERS | {
        "site": site,
        "links": links,
        "words": words,
        "beside": beside,
        "made": made.__contains__,
        "term": _term,
    }
    return env


def render(env: Environment, path: str, template: str, context: Mapping[str, Any]) -> bytes:
    """One page as bytes. `path`, `root`, `href` and `ui` (elements and macros) are variables of each."""
    made: Any = env.globals["made"]
    place = Place(path, made)
    own = {"path": path, "root": place.root, "href": place.href}
    macros = env.get_template("macros.html").make_module(own)
    text = env.get_template(template).render(context, **own, ui=Elements(place, macros))
    return _HEAD.sub(_with_tooltip, text).encode("utf-8")


def _with_tooltip(head: re.Match[str]) -> str:
    return _head(*head.groups())


@lru_cache(maxsize=1024)
def _head(attributes: str, word: str) -> str:
    """A head of a column with the glossary's sentence for it, where it has one. `pass, 95 % interval` is told
    as pass is.
    """
    term = glossary.find(unescape(word)) or glossary.find(unescape(word).partition(", ")[0])
    if term is None or "title=" in attributes:
        return f'<th scope="col"{attributes}>{word}</th>'
    return f'<th scope="col"{attributes} title="{escape(term.text)}">{word}</th>'


def library_versions() -> tuple[str, ...]:
    """The libraries that decide bytes of pages, with their versions."""
    return tuple(f"{name} {metadata.version(name)}" for name in LIBRARIES)


def _term(word: str) -> glossary.Term:
    """The glossary's entry for a word that a page shows. Raises KeyError where it has none."""
    found = glossary.find(word)
    if found is None:
        raise KeyError(f"{word!r} has no entry in the glossary")
    return found


# Numbers


def number(value: float | None, digits: int = 3) -> str:
    """A number with `digits` decimals, whole ones without; thousands set apart."""
    if value is None:
        return DASH
    return grouped(f"{value:,.{digits}f}" if value != int(value) else f"{int(value):,}")


def percent(share: float | None, digits: int = 1) -> str:
    """A share in percent; 0 and 1 only where it is exactly that."""
    if share is None:
        return DASH
    shown = f"{share * 100:.{digits}f}"
    if share in (0, 1):
        return f"{share * 100:.0f} %"
    least = 10**-digits
    if float(shown) >= 100:
        return f">{100 - least:.{digits}f} %"
    return f"<{least:.{digits}f} %" if float(shown) <= 0 < share else f"{shown} %"


def count(value: float | None) -> str:
    """A whole number with thousands set apart."""
    return DASH if value is None else grouped(f"{round(value):,}")


def seconds(value: float | None) -> str:
    """A stretch of time: `0.42 s`, `7.5 s`, `3 min 20 s`, `2 h 05 min`."""
    if value is None:
        return DASH
    if value < 100:
        return f"{value:.2f} s" if value < 1 else f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    hours, left = divmod(minutes, 60)
    return f"{hours} h {left:02d} min" if hours else f"{minutes} min {rest:02d} s"


def milliseconds(value: float | None) -> str:
    """Milliseconds as a stretch of time."""
    return DASH if value is None else f"{value:.0f} ms" if value < 1000 else seconds(value / 1000)


def dollars(value: float | None) -> str:
    """US dollars; small amounts to a hundredth of a cent."""
    if value is None:
        return DASH
    return f"${grouped(f'{value:,.2f}')}" if value >= 1 else f"${value:.4f}"


def grouped(text: str) -> str:
    """Thousands set apart by a narrow space that does not break."""
    return text.replace(",", "\u202f")


def short(digest: str | None, length: int = 12) -> str:
    """The beginning of a digest, without the name of its algorithm."""
    return DASH if digest is None else digest.rpartition(":")[2][:length]


def sentence(text: str) -> str:
    """A text with a capital at its beginning, the rest as it is."""
    return text[:1].upper() + text[1:]


FILTERS: dict[str, Callable[..., str]] = {
    "number": number,
    "percent": percent,
    "count": count,
    "seconds": seconds,
    "milliseconds": milliseconds,
    "dollars": dollars,
    "short": short,
    "sentence": sentence,
}
