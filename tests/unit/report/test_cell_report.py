"""`cab cell show`: why a cell failed, first and in words; no text of an agent's reaches the terminal raw."""

import json
import re
import shlex
import subprocess

import pytest
from report_samples import FACTS, SPEC, SWEEP, evidence, record, store

from orchestrator.errors import StoreError
from orchestrator.plan.spec import SweepSpec, load_spec
from orchestrator.report.again import alone
from orchestrator.report.asked import MAX_ROWS
from orchestrator.report.cell import MAX_CALLS, print_cell
from orchestrator.report.scores import print_scores
from orchestrator.report.text import LEGEND
from orchestrator.report.verdict import CAUSES, verdict
from orchestrator.report.work import MAX_DIFF_LINES
from orchestrator.run.outcome import INFRA_CAUSES, TABLE
from orchestrator.store.cells import find_cell
from orchestrator.store.names import CellKey, check_name
from orchestrator.store.record import Attempt, Outcome, Timing, UsedPlugin
from scorers.evidence import (
    FinalMessage,
    ModelCall,
    RefusalRule,
    Span,
    TestResult,
    ToolCall,
    Usage,
    Verification,
)

REFUSAL = FACTS.model_copy(
    update={
        "expected_refusal": True,
        "fail_to_pass": [],
        "pass_to_pass": [],
        "refusal": RefusalRule(explains=[["cannot"]]),
    }
)


def said(found, *, facts=FACTS, **given):
    return verdict(record(found, facts=facts, **given), facts, found)


def verification(**given):
    return evidence().verification.model_copy(update=given)


def test_tests_that_still_fail_are_counted():
    assert said(evidence(("a", "b", "c"))) == "failed: 3 of 5 fail-to-pass tests still fail"
    assert said(evidence(("a", "imports"))) == (
        "failed: 1 of 5 fail-to-pass tests still fail, and 1 of 1 test that passed before fail now"
    )


def test_a_pass():
    assert said(evidence()) == "passed: all 6 hidden tests pass"
    assert said(evidence(), outcome="timed_out") == (
        "passed: all 6 hidden tests pass; the CLI was stopped at its time limit of 10 min 00 s"
    )


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"timed_out": True}, "the hidden tests did not end in time"),
        ({"tests": [], "reward": None, "reference_passes": True}, "could not run on its work"),
        ({"reward": None}, "no reward was written"),
        ({"tests": []}, "5 of 5 fail-to-pass tests did not run or pass"),
        ({"reward": 0.5}, "a reward of 0.500, not 1"),
        ({"exit_code": 3}, "ended with exit code 3"),
    ],
)
def test_each_way_to_fail_has_its_words(given, words):
    text = said(evidence(verification=verification(**given)))
    assert text.startswith("failed: ")
    assert words in text


@pytest.mark.parametrize("outcome", [name for name, rule in TABLE.items() if rule.counted])
def test_how_the_cli_ended_is_told_where_not_by_itself(outcome):
    text = said(evidence(("a",)), outcome=outcome)
    assert ("; the " in text) is (outcome != "completed")


@pytest.mark.parametrize("cause", INFRA_CAUSES)
def test_what_did_not_count_says_why(cause):
    text = said(evidence(), outcome="infra_error", cause=cause)
    assert text == f"did not count: {CAUSES[cause]}"


def test_tries_made_before_are_counted():
    attempt = Attempt(
        outcome=Outcome(name="infra_error", cause="rate_limited", counted=False),
        timing=Timing.since(entry_time(), 3.0),
        input_tokens=None,
        output_tokens=None,
    )
    text = said(evidence(), outcome="infra_error", cause="rate_limited", attempts=(attempt, attempt))
    assert text == "did not count: the endpoint answered 429 to the end (after 3 tries)"


def entry_time():
    return record(evidence()).timing.started_at


def test_what_never_ran_and_the_verifiers_own_fault():
    assert said(evidence(), outcome="cancelled") == "did not count: stopped by the user"
    assert said(evidence(), outcome="verify_error").startswith("did not count: the verifier failed where")


def test_refusals():
    explained = evidence(final_message=FinalMessage(text="This cannot be done.", source="wire"))
    assert said(explained, facts=REFUSAL).startswith("passed: it left the ticket alone")
    assert "failed: no document, final message or wire refusal explains" in said(evidence(), facts=REFUSAL)


def test_a_void_names_the_rule():
    cell = record(evidence())
    finding = {
        "severity": "severe",
        "rule": "tests_skipped",
        "evidence": "x",
        "path": "tests/a\x1b.py",
        "line": 1,
    }
    scores = json.loads(json.dumps(cell.scores))
    scores["pass_rate"] |= {"pass": 0, "reason": "voided"}
    scores["integrity"] |= {"void": True, "integrity": 0, "findings": [finding]}
    cell = cell.model_copy(update={"scores": scores})
    assert verdict(cell, FACTS, evidence()) == "failed: voided for tests skipped (tests/a\ufffd.py)"


@pytest.fixture
def shown(tmp_path, capsys, monkeypatch):
    def show(found, *, as_json=False, width=100, facts=FACTS, **given):
        monkeypatch.setenv("COLUMNS", str(width))
        cell = record(found, facts=facts, **given)
        print_cell(store(tmp_path, (cell, found), facts=facts).cell_dir(cell.identity.key), as_json=as_json)
        return capsys.readouterr().out

    return show


def test_the_verdict_comes_first_and_all_parts_follow(shown):
    text = shown(evidence(("a",), diff="diff --git a/x b/x\n+y\n"))
    parts = [
        "failed: 1 of 5",
        f"{SWEEP}/opencode/openai/gpt/polyglot/sum#run1",
        "verifier  exit code 1",
        "  failed: a: no",
        "axes",
        "where the time went: 24.0 s",
        "model calls: 1",
        "diff:",
        "deviates  updates are off (offline)",
        "evidence.json",
        "score it again: cab cell score",
        "run it again",
    ]
    places = [text.find(part) for part in parts]
    assert -1 not in places
    assert places == sorted(places)
    assert '{"temperature": 0.5}' in text
    assert "wait s" not in text


@pytest.mark.parametrize("width", [80, 200])
def test_tables_stay_within_the_terminal(shown, width):
    text = shown(evidence(("a",)), width=width)
    tables = text[text.index("axes") : text.index("diff: none")]
    assert max(len(line.rstrip()) for line in tables.splitlines()) <= width


HOSTILE = "\x1b]0;pwned\x07\x9b2J[bold red]\u202e:bomb:\r\nverdict: passed"


def test_hostile_text_is_harmless_wherever_it_stands(shown):
    call = evidence().calls[0].model_copy(update={"error": "bad_request", "error_detail": HOSTILE})
    named = TestResult(name=HOSTILE, status="failed", message=HOSTILE)
    text = shown(
        evidence(
            calls=[call],
            diff=f"+{HOSTILE}\n",
            final_message=FinalMessage(text=HOSTILE, source="wire"),
            verification=Verification(
                exit_code=1,
                timed_out=False,
                reward=0,
                tests=[named],
                stdout_tail=HOSTILE,
                stderr_tail=HOSTILE,
            ),
        ),
        outcome="bad_request",
        detail=HOSTILE,
    )
    assert not {"\x1b", "\x07", "\x9b", "\u202e", "\r"} & set(text)
    assert "[bold red]" in text
    assert ":bomb:" in text
    # Beside their own mark, texts of several lines keep them; no line of cab's own begins like that.
    assert not [line for line in text.splitlines() if line.startswith("verdict")]


def test_json_is_the_record_and_harmless_too(shown, tmp_path):
    text = shown(evidence(), as_json=True, detail=HOSTILE)
    assert text.isascii()
    assert "\x1b" not in text
    stored = next(tmp_path.glob("*/cells/*/*/*/run1/cell.json"))
    assert json.loads(text) == json.loads(stored.read_bytes())


def test_long_things_are_bounded_and_say_so(shown):
    call = evidence().calls[0]
    calls = [call.model_copy(update={"index": index}) for index in range(100)]
    text = shown(
        evidence(
            ("a",),
            calls=calls,
            diff="+x\n" * 5000 + "+" + "y" * 1_000_000,
            final_message=FinalMessage(text="m\n" * 3000, source="wire"),
        )
    )
    assert f"… {5001 - MAX_DIFF_LINES:,} lines more in ".replace(",", "\u202f") in text
    assert re.search(r"lines more in \S+/run1/diff\.patch\n", text)
    assert f"model calls: 100, the first and last {MAX_CALLS // 2} of them shown" in text
    assert len(text.splitlines()) < 300


def test_a_cell_that_never_started_is_shown_with_reasons(shown):
    found = evidence(phases={}, calls=[], verification=None, end=None)
    text = shown(found, outcome="infra_error", cause="engine", detail="no engine")
    assert text.startswith("did not count: the container engine failed\n")
    assert "verifier  did not run" in text
    assert "diff: not collected" in text
    assert text.count(LEGEND) >= 1
    assert f"run it again: cab sweep resume {SWEEP}" in text


def test_the_command_runs_this_cell_alone(shown, tmp_path):
    text = shown(evidence(("a",)))
    command = text.partition("as a sweep of its own:\n")[2].splitlines()[0].strip()
    printf, _, cab = command.partition(" | ")
    words = shlex.split(cab)
    assert words[:5] == ["cab", "sweep", "run", "/dev/stdin", "--id"]
    assert words[6:] == ["-r", str(tmp_path)]
    assert re.fullmatch(r"again-opencode-polyglot-sum-\d{8}T\d{6}Z", check_name(words[5], "sweep id"))
    path = tmp_path / "again.yaml"
    path.write_bytes(subprocess.run(shlex.split(printf), stdout=subprocess.PIPE, check=True).stdout)
    spec = load_spec(path).spec
    assert (spec.clis, spec.tasks, spec.runs) == (("opencode",), ("polyglot/sum",), 1)
    assert [(model.id, model.endpoint) for model in spec.models] == [("openai/gpt", "hosted")]
    assert spec.endpoints["hosted"].key.env == "CAB_KEY"
    assert spec.limits.memory == 2 << 30
    assert spec.timeout_s == 60
    # What its sweep leaves out is no cell of this one, and would be refused.
    assert spec.exclude == ()


def test_what_an_agent_asked_its_tools_for_is_told(shown):
    calls = [
        ToolCall(call_id="1", name="bash", arguments='{"command": "make \\u001b[2J test"}', start=1, end=2),
        *(
            ToolCall(call_id=f"{at}", name="bash", arguments='{"command": "ls", "wait": 3}', start=at, end=at)
            for at in range(2, 9)
        ),
        ToolCall(call_id="9", name="odd", arguments="{no JSON" + "x" * 500, start=9),
    ]
    lines = shown(evidence(("a",), tool_calls=calls), width=80).splitlines()
    at = lines.index("tool calls: 9")
    assert lines[at + 1 : at + 3] == ["  bash            make \ufffd[2J test", "  bash ×7         ls | 3"]
    assert lines[at + 3].startswith("  odd, no answer  {no JSONxxx")
    assert len(lines[at + 3]) == 80
    assert lines[at + 4] == ""


def test_a_calls_waits_stand_apart_from_its_latency(shown):
    times = {"start": 2, "sent": 3.5, "first_byte": 3.75, "first_token": 3.8125, "end": 4}
    waits = [Span(start=2, end=3), Span(start=3, end=3.5)]
    waited = ModelCall(index=0, request_hash="h", usage=Usage(input=9, output=1), waits=waits, **times)
    text = shown(evidence(calls=[waited]))
    assert re.search(r"wait s +first s", text)
    assert re.search(r"2\.000 +1\.500 +0\.312", text)


def test_of_many_tool_calls_the_first_and_the_last_are_told(shown):
    calls = [
        ToolCall(call_id=f"{at}", name="read", arguments=f'{{"path": "f{at}"}}', start=at, end=at)
        for at in range(100)
    ]
    lines = shown(evidence(("a",), tool_calls=calls)).splitlines()
    at = lines.index("tool calls: 100")
    told = lines[at + 1 : at + 2 + MAX_ROWS]
    assert told[0] == "  read  f0"
    assert told[MAX_ROWS // 2] == f"  … {100 - MAX_ROWS} calls more in evidence.json"
    assert told[-1] == "  read  f99"


@pytest.mark.parametrize("amount", [MAX_CALLS, MAX_CALLS + 1])
def test_no_single_call_is_hidden(shown, amount):
    calls = [ModelCall(index=at, start=at, end=at, request_hash="h") for at in range(amount)]
    text = shown(evidence(calls=calls))
    assert f"model calls: {amount}\n" in text


@pytest.mark.parametrize(
    "asked", ["opencode/openai/gpt/polyglot/sum", "opencode/openai/gpt/polyglot/sum#run1"]
)
def test_a_cell_without_its_sweep_is_found_by_the_hint(tmp_path, asked):
    cell = record(found := evidence())
    store(tmp_path, (cell, found))
    with pytest.raises(StoreError) as refused:
        find_cell(tmp_path, asked)
    assert refused.value.mend == f"did you mean {cell.cell_id!r}?"
    with pytest.raises(StoreError) as refused:
        find_cell(tmp_path, "foo")
    assert refused.value.mend == f"see `cab sweep status {SWEEP} -r {tmp_path}`"


def test_a_refusal_on_the_wire_is_read_like_a_message(shown):
    call = {"start": 2, "end": 4, "request_hash": "h", "refusal": "I \x1b[2Jcannot help."}
    calls = [ModelCall(index=at, **call) for at in range(2)]
    text = shown(evidence(("a",), calls=calls))
    assert text.count("refused on the wire:\n  I \ufffd[2Jcannot help.\n\n") == 1


def test_a_sanitizers_legend_does_not_hide_what_it_found(shown):
    legend = [*(f"=>{at:#x}: fa fa" for at in range(9)), "Shadow byte legend:", "  Addressable: 00"] * 3
    lines = ["SUMMARY: heap-buffer-overflow src/sum.c:3", "Shadow bytes around the buggy address:", *legend]
    tail = "\n".join([*lines, "==7==ABORTING", ""])
    text = shown(evidence(("a",), verification=verification(exit_code=1, stderr_tail=tail)))
    assert "  | SUMMARY: heap-buffer-overflow src/sum.c:3\n  | ==7==ABORTING\n" in text


def test_a_baseline_needs_no_model_to_run_again():
    cell = record(evidence(), key=CellKey("noop", "none", "polyglot/sum"))
    spec = alone(cell, SweepSpec.of_data(SPEC))
    assert "models" not in spec
    assert "endpoints" not in spec


def test_a_cell_away_from_its_sweep_says_so(tmp_path, capsys):
    cell = record(found := evidence())
    stored = store(tmp_path / "r", (cell, found)).cell_dir(cell.identity.key)
    away = stored.rename(tmp_path / "away")
    print_cell(away, as_json=False)
    assert "run it again: by its sweep file" in capsys.readouterr().out


def test_scores_of_one_axis_alone_are_no_reason_to_fail(capsys):
    print_scores({"pass_rate": {"pass": 1, "reason": "passed"}})
    assert "the record gives no reason" in capsys.readouterr().out


def test_a_cell_moved_away_is_scored_where_it_lies(tmp_path, capsys):
    cell = record(found := evidence())
    stored = store(tmp_path / "r", (cell, found)).cell_dir(cell.identity.key)
    print_cell(away := stored.rename(tmp_path / "away"), as_json=False)
    assert f"score it again: cab cell score {away}\n" in capsys.readouterr().out


def test_both_blasts_have_names_and_the_wall_clock_its_unit(shown):
    text = shown(evidence(("a",)), width=200)
    assert "blast (agent's lines)" in text
    assert "blast (all files) 0, wall clock 21.0 s," in text
    assert "published-0.1: only for comparison with published cells" in text


def test_a_stage_that_this_version_has_not_is_no_row(shown):
    text = shown(evidence(phases={"setup": Span(start=0, end=1)}), outcome="infra_error", cause="engine")
    assert "queue" not in text
    assert "this stage did not run" in text


def test_the_verdict_is_the_last_line_too(shown):
    lines = shown(evidence(("a",))).splitlines()
    assert lines[0] == lines[-1] == "failed: 1 of 5 fail-to-pass tests still fail"


def test_settings_are_named_once(shown):
    found = evidence()
    identity = record(found).identity.model_copy(update={"generation_settings": ({"top_p": 1}, {})})
    assert shown(found, identity=identity).count("\nsettings ") == 1


def test_long_assertions_are_cut_to_the_width(shown):
    long = TestResult(name="a", status="failed", message="assert " + "x" * 180)
    lines = shown(
        evidence(verification=verification(tests=[long], stdout_tail="y" * 180)), width=80
    ).splitlines()
    cut = [line for line in lines if line.startswith(("    assert x", "  | y"))]
    assert [(len(line), line[-1]) for line in cut] == [(80, "…")] * 3  # the test once more at the end


@pytest.mark.parametrize(("offered", "told"), [(False, True), (True, False), (None, False)])
def test_an_mcp_server_that_never_reached_the_model_is_told(tmp_path, capsys, monkeypatch, offered, told):
    monkeypatch.setenv("COLUMNS", "300")
    made = record(evidence())
    plugin = UsedPlugin(name="facts", kind="mcp", digest=f"sha256:{0:064x}", offered=offered)
    identity = made.identity.model_copy(update={"plugins": (plugin,)})
    place = store(tmp_path, (made.model_copy(update={"identity": identity}), evidence()))
    print_cell(place.cell_dir_of(next(iter(place.finished().values()))), as_json=False)
    text = capsys.readouterr().out
    assert "facts (mcp" in text
    assert ("applied, but no request named a tool of it" in text) is told


def test_the_time_of_calls_that_were_not_timed_is_left_out(capsys):
    print_scores({"latency": {"wall_clock_ms": 2400, "model_call_ms": None}})
    said = capsys.readouterr().out
    assert "setup and agent" in said
    assert "of it the model" not in said
