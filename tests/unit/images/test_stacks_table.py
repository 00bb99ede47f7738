"""The table of docs/stacks.md: what of a stack each CLI takes, and where it stands, as its adapter says."""

from __future__ import annotations

from pathlib import Path

from orchestrator.adapter import Adapter, PluginKind, SettingsPlace
from orchestrator.fleet import Fleet

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "stacks.md").read_text("utf-8")
TABLE = PAGE.partition("<!-- by adapter -->\n")[2].partition("<!-- end -->")[0]


def test_the_table_of_the_page_is_what_the_adapters_say() -> None:
    fleet = Fleet(ROOT / "images")
    adapters = [fleet.adapter(name) for name in fleet.runnable]
    rows = [_row(adapter) for adapter in adapters if adapter.uses_model]
    head = "| CLI | rules | MCP servers | settings | arguments |\n| --- | --- | --- | --- | --- |"
    assert "\n".join((head, *rows, "")) == TABLE


def _row(adapter: Adapter) -> str:
    servers, settings = adapter.mcp and adapter.mcp.place, adapter.settings
    cells: dict[PluginKind, str | None] = {
        "rules": adapter.rules_file and f"`{adapter.rules_file}`",
        "mcp": servers and _place(servers),
        "settings": settings and _place(settings),
        "args": None if adapter.args_at is None else "yes",
    }
    said = (place or f"none: {adapter.not_taken[kind]}" for kind, place in cells.items())
    return f"| `{adapter.name}` | {' | '.join(said)} |"


def _place(place: SettingsPlace) -> str:
    return f"`~/{place.file}`" if place.file else f"`${place.env}`"
