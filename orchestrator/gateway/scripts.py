"""The scripted models by kind: on its own, since reading a sweep file need not import the contract."""

from typing import Literal

from orchestrator.adapter import Wire

ScriptKind = Literal["reference", "idle", "wrong", "refuse", "false-claim", "loop", "follows-context"]

SCRIPTED_WIRE: Wire = "chat"
"""The one wire that scripted models speak."""
