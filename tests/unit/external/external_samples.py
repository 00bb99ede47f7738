"""Small tasks of a benchmark to test with."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from orchestrator.external.tasks import ExternalTask, task_of

FILES = {"calc.py": "def mean(values):\n    return sum(values) // len(values)\n", "notes.txt": "old\n"}
GOLD = """\
diff --git a/calc.py b/calc.py
--- a/calc.py
+++ b/calc.py
@@ -1,2 +1,2 @@
 def mean(values):
-    return sum(values) // len(values)
+    return sum(values) / len(values)
"""
PRIOR = """\
diff --git a/notes.txt b/notes.txt
deleted file mode 100644
--- a/notes.txt
+++ /dev/null
@@ -1 +0,0 @@
-old
diff --git a/todo.txt b/todo.txt
new file mode 100644
--- /dev/null
+++ b/todo.txt
@@ -0,0 +1 @@
+mend mean
"""
HISTORY = [
    {"id": "e1", "kind": "goal", "text": "Mend mean.", "source": "user"},
    {
        "id": "e2",
        "kind": "constraint",
        "key": "no_deps",
        "text": "Add no dependency.",
        "source": "user",
        "hard": True,
    },
    {"id": "e3", "kind": "test_failed", "key": "test_mean", "text": "1 is not 1.5", "source": "tool"},
]


def tree(root: Path, files: dict[str, str] | None = None) -> Path:
    for name, text in (files or FILES).items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def row(instance: str = "lab__calc-1", **changes: Any) -> dict[str, Any]:
    return {
        "instance_id": instance,
        "repo": "lab/calc",
        "base_commit": "a" * 40,
        "version": "1",
        "problem_statement": "mean() loses the fraction.",
        "patch": GOLD,
        "test_patch": "",
        "FAIL_TO_PASS": ["test_mean"],
        "PASS_TO_PASS": [],
        **changes,
    }


def task(source: Path | None = None, **changes: Any) -> ExternalTask:
    return task_of(row(**changes), "sample", source=source)


def tasks_file(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text(json.dumps(list(rows) or [row()]))
    return path


def git(where: Path, *words: str) -> str:
    env = {"PATH": os.defpath, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    for who in ("AUTHOR", "COMMITTER"):
        env |= {f"GIT_{who}_NAME": "x", f"GIT_{who}_EMAIL": "x@example.invalid"}
    done = subprocess.run(["git", *words], cwd=where, env=env, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def clone(path: Path, files: dict[str, str] | None = None) -> tuple[Path, str]:
    """A repository with a base commit, and a fix after it; the base commit's id."""
    tree(path, files)
    git(path, "init", "-q")
    git(path, "add", "-A", "-f")
    git(path, "commit", "-qm", "base")
    base = git(path, "rev-parse", "HEAD")
    (path / "calc.py").write_text("the fix of the future\n")
    git(path, "commit", "-qam", "the fix")
    return path, base
