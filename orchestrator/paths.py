"""Where cab's own files are (images, tasks, image lock, the built PID 1), and places as people type them."""

from __future__ import annotations

import shlex
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "images"
TASKS = ROOT / "tasks"
IMAGES_LOCK = ROOT / "images.lock"
INIT_BINARY = ROOT / "build" / "init"
RESULTS = Path("results")
"""Default results directory, relative to where the user is."""


def near(path: Path) -> str:
    """A path from the current directory where it lies below it, else the whole of it."""
    whole, here = path.absolute(), Path.cwd()
    return str(whole.relative_to(here) if whole.is_relative_to(here) else whole)


def results_option(results: Path) -> list[str]:
    """The words that lead a command to a results directory: none where it is the usual one."""
    return [] if results.resolve() == RESULTS.resolve() else ["-r", near(results)]


def resume_command(root: Path) -> str:
    """The command that goes on with the sweep whose directory is `root`."""
    return shlex.join(["cab", "sweep", "resume", root.name, *results_option(root.parent)])
