"""Makes the pictures of docs/img from the site of real results: `make pictures`.

The results are those of sweeps that ran on this machine, by default all in `results`. Each picture is taken
in chromium (scripts/browser.sh), driven as the tests of the site drive it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser, Page, sync_playwright

from orchestrator.paths import RESULTS
from orchestrator.site.build import build

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "img"
MOST_BYTES = 150_000


@dataclass(frozen=True)
class Picture:
    """A page in a window, which begins with the section of `element` where one is given. `at` opens the
    terminal in step with the trace, at this share of its time.
    """

    name: str
    page: str
    scheme: Literal["light", "dark"] = "light"
    width: int = 1280
    height: int = 720
    element: str = ""
    phone: bool = False
    at: float | None = None


_CELL = "cell/*/*/embedded~reference/*/run1.html"
PICTURES = (
    Picture("leaderboard-light", "index.html", width=1500, height=545, element="table.board >> nth=-1"),
    Picture(
        "leaderboard-dark", "index.html", "dark", width=1500, height=545, element="table.board >> nth=-1"
    ),
    Picture("matrix", "matrix.html", height=680, element="table.matrix >> nth=-1"),
    Picture("cell", _CELL),
    Picture("cell-replay", _CELL, height=860, element="#trace", at=0.8),
    Picture("phone", _CELL, width=390, height=780, phone=True),
)


_TO_TOP = """it => scrollTo(0, it.closest('section').getBoundingClientRect().top + scrollY - 8)"""


def _in_step(page: Page, share: float) -> None:
    """The terminal beside the replay, at a span that begins about when this share of the time has passed."""
    starts = page.locator("#span-table tbody tr").evaluate_all("all => all.map((it) => +it.dataset.start)")
    seconds = float(page.locator("#replay").get_attribute("data-seconds") or 0)
    page.locator("#trace-terminal").click()
    page.locator("#trace-screen .ap-wrapper").wait_for()
    page.locator("#timeline").focus()
    for _ in range(sum(start < share * seconds for start in starts)):
        page.keyboard.press("ArrowRight")
    page.locator("#timeline").evaluate("it => it.blur()")
    page.wait_for_timeout(500)  # the player draws in its own time


def take(browser: Browser, site: Path, picture: Picture) -> bytes:
    """One picture, as PNG."""
    # A cell in which a model was asked has the most to show.
    found = sorted(site.glob(picture.page), key=lambda path: (-path.stat().st_size, path))
    if not found:
        sys.exit(f"{picture.name}: the site has no {picture.page}; give results of a sweep")
    context = browser.new_context(
        viewport={"width": picture.width, "height": picture.height},
        color_scheme=picture.scheme,
        device_scale_factor=1.5 if picture.phone else 1,
        is_mobile=picture.phone,
        reduced_motion="reduce",
    )
    page = context.new_page()
    page.goto(found[0].as_uri())
    if picture.at is not None:
        _in_step(page, picture.at)
    if picture.element:
        page.locator(picture.element).evaluate(_TO_TOP)
    raw = page.screenshot(animations="disabled")
    context.close()
    if len(raw) > MOST_BYTES:
        sys.exit(f"{picture.name}: {len(raw)} bytes, more than {MOST_BYTES}: make it smaller")
    return raw


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("results", type=Path, nargs="*", default=[RESULTS])
    options = parser.parse_args()
    program = (
        os.environ.get("CAB_TEST_CHROMIUM")
        or shutil.which("chromium-headless-shell")
        or shutil.which("chromium")
    )
    if program is None:
        sys.exit("no chromium: run `make browser`")
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="cab-pictures-") as directory, sync_playwright() as playwright:
        site = Path(directory)
        build(options.results, site)
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for picture in PICTURES:
            (IMAGES / f"{picture.name}.png").write_bytes(take(browser, site, picture))
        browser.close()


if __name__ == "__main__":
    main()
