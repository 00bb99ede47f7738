"""Where cab's own files are (images, tasks, plugins, docs, lock, PID 1), and places as people type them."""

from __future__ import annotations

import shlex
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_CARRIED = _PACKAGE / "carried"
INSTALLED = _CARRIED.is_dir()
"""Whether this cab came as a wheel: that carries adapters, tasks, plugins and suites, and makes no images."""
ROOT = _CARRIED if INSTALLED else _PACKAGE.parent
IMAGES = ROOT / "images"
TASKS = ROOT / "tasks"
PLUGINS = ROOT / "plugins"
EXTERNAL = ROOT / "external"
"""Fixtures and suites of `cab external`."""
DOCS = ROOT / "docs"
IMAGES_LOCK = ROOT / "images.lock"
INIT_BINARY = ROOT / "build" / "init"
IMAGE_FILE = ROOT / "image.json"
"""There in a CLI's image for run-cell alone: which image and which cab it is."""
RESULTS = Path("results")
"""Default results directory, relative to where the user is."""


def near(path: Path) -> str:
    """A path from the current directory where it lies below it, else the whole of it."""
    whole, here = path.absolute(), Path.cwd()
    return str(whole.relative_to(here) if whole.is_relative_to(here) else whole)


def cab_command(*words: str, results: Path | None = None, program: str = "cab") -> str:
    """A `cab` command as one would type it; with `-r` where its results are not in their usual place."""
    usual = results is None or results.resolve() == RESULTS.resolve()
    place = [] if usual or results is None else ["-r", near(results)]
    return f"{program} {shlex.join([*words, *place])}"


def resume_command(root: Path, *options: str) -> str:
    """The command that goes on with the sweep whose directory is `root`."""
    return cab_command("sweep", "resume", root.name, *options, results=root.parent)
