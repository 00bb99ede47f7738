"""The contract between cab and one coding-agent CLI.

`images/<cli>/adapter.py` holds one module-level `ADAPTER`. An adapter declares what a CLI needs and how it is
read; nothing in cab asks for a CLI's name.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType
from typing import Any, Literal, get_args

from orchestrator.errors import InputError

Wire = Literal["chat", "responses", "messages", "gemini"]

OtherModels = Literal["redirect", "refuse"]
"""What becomes of a request for another model than the cell's."""

PluginKind = Literal["rules", "mcp", "settings", "args"]
"""What a plugin of a stack can be."""

Recording = Literal["pty", "rendered", "plain"]
"""How the recording of a run comes about: what a terminal showed, the CLI's events as its adapter renders
them, or its output on a pipe as it is. The times are true in each.
"""

HOME = "/home/agent"
WORKDIR = "/workdir"
SOLUTION = "/solution"
CONTAINER_ENV = {"HOME": HOME, "LANG": "C.UTF-8", "TERM": "xterm-256color"}
"""What every CLI's environment has, beside what its launch adds."""

GATEWAY_PORT = 8377
GATEWAY_URL = f"http://127.0.0.1:{GATEWAY_PORT}"


@dataclass(frozen=True)
class LaunchContext:
    """What an adapter knows when it builds a command line. Paths are inside the container. `rules` is the
    adapter's `rules_file` where the workdir has one, `rules_text` what stands in it: for a CLI that reads no
    such file, but takes its name or its text.
    """

    prompt: str
    model: str
    credential: str
    base_url: str = GATEWAY_URL
    home: str = HOME
    workdir: str = WORKDIR
    rules: str | None = None
    rules_text: str = ""


@dataclass(frozen=True)
class Launch:
    """One headless run of a CLI: command, environment, and files to lay in HOME (path in HOME -> content)."""

    argv: tuple[str, ...]
    env: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class SettingsPlace:
    """Where a CLI reads settings: a file in HOME, TOML by its suffix and else JSON, or a variable of JSON."""

    file: str | None = None
    env: str | None = None

    def __post_init__(self) -> None:
        """Raises ValueError unless it is one place."""
        if (self.file is None) == (self.env is None):
            raise ValueError("settings stand in a file or in a variable: give one of both")


def as_text(prompt: str, signs: str) -> str:
    """The prompt, after a line end where it begins with one of `signs`: characters that a CLI would there
    take for a command or a file's name.
    """
    return f"\n{prompt}" if prompt.startswith(tuple(signs)) else prompt


def mcp_servers(name: str, command: tuple[str, ...]) -> dict[str, Any]:
    """One MCP server in the form that most CLIs share."""
    return {"mcpServers": {name: {"command": command[0], "args": list(command[1:])}}}


@dataclass(frozen=True)
class McpSettings:
    """How a CLI is told of an MCP server that speaks on stdin and stdout: by `entry`, settings for one server
    of that name and command, at `place`. `named` is False for a CLI whose requests need not name a server
    whose tools they offer: it gives the tool's name alone, or names what its model has searched for.
    """

    place: SettingsPlace
    entry: Callable[[str, tuple[str, ...]], dict[str, Any]] = mcp_servers
    named: bool = True


@dataclass(frozen=True)
class CliUsage:
    """Tokens of the requests of its main thread, as a CLI itself states them. A margin is how far rounding
    may have taken a number from what it was.
    """

    input: int
    output: int
    input_margin: int = 0
    output_margin: int = 0


@dataclass(frozen=True)
class Deviation:
    """One way in which a measured run differs from the CLI as shipped, with what forces it."""

    what: str
    reason: str


@dataclass(frozen=True)
class Adapter:
    """How one CLI is launched, pointed at an endpoint and read.

    `state_globs` are gitignore-style patterns, relative to the workdir, of files the CLI itself keeps there.
    `state_lines` are lines that the CLI itself adds to a file of the workdir, by its path: a file that gained
    such lines and is otherwise as before is the CLI's as well.
    `side_prompts` are words of the system prompts of requests beside the task (a commit message, a summary).
    A CLI that offers its model tools needs none: its requests beside the task offer none.
    A CLI that asks no model has `wire` None, and `final_message` "stdout": nothing of it is on a wire.
    `exit_code_tells` is False for a CLI that ends with other codes than 0 though nothing crashed. That 0 says
    nothing is no reason: cab never takes it for success.
    `other_models` says what becomes of a request for another model than the cell's, such as a small one for
    titles: it is sent to the cell's model, or refused as unknown for a CLI that does without it.
    `reported_usage` reads the CLI's own totals out of what it printed, None where that does not tell them.
    The text is hostile and bounded. They are a cross-check alone: what counts is the wire.
    `rules_file` is the file of the workdir in which the CLI reads a project's rules; None of one that reads
    none. Where it is not AGENTS.md, cab gives it the task's AGENTS.md under that name.
    `settings`, `mcp` and `args_at` are for the plugins of a stack: where settings stand, how an MCP server is
    named, at which place of argv arguments are put in. None of what a CLI does not take; `not_taken` says
    why, by the kind of plugin, as the end of a sentence.
    `render` turns one line that the CLI printed, an event, into what a screen shows of it, with line ends; ""
    shows nothing. The line is hostile and bounded; where it raises, the line itself is shown. It is for a CLI
    that does not show its work under a terminal: `tty` is False.
    `tool_calls` is False for a CLI that offers its model no tools and acts on what the answer's text says.
    `licence` is the SPDX id of the CLI's licence, or "proprietary": then its image is built by whoever uses
    it, from the registry, and is passed on to nobody.
    `program` is the CLI's own command where its launch begins with another, such as a shell.
    `needs_solution` mounts the task's reference solution at /solution, read-only: for baselines only.
    """

    name: str
    version: str
    launch: Callable[[LaunchContext], Launch]
    wire: Wire | None = "chat"
    tty: bool = True
    state_globs: tuple[str, ...] = ()
    state_lines: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    side_prompts: tuple[str, ...] = ()
    deviations: tuple[Deviation, ...] = ()
    needs_solution: bool = False
    final_message: Literal["wire", "stdout"] = "wire"
    exit_code_tells: bool = True
    other_models: OtherModels = "redirect"
    reported_usage: Callable[[str], CliUsage | None] | None = None
    rules_file: str | None = None
    settings: SettingsPlace | None = None
    mcp: McpSettings | None = None
    args_at: int | None = None
    not_taken: Mapping[PluginKind, str] = field(default_factory=dict)
    render: Callable[[str], str] | None = None
    tool_calls: bool = True
    licence: str = ""
    program: str = ""

    def __post_init__(self) -> None:
        """Raises ValueError for what type checkers would refuse, and few adapters are checked by one."""
        if self.wire is not None and self.wire not in get_args(Wire):
            raise ValueError(f"wire is {self.wire!r}; known: None, {', '.join(get_args(Wire))}")
        if self.final_message not in ("wire", "stdout"):
            raise ValueError(f"final_message is {self.final_message!r}; known: wire, stdout")
        if self.other_models not in get_args(OtherModels):
            known = ", ".join(get_args(OtherModels))
            raise ValueError(f"other_models is {self.other_models!r}; known: {known}")
        if self.wire is None and self.final_message == "wire":
            raise ValueError('wire is None, so nothing is said on it: final_message must be "stdout"')
        if wrong := sorted(kind for kind in self.not_taken if kind in self.takes):
            raise ValueError(f"not_taken gives a reason for {wrong[0]}, which the adapter declares")
        if wrong := sorted(set(self.not_taken) - set(get_args(PluginKind))):
            raise ValueError(f"not_taken has {wrong[0]!r}; known: {', '.join(get_args(PluginKind))}")
        if self.tty and self.render is not None:
            raise ValueError("render is for events on a pipe: tty must be False")

    @property
    def uses_model(self) -> bool:
        """Whether the CLI talks to a model at all; a baseline such as `noop` does not."""
        return self.wire is not None

    @property
    def takes(self) -> frozenset[PluginKind]:
        """The kinds of plugins for which there is a place."""
        places: dict[PluginKind, object] = {
            "rules": self.rules_file,
            "mcp": self.mcp,
            "settings": self.settings,
            "args": self.args_at,
        }
        return frozenset(kind for kind, place in places.items() if place is not None)

    @property
    def recording(self) -> Recording:
        if self.tty:
            return "pty"
        return "plain" if self.render is None else "rendered"


class _FromSource(importlib.machinery.SourceFileLoader):
    """Runs the file itself. Its byte-code is known by size and second alone, so it may be that of an earlier
    file, whose digest is not the one that a record gives.
    """

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        code: CodeType = self.source_to_code(self.get_data(path), path)
        return code


def load_adapter(images_dir: Path, name: str) -> Adapter:
    """Load `images/<name>/adapter.py`.

    Raises InputError when there is no such CLI, its module cannot be imported (with the line) or holds no
    `ADAPTER` of that name.
    """
    path = images_dir / name / "adapter.py"
    if not path.is_file():
        known = ", ".join(sorted(p.parent.name for p in images_dir.glob("*/adapter.py")))
        raise InputError(f"unknown CLI {name!r}", place=str(path), mend=f"known CLIs: {known}")
    module_name = f"cab_adapter_{name.replace('-', '_')}"
    loader = _FromSource(module_name, str(path))
    spec = importlib.util.spec_from_file_location(module_name, path, loader=loader)
    if spec is None or spec.loader is None:
        raise InputError("cannot be imported", place=str(path), mend="see docs/adapters.md")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise _not_imported(path, error) from error
    adapter = getattr(module, "ADAPTER", None)
    if not isinstance(adapter, Adapter) or adapter.name != name:
        raise InputError(f"holds no ADAPTER named {name!r}", place=str(path), mend="see docs/adapters.md")
    return adapter


def _not_imported(path: Path, error: BaseException) -> InputError:
    """One line for whatever the import of an adapter raised, with the line of the file it came from."""
    frames = [
        frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)
    ]
    line = frames[-1] if frames else 1
    thing = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, SyntaxError) and error.filename == str(path):
        line, thing = error.lineno or 1, error.msg
    return InputError(thing, place=f"{path}:{line}", mend="mend the adapter")
