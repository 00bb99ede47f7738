"""Badges: one line of two fields as SVG, of a width that its text fits in whatever font draws it.

Pure functions from words to text: the same words give the same bytes.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Literal
from xml.sax.saxutils import escape, quoteattr

Tone = Literal["passed", "failed", "result", "unmeasured", "pipeline", "imported"]

COLOURS: dict[Tone, str] = {
    "passed": "#1a7f37",
    "failed": "#b42318",
    "result": "#0b5cad",
    "unmeasured": "#57606a",
    "pipeline": "#7a4d00",
    "imported": "#6639ba",
}
"""Grounds of the message. White text on each has a contrast of 5 or more."""

LABEL_GROUND = "#3d444d"
TEXT = "#ffffff"
HEIGHT = 20
MAX_CHARACTERS = 72
"""Of a field; what is longer is cut in its middle, where names of one family are alike."""

_FONT_SIZE = 11
_PADDING = 6
_BASELINE = 14
_RADIUS = 3

_WIDTHS = (
    *(318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361, 318, 337),
    *(636, 636, 636, 636, 636, 636, 636, 636, 636, 636, 337, 337, 838, 838, 838, 531),
    *(1000, 684, 686, 698, 770, 632, 575, 775, 752, 295, 295, 656, 557, 863, 748, 787),
    *(603, 787, 695, 635, 611, 732, 684, 989, 685, 611, 685, 390, 337, 390, 838, 500),
    *(500, 613, 635, 550, 635, 615, 352, 635, 634, 278, 278, 579, 278, 974, 634, 612),
    *(635, 635, 411, 521, 392, 634, 592, 818, 592, 592, 525, 636, 337, 636, 838),
)
"""Advance widths of U+0020 to U+007E in DejaVu Sans, in thousandths of the font's size. Verdana's, which most
readers have, are nearly these; `textLength` makes up for the rest."""

_MORE_WIDTHS = {"×": 838, "–": 500, "…": 1000, "·": 318, "\ufffd": 1025}
_UNKNOWN = 700


@dataclass(frozen=True)
class Badge:
    """What a badge says: `label` on dark ground, `message` on that of its tone, `title` in whole sentences
    for those who hear it or point at it.
    """

    label: str
    message: str
    tone: Tone
    title: str


def text_width(text: str) -> float:
    """The width of a text in pixels, at the size in which badges are set."""
    return sum(map(_advance, text)) * _FONT_SIZE / 1000


def svg(badge: Badge) -> str:
    """The badge as a document of its own, for `<img>`: nothing in it is loaded or run."""
    label, message = _shown(badge.label), _shown(badge.message)
    left = round(text_width(label)) + 2 * _PADDING
    right = round(text_width(message)) + 2 * _PADDING
    said = _clean(f"{badge.label}: {badge.message}. {badge.title}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="{HEIGHT}" '
        f'viewBox="0 0 {left + right} {HEIGHT}" role="img" aria-label={quoteattr(said)}>'
        f"<title>{escape(said)}</title>"
        f'<path fill="{LABEL_GROUND}" d="{_left_ground(left)}"/>'
        f'<path fill="{COLOURS[badge.tone]}" d="{_right_ground(left, right)}"/>'
        f'<g fill="{TEXT}" font-family="Verdana,Geneva,DejaVu Sans,sans-serif" font-size="{_FONT_SIZE}" '
        'aria-hidden="true">'
        f"{_text(label, _PADDING, left - 2 * _PADDING)}"
        f"{_text(message, left + _PADDING, right - 2 * _PADDING)}"
        "</g></svg>\n"
    )


def _text(text: str, x: int, width: int) -> str:
    length = f' textLength="{width}" lengthAdjust="spacingAndGlyphs"' if text else ""
    return f'<text x="{x}" y="{_BASELINE}"{length}>{escape(text)}</text>'


def _left_ground(width: int) -> str:
    """A box whose left corners are round. Drawn, not clipped: a clip needs an id, and two badges that stand
    in one document would have the same.
    """
    r = _RADIUS
    return f"M{r} 0H{width}V{HEIGHT}H{r}A{r} {r} 0 0 1 0 {HEIGHT - r}V{r}A{r} {r} 0 0 1 {r} 0Z"


def _right_ground(left: int, width: int) -> str:
    end, r = left + width, _RADIUS
    return (
        f"M{left} 0H{end - r}A{r} {r} 0 0 1 {end} {r}V{HEIGHT - r}A{r} {r} 0 0 1 {end - r} {HEIGHT}H{left}Z"
    )


def _shown(text: str) -> str:
    text = _clean(text)
    if len(text) <= MAX_CHARACTERS:
        return text
    head = MAX_CHARACTERS // 2
    return f"{text[:head]}…{text[head - MAX_CHARACTERS + 1 :]}"


def _clean(text: str) -> str:
    """Without what XML cannot hold, and what would turn or stack the letters around it."""
    return "".join(
        char if char.isprintable() and unicodedata.category(char) not in ("Mn", "Me") else "\ufffd"
        for char in text
    )


def _advance(char: str) -> int:
    if " " <= char <= "~":
        return _WIDTHS[ord(char) - 0x20]
    if char in _MORE_WIDTHS:
        return _MORE_WIDTHS[char]
    return 1000 if unicodedata.east_asian_width(char) in "WF" else _UNKNOWN
