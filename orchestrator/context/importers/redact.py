"""Keys and passwords taken out of what an imported session holds, known by their forms alone."""

from __future__ import annotations

import re

REDACTED = "[redacted]"

_KEYS = (
    # Words such as `sk-learn-based-…` have neither a digit nor a capital.
    r"\bsk-(?=[a-z_-]*[A-Z0-9])[A-Za-z0-9_-]{16,}",
    r"\b(?:xai|pplx|nvapi|csk)-(?=[a-z_-]*[A-Z0-9])[A-Za-z0-9_-]{20,}",
    r"\b[rs]k_(?:live|test)_[A-Za-z0-9]{16,}",
    r"\b(?:npm|r8|hf|gsk)_[A-Za-z0-9]{20,}",
    r"\bgh[opsur]_[A-Za-z0-9]{20,}",
    r"\bgithub_pat_[A-Za-z0-9_]{20,}",
    r"\bglpat-[A-Za-z0-9_-]{16,}",
    r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
    r"\bAIza[A-Za-z0-9_-]{30,}",
    r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}",
    r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}(?:\.[A-Za-z0-9_-]+)?",
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
)
_KEY = re.compile("|".join(_KEYS))
_BEARER = re.compile(r"(\b[Bb](?:earer|asic) +)[A-Za-z0-9._~+/=-]{16,}")
_IN_ADDRESS = re.compile(r"(://[^/\s:@\"']+:)[^/\s:@\"']+(?=@)")
_ASSIGNED = re.compile(
    r"(?P<before>\b[A-Za-z0-9_]*(?:API_?KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)\b"
    r"[\"']?[ \t]*[=:][ \t]*[\"']?)(?P<value>[A-Za-z0-9._~+/=-]{8,})",
    re.IGNORECASE,
)
_SAID_AS_CODE = re.compile(r"[A-Za-z_][\w.]*\.[A-Za-z_]|[A-Za-z_]+\Z")
"""A value that is a name in a program (`token = self.next_token`), not what it stands for."""


def redacted(text: str) -> tuple[str, int]:
    """The text with `REDACTED` for each secret in it, and how many there were."""
    text, keys = _KEY.subn(REDACTED, text)
    text, bearers = _BEARER.subn(rf"\1{REDACTED}", text)
    text, in_addresses = _IN_ADDRESS.subn(rf"\1{REDACTED}", text)
    assigned = 0

    def take(found: re.Match[str]) -> str:
        nonlocal assigned
        if _SAID_AS_CODE.match(found["value"]):
            return found[0]
        assigned += 1
        return f"{found['before']}{REDACTED}"

    text = _ASSIGNED.sub(take, text)
    return text, keys + bearers + in_addresses + assigned
