"""What stands on a cell's page, part by part: trace, diff, bounded texts, the CLI's own configuration."""

from __future__ import annotations

import re
from html import unescape

import pytest
from cell_samples import DIGEST, KEY, PATCH, SPANS, evidence, record, span

from orchestrator.site.cell import again, bounded, diff, trace, work
from orchestrator.store.names import CellKey
from scorers.evidence import ModelCall, ToolCall


def test_spans_come_by_their_start_with_parents_first() -> None:
    found = trace.trace(SPANS)
    assert found is not None
    assert [(one.kind, one.depth) for one in found.spans] == [
        ("cell", 0),
        ("adapter_run", 1),
        ("container", 2),
        ("model_call", 3),
        ("tool_call", 3),
    ]
    assert found.seconds == 24
    call = found.spans[3]
    assert (call.start, call.end, call.begins, call.took) == (2, 4, "2.000", "2.000")
    assert (call.x, call.width) == (
        pytest.approx(1000 * 2 / 24, abs=0.01),
        pytest.approx(1000 * 2 / 24, abs=0.01),
    )
    assert found.lanes[call.lane].name == "model calls"


def test_calls_at_the_same_time_lie_in_lanes_of_their_own() -> None:
    calls = [span(10 + at, "tool_call", 2, 5) for at in range(2)] + [span(20, "tool_call", 5, 6)]
    found = trace.trace([*SPANS[3:], *calls])
    assert found is not None
    lanes = [one.lane for one in found.spans if one.kind == "tool_call"]
    assert lanes == [lanes[0], lanes[0] + 1, lanes[0]]
    assert [lane.name for lane in found.lanes] == ["cell", "stages", "tool calls", ""]


def test_of_too_many_spans_every_stage_stays() -> None:
    calls = [span(100 + at, "model_call", 1 + at / 1000, 2) for at in range(500)]
    found = trace.trace([*SPANS, *calls, span(9, "verify", 22, 23)])
    assert found is not None
    assert len(found.spans) == trace.MAX_SPANS
    assert found.left_out == 506 - trace.MAX_SPANS
    assert found.spans[-1].kind == "verify"


@pytest.mark.parametrize("parents", [(7, 8), (None, 99)])
def test_a_circle_of_parents_and_one_that_is_not_there_end_the_climb(parents: tuple[int | None, int]) -> None:
    found = trace.trace([span(8, "container", 0, 1, parents[0]), span(7, "cell", 0, 1, parents[1])])
    assert found is not None
    assert len(found.spans) == 2


def test_a_diff_has_the_colours_of_its_language_and_loses_no_character() -> None:
    found = diff.diff(PATCH)
    assert found is not None
    assert (found.added, found.removed, found.left_out) == (1, 1, 0)
    assert (
        '<span class="add">+    <i class="k">return</i> a + b  <i class="c"># sums</i></span>' in found.html
    )
    assert '<span class="hunk">@@ -1,2 +1,2 @@</span>' in found.html
    assert unescape(re.sub("<[^>]+>", "", found.html)) + "\n" == PATCH


def test_no_content_of_a_hunk_poses_as_a_header() -> None:
    posing = (
        "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n--- a/secret\n+++ b/secret\n-diff --git a/y b/y\n+@@ -1 +1 @@\n"
    )
    found = diff.diff(posing)
    assert found is not None
    assert re.findall(r'class="(\w+)"', found.html) == ["meta", "meta", "hunk", "del", "add", "del", "add"]


def test_markup_in_a_diff_is_text_in_each_language() -> None:
    for name in ("x.py", "x.rs", "x.ts", "x.unknown"):
        found = diff.diff(f'--- a/{name}\n+++ b/{name}\n@@ -0,0 +1 @@\n+s = "<b onclick=1>" // &amp;\n')
        assert found is not None
        assert "<b" not in found.html
        assert "&lt;b onclick=1&gt;" in found.html
        assert set(re.findall(r"<(\w+)", found.html)) <= {"span", "i"}


def test_what_is_too_long_to_colour_is_shown_all_the_same() -> None:
    lines = "".join(f"+    return {at}  # {'y' * 100}\n" for at in range(300))
    found = diff.diff(f"--- a/x.py\n+++ b/x.py\n@@ -0,0 +1,300 @@\n{lines}")
    assert found is not None
    assert found.html.count('class="add"') == 300
    assert 'class="k"' not in found.html


def test_a_text_is_bounded_in_lines_and_their_length() -> None:
    found = bounded.text("a\x1b[31m\u202eb\n" + "x" * 5000 + "\n" * 3 + "end\n", 2)
    assert (found.lines[0], found.left_out) == ("a\ufffd[31m\ufffdb", 3)
    assert len(found.lines[1]) < bounded.MAX_LINE + 40
    assert bounded.text(" \n\n", 5).lines == ()
    assert list(bounded.text("1\n2\n3", 2, end=True).lines) == ["2", "3"]


def test_the_first_and_the_last_of_many_are_kept() -> None:
    found = bounded.some(list(range(10)), 4)
    assert (found.head, found.tail, found.left_out, found.total) == ([0, 1], [8, 9], 6, 10)
    assert bounded.some([1, 2], 4).left_out == 0


def test_a_call_tells_what_the_wire_stated_alone() -> None:
    calls = [
        ModelCall(
            index=0, start=1, end=3, sent=1.5, first_token=2, request_hash="a" * 64, attempts=3, main=False
        ),
        ModelCall(index=1, start=3, end=4, request_hash="b", error="gateway", error_detail="gone"),
    ]
    first, second = work.calls(calls).head
    assert (first.first, first.input, first.cached, first.request_hash) == (0.5, None, None, "a" * 12)
    assert first.notes == "beside the task; 3 attempts"
    assert (second.end, second.failed) == ("gateway: gone", True)


def test_a_tool_call_is_told_by_its_arguments() -> None:
    calls = [
        ToolCall(call_id="1", name="bash", arguments='{"command": "ls", "n": [1]}', start=1),
        ToolCall(call_id="2", name="x", arguments="[" * 100_000, start=1, end=2, result="r" * 1000),
    ]
    first, second = work.tools(calls).head
    assert (first.asked, first.took, first.answered) == ("command: ls | n: [1]", None, None)
    assert len(second.asked) < 400
    assert second.answered is not None
    assert len(second.answered) < 300


def test_a_cli_is_configured_by_its_own_settings_without_a_key() -> None:
    own = again.own_endpoint(record(evidence(), key=CellKey("codex", "openai/gpt", KEY.task)))
    [(path, content)] = own.files
    assert path == "~/.codex/config.toml"
    assert f'base_url = "{again.URL}/v1"' in content
    assert own.variables == [f"export CAB_API_KEY={again.KEY}"]
    assert own.command.startswith("codex exec")
    assert own.command.endswith(f"openai/gpt -- {again.PROMPT}")
    assert "ran with another" in own.note


def test_a_scripted_model_gives_way_to_ones_own() -> None:
    own = again.own_endpoint(record(evidence(), key=CellKey("codex", "embedded/reference", KEY.task)))
    assert again.MODEL in own.command
    assert "embedded" not in own.command


@pytest.mark.parametrize(("cli", "said"), [("noop", "asks no model"), ("gone", "no adapter for gone")])
def test_where_there_is_nothing_to_configure_it_says_so(cli: str, said: str) -> None:
    own = again.own_endpoint(record(evidence(), key=CellKey(cli, "openai/gpt", KEY.task)))
    assert said in own.note
    assert not own.command


@pytest.mark.parametrize(
    ("model", "command"),
    [
        ("openai/gpt", f"--model openai/gpt --task polyglot/sum --endpoint {again.URL}/v1 --key-env CAB_KEY"),
        ("embedded/reference", "--model embedded/reference --task polyglot/sum"),
        ("none", "--task polyglot/sum"),
        ("local/tiny", None),
    ],
)
def test_cab_check_is_called_as_it_takes_it(model: str, command: str | None) -> None:
    found = again.check_command(record(evidence(), key=CellKey("opencode", model, KEY.task)))
    assert found.command == (command and f"cab check --tui opencode {command}")
    assert bool(found.note) == (command is None)


def test_the_adapter_of_this_cab_is_an_input_of_the_page() -> None:
    assert again.adapter_digest("codex").startswith("sha256:")
    assert again.adapter_digest("codex") != DIGEST
    assert again.adapter_digest("gone") == ""
