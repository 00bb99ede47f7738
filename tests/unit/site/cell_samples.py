"""Whole scored cells in a store, for the tests of their pages."""

from __future__ import annotations

import json
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, ClassVar

from jinja2.bccache import Bucket, BytecodeCache
from store_samples import DIGEST, LIMITS, STARTED, cell_record, identity, sweep_record

import scorers
from orchestrator.run.outcome import TABLE
from orchestrator.site import build, links, render
from orchestrator.site.output import Page
from orchestrator.site.source import Source
from orchestrator.store.cells import CellStore
from orchestrator.store.evidence import save_evidence, save_facts
from orchestrator.store.names import CellKey
from orchestrator.store.record import CellRecord, Claim, HostTried, Outcome, Timing
from scorers.evidence import (
    AgentEnd,
    Evidence,
    FileChange,
    FinalMessage,
    ModelCall,
    Span,
    TaskFacts,
    TestResult,
    ToolCall,
    Usage,
    Verification,
)
from scorers.score import score

SWEEP = "free-1"
KEY = CellKey("opencode", "openai/gpt", "polyglot/sum")
FACTS = TaskFacts(
    task=KEY.task,
    category="polyglot",
    language="python",
    ground_truth_files=["src/sum.py"],
    fail_to_pass=["adds"],
    pass_to_pass=["imports"],
    ref_tokens=50,
    ref_active_s=5.0,
    ref_diff_lines=4,
    canary="cab-canary 11111111-2222-3333-4444-555555555555",
    hidden_literals=["Zyzzy"],
)
PATCH = """\
diff --git a/src/sum.py b/src/sum.py
--- a/src/sum.py
+++ b/src/sum.py
@@ -1,2 +1,2 @@
 def total(a, b):
-    return a - b
+    return a + b  # sums
"""


def evidence(**given: Any) -> Evidence:
    fields: dict[str, Any] = {
        "phases": {
            "setup": Span(start=0, end=1),
            "agent": Span(start=1, end=21),
            "collect": Span(start=21, end=22),
            "verify": Span(start=22, end=24),
        },
        "end": AgentEnd(exit_code=0),
        "calls": [
            ModelCall(
                index=0,
                start=2,
                end=4,
                request_hash="h" * 64,
                usage=Usage(input=90, output=10),
                finish_reason="stop",
            )
        ],
        "tool_calls": [
            ToolCall(call_id="1", name="edit", arguments='{"path": "src/sum.py"}', start=4, end=5)
        ],
        "final_message": FinalMessage(text="Done.", source="wire"),
        "changes": [
            FileChange(path="src/sum.py", change="modified", lines_added=1, lines_removed=1),
        ],
        "diff": PATCH,
        "verification": Verification(
            exit_code=0,
            timed_out=False,
            reward=1.0,
            tests=[TestResult(name=name, status="passed") for name in ("adds", "imports")],
            stdout_tail="two tests ran\n",
        ),
    }
    return Evidence(**(fields | given))


def record(found: Evidence, *, key: CellKey = KEY, outcome: str = "completed", **given: Any) -> CellRecord:
    counted = TABLE[outcome].counted
    who = identity(
        key,
        sweep_id=SWEEP,
        adapter_digest=DIGEST,
        model_build_id="gpt-build-7",
        limits=LIMITS.model_copy(update={"scratch_bytes": None, "scratch_inodes": None}),
    )
    fields: dict[str, Any] = {
        "methodology_version": scorers.METHODOLOGY_VERSION,
        "identity": who,
        "outcome": Outcome.model_validate({"name": outcome, "counted": counted}),
        "claim": Claim(level="citable"),
        "timing": Timing.since(STARTED, 24.0),
        "scores": score(FACTS, found, outcome_counts=counted).by_axis(),
        "recording": "pty",
        "hosts_tried": (HostTried(name="models.example", first_s=1.5, count=2),),
    }
    return cell_record(key, **(fields | given))


def span(
    number: int, kind: str, start: float, end: float, parent: int | None = 0, **more: Any
) -> dict[str, Any]:
    """A line of `spans.jsonl`; times in seconds from the cell's start."""
    return {
        "trace_id": "0" * 32,
        "span_id": f"{number:016x}",
        "parent_id": None if parent is None else f"{parent:016x}",
        "name": f"{kind}:{number}",
        "kind": kind,
        "start_unix_ns": 10**18 + round(start * 1e9),
        "end_unix_ns": 10**18 + round(end * 1e9),
        "attributes": {"cab.run": 1},
        "status": "unset",
        "events": [],
        **more,
    }


SPANS = [
    span(3, "model_call", 2, 4, 2),
    span(4, "tool_call", 4, 5, 2),
    span(2, "container", 1, 21, 1),
    span(1, "adapter_run", 1, 21),
    span(0, "cell", 0, 24, None),
]
CAST = [
    {"version": 2, "width": 80, "height": 24},
    [0.5, "o", "hello\r\n"],
    [12.25, "o", "</script><script>alert(1)</script>\u2028"],
]


def store(results: Path, *cells: tuple[CellRecord, Evidence], files: dict[str, str] | None = None) -> Path:
    """A results directory with one sweep of these finished cells, each with a trace, a patch and a
    recording; `files` stand in place of those, by name, and "" leaves one out.
    """
    made = CellStore(results, SWEEP)
    order = tuple(cell.cell_id for cell, _ in cells)
    made.create(sweep_record(sweep_id=SWEEP, order=order, pins={}, concurrency=1))
    for cell, found in cells:
        staging = made.staging(cell.identity.key)
        save_evidence(staging.path, found)
        save_facts(staging.path, FACTS)
        usual = {
            "spans.jsonl": json_lines(SPANS),
            "recording.cast": json_lines(CAST),
            "diff.patch": found.diff,
        }
        for name, text in (usual | (files or {})).items():
            if text:
                (staging.path / name).write_text(text, "utf-8", errors="surrogatepass")
        made.commit(staging, cell)
    made.close()
    return results


def json_lines(values: list[Any]) -> str:
    return "".join(f"{json.dumps(value)}\n" for value in values)


def page_of(results: Path, key: CellKey = KEY, *, base_url: str | None = None) -> str:
    """The page of a cell, as it is in the site of these results."""
    outputs, env = site_of(results, base_url)
    page = outputs[links.cell_page(SWEEP, key)]
    assert isinstance(page, Page)
    return render.render(env, page.path, page.template, page.context()).decode()


class _Compiled(BytecodeCache):
    """Templates, compiled once for all tests."""

    kept: ClassVar[dict[str, bytes]] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        if bucket.key in self.kept:
            bucket.bytecode_from_string(self.kept[bucket.key])

    def dump_bytecode(self, bucket: Bucket) -> None:
        self.kept[bucket.key] = bucket.bytecode_to_string()


@cache
def site_of(results: Path, base_url: str | None = None) -> tuple[dict[str, Any], Any]:
    """What a site of these results consists of, and the environment that renders its pages."""
    source = Source.read([results], base_url=base_url)
    outputs = build._outputs(source)
    env = render.environment(build.site_facts(source, outputs), outputs)
    env.bytecode_cache = _Compiled()
    return outputs, env


INLINE = ("i", "code", "a", "strong")


class Texts(HTMLParser):
    """The text of a page, of each element with an id, and every tag with its attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.by_id: dict[str, list[str]] = {}
        self._open: list[tuple[str, str | None]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag not in INLINE:
            self.words()
        self.tags.append((tag, given))
        if (name := given.get("id")) is not None:
            self.by_id.setdefault(name, [])
        if tag not in ("meta", "link", "br", "img", "input", "rect", "path"):
            self._open.append((tag, given.get("id")))

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop()[0] != tag:
            pass

    def words(self) -> None:
        """Elements part words, where they do so on a screen."""
        for _, name in self._open:
            if name is not None:
                self.by_id[name].append(" ")

    def handle_data(self, data: str) -> None:
        for _, name in self._open:
            if name is not None:
                self.by_id[name].append(data)

    def text(self, name: str) -> str:
        """What an element of this id holds, with white space as one space."""
        return " ".join("".join(self.by_id[name]).split())
