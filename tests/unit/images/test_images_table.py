"""The table of docs/images.md: it names every CLI of images/, and knows no number that was not measured."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from orchestrator.fleet import Fleet
from orchestrator.report.images import images_table
from orchestrator.sandbox.images.listing import Listed

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "images.md").read_text("utf-8")
FLEET = Fleet(ROOT / "images")
TABLE = PAGE.partition("<!-- made by `make images-docs` -->")[2].partition("<!-- end -->")[0]


def test_the_table_of_the_page_names_the_images_that_there_are() -> None:
    named = re.findall(r"^\| `([\w.-]+)` \|", TABLE, re.MULTILINE)
    assert sorted(named) == sorted({"root", *FLEET.folders}), "run `make images-docs`"


@pytest.mark.parametrize("name", FLEET.runnable)
def test_the_table_tells_version_and_licence_of_each_cli(name: str) -> None:
    adapter = FLEET.adapter(name)
    assert f"| `{name}` | {adapter.version} | {adapter.licence} |" in TABLE, "run `make images-docs`"


@pytest.mark.parametrize("name", FLEET.runnable)
def test_each_cli_has_a_licence(name: str) -> None:
    licence = FLEET.adapter(name).licence
    assert licence == "proprietary" or re.fullmatch(r"[A-Z][\w.-]+", licence), "an SPDX id, or proprietary"


def test_the_page_names_the_proprietary_clis() -> None:
    names = [name for name in FLEET.runnable if FLEET.adapter(name).licence == "proprietary"]
    (said,) = re.findall(r"^\*\*Proprietary CLIs\*\* \((.*?)\)", PAGE, re.MULTILINE)
    assert set(names) <= set(re.findall(r"`([\w-]+)`", said))


def test_what_is_not_known_is_a_dash_and_what_cannot_be_had_says_why() -> None:
    images = [
        Listed("base", False, None, None, "current", size=1_637_270_222, build_s=158.6),
        Listed("init", False, None, None, "current", size=58_552),
        Listed("agent", True, "1.2", "MIT", "not built"),
        Listed("gone", True, None, None, "unavailable", "no registry has it"),
    ]
    assert images_table(images).splitlines()[2:] == [
        "| `base` |  |  | 1637 | – | 159 |",
        "| `init` |  |  | 0.06 | – | – |",
        "| `agent` | 1.2 | MIT | – | – | – |",
        "| `gone` | cannot be had: no registry has it | | | | |",
    ]
