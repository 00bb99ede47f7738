"""How a build of images is shown: a live line in a terminal, plain lines elsewhere. All of it on stderr."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.markup import escape

if TYPE_CHECKING:
    from orchestrator.sandbox.images import Progress

_STEP_WIDTH = 100


class BuildView:
    """Shows the progress of `orchestrator.sandbox.images.build`."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True, highlight=False, soft_wrap=True)
        self._status = self._console.status("looking at images", spinner="dots")

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._status.stop()

    def show(self, progress: Progress) -> None:
        """Show one event."""
        name, detail = escape(progress.image), escape(progress.detail)
        match progress.event:
            case "current":
                self._console.print(f"  {name}: up to date ({detail})")
            case "started":
                self._say(f"  {name}: building", live_only=False)
            case "step":
                self._say(f"  {name}: {detail[:_STEP_WIDTH]}", live_only=True)
            case "built":
                self._console.print(f"  {name}: built as {detail} in {progress.seconds:.1f} s")
            case "failed":
                for line in progress.tail:
                    self._console.print(f"  | {escape(line)}")
                self._console.print(f"  {name}: failed after {progress.seconds:.1f} s")

    def _say(self, text: str, *, live_only: bool) -> None:
        if self._console.is_terminal:
            self._status.update(text)
        elif not live_only:
            self._console.print(text)
