"""How long a text is for a model, estimated alike for every condition and model."""

from __future__ import annotations

import math

BYTES_PER_TOKEN = 4


def tokens_of(text: str) -> int:
    """An estimate: a token for every four bytes of UTF-8, begun ones counted. What a model was really sent is
    counted on the wire.
    """
    return math.ceil(len(text.encode()) / BYTES_PER_TOKEN)
