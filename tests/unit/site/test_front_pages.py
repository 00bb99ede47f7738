"""The leaderboard, the matrix, trade-offs, the guide and the compare page: what they say of whom."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from site_samples import TASKS, matrix, results

from orchestrator.site.axes import AXES, PASS, why_unranked
from orchestrator.site.boards import Board, boards
from orchestrator.site.build import build
from orchestrator.site.pages import guide, leaderboard, pareto
from orchestrator.site.pages import matrix as matrix_page
from orchestrator.site.pages.compare import units_data
from orchestrator.site.render import percent
from orchestrator.site.source import Source
from orchestrator.store.index import IndexEntry
from orchestrator.store.names import CellKey

MANY = tuple(f"polyglot/task-{number}" for number in range(12))
Change = Callable[[IndexEntry], dict[str, Any]]


def source(folder: Path, *cells: IndexEntry, change: Change = lambda _: {}) -> Source:
    changed = [cell.model_copy(update=change(cell)) for cell in cells]
    return Source.read([results(folder, "free-1", changed)])


def board(given: Source) -> Board:
    [found] = [it for it in boards(given) if it.kind == "result"]
    return found


def fails(*clis: str) -> Change:
    return lambda cell: {"passed": 0.0} if cell.cli in clis else {}


def test_a_place_is_a_range_and_only_intervals_that_part_make_an_order(tmp_path: Path) -> None:
    cells = matrix("free-1", ("aider", "codex", "pi"), ("m",), MANY, runs=3)
    rows = {row.contestant: row for row in board(source(tmp_path, *cells, change=fails("pi"))).rows}
    assert {cli: str(row.places["pass"]) for cli, row in rows.items()} == {
        "aider": "1–2",
        "codex": "1–2",
        "pi": "3",
    }
    assert all("pass" not in row.unranked for row in rows.values())


@pytest.mark.parametrize(
    ("changes", "runs", "why"),
    [
        ({}, 2, "fewer than 3 runs"),
        ({"claim": "provisional"}, 3, "claim: provisional"),
        ({"claim": "imported"}, 3, "claim: imported"),
    ],
)
def test_no_place_without_the_claim_for_it(
    tmp_path: Path, changes: dict[str, Any], runs: int, why: str
) -> None:
    cells = matrix("free-1", ("aider", "codex"), ("m",), MANY, runs=runs, **changes)
    for row in board(source(tmp_path, *cells)).rows:
        assert not row.places
        assert row.unranked["pass"].startswith(why)


def test_no_place_below_the_coverage_and_none_on_fewer_tasks(tmp_path: Path) -> None:
    lost = {"outcome": "infra_error", "cause": "rate_limited", "counted": False, "passed": None}

    def change(cell: IndexEntry) -> dict[str, Any]:
        return lost if cell.cli == "codex" and cell.task in MANY[:2] and cell.run == 1 else {}

    cells = matrix("free-1", ("aider", "codex"), ("m",), MANY, runs=3)
    cells += matrix("free-1", ("pi",), ("m",), MANY[:5], runs=3)
    rows = {row.contestant: row for row in board(source(tmp_path, *cells, change=change)).rows}
    assert rows["aider"].places["pass"].of == 1
    assert rows["codex"].unranked["pass"].startswith("coverage 94.4 %")
    assert rows["pi"].unranked["pass"] == "5 of 12 tasks"


def test_lost_cells_widen_what_a_place_stands_on(tmp_path: Path) -> None:
    lost = {"outcome": "infra_error", "cause": "rate_limited", "counted": False, "passed": None}
    cells = matrix("free-1", ("aider",), ("m",), MANY, runs=3)
    given = source(tmp_path, *cells, change=lambda it: lost if it.task in MANY[:6] else {})
    [row] = board(given).rows
    span, measured = PASS.span(row.line), row.line.pass_rate
    assert span is not None
    assert measured.low is not None
    assert (span.low, span.high) == (0.5, 1)
    assert measured.low > 0.55


def test_checks_and_other_methodologies_have_boards_of_their_own(tmp_path: Path) -> None:
    cells = matrix("free-1", ("aider",), ("m",), MANY)
    cells += matrix("free-1", ("aider",), ("embedded/reference",), MANY, claim="pipeline_only")
    cells += matrix("free-1", ("oracle",), ("none",), MANY, claim="pipeline_only")
    cells += matrix("free-1", ("codex",), ("m",), MANY, methodology_version="published-0.1", claim="imported")
    found = [
        (it.kind, it.methodology, [row.contestant for row in it.rows])
        for it in boards(source(tmp_path, *cells))
    ]
    assert found == [
        ("result", "1", ["aider"]),
        ("result", "published-0.1", ["codex"]),
        ("baseline", "1", ["oracle"]),
        ("pipeline", "1", ["aider"]),
    ]


def page(out: Path, name: str) -> str:
    return (out / name).read_text("utf-8")


def test_checks_stand_in_a_section_with_the_banner(tmp_path: Path) -> None:
    cells = matrix("free-1", ("aider",), ("m",), MANY)
    cells += matrix("free-1", ("codex",), ("embedded/reference",), MANY, claim="pipeline_only")
    build([results(tmp_path / "results", "free-1", cells)], tmp_path / "site")
    for name in ("index.html", "matrix.html"):
        before, mark, after = page(tmp_path / "site", name).partition('<section class="pipeline-checks"')
        assert mark, name
        assert "embedded/reference" not in before.replace('title="', ""), name
        assert after.index("A pipeline check, not a result.") < after.index("embedded/reference"), name
    assert "embedded/reference" not in page(tmp_path / "site", "pareto.html")
    assert "embedded/reference" not in page(tmp_path / "site", "guide.html")


def test_results_of_none_but_checks_say_so(tmp_path: Path) -> None:
    cells = matrix("free-1", ("codex",), ("embedded/reference",), MANY, claim="pipeline_only")
    build([results(tmp_path / "results", "free-1", cells)], tmp_path / "site")
    for name in ("index.html", "matrix.html", "pareto.html", "guide.html"):
        assert "There are no results of models yet" in page(tmp_path / "site", name), name


def test_the_banner_over_baselines_speaks_of_them(tmp_path: Path) -> None:
    cells = matrix("free-1", ("oracle", "noop"), ("none",), MANY, claim="pipeline_only")
    build([results(tmp_path / "results", "free-1", cells)], tmp_path / "site")
    assert "or a baseline that asks none" in page(tmp_path / "site", "index.html")


def test_trade_offs_begin_with_what_has_numbers(tmp_path: Path) -> None:
    cells = matrix("free-1", ("aider", "codex"), ("m",), MANY)
    priced = pareto._context(source(tmp_path / "a", *cells, change=lambda _: {"cost_usd": 0.1}))
    free = pareto._context(source(tmp_path / "b", *cells, change=lambda _: {"cost_usd": None}))
    assert [said["chosen"].key for said in (priced, free)] == ["usd", "tokens"]
    for said in (priced, free):
        [(_, chart)] = said["boards"]
        assert chart.axis is said["chosen"]
        assert [axis.key for axis in said["axes"]] == ["usd", "tokens", "wall"]


def test_each_axis_of_trade_offs_has_a_page_of_its_own(tmp_path: Path) -> None:
    given = results(tmp_path / "results", "free-1", matrix("free-1", ("aider", "codex"), ("m",), MANY))
    build([given], tmp_path / "site")
    for key in ("usd", "tokens", "wall"):
        text = page(tmp_path / "site", f"pareto/{key}.html")
        assert f'<a href="../pareto/{key}.html" aria-current="page">{AXES[key].name}</a>' in text
        assert '<a href="../pareto.html" aria-current="true">Trade-offs</a>' in text
        assert text.count("<circle") == 2


def test_who_gives_up_at_once_is_on_no_front(tmp_path: Path) -> None:
    def change(cell: IndexEntry) -> dict[str, Any]:
        return {"passed": 0.0, "wall_clock_ms": 1.0} if cell.cli == "codex" else {"wall_clock_ms": 9.0}

    given = source(tmp_path, *matrix("free-1", ("aider", "codex"), ("m",), MANY), change=change)
    [(_, wall)] = pareto._context(given, "wall")["boards"]
    assert len(wall.rows) == 2
    assert wall.front == ["aider × m"]


def test_the_guide_knows_a_methodology_by_its_name(tmp_path: Path) -> None:
    cells = matrix("free-1", ("codex",), ("m",), MANY, methodology_version="published-0.1", claim="imported")
    build([results(tmp_path / "results", "free-1", cells)], tmp_path / "site")
    assert '"methodology":"published-0.1"' in page(tmp_path / "site", "data/pairs.js").replace(": ", ":")


def test_a_dash_of_the_matrix_says_why(tmp_path: Path) -> None:
    from orchestrator.store.record import SkippedCell

    cells = matrix("free-1", ("aider", "codex"), ("m",), TASKS)
    cells += matrix("free-1", ("aider",), ("n",), TASKS)
    given = source(tmp_path, *cells)
    assert matrix_page._reasons(given) == {("aider", "m"): "planned, and not finished"} | {
        ("aider", "n"): "planned, and not finished",
        ("codex", "m"): "planned, and not finished",
    }
    skipped = SkippedCell(cell_id=CellKey("codex", "n", TASKS[0]).cell_id("free-1"), reason="speaks no chat")
    given.skipped.append(skipped)
    assert matrix_page._reasons(given)["codex", "n"] == "speaks no chat"
    build([tmp_path], tmp_path / "site")
    assert "in no sweep here" in page(tmp_path / "site", "matrix.html")


def weight(out: Path, name: str) -> int:
    """Bytes of a page with all that it loads at once."""
    loaded = [name, *re.findall(r'(?:href|src)="(assets/[^"]+)"', page(out, name))]
    return sum((out / it).stat().st_size for it in loaded)


def test_the_first_page_is_light_at_256_pairs(tmp_path: Path) -> None:
    clis = [f"cli-of-usual-length-{number:02}"[:14] + f"{number:02}" for number in range(16)]
    models = [f"vendor/model-of-usual-length-{number:02}" for number in range(16)]
    build(
        [results(tmp_path / "results", "free-1", matrix("free-1", clis, models, TASKS[:1]))],
        tmp_path / "site",
    )
    out = tmp_path / "site"
    first = page(out, "index.html")
    assert first.count("<tr data-at=") == 256
    assert weight(out, "index.html") < 200_000
    assert page(out, "pareto.html").count("<circle") == 256
    assert weight(out, "pareto.html") < 200_000


def test_data_files_hold_every_axis_of_every_pair(tmp_path: Path) -> None:
    cells = matrix(
        "free-1", ("aider", "codex"), ("m",), MANY, runs=3, false_refusal=False, integrity_findings=0
    )
    unknown = {"cost_usd": None, "integrity": None, "void": None, "integrity_findings": None}

    def told(it: IndexEntry) -> dict[str, Any]:
        return unknown if it.cli == "codex" else {}

    given = source(tmp_path, *cells, change=told)
    data = leaderboard._data(given, None)
    aider, codex = data["result-1"]["rows"].values()
    assert set(aider["axes"]) == set(AXES)
    assert aider["beside"] == [["0"], ["n/a"], ["0/36"]]
    assert codex["beside"] == [["–", "36 of 36 cells could not be read for findings"], ["n/a"], ["0/36"]]
    assert aider["axes"]["pass"][:4] == [1, pytest.approx(0.757, abs=0.01), 1, "100"]
    assert codex["axes"]["usd"][0] is None
    assert "cost" in codex["axes"]["usd"][6]
    assert (codex["n"], codex["units"], codex["claim"]) == ([36, 36], 12, "citable")


def test_one_kind_of_work_is_reckoned_from_its_own_tasks(tmp_path: Path) -> None:
    cells = matrix("free-1", ("aider",), ("m",), TASKS)
    given = source(tmp_path, *cells, change=lambda it: {"passed": float(it.task.startswith("polyglot"))})
    rates = {
        scope: [it.rows[0].line.pass_rate.value for it in boards(given, scope=scope)]
        for scope in given.scopes
    }
    assert rates == {"category/mutations": [0.0], "category/polyglot": [1.0]}


def test_the_guide_names_all_that_cannot_be_told_apart(tmp_path: Path) -> None:
    cells = matrix("free-1", ("aider", "codex", "pi"), ("m",), MANY, runs=3)
    cells += matrix("free-1", ("few",), ("m",), MANY[:6], runs=3)
    given = source(tmp_path, *cells, change=fails("pi"))
    found = guide.answer(board(given), "all work")
    assert [row.contestant for row in found.rows] == ["aider", "codex"]
    assert found.apart == 3


def test_the_compare_page_has_what_each_task_came_to(tmp_path: Path) -> None:
    lost = {"outcome": "infra_error", "cause": "rate_limited", "counted": False, "passed": None}
    cells = matrix("free-1", ("aider",), ("m", "n"), TASKS[:2], runs=2)
    cells += matrix("free-1", ("codex",), ("m",), TASKS[:1], runs=2)
    given = source(tmp_path, *cells, change=lambda it: lost if it.cli == "codex" and it.run == 2 else {})
    group = units_data(given)["result/1"]
    assert [task for task, _ in group["tasks"]] == sorted(TASKS[:2])
    assert {(pair["cli"], pair["model"]): pair["units"] for pair in group["pairs"]} == {
        ("aider", "m"): [2, 2, 0, 2, 2, 0],
        ("aider", "n"): [2, 2, 0, 2, 2, 0],
        ("codex", "m"): [0, 0, 0, 1, 1, 1],
    }


def test_an_axis_without_an_interval_has_no_place(tmp_path: Path) -> None:
    cells = matrix("free-1", ("aider",), ("m",), TASKS, runs=3)
    [row] = board(source(tmp_path, *cells)).rows
    assert why_unranked(row.line, 3, AXES["usd"]) == AXES["usd"].measure(row.line).reason
    assert percent(row.line.pass_rate.value) == "100 %"
