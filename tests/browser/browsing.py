"""What the tests of the site look at pages with."""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, expect

from orchestrator.site.serve import address, server

REPO = Path(__file__).resolve().parents[2]
BROWSER = (
    os.environ.get("CAB_TEST_CHROMIUM") or shutil.which("chromium-headless-shell") or shutil.which("chromium")
)
AXE = REPO / "build" / "axe-core" / "axe.min.js"
DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 360, "height": 740}
SERIOUS = ("serious", "critical")
TIMEOUT_MS = 20_000


@dataclass(frozen=True)
class Place:
    """Where a site is: its folder, and the address of its root."""

    folder: Path
    root: str

    def url(self, path: str) -> str:
        name, mark, fragment = path.partition("#")
        return f"{self.root}{quote(name, safe='/~+@=:!$,')}{mark}{fragment}"

    def pages(self, pattern: str) -> list[str]:
        """The paths of pages that match a glob, by name."""
        found = sorted(self.folder.glob(pattern))
        return [path.relative_to(self.folder).as_posix() for path in found]


class HttpPlace(Place):
    """A site behind a server."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a folder that cab's own server serves."""
    with server(folder, 0) as running:
        thread = threading.Thread(target=running.serve_forever, daemon=True)
        thread.start()
        yield address(running)
        _stop(running, thread)


def _stop(running: ThreadingHTTPServer, thread: threading.Thread) -> None:
    running.shutdown()
    thread.join()


class Looker:
    """Opens pages of a browser. `problems` are what a reader would not see: errors on the console, requests
    to elsewhere, dialogs.
    """

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._contexts: list[BrowserContext] = []
        self.problems: list[str] = []

    def at(self, place: Place, path: str, *, wait: str = "load", **options: Any) -> Page:
        """A page in a fresh context, loaded; `options` are Playwright's of a context."""
        context = self._browser.new_context(**{"viewport": DESKTOP, **options})
        context.set_default_timeout(TIMEOUT_MS)
        self._contexts.append(context)
        page = context.new_page()
        self._watch(page, place)
        page.goto(place.url(path), wait_until=wait)
        return page

    def _watch(self, page: Page, place: Place) -> None:
        def said(message: ConsoleMessage) -> None:
            if message.type in ("error", "warning"):
                self.problems.append(f"{page.url}: {message.type}: {message.text}")

        def asked(request: Request) -> None:
            if not request.url.startswith((place.root, "data:")):
                self.problems.append(f"{page.url} asked for {request.url}")

        page.on("console", said)
        page.on("pageerror", lambda error: self.problems.append(f"{page.url}: {error}"))
        page.on("request", asked)
        page.on("requestfailed", lambda it: self.problems.append(f"{page.url}: {it.url}: {it.failure}"))
        page.on("dialog", lambda dialog: (self.problems.append(f"{page.url}: a dialog"), dialog.dismiss()))

    def close(self) -> None:
        for context in self._contexts:
            context.close()


def settled(page: Page) -> None:
    """Waits until the page shows what was chosen: the data of another view come later than the choice."""
    expect(page.locator("main[aria-busy=true]")).to_have_count(0)


def barriers(page: Page, *rules: str) -> list[str]:
    """What axe-core finds in a page that bars people from it: rule, number of places, the first of them.

    By the given rules, else by all that it has.
    """
    if not AXE.is_file():
        pytest.fail(f"no {AXE.relative_to(REPO)}: run `make browser`")
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text("utf-8"))
    options: dict[str, Any] = {"resultTypes": ["violations"], "preload": False}
    if rules:
        options["runOnly"] = rules
    # What passed is most of its result, and takes as long to hand over as the page to look through.
    found = page.evaluate("options => axe.run(document, options).then((it) => it.violations)", options)
    return [
        f"{it['id']} ({it['impact']}, {len(it['nodes'])}): {json.dumps(it['nodes'][0]['html'][:200])}"
        f" {it['nodes'][0].get('failureSummary', '')}"
        for it in found
        if it["impact"] in SERIOUS
    ]


def too_wide(page: Page) -> int:
    """By how many pixels the page is wider than its window."""
    wide: int = page.evaluate(
        "Math.max(document.documentElement.scrollWidth, document.body.scrollWidth) - window.innerWidth"
    )
    return max(0, wide)
