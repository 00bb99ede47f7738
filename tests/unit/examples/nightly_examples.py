"""The files of examples/nightly and docs/nightly.md, and a place below which their commands can be run."""

from __future__ import annotations

import configparser
import os
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples" / "nightly"
SCRIPT = EXAMPLES / "nightly.sh"
PLACES = ("/opt/cab", "/etc/cab", "/etc/systemd/system", "/var/lib/cab")


class Units(configparser.RawConfigParser):
    """Keys of systemd's files are told apart by case, too."""

    def optionxform(self, optionstr: str) -> str:
        return optionstr


def unit(name: str) -> configparser.RawConfigParser:
    """A systemd unit file. A key that stands twice in a section is a fault here."""
    parser = Units(interpolation=None, comment_prefixes=("#", ";"), delimiters=("=",))
    parser.read_string((EXAMPLES / name).read_text())
    return parser


def exec_lines(name: str, instance: str = "") -> list[list[str]]:
    """The commands of a service in their order, as systemd would run them."""
    service = unit(name)["Service"]
    lines = [service[key] for key in ("ExecStartPre", "ExecStart") if key in service]
    return [
        shlex.split(line.replace("%%", "\0").replace("%i", instance).replace("\0", "%")) for line in lines
    ]


def workflow() -> dict[str, Any]:
    data = YAML(typ="safe").load((EXAMPLES / "github-actions.yaml").read_text())
    assert isinstance(data, dict)
    return data


def steps() -> dict[str, str]:
    """The shell of each step of the workflow, by its name."""
    return {step["name"]: step["run"] for step in workflow()["jobs"]["nightly"]["steps"] if "run" in step}


def shell_of_docs() -> list[str]:
    """The shell blocks of docs/nightly.md."""
    return re.findall(r"```sh\n(.*?)```", (ROOT / "docs" / "nightly.md").read_text(), flags=re.DOTALL)


@dataclass
class Machine:
    """A machine below `root`: every absolute place of the examples lies there."""

    root: Path

    def __post_init__(self) -> None:
        for place in PLACES:
            self.at(place).mkdir(parents=True)
        (self.root / "bin").mkdir()
        shutil.copytree(EXAMPLES, self.at("/opt/cab") / "examples" / "nightly")

    @property
    def results(self) -> Path:
        return self.at("/var/lib/cab") / "results"

    def at(self, place: str) -> Path:
        return self.root / place.removeprefix("/")

    def moved(self, text: str) -> str:
        """A text with the places of the examples as they are here."""
        return re.sub(
            rf"(?<![\w/.])({'|'.join(PLACES)})(?=[/\s:\"']|$)", lambda it: str(self.at(it[1])), text
        )

    def program(self, name: str, text: str) -> Path:
        path = self.root / "bin" / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return path

    def run(self, command: list[str] | str, **env: str) -> subprocess.CompletedProcess[str]:
        """Run a command, or a script as CI does, in the clone of this machine."""
        argv = ["/bin/bash", "-e", "-c", self.moved(command)] if isinstance(command, str) else command
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("CAB_", "NIGHTLY_"))}
        return subprocess.run(
            [self.moved(word) for word in argv],
            cwd=self.at("/opt/cab"),
            env=kept | {"PATH": f"{self.root / 'bin'}:{os.environ['PATH']}"} | env,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=60,
            check=False,
        )
