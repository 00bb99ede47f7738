"""Every link of every page leads to something in the site; found in the files, without a browser."""

from __future__ import annotations

import posixpath
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest


class Page(HTMLParser):
    """What a page refers to, and the places in it that others may refer to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[tuple[str, str]] = []
        self.ids: list[str] = []
        self.inline: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.links += [(tag, value) for name in ("href", "src") if (value := found.get(name))]
        if name := found.get("id"):
            self.ids.append(name)
        self.inline += [f"{tag} {name}" for name in found if name.startswith("on") or name == "style"]
        if tag == "style" or (tag == "script" and "src" not in found):
            self.inline.append(tag)


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[str, Page]:
    """All pages by path, read once."""
    return {
        path.relative_to(site).as_posix(): Page(path.read_text("utf-8"))
        for path in sorted(site.rglob("*.html"))
    }


def test_no_link_leads_nowhere(site: Path, pages: dict[str, Page]) -> None:
    files = {path.relative_to(site).as_posix() for path in site.rglob("*") if path.is_file()}
    broken = []
    for name, page in pages.items():
        for _, link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            path = unquote(parts.path)
            target = posixpath.normpath(posixpath.join(posixpath.dirname(name), path)) if path else name
            if target not in files:
                broken.append(f"{name}: {link}")
            elif parts.fragment and target in pages and "=" not in parts.fragment:
                broken += [] if unquote(parts.fragment) in pages[target].ids else [f"{name}: {link}"]
    assert broken == []


def test_nothing_is_loaded_from_elsewhere_and_nothing_is_inline(pages: dict[str, Page]) -> None:
    for name, page in pages.items():
        loaded = [link for tag, link in page.links if tag not in ("a", "meta") and urlsplit(link).netloc]
        assert loaded == [], name
        assert page.inline == [], name


def test_no_page_names_a_place_twice(pages: dict[str, Page]) -> None:
    for name, page in pages.items():
        assert len(set(page.ids)) == len(page.ids), name


def test_what_pages_load_first_is_light(site: Path, pages: dict[str, Page]) -> None:
    """Of the leaderboard all that comes before anybody touches it; at 10,000 cells `make bench` tells it."""
    loaded = [link for tag, link in pages["index.html"].links if tag in ("link", "script", "img")]
    sizes = [(site / unquote(link)).stat().st_size for link in loaded]
    assert len(sizes) > 2
    assert (site / "index.html").stat().st_size + sum(sizes) < 200_000
