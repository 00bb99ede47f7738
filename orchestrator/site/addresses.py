"""Which addresses of endpoints a site may say: those of services, not those of somebody's machines."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

LEFT_OUT = "left out: it names a machine of a private network"

_PRIVATE = frozenset(
    ("local", "localdomain", "internal", "intranet", "lan", "home", "corp", "private", "arpa")
)
"""Last parts of names that lead nowhere outside of one network."""


def sayable(url: str) -> str:
    """An endpoint's address, or that it was left out. Loopback tells nobody anything."""
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").rstrip(".")
    except ValueError:
        return LEFT_OUT
    told_more = parts.username or parts.password or parts.query or parts.fragment
    return LEFT_OUT if told_more or not _public(host) else url


def _public(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        _, dot, last = host.rpartition(".")
        return host == "localhost" or (bool(dot) and last not in _PRIVATE)
    return address.is_loopback or address.is_global
