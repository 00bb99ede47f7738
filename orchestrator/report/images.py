"""The images as a table for a terminal, and as the one of docs/images.md."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.report.columns import Column, fit
from orchestrator.report.text import console, plural, safe_line
from orchestrator.sandbox.images.listing import Listed
from orchestrator.sandbox.images.sbom import Component

_NOT_KNOWN = "–"
_NAME_LEAST, _WHY_LEAST = 12, 20


def print_images(images: Sequence[Listed]) -> None:
    """Print what there is and what is built of it."""
    columns = [
        Column("image", [image.name for image in images], right=False, least=_NAME_LEAST),
        Column("version", [image.version or "" for image in images], right=False),
        Column("MB", [_megabytes(image.size) if image.size else "" for image in images]),
        Column("licence", [image.licence or "" for image in images], worth=2, right=False),
        Column("built", [_minute(image.built_at) for image in images], worth=1, right=False),
        Column("state", [image.state for image in images], right=False),
        Column("run-cell", [image.run_cell or "" for image in images], worth=3, right=False),
    ]
    if any(image.reason for image in images):
        columns.append(Column("why", [image.reason or "" for image in images], right=False, least=_WHY_LEAST))
    built = sum(image.size is not None for image in images)
    out = console()
    table, _ = fit(columns, f"{plural(len(images), 'image')}, {built} built", out)
    out.print(table)


def print_components(name: str, found: Sequence[Component]) -> None:
    """Print what is in an image."""
    columns = [
        Column("kind", [it.kind for it in found], right=False),
        Column("name", [it.name for it in found], right=False),
        Column("version", [it.version for it in found], right=False),
        Column("licence", [safe_line(it.licence or "", 60) for it in found], right=False, least=_WHY_LEAST),
    ]
    out = console()
    table, _ = fit(columns, f"{name}: {plural(len(found), 'component')}", out)
    out.print(table)


def images_table(images: Sequence[Listed]) -> str:
    """The same in Markdown, with what each adds to the image it stands on and how long its build took."""
    rows = [
        "| image | version | licence | MB | adds MB | build s |",
        "| --- | --- | --- | ---: | ---: | ---: |",
    ]
    for image in images:
        name = f"`{image.name}`"
        if image.state == "unavailable":
            rows.append(f"| {name} | cannot be had: {image.reason} | | | | |")
            continue
        numbers = (_megabytes(image.size), _megabytes(image.added), _seconds(image.build_s))
        rows.append(f"| {' | '.join((name, image.version or '', image.licence or '', *numbers))} |")
    return "\n".join(rows) + "\n"


def _minute(moment: str | None) -> str:
    return (moment or "")[:16].replace("T", " ")


def _megabytes(size: int | None) -> str:
    if size is None:
        return _NOT_KNOWN
    return f"{size / 1e6:.0f}" if size >= 1e6 else f"{size / 1e6:.2f}"


def _seconds(seconds: float | None) -> str:
    return _NOT_KNOWN if seconds is None else f"{seconds:.0f}"
