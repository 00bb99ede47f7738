"""The scripted models by kind: on its own, since reading a sweep file need not import the contract."""

from typing import Literal

ScriptKind = Literal["reference", "idle", "wrong", "refuse", "false-claim", "loop"]
