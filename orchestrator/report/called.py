"""Commands for people to run next, written so that they work where this one was called."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from pathlib import Path

from orchestrator.paths import near, results_option

_MAIN = Path(__file__).resolve().parents[1] / "cli" / "__main__.py"
_A_COMMAND = re.compile(r"(?<![\w./-])cab (?=(?:sweep|cell|task|import|images|doctor|--help)\b)")


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
    """A `cab` command as one would type it here; with `-r` where results are not in their usual place."""
    place = [] if results is None else results_option(results)
    return f"{called()} {shlex.join([*words, *place])}"


def as_called(text: str) -> str:
    """A text with the `cab` commands in it as they are called here."""
    return _A_COMMAND.sub(lambda _: f"{called()} ", text)
