"""Between the wire of a CLI and that of an endpoint: requests are rewritten on their way up, answers on
their way down. Which pairs there are stands here, for planning a sweep; what is said how, in the modules.
"""

from orchestrator.adapter import Wire

TRANSLATED: frozenset[tuple[Wire, Wire]] = frozenset(
    (("responses", "chat"), ("messages", "chat"), ("gemini", "chat"))
)
"""Pairs of a CLI's wire and an endpoint's between which the gateway translates."""


def reaches(cli: Wire, endpoint: Wire) -> bool:
    """Whether a CLI of one wire can be served by an endpoint of another."""
    return cli == endpoint or (cli, endpoint) in TRANSLATED
