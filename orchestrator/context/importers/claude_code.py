"""The session logs of Claude Code: `projects/<directory>/<session>.jsonl` below its home.

Lines come in the order in which things happened. Work of subagents is left out: what it came to stands in the
result of the call that started it.
"""

from __future__ import annotations

import re
from typing import Any

from orchestrator.context.importers.session import Session, as_dict, as_text, dicts, text_of

_SKIPPED = frozenset(
    (
        *(
            "queue-operation",
            "atis-latch",
            "last-prompt",
            "api-request-shape",
            "api-request-blob",
            "api-request",
        ),
        *(
            "tools-used",
            "cost-state",
            "file-history-snapshot",
            "summary",
            "system",
            "progress",
            "permission-mode",
        ),
        *("ai-title", "custom-title", "agent-name", "mode", "pr-link", "tag", "worktree-state"),
    )
)
_REMINDERS = re.compile(r"<system-reminder>.*?</system-reminder>\s*", re.DOTALL)
_NOT_THE_USERS = re.compile(
    r"\s*<(?:command-name|command-message|local-command-stdout|local-command-caveat|bash-)"
)
_FAILED = re.compile(r"\A(?:Error: )?Exit code (\d+)\n?")
_WRITES = {
    "Edit": "file_path",
    "Write": "file_path",
    "MultiEdit": "file_path",
    "NotebookEdit": "notebook_path",
}


class ClaudeCode:
    """Reads a log line by line; calls of tools wait for their results."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._waiting: dict[str, tuple[str, dict[str, Any]]] = {}
        """call id → tool and its input."""

    def line(self, line: dict[str, Any]) -> None:
        kind, at = as_text(line.get("type")), as_text(line.get("timestamp"))
        self._session.cwd = self._session.cwd or as_text(line.get("cwd")) or None
        if line.get("isSidechain") is True:
            return
        content = as_dict(line.get("message")).get("content")
        if kind == "user":
            self._user(
                content, at, made_by_cli=line.get("isMeta") is True, summary=line.get("isCompactSummary")
            )
        elif kind == "assistant":
            self._assistant(content, at)
        elif kind == "attachment":
            self._attachment(as_dict(line.get("attachment")), at)
        elif kind not in _SKIPPED:
            self._session.unknown[kind or "without a type"] += 1

    def _user(self, content: Any, at: str, *, made_by_cli: bool, summary: Any) -> None:
        for part in dicts(content):
            if part.get("type") == "tool_result":
                self._result(part, at)
        text = _REMINDERS.sub("", text_of(content))
        if summary is True:
            self._session.compacted(text, at)
        elif not made_by_cli and not _NOT_THE_USERS.match(text):
            self._session.user_said(text, at)

    def _assistant(self, content: Any, at: str) -> None:
        for part in [{"type": "text", "text": content}] if isinstance(content, str) else dicts(content):
            if part.get("type") == "text":
                self._session.agent_said(as_text(part.get("text")), at)
            elif part.get("type") == "tool_use":
                self._call(part, at)

    def _call(self, part: dict[str, Any], at: str) -> None:
        name, given = as_text(part.get("name")), as_dict(part.get("input"))
        if name == "TodoWrite":
            steps = [
                f"- [{as_text(one.get('status')) or 'pending'}] {as_text(one.get('content'))}"
                for one in dicts(given.get("todos"))
            ]
            self._session.planned("\n".join(steps), at)
        elif name == "ExitPlanMode":
            self._session.planned(as_text(given.get("plan")), at)
        else:
            self._waiting[as_text(part.get("id"))] = (name, given)

    def _result(self, part: dict[str, Any], at: str) -> None:
        name, given = self._waiting.pop(as_text(part.get("tool_use_id")), ("", {}))
        bad = part.get("is_error") is True
        output = text_of(part.get("content"))
        if name == "Bash":
            failed = _FAILED.match(output)
            code = int(failed[1]) if failed else None if bad else 0
            self._session.ran(
                as_text(given.get("command")), output[failed.end() :] if failed else output, code, at
            )
        elif name in _WRITES and not bad:
            self._session.touched(as_text(given.get(_WRITES[name])), at)

    def _attachment(self, attachment: dict[str, Any], at: str) -> None:
        """Of what the CLI adds to a message only the project's notes are kept."""
        if attachment.get("type") == "instructions":
            for file in dicts(attachment.get("files")):
                if file.get("type") in ("Project", "Local", None):
                    self._session.instructions(as_text(file.get("content")), at)
