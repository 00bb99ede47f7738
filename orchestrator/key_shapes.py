"""What keys look like: the shapes by which one is known that nobody has named."""

from __future__ import annotations

KEYS = (
    # Words such as `sk-learn-based-…` have neither a digit nor a capital, and are short.
    r"\bsk-(?:(?=[a-z_-]{0,200}[A-Z0-9])[A-Za-z0-9_-]{16,}|[a-z]{16,})",
    r"\b(?:xai|pplx|nvapi|csk)-(?=[a-z_-]{0,200}[A-Z0-9])[A-Za-z0-9_-]{20,}",
    r"\b[rs]k_(?:live|test)_[A-Za-z0-9]{16,}",
    r"\b(?:npm|r8)_[A-Za-z0-9]{30,}",
    r"\bgh[opsur]_[A-Za-z0-9]{20,}",
    r"\bgithub_pat_[A-Za-z0-9_]{20,}",
    r"\bhv[sbr]\.[A-Za-z0-9_-]{20,}",
    r"\bglpat-[A-Za-z0-9_-]{16,}",
    r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
    r"\bAIza[A-Za-z0-9_-]{30,}",
    r"\bhf_[A-Za-z0-9]{20,}",
    r"\bgsk_[A-Za-z0-9]{20,}",
    r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}",
    r"\beyJ[A-Za-z0-9_-]{10,1000}\.eyJ[A-Za-z0-9_-]{10,}",
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----",
    r"\b[Bb]earer +[A-Za-z0-9._~+/-]{16,}",
    r"://[^/\s:@\"]+:[^/\s:@\"]+@",
)
"""Regular expressions, one of each kind of key. That of a private key finds its first line alone. What stands
before a certain end is bounded: a hostile text must not make a search take forever.
"""
