"""A trace as markup: its drawing, and the table that lists it.

Made here and not by a template: a site has hundreds of thousands of spans, and a template takes four times as
long for each.
"""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup, escape

from orchestrator.site.cell.trace import LANE_PX, Span

_MIN_WIDTH = 2.5
"""Of a bar, so that a short span can be seen and hit."""
_GAP = 2
"""Above and below a bar, in its lane."""
_MAX_DEPTH = 5
"""Deeper spans are set in as far as these."""


def bars(spans: Sequence[Span]) -> Markup:
    """A rectangle for each span."""
    kinds = _escaped([span.kind for span in spans])
    return Markup(  # numbers, and what `_escaped` gives
        "\n".join(
            f'<rect class="span kind-{kind}{" failed" if span.failed else ""}" data-span="{span.number}" '
            f'x="{span.x}" y="{span.lane * LANE_PX + _GAP}" width="{max(span.width, _MIN_WIDTH)}" '
            f'height="{LANE_PX - 2 * _GAP}"/>'
            for span, kind in zip(spans, kinds, strict=True)
        )
    )


def rows(spans: Sequence[Span]) -> Markup:
    """A row of the table for each span."""
    fields = [(span.id, span.ids, span.kind, span.name, span.attributes) for span in spans]
    escaped = iter(_escaped([text for row in fields for text in row]))
    return Markup(  # numbers, and what `_escaped` gives
        "\n".join(_row(span, *(next(escaped) for _ in range(5))) for span in spans)
    )


def _row(span: Span, id_: str, ids: str, kind: str, name: str, attributes: str) -> str:
    failed = ' <span class="failed-word">failed</span>' if span.failed else ""
    details = (
        f'<details><summary>{span.known}</summary><pre class="attributes">{attributes}</pre></details>'
        if span.known
        else ""
    )
    return (
        f'<tr data-span="{span.number}" data-id="{id_}" data-start="{span.start}" data-end="{span.end}" '
        f'data-depth="{span.depth}">'
        f'<th scope="row" class="depth-{min(span.depth, _MAX_DEPTH)}">{name}{failed}</th>'
        f'<td>{kind}</td><td class="num">{span.begins}</td><td class="num">{span.took}</td>'
        f'<td class="nowrap"><code>{ids}</code></td><td>{details}</td></tr>'
    )


def _escaped(texts: Sequence[str]) -> list[str]:
    """Texts for elements and quoted attributes, escaped at once. What parts them is in none: a trace's texts
    are lines without control characters.
    """
    return str(escape("\0".join(texts))).split("\0") if texts else []
