"""The mend for a name that is not known: the nearest one that is."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(name: str, known: Iterable[str], *, cutoff: float = 0.6, otherwise: str | None = None) -> str:
    """`did you mean 'x'?`; where nothing is near, `otherwise`, by default all that is known.

    `cutoff` is how near a name must be to be told, from 0 to 1 (the same).
    """
    # Imported here: `cab --help` knows no mistyped name.
    import difflib

    names = list(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=cutoff)
    if near:
        return f"did you mean {near[0]!r}?"
    if otherwise is not None:
        return otherwise
    return f"known: {', '.join(names)}" if names else "there is none"
