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
