"""Where cab's own files are: images, tasks, the image lock and the built PID 1."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "images"
TASKS = ROOT / "tasks"
IMAGES_LOCK = ROOT / "images.lock"
INIT_BINARY = ROOT / "build" / "init"
RESULTS = Path("results")
"""Default results directory, relative to where the user is."""
