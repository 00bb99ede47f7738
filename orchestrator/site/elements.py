"""What pages write most often: links, dashes, claims and measures. The rest are macros.

In Python and not in a template's language: a page of a cell has a hundred of these, and a call of a macro
takes twenty times as long.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Protocol

from markupsafe import Markup, escape

from orchestrator.site import words
from orchestrator.site.links import root_of, url
from orchestrator.site.texts import finished_text


class _Measure(Protocol):
    @property
    def value(self) -> float | None: ...
    @property
    def low(self) -> float | None: ...
    @property
    def high(self) -> float | None: ...
    @property
    def method(self) -> str: ...
    @property
    def reason(self) -> str | None: ...


class Place:
    """A page's own path, and how it names others."""

    def __init__(self, path: str, made: Callable[[str], bool]) -> None:
        self.path, self.root, self._made = path, root_of(path), made

    def has(self, path: str) -> bool:
        """Whether a path, with or without a fragment, is one of the site's."""
        return self._made(path.partition("#")[0])

    def href(self, path: str) -> str:
        """A path of the site as a link from this page. Raises KeyError for what is not made."""
        if not self.has(path):
            raise KeyError(f"{self.path} links to {path}, which is not made")
        page, mark, fragment = path.partition("#")
        return f"{self.root}{url(page)}{mark}{fragment}"


class Elements:
    """`ui` of every template: these, and all macros by their names."""

    def __init__(self, place: Place, macros: Any) -> None:
        self._place, self._macros = place, macros

    def __getattr__(self, name: str) -> Any:
        return getattr(self._macros, name)

    def link(self, target: str, text: object, class_: str = "") -> Markup:
        """A link where the target is a page of this site, else the text alone."""
        shown, named = _shown(text), f' class="{escape(class_)}"' if class_ else ""
        if self._place.has(target):
            return Markup(f'<a href="{escape(self._place.href(target))}"{named}>{shown}</a>')
        return Markup(f"<span{named}>{shown}</span>") if class_ else shown

    @staticmethod
    def claim(level: str) -> Markup:
        """What may be said of a result, as one word."""
        return _claim(level)

    @staticmethod
    def dash(reason: str) -> Markup:
        """A dash that says why there is no number."""
        return _dash(reason)

    @staticmethod
    def value(it: object, shown: object, reason: str = "not measured") -> Markup:
        """A value through a filter, or a dash with its reason."""
        return _dash(reason) if it is None else _shown(shown)

    @staticmethod
    def measure(it: _Measure, shown: Callable[[float | None], str]) -> Markup:
        """A measure with its 95 % interval in numbers. `shown` is the filter that its numbers go through."""
        if it.value is None:
            return _dash(it.reason or "not measured")
        if it.low is None or it.high is None:
            return _shown(shown(it.value))
        between = f"[{_shown(shown(it.low))}, {_shown(shown(it.high))}]"
        title = f"95 % interval, {_shown(it.method)}"
        return Markup(f'{_shown(shown(it.value))} <small class="ci" title="{title}">{between}</small>')


def _shown(text: object) -> Markup:
    """Text as pages show it: harmless and escaped; what is markup already as it is."""
    finished = finished_text(text)
    return finished if isinstance(finished, Markup) else escape(finished)


@lru_cache(maxsize=4096)
def _dash(reason: str) -> Markup:
    why = _shown(reason)
    return Markup(
        f'<span class="dash" title="{why}"><span aria-hidden="true">–</span>'
        f'<span class="unseen">not measured: {why}</span></span>'
    )


@lru_cache
def _claim(level: str) -> Markup:
    return Markup(f'<span class="claim claim-{escape(level)}">{escape(words.CLAIMS[level].word)}</span>')
