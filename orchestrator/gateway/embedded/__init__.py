"""Scripted models behind the gateway: no model at all, and labelled so wherever their numbers appear.

Three work on the task, in the way that a CLI asks for (`dialects`): `embedded/reference` solves it from its
reference solution, `embedded/wrong` makes a fix that is wrong, and `embedded/follows-context` does the one or
the other, as its prompt carries the phrases that the task needs or not. The others behave alike on every
task: `idle` does nothing, `refuse` declines, `false-claim` says it is done, `loop` takes the same step for
ever. Usage, time and traffic are real measurements of the wire; what is said on it is a script.
"""

from orchestrator.gateway.embedded.model import ScriptedModel

__all__ = ["ScriptedModel"]
