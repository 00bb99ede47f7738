"""The list of snapshots that the site's folder keeps."""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator.site import links
from orchestrator.site.output import Page
from orchestrator.site.source import Source


def pages(source: Source) -> Iterator[Page]:
    digests = tuple(f"{it.name} {it.digest}" for it in source.snapshots)
    yield Page(links.SNAPSHOTS, "snapshots.html", lambda: {"snapshots": source.snapshots}, digests)
