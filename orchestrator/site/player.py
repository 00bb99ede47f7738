"""The player of recordings: asciinema-player, which set-up puts beside this file and the wheel carries."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from orchestrator.site.output import File

_FOLDER = Path(__file__).parent / "vendor" / "asciinema-player"
_FILES = ("asciinema-player.min.js", "asciinema-player.css", "LICENSE")

PLAYER = all((_FOLDER / name).is_file() for name in _FILES)
"""Whether it is there; without it a site has recordings as files alone."""


def player_files() -> Iterator[File]:
    """The player as files of the site, with its licence."""
    if PLAYER:
        for name in _FILES:
            yield File(f"vendor/asciinema-player/{name}", _FOLDER / name)
