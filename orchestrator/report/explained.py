"""`cab explain composite`: the terms of a composite as a table that can be added up by hand."""

from __future__ import annotations

from dataclasses import asdict

from orchestrator.analysis.explain import Explanation, Term
from orchestrator.report.columns import Column, fit
from orchestrator.report.text import NOT_MEASURED, bounded, console, number, print_json, safe_line

_HOW_LEAST = 24
_DIGITS = 4


def print_explanation(cell_id: str, said: Explanation, *, as_json: bool) -> None:
    """Print how a composite came about, results on stdout."""
    if as_json:
        data = asdict(said) | {"cell_id": cell_id, "sum": said.sum, "recomputed": said.recomputed}
        print_json(data, indent=1)
        return
    out = console()
    out.print(f"{said.formula} of {safe_line(cell_id)}", soft_wrap=True)
    if said.summands:
        rows = [*_summands(said), ("sum", "", "", number(said.sum, _DIGITS), "")]
        rows += [_factor(term) for term in said.factors]
        rows.append((said.formula, "", "", _shown(said), "as stored" if said.holds else ""))
        names, weights, values, adds, hows = zip(*rows, strict=True)
        columns = [
            Column("term", names, right=False),
            Column("weight", weights),
            Column("value", values),
            Column("adds", adds),
            Column("how", hows, right=False, least=_HOW_LEAST),
        ]
        out.print(fit(columns, "", out)[0])
    if said.reason is not None:
        out.print(safe_line(f"no composite: {said.reason}"), soft_wrap=True)
    if said.holds is False:
        out.print(
            f"these terms give {number(said.recomputed, 6)}, and {number(said.composite, 6)} is stored: "
            "the record was made by another version, or was changed",
            soft_wrap=True,
            style="bold red",
        )
    out.print("The numbers of the axes are what was measured; a composite is derived from them.", style="dim")


_Row = tuple[str, str, str, str, str]


def _summands(said: Explanation) -> list[_Row]:
    return [
        (_name(term), f"{term.weight:.2f}", _value(term), number(term.adds, _DIGITS), safe_line(term.how))
        for term in said.summands
    ]


def _factor(term: Term) -> _Row:
    return (f"× {_name(term)}", "", _value(term), "", safe_line(term.how))


def _name(term: Term) -> str:
    return term.name.replace("_", " ")


def _value(term: Term) -> str:
    return NOT_MEASURED if term.value is None else number(term.value, _DIGITS)


def _shown(said: Explanation) -> str:
    """The stored composite, or where a term was not measured the bounds that the others leave."""
    return bounded(said.composite, said.bounds) if said.composite is None else number(said.composite, _DIGITS)
