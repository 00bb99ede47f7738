"""`cab site build` and `serve` as a user calls them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from orchestrator.cli.site_cmd import site
from orchestrator.errors import InputError
from orchestrator.run.import_published import import_published
from orchestrator.store.published import read_published

ROOT = Path(__file__).resolve().parents[3]
PUBLISHED = ROOT / "tests" / "data" / "published_cells.json"


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a `results` as an import leaves it."""
    folder = tmp_path_factory.mktemp("here")
    import_published(read_published(PUBLISHED), PUBLISHED, folder / "results", replace=False)
    return folder


@pytest.fixture
def build(here: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    monkeypatch.chdir(here)
    return lambda *arguments: CliRunner().invoke(site, ["build", *arguments])


def test_one_command_goes_from_results_to_a_site(here: Path, build: Callable[..., Result]) -> None:
    done = build()
    assert done.exit_code == 0, done.output
    assert done.stdout == "site/index.html\n"
    assert re.fullmatch(r"\d+ files written, 0 up to date, 0 removed in site\n", done.stderr)
    assert "imported" in (here / "site" / "index.html").read_text("utf-8")
    whole = "".join(path.read_text("utf-8") for path in (here / "site").rglob("*.html"))
    assert str(here) not in whole
    assert build("results", "-o", "site").stderr.startswith("0 files written")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["empty"], "there is no finished cell"),
        (["missing"], "there is no such directory"),
        (["results", "-o", "results"], "holds something, and no site"),
        (["results", "-o", "new", "--base-url", "results.example"], "is no address of a site"),
    ],
)
def test_bad_input_says_what_where_and_how_to_mend_it(
    here: Path, build: Callable[..., Result], arguments: list[str], said: str
) -> None:
    (here / "empty").mkdir(exist_ok=True)
    error = build(*arguments).exception
    assert isinstance(error, InputError)
    assert said in error.thing
    assert error.place
    assert error.mend
    assert not (here / "new").exists()


def test_serve_builds_prints_the_address_and_ends_quietly(here: Path) -> None:
    running = subprocess.Popen(
        [
            *(sys.executable, "-m", "orchestrator.cli", "site", "serve", "-o", "served", "--port", "0"),
            *("--base-url", "https://results.example/cab/"),
        ],
        cwd=here,
        env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert running.stdout is not None
    address = running.stdout.readline().strip()
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/", address)
    with urllib.request.urlopen(f"{address}index.html", timeout=60) as answer:
        said = answer.read()
        assert b"Leaderboard" in said
        # A look before the folder is copied to its host does not take its address away.
        assert b"https://results.example/cab/" in said
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=60)
    assert running.returncode == 0
    assert "Traceback" not in err
    assert (here / "served" / "index.html").is_file()
