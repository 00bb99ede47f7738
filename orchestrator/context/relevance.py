"""How near the items of a state are to a task, by the words and the files that they share."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

from orchestrator.context.state import Item

K1, B = 1.2, 0.75
"""BM25's usual parameters: how soon a repeated word counts no more, and how much a long text is held back."""

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_a-zA-Z]+")
_COMMON = frozenset(
    (
        *(
            "an",
            "and",
            "are",
            "as",
            "at",
            "be",
            "but",
            "by",
            "can",
            "do",
            "does",
            "for",
            "from",
            "had",
            "has",
        ),
        *("have", "if", "in", "into", "is", "it", "its", "no", "not", "of", "on", "or", "so", "than", "that"),
        *("the", "then", "there", "this", "to", "was", "we", "when", "which", "will", "with", "you"),
    )
)


def words_of(text: str) -> list[str]:
    """The words of a text in lower case, those of `camelCase` and `snake_case` apart, without common ones."""
    return [word for found in _WORD.findall(text) if (word := found.lower()) not in _COMMON and len(word) > 1]


def relevance(task_text: str, texts: Sequence[str]) -> list[float]:
    """Of each text how well it answers to the task (Okapi BM25 over `texts`), from 0 to 1 for the best."""
    documents = [Counter(words_of(text)) for text in texts]
    lengths = [document.total() for document in documents]
    mean = sum(lengths) / len(lengths) if any(lengths) else 1.0
    asked = sorted(set(words_of(task_text)))
    weights = {word: _rarity(sum(word in document for document in documents), len(texts)) for word in asked}
    scores = [
        math.fsum(
            weights[word] * count * (K1 + 1) / (count + K1 * (1 - B + B * length / mean))
            for word in asked
            if (count := document[word])
        )
        for document, length in zip(documents, lengths, strict=True)
    ]
    best = max(scores, default=0.0)
    return [score / best if best else 0.0 for score in scores]


def shares_files(item: Item, task_text: str, at_hand: frozenset[str]) -> float:
    """1 where the task names a file of the item, 0.5 where some are `at_hand`, else 0."""
    if any(_names(task_text, file) for file in item.files):
        return 1.0
    return 0.5 if at_hand else 0.0


def _rarity(holding: int, texts: int) -> float:
    return math.log(1 + (texts - holding + 0.5) / (holding + 0.5))


def _names(text: str, file: str) -> bool:
    """Whether a text names a file: by path, by name, or as a module (`pkg.part` for pkg/part.py)."""
    stem = file.removesuffix(".py")
    names = {file, file.rpartition("/")[2], *([stem.replace("/", ".")] if "/" in stem else [])} - {""}
    return any(name in text and re.search(rf"(?<![\w/-]){re.escape(name)}(?![\w-])", text) for name in names)
