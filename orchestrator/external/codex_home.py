"""Settings of a user's own Codex, as a plugin for the cells of a run: those that are known to hold no secret,
name no place of this machine and start no program. Nothing else of that directory is read, its login least.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.errors import InputError
from orchestrator.plan.toml_text import dump_toml
from orchestrator.store.files import make_dirs, store_errors, write_durably

CONFIG = "config.toml"
PLUGIN = "codex-home"
"""Names the plugin, and the stack that it is."""

_WORDS = frozenset(
    {
        "hide_agent_reasoning",
        "model_auto_compact_token_limit",
        "model_context_window",
        "model_max_output_tokens",
        "model_reasoning_effort",
        "model_reasoning_summary",
        "model_supports_reasoning_summaries",
        "model_verbosity",
        "personality",
        "project_doc_max_bytes",
        "show_raw_agent_reasoning",
        "tool_output_token_limit",
    }
)
"""Settings that are a word, a number or a truth value."""

_SWITCHES = ("features",)
"""Tables of which truth values are taken."""

_MAX_WORD = 40


@dataclass(frozen=True)
class CodexSettings:
    """`taken` as Codex has them; `left_out` are names of the rest, values of none."""

    taken: dict[str, Any]
    left_out: tuple[str, ...]


def read_codex_home(home: Path) -> CodexSettings:
    """Read `config.toml` of a Codex home. Raises InputError where there is none that can be read."""
    path = home / CONFIG
    try:
        raw = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        mend = "give the directory that CODEX_HOME names, such as ~/.codex"
        raise InputError(f"cannot be read: {type(error).__name__}", place=str(path), mend=mend) from None
    try:
        found = tomllib.loads(raw)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"is no TOML: {error}", place=str(path), mend="mend the file") from None
    taken = dict(_taken(found))
    return CodexSettings(taken, tuple(sorted(_names(found, taken))))


def _taken(found: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in found.items():
        if name in _WORDS and _plain(value):
            yield name, value
        elif name in _SWITCHES and isinstance(value, dict):
            switches = {key: it for key, it in value.items() if isinstance(it, bool)}
            yield from [(name, switches)] if switches else []


def _plain(value: object) -> bool:
    if isinstance(value, bool | int | float):
        return True
    return isinstance(value, str) and len(value) <= _MAX_WORD and value.replace("-", "_").isidentifier()


def _names(found: Mapping[str, Any], taken: Mapping[str, Any]) -> Iterator[str]:
    """The first two parts of the name of whatever is not taken: deeper ones may themselves tell something."""
    for name, value in found.items():
        if name in _SWITCHES and isinstance(value, dict):
            yield from (f"{name}.{key}" for key in value if key not in taken.get(name, {}))
        elif name not in taken:
            yield name


def write_plugin(settings: CodexSettings, plugins: Path) -> bool:
    """Write the plugin `codex-home` below `plugins`; False where nothing was taken, and there is none."""
    if not settings.taken:
        return False
    text = dump_toml(
        {
            "kind": "settings",
            "description": "Settings of the user's own Codex that hold no secret.",
            "settings": {"codex": settings.taken},
        }
    )
    path = plugins / PLUGIN / "plugin.toml"
    with store_errors(path):
        make_dirs(path.parent)
        write_durably(path, text.encode())
    return True
