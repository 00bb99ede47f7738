"""`cab explain composite`: the terms of a composite as a table that can be added up by hand."""

from __future__ import annotations

from dataclasses import asdict

from orchestrator.analysis.terms import Explained, Part
from orchestrator.report.columns import Column, fit
from orchestrator.report.text import bounds, console, number, print_json, safe_line

_HOW_LEAST = 24
_DIGITS = 4


def print_explained(cell_id: str, formula: str, said: Explained | str, *, as_json: bool) -> None:
    """Print how a composite came about, or why there is none, results on stdout."""
    if as_json:
        parts = {"reason": said} if isinstance(said, str) else {**asdict(said), "agrees": said.agrees}
        print_json({"cell_id": cell_id, "formula": formula, **parts}, indent=1)
        return
    out = console()
    out.print(f"{formula} of {safe_line(cell_id)}", soft_wrap=True)
    if isinstance(said, str):
        out.print(safe_line(f"no composite: {said}"), soft_wrap=True)
        return
    rows = [_summand(term) for term in said.terms]
    rows.append(("sum", "", "", _between(said.total), ""))
    rows += [(f"× {_name(term)}", "", _value(term), "", _how(term)) for term in said.factors]
    rows.append((formula, "", "", _between(said.value), "as stored" if said.agrees else ""))
    names, weights, values, adds, hows = zip(*rows, strict=True)
    columns = [
        Column("term", names, right=False),
        Column("weight", weights),
        Column("value", values),
        Column("adds", adds),
        Column("how", hows, right=False, least=_HOW_LEAST),
    ]
    out.print(fit(columns, "", out)[0])
    if said.reason:
        out.print(safe_line(f"no composite, only bounds of it: {said.reason}"), soft_wrap=True)
    if said.agrees is False:
        stored = number(said.recorded, 6) if said.recorded is not None else _between(said.bounds)
        out.print(
            f"these terms do not give what is stored, {stored}: the record was made by another version, "
            "or was changed",
            soft_wrap=True,
            style="bold red",
        )
    out.print("The numbers of the axes are what was measured; a composite is derived from them.", style="dim")


def _summand(term: Part) -> tuple[str, str, str, str, str]:
    return _name(term), f"{term.weight:.2f}", _value(term), _between(term.adds), _how(term)


def _name(term: Part) -> str:
    return term.name.replace("_", " ")


def _value(term: Part) -> str:
    return _between((term.low, term.high))


def _how(term: Part) -> str:
    return safe_line(f"{term.how}: {term.reason}" if term.reason else term.how)


def _between(value: tuple[float, float] | None) -> str:
    """A number, or where it was not measured what it lies between."""
    if value is None:
        return number(None)
    low, high = value
    return number(low, _DIGITS) if low == high else bounds(low, high)
