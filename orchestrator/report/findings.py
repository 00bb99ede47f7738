"""What the rules of integrity found, each with the place and the line that speaks for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console

from orchestrator.report.columns import Column, fit
from orchestrator.report.text import plural, safe_line

MAX_FINDINGS = 20
LINE = 200
_PLACE_LEAST, _EVIDENCE_LEAST = 20, 30
_STYLES = {"severe": "bold red", "note": "yellow"}


def print_findings(integrity: Mapping[str, Any], out: Console) -> None:
    """Print the findings, severe ones first as they are stored; nothing where there is none. A severe one
    voids the cell.
    """
    found = integrity.get("findings") or []
    if not found:
        return
    shown = found[:MAX_FINDINGS]
    columns = [
        Column("finding", [str(it["severity"]) for it in shown], right=False),
        Column("rule", [safe_line(str(it["rule"]).replace("_", " ")) for it in shown], right=False),
        Column("where", [safe_line(_place(it), LINE) for it in shown], right=False, least=_PLACE_LEAST),
        Column(
            "evidence",
            [safe_line(str(it["evidence"]), LINE) for it in shown],
            right=False,
            least=_EVIDENCE_LEAST,
        ),
    ]
    out.print()
    worst = str(found[0]["severity"])
    table, _ = fit(columns, "", out)
    out.print(f"integrity: {plural(len(found), 'finding')}", style=_STYLES.get(worst, ""))
    out.print(table)
    if len(found) > len(shown):
        out.print(f"  … {plural(len(found) - len(shown), 'finding')} more in cell.json")


def _place(finding: Mapping[str, Any]) -> str:
    path, line = finding.get("path"), finding.get("line")
    return "" if not path else f"{path}:{line}" if line else str(path)
