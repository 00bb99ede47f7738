"""Keeps a secret out of whatever is stored or passed on, in every form an endpoint may echo it in."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable
from urllib.parse import quote, quote_plus

MIN_SECRET = 8
"""Shorter keys (`none`, `EMPTY`) are placeholders of endpoints without keys; hiding them would garble
texts.
"""


class Scrubber:
    """Replaces secrets by as many `*`, so that lengths stay true.

    Known forms: plain, JSON-escaped (in numbers, too), URL-encoded, hexadecimal, and base64 (both alphabets)
    at any alignment, as in the base64 of `user:key`. `longest` is the length of the longest form in
    bytes, 0 without secrets.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        forms: set[bytes] = set()
        for secret in secrets:
            if len(secret) >= MIN_SECRET:
                forms |= _forms(secret)
        # Longest first: a form may be part of another. One search a form: many times faster than one pattern.
        self._forms = sorted(forms, key=len, reverse=True)
        self.longest = len(self._forms[0]) if self._forms else 0
        heads = sorted({re.escape(form[:MIN_SECRET]) for form in self._forms})
        self._head = re.compile(b"|".join(heads) or rb"(?!)")
        self._prefixes = {form[:size] for form in self._forms for size in range(1, len(form))}
        self._prefix_ends = {prefix[-1] for prefix in self._prefixes}

    def clean(self, data: bytes) -> bytes:
        """`data` without the secrets."""
        for form in self._forms:
            if form in data:
                data = data.replace(form, b"*" * len(form))
        return data

    def clean_text(self, text: str) -> str:
        """`text` without the secrets."""
        return self.clean(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")

    def stands_in(self, data: bytes) -> bool:
        """Whether `data` holds a secret."""
        return any(form in data for form in self._forms)

    def begins_in(self, data: bytes) -> bool:
        """Whether `data` holds the first MIN_SECRET bytes of a form. A quick `no` to the other questions."""
        return self._head.search(data) is not None

    def unfinished(self, data: bytes) -> int:
        """How many bytes at the end of `data` may be the beginning of a secret."""
        if not data or data[-1] not in self._prefix_ends:
            return 0
        sizes = range(min(self.longest - 1, len(data)), 0, -1)
        return next((size for size in sizes if data[-size:] in self._prefixes), 0)


class StreamScrubber:
    """A scrubber for a stream: holds back only an end that may be the beginning of a secret."""

    def __init__(self, scrubber: Scrubber) -> None:
        self._scrubber = scrubber
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        cleaned = self._scrubber.clean(self._held + data)
        hold = self._scrubber.unfinished(cleaned)
        self._held = cleaned[len(cleaned) - hold :]
        return cleaned[: len(cleaned) - hold]

    def rest(self) -> bytes:
        held, self._held = self._held, b""
        return held


def _forms(secret: str) -> set[bytes]:
    plain = secret.encode()
    forms = {plain, json.dumps(secret)[1:-1].encode(), json.dumps(secret)[1:-1].replace("/", "\\/").encode()}
    # Some writers of JSON write as numbers what HTML could mistake, others every character.
    for escaped in ("+&<>'", "+/&<>'=", secret):
        for digits in ("04x", "04X"):
            made = (f"\\u{ord(char):{digits}}" if char in escaped else char for char in secret)
            forms.add("".join(made).encode())
    forms |= {quote(secret, safe="").encode(), quote(secret).encode(), quote_plus(secret).encode()}
    forms |= {plain.hex().encode(), plain.hex().upper().encode()}
    for shift in range(3):
        # The first and last characters of base64 mix the secret's bits with its neighbours': the core is its
        # own.
        encoded = base64.b64encode(b"\0" * shift + plain)
        first = (0, 2, 3)[shift]
        last = (shift + len(plain)) * 8 // 6
        core = encoded[first:last]
        forms |= {core, core.translate(bytes.maketrans(b"+/", b"-_"))}
    return forms
