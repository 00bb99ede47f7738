"""Takes keys out of a history, by what keys look like: none may reach a prompt, a snapshot or a receipt."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from functools import lru_cache

from orchestrator.context.events import Event, History
from orchestrator.key_shapes import KEYS

REDACTED = "[key taken out]"

_PRIVATE_KEY = r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
# A value counts by its letters and digits: `TOKEN=None`, `MAX_TOKENS: 4096` and `password: str` are no keys.
_VALUE = r"(?=[^\s\"',;]{0,200}[0-9])(?=[^\s\"',;]{0,200}[A-Za-z])[^\s\"',;]{8,}"
_NAMED = (
    r"\b[A-Z0-9_]*(?:API_?KEY|ACCESS_?KEY|SECRET|TOKEN|PASSWORD|PASSWD|PRIVATE_KEY|CREDENTIAL)(?:_[A-Z0-9_]+)?"
    rf"[\"']?\s*[=:]\s*[\"']?(?P<named>{_VALUE})"
)
_MEMBER = (
    r"[\"'](?i:api[_-]?key|access[_-]?key|(?:client[_-]?)?secret|(?:access[_-]|auth[_-]|refresh[_-])?token"
    rf"|password|passwd)[\"']\s*:\s*[\"'](?P<member>{_VALUE})"
)
# In small letters it may be any variable of a program: only a long text between quotes counts.
_ASSIGNED = (
    r"\b[a-z0-9_]*(?:api_?key|access_?key|secret|token|password|passwd|private_key|credential)\s*[=:]\s*"
    r"[\"'](?P<assigned>(?=[^\s\"']{0,200}[0-9])(?=[^\s\"']{0,200}[A-Za-z])[^\s\"']{16,})"
)
_KEY = re.compile("|".join((_PRIVATE_KEY, *KEYS, _NAMED, _MEMBER, _ASSIGNED)))
_ENCODED = re.compile(r"[A-Za-z0-9+/_-]{24,}={0,2}")
_LONGEST_ENCODED = 100_000

# Characters without a width: a key that holds one is still a key to whoever copies it.
UNSEEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f"
    "\ufeff\U000e0000-\U000e0fff]"
)


def redact(text: str) -> str:
    """`text` without keys, also such as are base64, or have characters between that nobody sees."""
    seen = UNSEEN.sub("", text)
    cleaned = _ENCODED.sub(_without, _KEY.sub(_hidden, seen))
    return text if cleaned == seen else cleaned


def has_key(text: str) -> bool:
    """Whether `redact` would take something out."""
    return redact(text) != text


# Several conditions of one history are packaged one after another.
@lru_cache(maxsize=4)
def without_keys(history: History) -> History:
    """The same events without keys: in texts, keys of events, files, times and ids."""
    return History(tuple(_event(event, number) for number, event in enumerate(history)))


def decoded(text: str) -> Iterator[str]:
    """What stands in base64 in `text`, of what reads as text."""
    for match in _ENCODED.finditer(text):
        if (found := _decode(match[0])) is not None:
            yield found


def _event(event: Event, number: int) -> Event:
    changed = {
        "text": redact(event.text),
        "key": redact(event.key),
        "files": tuple(redact(file) for file in event.files),
        "at": redact(event.at),
        # No id that was given holds a bracket, so this is nobody else's.
        "id": f"event[{number}]" if has_key(event.id) else event.id,
    }
    return event.model_copy(update=changed)


def _hidden(match: re.Match[str]) -> str:
    value = match["named"] or match["member"] or match["assigned"]
    return match[0].replace(value, REDACTED) if value else REDACTED


def _without(match: re.Match[str]) -> str:
    found = _decode(match[0])
    return REDACTED if found is not None and _KEY.search(found) else match[0]


def _decode(run: str) -> str | None:
    """The text that a run of base64 stands for; None where it stands for no text."""
    body = run[:_LONGEST_ENCODED].rstrip("=").translate(str.maketrans("-_", "+/"))
    # A length of one beyond a multiple of four is no base64: its last character is let go.
    body = body[: len(body) - (len(body) % 4 == 1)]
    try:
        text = base64.b64decode(body + "=" * (-len(body) % 4), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None
    return text if sum(map(str.isprintable, text)) > 0.9 * len(text) else None
