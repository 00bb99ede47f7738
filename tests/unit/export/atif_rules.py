"""What Harbor's RFC 0001 asks of a trajectory of version 1.7, as far as cab writes one."""

from __future__ import annotations

from datetime import datetime
from typing import Any

_TEXT, _NUMBER, _OBJECT = (str,), (int, float), (dict,)
# By object: field -> (types, whether it must be there). A field that is not listed is not allowed.
_FIELDS: dict[str, dict[str, tuple[tuple[type, ...], bool]]] = {
    "trajectory": {
        **{"schema_version": (_TEXT, True), "session_id": (_TEXT, False), "trajectory_id": (_TEXT, False)},
        **{"agent": (_OBJECT, True), "steps": ((list,), True), "notes": (_TEXT, False)},
        **{"final_metrics": (_OBJECT, False), "extra": (_OBJECT, False)},
    },
    "agent": {
        **{"name": (_TEXT, True), "version": (_TEXT, True), "model_name": (_TEXT, False)},
        **{"tool_definitions": ((list,), False), "extra": (_OBJECT, False)},
    },
    "step": {
        **{"step_id": ((int,), True), "timestamp": (_TEXT, False), "source": (_TEXT, True)},
        **{"message": (_TEXT, True), "model_name": (_TEXT, False), "tool_calls": ((list,), False)},
        **{"observation": (_OBJECT, False), "metrics": (_OBJECT, False), "extra": (_OBJECT, False)},
        **{"llm_call_count": ((int,), False)},
    },
    "tool call": {
        **{"tool_call_id": (_TEXT, True), "function_name": (_TEXT, True), "arguments": (_OBJECT, True)},
        "extra": (_OBJECT, False),
    },
    "result": {
        **{"source_call_id": (_TEXT, False), "content": (_TEXT, False), "extra": (_OBJECT, False)},
    },
    "metrics": {
        **{"prompt_tokens": ((int,), False), "completion_tokens": ((int,), False)},
        **{"cached_tokens": ((int,), False), "cost_usd": (_NUMBER, False), "extra": (_OBJECT, False)},
    },
    "final metrics": {
        **{"total_prompt_tokens": ((int,), False), "total_completion_tokens": ((int,), False)},
        **{"total_cached_tokens": ((int,), False), "total_cost_usd": (_NUMBER, False)},
        **{"total_steps": ((int,), False), "extra": (_OBJECT, False)},
    },
}
_OF_AGENTS = ("model_name", "tool_calls", "metrics")


def check(trajectory: Any) -> None:
    """Raise AssertionError where a trajectory breaks a rule of the format."""
    _object("trajectory", trajectory)
    assert trajectory["schema_version"] == "ATIF-v1.7"
    _object("agent", trajectory["agent"])
    steps = trajectory["steps"]
    assert [step["step_id"] for step in steps] == list(range(1, len(steps) + 1))
    ids: list[str] = []
    for step in steps:
        _object("step", step)
        assert step["source"] in ("system", "user", "agent")
        assert step["source"] == "agent" or not any(name in step for name in _OF_AGENTS)
        assert datetime.fromisoformat(step["timestamp"]).tzinfo is not None
        own = [call["tool_call_id"] for call in step.get("tool_calls", ())]
        ids += own
        for call in step.get("tool_calls", ()):
            _object("tool call", call)
        for result in step.get("observation", {}).get("results", ()):
            _object("result", result)
            assert result["source_call_id"] in own
        if "metrics" in step:
            _object("metrics", step["metrics"])
    assert len(ids) == len(set(ids))
    _object("final metrics", trajectory["final_metrics"])
    assert trajectory["final_metrics"]["total_steps"] == len(steps)


def _object(kind: str, value: Any) -> None:
    assert isinstance(value, dict), kind
    fields = _FIELDS[kind]
    assert value.keys() <= fields.keys(), (kind, value.keys() - fields.keys())
    for name, (types, needed) in fields.items():
        assert name in value or not needed, (kind, name)
        if name in value:
            assert isinstance(value[name], types), (kind, name, value[name])
            assert not isinstance(value[name], bool), (kind, name)
