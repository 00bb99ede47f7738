"""`--only`: globs over cell ids as tables print them; one that names nothing is told with the nearest."""

from __future__ import annotations

import pytest

from orchestrator.errors import InputError
from orchestrator.plan.expand import Plan, PlannedCell
from orchestrator.plan.only import choose, matches
from orchestrator.store.names import CellKey

KEYS = [
    CellKey(cli, model, task, run)
    for cli, model in (("opencode", "openai/gpt"), ("opencode", "embedded/idle"), ("noop", "none"))
    for task in ("polyglot/sum", "integrity/no")
    for run in (1, 2)
]
PLAN = Plan(
    tuple(PlannedCell(key.cell_id("s-1"), key, None, at) for at, key in enumerate(KEYS)),
    ((CellKey("opencode", "paid/model", "polyglot/sum").cell_id("s-1"), "CAB_KEY is not set"),),
)


@pytest.mark.parametrize(
    ("globs", "amount"),
    [
        ([], 12),
        (["opencode/*"], 8),
        (["*/polyglot/*"], 6),
        (["*/openai/gpt/*"], 4),
        (["noop/none/polyglot/sum"], 2),
        (["noop/none/polyglot/sum#run2"], 1),
        (["*#run1"], 6),
        (["s-1/noop/*"], 4),
        (["s-1/noop/none/integrity/no"], 2),
        (["noop/*", "*/sum", "opencode/embedded/idle/polyglot/sum"], 8),
    ],
)
def test_globs_name_cells_as_people_see_them(globs: list[str], amount: int) -> None:
    chosen = choose(PLAN, globs)
    assert len(chosen) == amount
    assert list(chosen) == [cell for cell in PLAN.cells if cell in chosen]
    assert all(matches(cell.cell_id, globs) for cell in chosen)


@pytest.mark.parametrize(
    ("glob", "says"),
    [
        ("opencod/*", r"--only 'opencod/\*' names no cell of this sweep \(did you mean 'opencode/\*'\?\)"),
        ("polyglot/*", r"did you mean '\*/polyglot/\*'\?"),
        ("*/polyglot/summ", r"did you mean '\*/polyglot/sum'\?"),
        ("noop/nonne/polyglot/sum", r"did you mean 'noop/none/polyglot/sum'\?"),
        ("zz", r"as one of: opencode/\*, noop/\*\)"),
        ("*/paid/*", "names only cells that are skipped: CAB_KEY is not set"),
    ],
)
def test_one_that_names_nothing_is_refused_with_what_may_have_been_meant(glob: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        choose(PLAN, ["noop/*", glob])
