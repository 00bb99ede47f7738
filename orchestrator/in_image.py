"""Which image this is: `image.json`, which the build of a CLI's image for run-cell lays beside cab."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.errors import EnvironmentFault
from orchestrator.paths import ROOT

IMAGE_FILE = ROOT / "image.json"


@dataclass(frozen=True)
class ThisImage:
    """`parent_id` and `parent_tag` are the CLI's own image, which sweeps run; `env` is the environment that
    it sets. `version`, `commit` and `dirty` are of the cab inside; the last two are None where it was built
    outside a git checkout.
    """

    cli: str
    cli_version: str
    parent_id: str
    parent_tag: str
    env: dict[str, str]
    version: str
    commit: str | None
    dirty: bool | None


def inside() -> bool:
    """Whether this cab is the one of an image for run-cell."""
    return IMAGE_FILE.is_file()


def this_image(file: Path = IMAGE_FILE) -> ThisImage:
    """Raises EnvironmentFault where this is no such image."""
    try:
        found: dict[str, Any] = json.loads(file.read_bytes())
        return ThisImage(
            cli=found["cli"],
            cli_version=found["cli_version"],
            parent_id=found["parent"]["id"],
            parent_tag=found["parent"]["tag"],
            env=found["env"],
            version=found["cab"]["version"],
            commit=found["cab"]["commit"],
            dirty=found["cab"]["dirty"],
        )
    except (OSError, ValueError, KeyError):
        raise EnvironmentFault(
            "run-cell runs inside a CLI's image, and this is none",
            place=str(file),
            mend="docker run --rm IMAGE run-cell …; `cab cell show CELL` prints the whole command of a cell",
        ) from None
