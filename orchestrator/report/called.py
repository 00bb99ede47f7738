"""Commands for people to run next, written so that they work where this one was called."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from pathlib import Path

from orchestrator.paths import cab_command, near

_MAIN = Path(__file__).resolve().parents[1] / "cli" / "__main__.py"
_A_COMMAND = re.compile(
    r"(?<![\w./-])cab (?=(?:sweep|report|compare|cell|task|import|images|check|doctor|--help)\b)"
)


def called() -> str:
    """`cab` as it was called: by that name where PATH leads to the one that runs, else by its path."""
    invoked = Path(sys.argv[0])
    if invoked.name == "__main__.py" and invoked.resolve() == _MAIN:
        return f"{shlex.quote(near(Path(sys.executable)))} -m orchestrator.cli"
    if invoked.name != "cab" or not invoked.is_file():
        return "cab"
    found = shutil.which("cab")
    if found and Path(found).samefile(invoked):
        return "cab"
    path = near(invoked)
    return shlex.quote(path if "/" in path else f"./{path}")


def command(*words: str, results: Path | None = None) -> str:
    """`cab_command`, so that it works where this one was called."""
    return cab_command(*words, results=results, program=called())


def as_called(text: str) -> str:
    """A text with the `cab` commands in it as they are called here."""
    return _A_COMMAND.sub(lambda _: f"{called()} ", text)
