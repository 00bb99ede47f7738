"""ATIF: a trajectory says what was said, by the rules of the format."""

from __future__ import annotations

import gzip
import json

import atif_rules
import pytest
from export_samples import SOLVED, SWEEP, bodies

from orchestrator.export.atif import trajectory, write_trajectories
from orchestrator.export.cells import cells_of
from orchestrator.gateway.evidence import WireBody
from orchestrator.gateway.wire import Prompt
from orchestrator.store.chosen import chosen_sweeps


def solved_of(results):
    return next(cell for cell in cells_of(chosen_sweeps([SWEEP], results)) if cell.key == SOLVED)


@pytest.fixture(scope="module")
def found(made):
    found = trajectory(solved_of(made))
    assert found is not None
    return found


def test_it_keeps_the_rules(found):
    atif_rules.check(found)
    for broken in ({**found, "steps": found["steps"][1:]}, {**found, "more": 1}):
        with pytest.raises(AssertionError):
            atif_rules.check(broken)


def test_steps_are_what_was_said_on_the_main_thread(found):
    said = [(step["source"], step["message"]) for step in found["steps"]]
    assert said == [
        ("system", "You are a coder."),
        ("user", "Mend it."),
        ("agent", "I look."),
        ("agent", "Done."),
    ]
    assert [step["timestamp"] for step in found["steps"]][2:] == [
        "2026-11-27T12:00:02.250000Z",
        "2026-11-27T12:00:04.250000Z",
    ]


def test_tool_calls_have_their_results_and_one_without_an_answer_has_none(found):
    step = found["steps"][2]
    first, second = step["tool_calls"]
    assert first == {"tool_call_id": "c1", "function_name": "bash", "arguments": {"command": "ls"}}
    assert (second["arguments"], second["extra"]) == ({}, {"arguments_text": "no json"})
    assert step["observation"] == {"results": [{"source_call_id": "c1", "content": "a.rs"}]}


def test_metrics_are_the_wires_and_the_totals_are_the_records(found):
    metrics = found["steps"][2]["metrics"]
    assert metrics["cost_usd"] == pytest.approx((40 * 3 + 60 * 0.3 + 20 * 15) / 1e6)
    assert (metrics["prompt_tokens"], metrics["completion_tokens"], metrics["cached_tokens"]) == (100, 20, 60)
    final = found["final_metrics"]
    assert (final["total_prompt_tokens"], final["total_completion_tokens"]) == (257, 31)
    # One call did not state it: not measured, so not there.
    assert "total_cached_tokens" not in final
    assert (final["extra"]["model_calls"], final["extra"]["side_calls"]) == (3, 1)


def test_it_says_what_may_be_said_of_the_cell(found):
    about = found["extra"]["cab"]
    assert (about["claim"], about["methodology_version"], about["passed"]) == ("provisional", "1", 1)
    assert found["session_id"] == SOLVED.cell_id(SWEEP)


def test_cells_without_an_answer_of_a_model_have_none(made, tmp_path):
    assert write_trajectories(cells_of(chosen_sweeps([str(made)], made)), tmp_path) == (1, 42)
    [path] = tmp_path.rglob("trajectory.json")
    assert path.parent == tmp_path / SWEEP / SOLVED.path()
    atif_rules.check(json.loads(path.read_bytes()))


def test_a_text_that_comes_later_is_a_step_of_its_own_and_calls_keep_apart(results):
    """A CLI without tools gives results as the user's words; some repeat the ids of their calls."""
    first, side, last = bodies()
    last["request"]["messages"].append({"role": "user", "content": "Output: \ud800"})
    last["response"] = first["response"]
    wire = results / SWEEP / "cells" / SOLVED.path() / "wire.jsonl.gz"
    text = "".join(json.dumps(body) + "\n" for body in (first, side, last))
    wire.write_bytes(gzip.compress(text.encode()))
    found = trajectory(solved_of(results))
    atif_rules.check(found)
    assert [step["source"] for step in found["steps"]] == ["system", "user", "agent", "user", "agent"]
    assert found["steps"][3]["message"] == "Output: �"


@pytest.mark.parametrize(
    ("wire", "request_"),
    [
        (
            "chat",
            {
                "messages": [
                    {"role": "developer", "content": "S"},
                    {"role": "user", "content": "U"},
                    {"role": "assistant", "content": "A"},
                    {"role": "tool", "tool_call_id": "c", "content": "T"},
                    {"role": "user", "content": [{"type": "text", "text": "V"}]},
                ]
            },
        ),
        (
            "messages",
            {
                "system": [{"type": "text", "text": "S"}],
                "messages": [
                    {"role": "user", "content": "U"},
                    {"role": "assistant", "content": "A"},
                    {
                        "role": "user",
                        "content": [
                            {"type": "tool_result", "tool_use_id": "c", "content": "T"},
                            {"type": "text", "text": "V"},
                        ],
                    },
                ],
            },
        ),
        (
            "responses",
            {
                "instructions": "S",
                "input": [
                    {"role": "user", "content": [{"type": "input_text", "text": "U"}]},
                    {"type": "function_call_output", "call_id": "c", "output": "T"},
                    {"type": "message", "role": "user", "content": "V"},
                ],
            },
        ),
        (
            "gemini",
            {
                "system_instruction": {"parts": [{"text": "S"}]},
                "contents": [
                    {"parts": [{"text": "U"}]},
                    {"role": "model", "parts": [{"text": "A"}]},
                    {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"x": "T"}}}]},
                    {"role": "user", "parts": [{"text": "V"}]},
                ],
            },
        ),
    ],
)
def test_each_wire_tells_what_was_put_before_the_model(wire, request_):
    told = WireBody(index=0, wire=wire, request=request_, response={}).prompts()
    assert told == (Prompt("system", "S"), Prompt("user", "U"), Prompt("user", "V"))
    assert WireBody(index=0, wire=wire, request="cut off", response={}).prompts() == ()
