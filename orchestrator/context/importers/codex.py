"""The session logs of codex: `sessions/YYYY/MM/DD/rollout-….jsonl` below its home.

The response items are what the model was sent and said; the events beside them tell the same for a screen,
so that of these only plans, compactions and changed files are read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from orchestrator.context.importers.commands import patched
from orchestrator.context.importers.session import Session, as_dict, as_text, dicts, text_of

_NOT_THE_USERS = re.compile(r"\s*<(?:environment_context|user_instructions|turn_aborted|permissions|skill)\b")
_NOTES = re.compile(r"\s*# AGENTS\.md instructions\b")
_SKIPPED_LINES = frozenset(("world_state", "turn_context", "token_usage_record", "ghost_snapshot"))
_SKIPPED_ITEMS = frozenset(("reasoning", "web_search_call", "ghost_snapshot", "compaction", "other"))
_TOLD_TWICE = frozenset(
    (
        *("token_count", "task_started", "task_complete", "turn_started", "turn_complete", "turn_aborted"),
        *("user_message", "agent_message", "agent_reasoning", "agent_reasoning_raw_content", "error"),
        *("exec_command_begin", "exec_command_end", "patch_apply_begin", "thread_settings_applied"),
        *("item_started", "thread_name_updated", "context_compacted", "entered_review_mode"),
        *("exited_review_mode", "undo_completed", "view_image_tool_call", "mcp_tool_call_end"),
    )
)
_EXIT = re.compile(r"^Process exited with code (-?\d+)$", re.M)
_HEAD = re.compile(r"\A(?:(?:Chunk ID|Wall time|Process |Original token count|Exit code)\b.*\n)*Output:\n")
_SHELLS = ("bash", "sh", "zsh", "dash")


class Codex:
    """Reads a log line by line; calls wait for their output."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._waiting: dict[str, tuple[str, str]] = {}
        """call id → (command, patch), either of them ""."""
        self._items: dict[str, Callable[[dict[str, Any], str], None]] = {
            "message": self._message,
            "function_call": self._call,
            "custom_tool_call": self._call,
            "local_shell_call": self._local_shell,
            "function_call_output": self._output,
            "custom_tool_call_output": self._output,
        }

    def line(self, line: dict[str, Any]) -> None:
        kind, at = as_text(line.get("type")), as_text(line.get("timestamp"))
        payload = as_dict(line.get("payload"))
        if kind == "session_meta":
            self._meta(payload)
        elif kind == "response_item":
            self._item(payload, at)
        elif kind == "event_msg":
            self._event(payload, at)
        elif kind == "compacted":
            self._session.compacted(as_text(payload.get("message")), at)
        elif kind in self._items and not payload:
            # Older logs hold the items bare.
            self._item(line, at)
        elif not kind and "id" in line and "timestamp" in line:
            self._meta(line)
        elif kind not in _SKIPPED_LINES and line.get("record_type") != "state":
            self._session.unknown[kind or "without a type"] += 1

    def _meta(self, payload: dict[str, Any]) -> None:
        # A session that goes on from another repeats that one's; its own comes first.
        self._session.cwd = self._session.cwd or as_text(payload.get("cwd")) or None
        commit = as_text(as_dict(payload.get("git")).get("commit_hash"))
        self._session.base = self._session.base or commit or None

    def _item(self, item: dict[str, Any], at: str) -> None:
        kind = as_text(item.get("type"))
        if read := self._items.get(kind):
            read(item, at)
        elif kind not in _SKIPPED_ITEMS:
            self._session.unknown[f"response_item/{kind}"] += 1

    def _event(self, event: dict[str, Any], at: str) -> None:
        kind = as_text(event.get("type"))
        if kind == "item_completed":
            item = as_dict(event.get("item"))
            if item.get("type") == "FileChange" and item.get("status") in (None, "completed"):
                self._changed(item, at)
        elif kind == "patch_apply_end":
            if event.get("success") is not False:
                self._changed(event, at)
        elif kind == "plan_update":
            self._plan(event, at)
        elif kind not in _TOLD_TWICE:
            self._session.unknown[f"event_msg/{kind}"] += 1

    def _message(self, item: dict[str, Any], at: str) -> None:
        role = item.get("role")
        if role == "assistant":
            self._session.agent_said(text_of(item.get("content")), at)
        elif role == "user":
            for part in dicts(item.get("content")):
                text = text_of([part])
                if _NOTES.match(text):
                    self._session.instructions(text, at)
                elif not _NOT_THE_USERS.match(text):
                    self._session.user_said(text, at)

    def _call(self, item: dict[str, Any], at: str) -> None:
        name, call = as_text(item.get("name")), as_text(item.get("call_id"))
        given = item.get("arguments", item.get("input"))
        arguments = _decoded(given)
        if name == "update_plan":
            self._plan(arguments, at)
        elif name == "apply_patch":
            self._waiting[call] = ("", as_text(arguments.get("input")) or as_text(given))
        elif command := _command(arguments.get("cmd", arguments.get("command"))):
            self._waiting[call] = (command, "")

    def _local_shell(self, item: dict[str, Any], at: str) -> None:
        del at
        if command := _command(as_dict(item.get("action")).get("command")):
            self._waiting[as_text(item.get("call_id"))] = (command, "")

    def _output(self, item: dict[str, Any], at: str) -> None:
        if (waiting := self._waiting.pop(as_text(item.get("call_id")), None)) is None:
            return
        command, patch = waiting
        output, code = _said(item.get("output"))
        if command:
            self._session.ran(command, output, code, at)
        elif not code:
            for path in patched(patch):
                self._session.touched(path, at)

    def _changed(self, event: dict[str, Any], at: str) -> None:
        changes = event.get("changes")
        paths = list(changes) if isinstance(changes, dict) else [one.get("path") for one in dicts(changes)]
        for path in paths:
            if isinstance(path, str):
                self._session.touched(path.removeprefix("file://"), at)

    def _plan(self, arguments: dict[str, Any], at: str) -> None:
        steps = [
            f"- [{as_text(step.get('status')) or 'pending'}] {as_text(step.get('step'))}"
            for step in dicts(arguments.get("plan"))
        ]
        self._session.planned("\n".join(filter(None, (as_text(arguments.get("explanation")), *steps))), at)


def _decoded(given: Any) -> dict[str, Any]:
    if isinstance(given, dict):
        return given
    try:
        return as_dict(json.loads(given)) if isinstance(given, str) else {}
    except ValueError:
        return {}


def _command(given: Any) -> str:
    """A command as one types it: the shell that ran it is left away."""
    if isinstance(given, str):
        return given
    words = [word for word in given if isinstance(word, str)] if isinstance(given, list) else []
    if len(words) == 3 and words[0].rpartition("/")[2] in _SHELLS and words[1].startswith("-"):
        return words[2]
    return " ".join(words)


def _said(given: Any) -> tuple[str, int | None]:
    """Output and exit code of a call, without the lines that codex puts before it."""
    text = given if isinstance(given, str) else text_of(given)
    wrapped = _decoded(text) if text.startswith("{") else {}
    if isinstance(wrapped.get("output"), str):
        code = as_dict(wrapped.get("metadata")).get("exit_code")
        return wrapped["output"], code if isinstance(code, int) else None
    head = _HEAD.match(text)
    found = _EXIT.search(head[0]) if head else None
    older = re.match(r"Exit code: (-?\d+)$", text, re.M)
    code = found or older
    return text[head.end() :] if head else text, int(code[1]) if code else None
