"""Bars lie where the time was; changed files say whose they are; the end says what speaks for the verdict."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from report_samples import evidence, record, store

from orchestrator.report.cell import print_cell
from orchestrator.report.timeline import bar
from scorers.evidence import FileChange, ModelCall, Span, TestResult, ToolCall, Usage, Verification
from scorers.latency import score, stretches


def test_a_bar_is_full_where_most_was_a_parts_and_a_sliver_where_some_was() -> None:
    assert bar([(2.0, 4.0)], (0.0, 10.0), 10) == "  ██"
    assert bar([(0.0, 1.0), (8.9, 9.1)], (0.0, 10.0), 10) == "█       ▏▏"
    assert bar([(2.0, 4.0)], (2.0, 4.0), 3) == "███"
    assert bar([], (0.0, 10.0), 10) == bar([(0.0, 1.0)], (0.0, 0.0), 10) == ""


def test_stretches_are_what_the_partition_adds_up() -> None:
    call = evidence().calls[0]
    found = evidence(
        tool_calls=[ToolCall(call_id="1", name="bash", arguments="", start=call.end, end=call.end + 1)]
    )
    partition = score(found).partition
    for name, parts in stretches(found).items():
        assert sum(end - start for start, end in parts) * 1000 == pytest.approx(getattr(partition, name))
    assert set(stretches(found.model_copy(update={"wire_recorded": False}))) >= {"setup", "agent"}


def test_a_cell_of_eighty_columns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    message = "AssertionError: 'olleh' != 'hello' " + "x" * 60
    tests = [TestResult(name=name, status="failed", message=message) for name in "abcde"]
    tests.append(TestResult(name="imports", status="passed"))
    found = evidence(
        phases={
            "setup": Span(start=0, end=1),
            "agent": Span(start=1, end=9),
            "verify": Span(start=9, end=10),
            "collect": Span(start=9, end=9),
        },
        calls=[
            ModelCall(
                index=0, start=2, end=4, first_byte=2.5, request_hash="h", usage=Usage(input=1, output=1)
            )
        ],
        changes=[
            FileChange(path="src/sum.py", change="modified", lines_added=2, lines_removed=1),
            FileChange(path="notes.txt", change="added", lines_added=9, lines_removed=0),
            FileChange(path=".cli/cache", change="added", origin="cli_state"),
        ],
        verification=Verification(exit_code=1, timed_out=False, reward=0, tests=tests),
    )
    cell = record(found)
    print_cell(store(tmp_path, (cell, found)).cell_dir(cell.identity.key), as_json=False)
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    rows = {re.split(r"\s+\d+\.\d", line)[0]: line for line in lines if "█" in line}
    starts = {name: row.index("█") for name, row in rows.items()}
    assert starts["setup"] < starts["agent: CLI"] < starts["agent: model"] < starts["verify"]
    assert max(map(len, rows.values())) <= 80
    call = next(line.split() for line in lines if line.startswith("0 "))
    assert call[1:4] == ["2.00", "2.000", "0.500"]
    whose = {line.split()[0]: line for line in lines if " added " in line or " modified " in line}
    assert whose["src/sum.py"].endswith("+2 −1 the agent's")
    assert whose["notes.txt"].endswith("+9 −0 the agent's, unexpected")
    assert whose[".cli/cache"].endswith("the CLI's own")
    end = lines[-9:]
    assert end[0] == ""
    assert end[1] == "  failed: a"
    assert end[2].startswith("    AssertionError: 'olleh' != 'hello' x")
    assert end[-2] == "  … 2 tests more above"
    assert end[-1] == lines[0]
