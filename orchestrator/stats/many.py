"""Many comparisons at once: the more questions are asked, the more chance answers one of them."""

from __future__ import annotations

from collections.abc import Sequence


def holm(p_values: Sequence[float]) -> list[float]:
    """The p-values adjusted by Holm's step-down method, in their order.

    Those that are below a level reject at most one true hypothesis too many with that probability, however
    the tests depend on each other.
    """
    adjusted = [0.0] * len(p_values)
    largest = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = largest
    return adjusted
