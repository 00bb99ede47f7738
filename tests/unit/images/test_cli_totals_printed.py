"""What CLIs print of their own token totals, as their adapters read it. The lines are theirs, shortened."""

import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.adapter import CliUsage, load_adapter

IMAGES = Path(__file__).resolve().parents[3] / "images"


def read(cli: str, printed: str) -> CliUsage | None:
    reader = load_adapter(IMAGES, cli).reported_usage
    assert reader is not None
    return reader(printed)


def lines(*events: dict[str, Any]) -> str:
    return "".join(json.dumps(event) + "\n" for event in events)


def pi_message(role: str, **usage: int) -> dict[str, Any]:
    return {"type": "message_end", "message": {"role": role, "usage": usage}}


def test_pi_states_what_the_cache_held_beside_the_input() -> None:
    first = pi_message("assistant", input=1560, output=61, cacheRead=0, cacheWrite=7)
    second = pi_message("assistant", input=34, output=67, cacheRead=1760, cacheWrite=0)
    user = {"type": "message_end", "message": {"role": "user"}}
    update = {"type": "message_update", "usage": {"input": 1560, "output": 61}}
    printed = lines({"type": "session"}, user, update, first, second)
    assert read("pi", printed) == CliUsage(input=1560 + 7 + 34 + 1760, output=128)


def test_of_pi_whose_first_events_are_lost_nothing_is_known() -> None:
    assert read("pi", lines(pi_message("assistant", input=1, output=1, cacheRead=0, cacheWrite=0))) is None


def test_qwen_code_states_its_totals_last() -> None:
    usage = {"input_tokens": 31321, "output_tokens": 64, "cache_read_input_tokens": 5, "total_tokens": 31385}
    printed = lines({"type": "system"}, {"type": "result", "usage": usage})
    assert read("qwen-code", printed) == CliUsage(input=31321, output=64)


def test_of_qwen_code_that_was_stopped_nothing_is_known() -> None:
    assert read("qwen-code", lines({"type": "system"}, {"type": "assistant"})) is None


@pytest.mark.parametrize(
    ("said", "usage"),
    [
        ("↑ 65.1k • ↓ 536", CliUsage(65_100, 536, input_margin=50)),
        ("↑ 980 • ↓ 1.2k", CliUsage(980, 1_200, output_margin=50)),
        ("↑ 79k • ↓ 439", CliUsage(79_000, 439, input_margin=500)),
        ("↑ 1.2m • ↓ 439", None),
    ],
)
def test_copilot_ends_with_rounded_totals(said: str, usage: CliUsage | None) -> None:
    printed = f"Tokens here are the model's words\r\nDuration   6s\r\nTokens     {said}\r\nResume\r\n"
    assert read("copilot", printed) == usage


def test_claude_code_counts_what_the_cache_held_apart() -> None:
    used = {
        "inputTokens": 10,
        "cacheReadInputTokens": 200,
        "cacheCreationInputTokens": 3000,
        "outputTokens": 7,
    }
    other = dict.fromkeys(used, 50_000)
    first = {"type": "system", "subtype": "init", "model": "m"}
    later = {"type": "system", "subtype": "model_refusal_no_fallback"}
    last = {"type": "result", "modelUsage": {"m": used, "small": other}}
    assert read("claude-code", lines(first, later) + "no event\n" + lines(last)) == CliUsage(3210, 7)


def test_the_output_of_gemini_cli_has_its_thoughts() -> None:
    used = {"total_tokens": 140, "input_tokens": 100, "output_tokens": 30, "cached": 0, "input": 100}
    last = {"type": "result", "stats": {"models": {"m": used, "small": used}}}
    assert read("gemini-cli", lines({"type": "init", "model": "m"}, last)) == CliUsage(100, 40)


@pytest.mark.parametrize("cli", ["claude-code", "gemini-cli"])
def test_of_one_whose_first_event_is_lost_nothing_is_known(cli: str) -> None:
    last = {"type": "result", "modelUsage": {"m": {}}, "stats": {"models": {"m": {}}}}
    assert read(cli, lines(last)) is None


def letta_usage(prompt: int, completion: int) -> dict[str, Any]:
    counts = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
    return {"type": "message", "message_type": "usage_statistics", **counts, "cached_input_tokens": 0}


def test_letta_code_states_each_call_and_its_totals_are_their_sum() -> None:
    printed = lines(
        {"type": "system", "subtype": "init"},
        letta_usage(27065, 49),
        {"type": "message", "message_type": "tool_call_message", "tool_call": {"name": "Read"}},
        letta_usage(27301, 79),
        {"type": "result", "subtype": "success", "usage": None},
    )
    hostile = '{"message_type": "usage_statistics"\n["usage_statistics"]\n{"a": ' + "[" * 9999 + "\n"
    assert read("letta-code", f"a warning\n{hostile}{printed}") == CliUsage(27065 + 27301, 49 + 79)
    assert read("letta-code", lines({"type": "system"}, {"type": "result"})) is None
