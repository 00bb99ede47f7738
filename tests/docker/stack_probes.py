"""For each CLI a setting and arguments of its own, and what of them its first request shows."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from command import REPO

from orchestrator.plan.toml_text import dump_toml

MARK = "Call the sea by its name."


@dataclass(frozen=True)
class Probe:
    """`settings`, `env` and `args` are those of plugins. `says` are pieces of the request's JSON that are
    there by them, `lacks` pieces that are not. `titled` says that no other request asks for a title.
    """

    settings: Mapping[str, Any] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    args: tuple[str, ...] = ()
    says: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    titled: bool = False


PROBES: Mapping[str, Probe] = {
    "aider": Probe({"stream": False}, args=("--no-show-model-warnings",), lacks=('"stream": true',)),
    "claude-code": Probe(
        {"env": {"CLAUDE_CODE_MAX_OUTPUT_TOKENS": "4321"}},
        args=("--append-system-prompt", MARK),
        says=('"max_tokens": 4321', MARK),
    ),
    "cline": Probe(
        {"disabledTools": ["search_codebase"]},
        args=("--thinking", "high"),
        says=('"reasoning_effort": "high"',),
        lacks=('"search_codebase"',),
    ),
    "codex": Probe(
        {"model_reasoning_effort": "low"},
        args=("-c", f'developer_instructions="{MARK}"'),
        says=('"reasoning_effort": "low"', MARK),
    ),
    "continue": Probe(
        {"rules": [f"{MARK} 1"]}, args=("--rule", f"{MARK} 2"), says=(f"{MARK} 1", f"{MARK} 2")
    ),
    "copilot": Probe(
        {"includeCoAuthoredBy": False},
        args=("--excluded-tools=web_fetch",),
        lacks=("Co-authored-by", '"web_fetch"'),
    ),
    "droid": Probe({"includeCoAuthoredByDroid": False}, args=("--append-system-prompt", MARK), says=(MARK,)),
    "gemini-cli": Probe(
        {"tools": {"exclude": ["web_fetch"]}},
        args=("--include-directories", "/tmp"),
        says=("/tmp",),
        lacks=('"web_fetch"',),
    ),
    "gptme": Probe(
        {"prompt": {"fragments": {"sea": MARK}}},
        args=("--no-stream",),
        says=(MARK,),
        lacks=('"stream": true',),
    ),
    "grok-cli": Probe(
        env={"GROK_MAX_TOKENS": "1999"}, args=("--max-tool-rounds", "99"), says=('"max_tokens": 1999',)
    ),
    "kilo": Probe({"agent": {"code": {"prompt": MARK}}}, args=("--title", "sea"), says=(MARK,), titled=True),
    "letta-code": Probe(
        {"includeWorktreeTool": False}, args=("--no-system-info-reminder",), lacks=('"EnterWorktree"',)
    ),
    "mini-swe-agent": Probe(
        {"model": {"model_kwargs": {"temperature": 0.25}}},
        args=("-c", "model.model_kwargs.top_p=0.5"),
        says=('"temperature": 0.25', '"top_p": 0.5'),
    ),
    "mistral-vibe": Probe(
        {"disabled_tools": ["web_fetch"]}, args=("--max-turns", "99"), lacks=('"web_fetch"',)
    ),
    "nanocoder": Probe(
        {"nanocoder": {"systemPrompt": {"mode": "append", "content": MARK}}},
        args=("--context-max", "64k"),
        says=(MARK,),
    ),
    "opencode": Probe(
        {"agent": {"build": {"prompt": MARK}}}, args=("--title", "sea"), says=(MARK,), titled=True
    ),
    "pi": Probe({"defaultTools": ["+grep"]}, args=("--append-system-prompt", MARK), says=('"grep"', MARK)),
    "qwen-code": Probe(
        {"permissions": {"deny": ["web_fetch"]}},
        args=("--append-system-prompt", MARK),
        says=(MARK,),
        lacks=('"web_fetch"',),
    ),
}


def lay_probes(plugins: Path, clis: Iterable[str]) -> None:
    """A directory of plugins with cab's own and two more: `setting` and `said`, the probes of these CLIs."""
    shutil.copytree(REPO / "plugins", plugins)
    probes = {cli: PROBES[cli] for cli in clis}
    settings = {cli: dict(probe.settings) for cli, probe in probes.items() if probe.settings}
    env = {cli: dict(probe.env) for cli, probe in probes.items() if probe.env}
    _write(plugins / "setting", {"kind": "settings", "settings": settings, "env": env})
    _write(plugins / "said", {"kind": "args", "args": {cli: list(it.args) for cli, it in probes.items()}})


def _write(plugin: Path, manifest: dict[str, Any]) -> None:
    plugin.mkdir()
    (plugin / "plugin.toml").write_text(dump_toml({key: value for key, value in manifest.items() if value}))
