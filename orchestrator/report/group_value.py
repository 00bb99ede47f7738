"""What groups of a state are worth, for people and programs."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from orchestrator.context.fixtures import Measure
from orchestrator.context.value import BASELINE, CRITICAL, LOSS, PRICE, SHARE, Effect, GroupValue, Value
from orchestrator.report.columns import Column, fit
from orchestrator.report.continuation import WORDS
from orchestrator.report.forms import Form, print_csv
from orchestrator.report.markdown import escaped, table
from orchestrator.report.text import NOT_MEASURED, console, count, plural, print_json, safe_line

_HEAD = (
    *("intervention", "lost", "gained", "of", "worth", "tokens", "compact_tokens", "share", "refused"),
    *("carried_in", "label", "unsure", "reason"),
)


def print_value(found: Value, form: Form) -> None:
    """On stdout: a label for each group, then every intervention beside `compact`."""
    if form == "json":
        print_json(as_data(found))
    elif form == "csv":
        print_csv(_HEAD, _rows(found))
    elif form == "markdown":
        sys.stdout.write(markdown(found))
    else:
        out = console()
        title = f"groups, over {plural(found.fixtures, 'fixture')}"
        out.print(fit(_group_columns(found.groups), title, out)[0])
        out.print(fit(_effect_columns(found.effects), f"\ninterventions beside {BASELINE}", out)[0])
        for line in _turned(found):
            out.print(safe_line(line, 1000), soft_wrap=True)


def markdown(found: Value) -> str:
    """Both tables, and what is met without a group alone, as Markdown."""
    return "\n".join(
        [
            f"{plural(found.fixtures, 'fixture')}, beside `{BASELINE}`.\n",
            table(_group_columns(found.groups)),
            table(_effect_columns(found.effects)),
            "".join(f"- {escaped(line)}\n" for line in _turned(found)),
        ]
    )


def as_data(found: Value) -> dict[str, Any]:
    """Labels, effects and the thresholds that labels come from; shares are of 1."""
    return {
        "fixtures": found.fixtures,
        "baseline": BASELINE,
        "thresholds": {"critical": sorted(CRITICAL), "loss": LOSS, "share": SHARE, "price": PRICE},
        "groups": [
            {
                "group": one.group,
                "label": one.label,
                "unsure": list(one.unsure),
                "reason": one.reason,
                "effect": one.effect.intervention,
            }
            for one in found.groups
        ],
        "effects": [asdict(one) | {"worth": one.worth, "share": one.share} for one in found.effects],
    }


def _rows(found: Value) -> list[tuple[object, ...]]:
    groups = {one.effect.intervention: one for one in found.groups}
    rows: list[tuple[object, ...]] = []
    for one in found.effects:
        numbers = (len(one.lost), len(one.gained), one.of, one.worth, one.tokens, one.base_tokens, one.share)
        of = groups.get(one.intervention)
        said = (of.label, " ".join(of.unsure), of.reason) if of else (None, None, None)
        rows.append((one.intervention, *numbers, one.refused, one.carried, *said))
    return rows


def _group_columns(groups: Sequence[GroupValue]) -> list[Column]:
    return [
        Column("group", [one.group for one in groups], right=False),
        Column("label", [one.label or NOT_MEASURED for one in groups], right=False),
        Column("without one fixture also", [", ".join(one.unsure) for one in groups], right=False, worth=1),
        Column("carried in", [count(one.effect.carried) for one in groups]),
        Column("tokens", [f"{100 * one.effect.share:.1f} %" for one in groups]),
        Column("net loss", [f"{100 * one.effect.worth:.1f} %" for one in groups]),
        Column("lost without it", [_counts(one.effect.lost) for one in groups], right=False, least=24),
        Column("met without it alone", [_counts(one.effect.gained) for one in groups], right=False, worth=2),
    ]


def _effect_columns(effects: Sequence[Effect]) -> list[Column]:
    return [
        Column("intervention", [one.intervention for one in effects], right=False),
        Column("lost", [count(len(one.lost)) for one in effects]),
        Column("gained", [count(len(one.gained)) for one in effects]),
        Column(f"met by {BASELINE}", [count(one.of) for one in effects]),
        Column("net loss", [f"{100 * one.worth:.1f} %" for one in effects]),
        Column("tokens", [count(one.tokens) for one in effects]),
        Column(f"of {BASELINE}", [count(one.base_tokens) for one in effects]),
        Column("saved", [f"{100 * one.share:.1f} %" for one in effects]),
        Column("refused", [count(one.refused) for one in effects]),
    ]


def _counts(these: Sequence[tuple[Measure, str]]) -> str:
    """How many of each measure: `facts 8, files 1`."""
    counts = Counter(measure for measure, _ in these)
    return ", ".join(f"{measure.replace('_', ' ')} {amount}" for measure, amount in counts.most_common())


def _turned(found: Value) -> list[str]:
    """What is met only without a group, by name: these are few, and each is a fault."""
    return [
        f"without {one.group} alone: {WORDS[measure]}, {what}"
        for one in found.groups
        for measure, what in one.effect.gained
    ]
