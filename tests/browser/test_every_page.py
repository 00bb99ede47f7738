"""What holds for each kind of page: it loads by itself, everywhere, for everybody."""

from __future__ import annotations

import pytest
from browsing import PHONE, HttpPlace, Looker, Place, barriers, too_wide

KINDS = (
    *(
        "index.html",
        "matrix.html",
        "pareto.html",
        "pareto/wall.html",
        "guide.html",
        "compare.html",
        "gallery.html",
    ),
    *("methodology.html", "glossary.html", "provenance.html", "snapshots.html", "appeals.html"),
    *("cli/made-up-cli-a.html", "cli/*+careful.html", "model/made-up*.html", "model/embedded*.html"),
    *("pair/*/made-up*.html", "task/*bugs/*.html", "task/*refusals/*.html", "category/*.html"),
    *("sweep/made-up-large.html", "sweep/made-up-imported.html", "docs/*.html"),
    *("condition/made-up-conditions.html", "condition/made-up-run.html", "sweep/made-up-run.html"),
    "cell/made-up-large/*/*/made-up-bugs~*/run1.html",
    "cell/made-up-large/*/*/made-up-refusals~*/run1.html",
    "cell/made-up-scripted/**/run1.html",
    "cell/made-up-imported/**/run1.html",
    "cell/made-up-stacks/*/*/*+careful/run1.html",
)
"""A glob for each kind of page."""


def of_kind(place: Place, kind: str) -> str:
    """The first page of a kind, which a card beside a page is not."""
    found = [path for path in place.pages(kind) if not path.endswith(",card.html")]
    assert found, f"the site has no {kind}"
    return found[0]


@pytest.mark.parametrize("kind", KINDS)
def test_from_a_folder_it_bars_nobody_by_day_in_the_dark_and_on_a_phone(
    look: Looker, folder: Place, kind: str
) -> None:
    page = look.at(folder, of_kind(folder, kind), color_scheme="light")
    assert barriers(page) == []
    page.emulate_media(color_scheme="dark")
    colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    channels = [int(part) for part in colour.removeprefix("rgb(").removesuffix(")").split(",")]
    assert max(channels) < 80, colour
    assert barriers(page, "color-contrast") == []
    page.set_viewport_size(PHONE)
    assert too_wide(page) == 0


@pytest.mark.parametrize("kind", KINDS)
def test_below_a_path_of_a_host_it_has_a_name(look: Looker, http: HttpPlace, kind: str) -> None:
    page = look.at(http, of_kind(http, kind))
    assert page.locator("h1").count() == 1
    assert page.locator("h1").inner_text().strip()
    assert page.title()


@pytest.mark.parametrize("kind", KINDS)
def test_it_can_be_read_without_scripts(look: Looker, folder: Place, kind: str) -> None:
    page = look.at(folder, of_kind(folder, kind), java_script_enabled=False)
    assert len(page.locator("main").inner_text()) > 200
