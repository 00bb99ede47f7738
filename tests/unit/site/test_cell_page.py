"""The page of a cell: all that is known of it, hostile texts as texts, sizes bounded."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from cell_samples import (
    CAST,
    DIGEST,
    KEY,
    SPANS,
    SWEEP,
    Texts,
    evidence,
    json_lines,
    page_of,
    record,
    site_of,
    store,
)

from orchestrator.errors import StoreError
from orchestrator.run.import_published import import_published
from orchestrator.site import links, render
from orchestrator.site.cell.axes import axes
from orchestrator.site.output import File
from orchestrator.store.names import CellKey
from orchestrator.store.published import read_published
from orchestrator.store.record import Claim, Reproduce
from scorers.evidence import FinalMessage, ModelCall, TestResult, ToolCall, Verification

HOSTILE = "<img src=x onerror=alert(1)>\u202eevil\x1b]0;owned\x07</pre></script><script>alert(2)</script>"
ROOT = Path(__file__).resolve().parents[3]


def shown(results: Path, **given: Any) -> Texts:
    return Texts(page_of(results, **given))


def test_every_part_of_a_cell_is_there(tmp_path: Path) -> None:
    found = evidence()
    page = shown(store(tmp_path, (record(found), found)))
    assert "passed: all 2 hidden tests pass" in page.text("verdict")
    assert "These results may be cited." in page.text("claim")
    for name, said in {
        "axis-pass": "1 passed",
        "axis-tokens": "100 90 in, 10 out, 1 call",
        "axis-wall": "21.0",
        "axis-cost": "– not measured:",
        "calls": "stop",
        "tools": "path: src/sum.py",
        "work": "Done.",
        "diff": "return a + b",
        "findings": "None",
        "tests": "2 of 2 passed",
        "identity": f"image_digest {DIGEST}",
        "timing": "2026-11-27 12:00:00.000000 UTC",
        "breakdown": "model_call_ms",
        "own-endpoint": "With your own endpoint",
        "provenance": f"commit {'0' * 40}",
        "terminal": "80 × 24, 12.2 s",
    }.items():
        assert said in page.text(name), name


def test_the_terms_of_each_composite_add_up_on_the_page(tmp_path: Path) -> None:
    found = evidence()
    page = page_of(store(tmp_path, (record(found), found)))
    tables = re.findall(r'<details class="terms".*?</details>', page, re.DOTALL)
    assert len(tables) == 2
    for table in tables:
        adds = [float(it) for it in re.findall(r"data-adds>\s*([\d.]+)\s*<", table)]
        [total] = re.findall(r"data-sum>\s*([\d.]+)\s*<", table)
        [value] = re.findall(r"data-value>\s*([\d.]+)\s*<", table)
        factors = re.findall(r'<tr class="factor">.*?class="num">\s*([\d.]+)', table, re.DOTALL)
        product = float(total)
        for factor in factors:
            product *= float(factor)
        assert sum(adds) == pytest.approx(float(total), abs=5e-6)
        assert product == pytest.approx(float(value), abs=5e-6)
        assert 0 < float(value) < 1
        assert "as recorded" in table


def test_a_pipeline_check_can_be_taken_for_no_result(tmp_path: Path) -> None:
    found = evidence()
    claim = Claim(level="pipeline_only", reasons=("a scripted model",))
    raw = page_of(store(tmp_path, (record(found, claim=claim), found)))
    page = Texts(raw)
    assert "<title>[pipeline check] opencode × openai/gpt" in raw
    assert "A pipeline check, not a result." in page.text("claim")
    assert "pipeline check" in page.text("verdict")
    assert ("section", {"id": "axes", "aria-labelledby": "axes-h", "class": "pipeline-checks"}) in page.tags


def test_hostile_texts_are_texts(tmp_path: Path) -> None:
    failed = TestResult(name=HOSTILE, status="failed", message=HOSTILE)
    found = evidence(
        final_message=FinalMessage(text=HOSTILE, source="wire"),
        tool_calls=[ToolCall(call_id="1", name=HOSTILE, arguments=HOSTILE, start=1, result=HOSTILE)],
        calls=[
            ModelCall(index=0, start=1, end=2, request_hash=HOSTILE, error="gateway", error_detail=HOSTILE)
        ],
        diff=f"diff --git a/{HOSTILE} b/x\n--- a/x\n+++ b/x.py\n@@ -0,0 +1 @@\n+{HOSTILE}\n",
        verification=Verification(
            exit_code=1, timed_out=False, reward=0, tests=[failed], stdout_tail=HOSTILE
        ),
    )
    raw = page_of(store(tmp_path, (record(found), found)))
    page = Texts(raw)
    assert not set("\u202e\x1b\x07") & set(raw)
    # The page's own scripts and its badge: nothing that the agent wrote became an element.
    assert all("src" in given for tag, given in page.tags if tag == "script")
    pictures = [given["src"] or "" for tag, given in page.tags if tag == "img"]
    assert [src for src in pictures if not src.endswith("/run1,badge.svg")] == []
    assert not [name for _, given in page.tags for name in given if name.startswith("on") or name == "style"]
    for name in ("work", "tools", "diff", "tests", "verifier-tail"):
        assert "<img src=x onerror=alert(1)>" in page.text(name), name


def test_what_is_cut_off_says_so_and_leads_to_the_whole(tmp_path: Path) -> None:
    calls = [ModelCall(index=at, start=at, end=at + 1, request_hash="h") for at in range(200)]
    tests = [TestResult(name=f"t{at}", status="failed") for at in range(200)]
    lines = "".join(f"+line {at} {'x' * 600}\n" for at in range(600))
    found = evidence(
        calls=calls,
        diff=f"diff --git a/x b/x\n--- a/x\n+++ b/x.py\n@@ -0,0 +1,600 @@\n{lines}",
        final_message=FinalMessage(text="m\n" * 500, source="wire"),
        verification=Verification(exit_code=1, timed_out=False, reward=0, tests=tests),
    )
    raw = page_of(store(tmp_path, (record(found), found)))
    page = Texts(raw)
    assert len(raw) < 400_000
    assert "80 calls more in the evidence" in page.text("calls")
    assert "140 tests more in the evidence" in page.text("tests")
    assert "204 lines more: the whole patch" in page.text("diff")
    assert "lines more in the evidence" in page.text("work")
    leads = {(given.get("href") or "").rpartition("/run1,")[2] for tag, given in page.tags if tag == "a"}
    assert {"evidence.json", "diff.txt"} <= leads


def test_what_was_not_measured_is_a_dash_with_its_reason(tmp_path: Path) -> None:
    calls = [ModelCall(index=0, start=1, end=2, request_hash="h")]
    found = evidence(calls=calls)
    page = shown(store(tmp_path, (record(found), found)))
    assert "– not measured:" in page.text("axis-tokens")
    composite = page.text("axis-composite")
    assert re.search(r"\[0\.\d+, [01](\.\d+)?\] not measured: tokens", composite)


def test_an_uncounted_cell_says_that_it_counts_nowhere(tmp_path: Path) -> None:
    found = evidence(verification=None)
    page = shown(store(tmp_path, (record(found, outcome="infra_error"), found)))
    assert "did not count" in page.text("verdict")
    assert "counted in no rate: infra_error" in page.text("notice")
    assert "No composite" in page.text("composite")
    assert "The verifier did not run." in page.text("tests")


def test_the_command_of_a_pushed_image_is_pulled_by_its_digest(tmp_path: Path) -> None:
    image = f"registry.example/cab/opencode@{DIGEST}"
    given = Reproduce(
        command=f'docker run --rm -e CAB_ENDPOINT -v "$PWD"/tasks/x:/t:ro {image} run-cell --tui opencode',
        image_digest=DIGEST,
        digest_kind="manifest",
    )
    found = evidence()
    page = shown(store(tmp_path, (record(found, reproduce=given), found)))
    commands = [given["data-copy"] for _, given in page.tags if "data-copy" in given]
    assert f"docker pull {image}" in commands
    assert given.command in commands


def test_an_image_that_was_never_pushed_is_not_pulled(tmp_path: Path) -> None:
    given = Reproduce(
        command=f"docker run {DIGEST} run-cell", image_digest=DIGEST, digest_kind="image_id", note="n"
    )
    found = evidence()
    page = shown(store(tmp_path, (record(found, reproduce=given), found)))
    assert not [it for _, it in page.tags if (it.get("data-copy") or "").startswith("docker pull")]


def test_a_cell_without_a_recording_says_so_and_shows_what_was_printed(tmp_path: Path) -> None:
    found = evidence(stdout_tail="the last words\n")
    results = store(tmp_path, (record(found, recording=None), found), files={"recording.cast": ""})
    raw = page_of(results)
    page = Texts(raw)
    assert "No recording: none was made" in page.text("terminal")
    assert "the last words" in page.text("terminal")
    assert "wasm-unsafe-eval" not in raw


def test_a_recording_is_a_text_that_no_script_can_come_out_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.site.pages.cell.PLAYER", True)
    found = evidence()
    results = store(tmp_path, (record(found), found))
    assert "script-src 'self' 'wasm-unsafe-eval';" in page_of(results)
    outputs, _ = site_of(results)
    made = outputs[links.attached(links.cell_page(SWEEP, KEY), "recording.js")]
    assert isinstance(made, File)
    assert callable(made.content)
    script = made.content().decode("ascii")
    assert re.fullmatch(r'cab\.data\("[^"]+","(?:[^"\\]|\\.)*"\);\n', script)
    assert script.count("hello") == 1


def test_without_the_player_a_recording_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrator.site.pages.cell.PLAYER", False)
    monkeypatch.setattr("orchestrator.site.player.PLAYER", False)
    found = evidence()
    results = store(tmp_path, (record(found), found))
    outputs, _ = site_of(results)
    assert links.attached(links.cell_page(SWEEP, KEY), "recording.cast") in outputs
    assert "built without the player" in shown(results).text("terminal")


def test_a_recording_that_was_cut_says_so(tmp_path: Path) -> None:
    cut = [*CAST, [12.5, "m", "recording cut"], [12.5, "m", "9 bytes left out"]]
    found = evidence()
    results = store(tmp_path, (record(found), found), files={"recording.cast": json_lines(cut)})
    assert "It was cut when it was recorded: 9 bytes left out." in shown(results).text("terminal")


@pytest.mark.parametrize(
    ("timestamp", "spans", "in_step"),
    [
        (10**9, SPANS, True),
        (10**9 + 1, SPANS, False),
        (None, SPANS, False),
        ("1000000000", SPANS, False),
        # Without the span of the cell nobody knows when the cell began.
        (10**9, SPANS[:-1], False),
    ],
)
def test_the_terminal_keeps_step_where_both_say_that_they_begin_together(
    tmp_path: Path, timestamp: object, spans: list[dict[str, Any]], in_step: bool
) -> None:
    header = CAST[0] if timestamp is None else CAST[0] | {"timestamp": timestamp}
    files = {"recording.cast": json_lines([header, *CAST[1:]]), "spans.jsonl": json_lines(spans)}
    found = evidence()
    page = page_of(store(tmp_path, (record(found), found), files=files))
    assert ('id="trace-terminal"' in page) == ('id="trace-screen"' in page) == in_step
    assert ("so the two play apart" in page) != in_step


def test_hidden_literals_and_the_canary_are_published_nowhere(tmp_path: Path) -> None:
    found = evidence()
    results = store(tmp_path, (record(found), found))
    outputs, _ = site_of(results)
    files = [it for it in outputs.values() if isinstance(it, File) and isinstance(it.content, Path)]
    of_cell = [it.content.name for it in files if it.path.startswith("cell/")]
    assert sorted(of_cell) == ["cell.json", "diff.patch", "evidence.json"]
    whole = page_of(results).encode() + b"".join(
        it.content.read_bytes() for it in files if it.path.startswith("cell/")
    )
    assert b"Zyzzy" not in whole
    assert b"cab-canary" not in whole


def test_cells_beside_one_are_those_of_its_sweep(tmp_path: Path) -> None:
    found = evidence()
    keys = [
        KEY,
        CellKey("codex", KEY.model, KEY.task),
        CellKey(KEY.cli, "qwen/q3", KEY.task),
        CellKey(KEY.cli, KEY.model, "polyglot/sort"),
        CellKey(KEY.cli, KEY.model, "mutations/swap"),
        CellKey(KEY.cli, KEY.model, KEY.task, 2),
    ]
    page = shown(store(tmp_path, *((record(found, key=key), found) for key in keys)))
    beside = page.text("others")
    for said in ("codex passed", "qwen/q3 passed", "polyglot/sort passed", "run 2 passed"):
        assert said in beside
    assert "mutations/swap" not in beside


def test_a_page_is_made_again_when_a_cell_beside_it_changes(tmp_path: Path) -> None:
    good, bad = evidence(), evidence(verification=Verification(exit_code=1, timed_out=False, reward=0))
    other = CellKey("codex", KEY.model, KEY.task)
    path = links.cell_page(SWEEP, KEY)
    before, _ = site_of(store(tmp_path / "a", (record(good), good), (record(good, key=other), good)))
    after, _ = site_of(store(tmp_path / "b", (record(good), good), (record(bad, key=other), bad)))
    assert before[path].inputs != after[path].inputs


def test_a_cell_whose_files_are_gone_has_no_page(tmp_path: Path) -> None:
    found = evidence()
    results = store(tmp_path, (record(found), found))
    for file in (tmp_path / SWEEP / "cells").rglob("*.*"):
        file.unlink()
    outputs, _ = site_of(results)
    assert links.cell_page(SWEEP, KEY) not in outputs


def test_a_cell_without_its_evidence_has_what_the_record_tells(tmp_path: Path) -> None:
    found = evidence()
    results = store(tmp_path, (record(found), found))
    for file in tmp_path.rglob("evidence.json"):
        file.unlink()
    page = shown(results)
    assert page.text("verdict") == "passed: the evidence that says why is not in these results"
    assert "1 passed" in page.text("axis-pass")
    assert not page.by_id.keys() & {"calls", "diff", "tests"}


@pytest.mark.parametrize(
    ("total", "said"),
    [(None, "as published; how many files changed is not known"), (0, "0 files changed")],
)
def test_a_number_of_files_that_is_not_known_is_not_nought(total: int | None, said: str) -> None:
    [of_files] = [
        it
        for it in axes({"blast_radius": {"blast_radius": 1.0, "total_changes": total}})
        if it.id == "blast-files"
    ]
    assert of_files.note == said


def test_an_imported_cell_tells_what_is_known_and_why_the_rest_is_not(tmp_path: Path) -> None:
    file = ROOT / "tests/data/published_cells.json"
    sweep = import_published(read_published(file), file, tmp_path, replace=False)[0]
    outputs, env = site_of(tmp_path)
    cell = sweep.records[0]
    made = outputs[links.cell_page(sweep.sweep_id, cell.identity.key)]
    page = Texts(render.render(env, made.path, made.template, made.context()).decode())
    assert "Results of others." in page.text("claim")
    assert "As published: composite" in page.text("printed")
    assert "limits – the published file does not tell it" in page.text("identity")
    assert "generation settings – the published file does not tell it" in page.text("identity")
    assert "No command: only its publisher can" in page.text("run-it")
    assert not page.by_id.keys() & {"calls", "diff", "tests"}


@pytest.mark.parametrize("name", ["diff.patch", "evidence.json", "recording.cast"])
def test_a_link_in_a_cell_publishes_nothing_of_this_machine(tmp_path: Path, name: str) -> None:
    found = evidence()
    results = store(tmp_path / "results", (record(found), found))
    (tmp_path / "secret").write_text("of this machine")
    [cell] = (path.parent for path in results.rglob("cell.json"))
    (cell / name).unlink(missing_ok=True)
    (cell / name).symlink_to(tmp_path / "secret")
    with pytest.raises(StoreError, match="is a symbolic link"):
        site_of(results)
