"""Scripted models behind the gateway: no model at all, and labelled so wherever their numbers appear.

`embedded/reference` solves a task from its reference solution through the CLI's own tools, `embedded/wrong`
does the same with a fix that is wrong, `embedded/idle` does nothing. Usage, time and traffic are real
measurements of the wire; what is said on it is a script.
"""

from orchestrator.gateway.embedded.model import ScriptedModel

__all__ = ["ScriptedModel"]
