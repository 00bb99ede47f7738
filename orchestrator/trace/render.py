"""What a screen shows of a CLI that prints events instead of its work: those events, as its adapter renders
them.

What a CLI prints is hostile: of a rendered line only text and colours reach the recording, up to a limit.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from orchestrator.sandbox.contract import OutputSink
from orchestrator.trace.recording import for_screen

MAX_LINE_BYTES = 1 << 20
MAX_SHOWN = 64 << 10
"""Characters that one line may come to."""

# The JSON spellings of ESC and CSI, and every other escape, so that `\\u001b` is not taken for one.
_ESCAPES = re.compile(r"\\(?:(u00[19][bB])|.)")
_CONTROL = re.compile(r"(\x1b\[[0-9;:]{0,40}m)|[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class Rendered:
    """An output sink that hands each line of stdout to `render` once its end has come, and what that shows to
    `recorder`, at that time. What `render` cannot read is shown as it came, and so is stderr.

    `close` shows a last line that has no end.
    """

    def __init__(self, recorder: OutputSink, render: Callable[[str], str]) -> None:
        self._recorder = recorder
        self._render = render
        self._line = bytearray()
        self._size = 0
        self._last = 0.0

    def __call__(self, stream: str, at: float, data: bytes) -> None:
        if stream != "stdout":
            self._recorder(stream, at, for_screen(data))
            return
        self._last = at
        *ended, rest = data.split(b"\n")
        for piece in ended:
            self._add(piece)
            self._show()
        self._add(rest)

    def close(self) -> None:
        if self._size:
            self._show()

    def _add(self, piece: bytes) -> None:
        self._size += len(piece)
        self._line += piece[: MAX_LINE_BYTES - len(self._line)]

    def _show(self) -> None:
        if self._size > MAX_LINE_BYTES:
            text = f"[cab: a line of {self._size} bytes is not shown]\n"
        else:
            text = shown(self._render, self._line.decode("utf-8", "replace"))
        self._line.clear()
        self._size = 0
        if text:
            self._recorder("stdout", self._last, for_screen(text.encode("utf-8", "replace")))


def shown(render: Callable[[str], str], line: str) -> str:
    """What a screen shows of one line: text, tabs, line ends, and the colours that `render` itself sets."""
    line = _ESCAPES.sub(lambda found: r"\ufffd" if found[1] else found[0], _harmless(line, colours=False))
    try:
        text = render(line)
        if not isinstance(text, str):
            raise TypeError(f"render returned {type(text).__name__}")
    except Exception:  # noqa: BLE001 - hostile text: a recording does not end by a line of it
        text = line + "\n"
    if len(text) > MAX_SHOWN:
        text = f"{text[:MAX_SHOWN]}\x1b[0m\n[cab: {len(text) - MAX_SHOWN} characters are not shown]\n"
    return _harmless(text, colours=True)


def _harmless(text: str, *, colours: bool) -> str:
    return _CONTROL.sub(
        lambda found: found[0] if colours and found[1] else "\ufffd", text.replace("\r\n", "\n")
    )
