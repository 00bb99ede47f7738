"""Records of sweeps and cells, their files, and reading them back.

`load_frame` is imported when it is asked for, so that a sweep does not pay for polars.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from orchestrator.store.frame import load_frame

__all__ = ["load_frame"]


def __getattr__(name: str) -> Any:
    if name == "load_frame":
        from orchestrator.store.frame import load_frame

        return load_frame
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
