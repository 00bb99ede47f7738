"""cab's own documents as HTML: Markdown without HTML in it, anchors at headings, links into the site."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup

_ALIGN = re.compile(r"text-align:\s*(left|right|center)")

LinkTo = Callable[[str], str | None]
"""Where a link of a document leads from its page, None where it leads nowhere in the site."""


@dataclass(frozen=True)
class Heading:
    """A heading of a document: `level` from 1, and the anchor that leads to it."""

    level: int
    text: str
    slug: str


@dataclass(frozen=True)
class Document:
    """A document as a page shows it: `title` is its first heading, which `html` is without."""

    title: str
    html: Markup
    headings: tuple[Heading, ...]


def render(text: str, link_to: LinkTo) -> Document:
    """Render a document that begins with its title.

    HTML in it is shown as text, and nothing of it needs a style attribute, which the pages' policy refuses.
    Raises ValueError where it does not begin with a heading of the first level.
    """
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = parser.parse(text)
    headings = _anchored(tokens)
    if not headings or headings[0].level != 1 or tokens[0].tag != "h1":
        raise ValueError("a document begins with its title")
    body = _with_links(_without_styles(tokens[3:]), link_to)
    html = parser.renderer.render(_in_boxes(body), parser.options, {})
    return Document(headings[0].text, Markup(html), tuple(headings[1:]))


def _anchored(tokens: Sequence[Token]) -> list[Heading]:
    """Give each heading an anchor, made of its words as code hosts make it, numbered where it recurs."""
    found: list[Heading] = []
    seen: Counter[str] = Counter()
    for opening, inline in pairwise(tokens):
        if opening.type != "heading_open":
            continue
        words = "".join(child.content for child in inline.children or ())
        base = re.sub(r"[^\w\- ]", "", words.lower()).strip().replace(" ", "-")
        slug = f"{base}-{seen[base]}" if seen[base] else base
        seen[base] += 1
        opening.attrSet("id", slug)
        found.append(Heading(int(opening.tag[1:]), words, slug))
    return found


def _without_styles(tokens: Sequence[Token]) -> Sequence[Token]:
    """Alignment of table cells as a class."""
    for token in tokens:
        if isinstance(style := token.attrs.pop("style", None), str) and (found := _ALIGN.search(style)):
            token.attrJoin("class", found[1])
    return tokens


def _with_links(tokens: Sequence[Token], link_to: LinkTo) -> Sequence[Token]:
    """Links lead into the site; of one that would lead out of it the words stay."""
    for token in tokens:
        open_links: list[bool] = []
        kept: list[Token] = []
        for child in token.children or ():
            if child.type == "link_open":
                target = link_to(str(child.attrGet("href")))
                open_links.append(target is not None)
                if target is None:
                    continue
                child.attrSet("href", target)
            elif child.type == "link_close" and not open_links.pop():
                continue
            kept.append(child)
        if token.children is not None:
            token.children = kept
    return tokens


def _in_boxes(tokens: Sequence[Token]) -> list[Token]:
    """Tables in boxes of their own, which scroll where the page must not, by keys too."""
    boxed: list[Token] = []
    for token in tokens:
        if token.type == "table_open":
            attrs: dict[str, str | int | float] = {
                "class": "scroll",
                "tabindex": 0,
                "role": "group",
                "aria-label": "table",
            }
            boxed.append(Token("html_box_open", "div", 1, attrs=attrs, block=True))
        boxed.append(token)
        if token.type == "table_close":
            boxed.append(Token("html_box_close", "div", -1, block=True))
    return boxed
