"""The one exception tree of cab.

CabError                 something a person can mend; printed as one line, never as a traceback
├── InputError           a sweep, task or argument is wrong (exit code 2)
├── EnvironmentFault     engine, image, permission or disk is missing (exit code 2)
│   ├── NotAllBuilt      some images could not be built, the others are (exit code 1)
│   └── NotAllPulled     some images could not be pulled or found, the others are (exit code 1)
├── PinMismatch          another image digest than the pinned one would run (exit code 2)
├── StoreError           a results directory cannot be read or written (exit code 2)
│   └── NewerThanCab     a newer cab wrote it
└── CellFault            a cell could not be run through no fault of the agent (an `infra_error`)
    └── NotStarted       the command of a container could not be started
"""

from __future__ import annotations


class CabError(Exception):
    """An error that names the thing, the place and the mend.

    `thing` says what is wrong, `place` where (a file with its line, a container, a field), `mend` what to do.
    """

    exit_code = 2

    def __init__(self, thing: str, *, place: str = "", mend: str = "") -> None:
        self.thing = thing
        self.place = place
        self.mend = mend
        super().__init__(thing, place, mend)

    def __str__(self) -> str:
        text = f"{self.place}: {self.thing}" if self.place else self.thing
        return f"{text} ({self.mend})" if self.mend else text


class InputError(CabError):
    """A sweep file, a task directory or an argument is wrong."""


class EnvironmentFault(CabError):
    """The machine lacks something: an engine, an image, a permission, disk space."""


class NotAllBuilt(EnvironmentFault):
    """Some images could not be built. What does not stand on them is built."""

    exit_code = 1


class NotAllPulled(EnvironmentFault):
    """Some images are in no registry or engine, or do not fit this checkout. The others are locked."""

    exit_code = 1


class PinMismatch(CabError):
    """An image other than the pinned one would run."""


class StoreError(CabError):
    """A results directory cannot be read or written."""


class NewerThanCab(StoreError):
    """A newer cab wrote it: it is left as it is, never mended."""


class CellFault(CabError):
    """A cell could not be run, through no fault of the agent.

    `cause` is one of the infra causes of the outcome table (`orchestrator.run.outcome`).
    """

    exit_code = 1

    def __init__(self, cause: str, thing: str, *, place: str = "", mend: str = "") -> None:
        super().__init__(thing, place=place, mend=mend)
        self.cause = cause


class NotStarted(CellFault):
    """The command of a container could not be started: it is not there, or not executable."""
