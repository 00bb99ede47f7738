"""Every column of a cell, defined once: its name, type and unit, where in the record it stands, what it says.

The index, the frame, all exports and docs/columns.md are made from `COLUMNS`. Null is "not measured"; the
column `null_reasons` says why. A field of the record that is no column is in `LEFT_OUT`, with the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from orchestrator.store import column
from orchestrator.store.column import Column, Dtype

Row = tuple[str, Dtype, str | None, str, str] | tuple[str, Dtype, str | None, str, str, Callable[[Any], Any]]


def _of(place: str, *rows: Row) -> tuple[Column, ...]:
    """Columns whose sources begin with `place`: name, type, unit, source, what it says, how it is made."""
    prefix = f"{place}." if place else ""
    return tuple(Column(name, dtype, unit, prefix + key, *rest) for name, dtype, unit, key, *rest in rows)


INDEX_COLUMNS: tuple[Column, ...] = (
    *_of(
        "identity",
        ("cell_id", "text", None, "cell_id", "The cell: sweep/cli/model/task+stack@condition#run"),
        ("sweep_id", "text", None, "sweep_id", "The sweep that the cell belongs to"),
        ("cli", "text", None, "cli", "The coding-agent CLI that was measured"),
        ("cli_version", "text", None, "cli_version", "The CLI's version"),
        ("model", "text", None, "model", "The model; `none` for a CLI that talks to no model"),
        ("task", "text", None, "task", "The task: category/name"),
        ("run", "int", None, "run", "Which repetition of the same cell this is, from 1"),
        ("stack", "text", None, "stack", "The plugin stack; `none` is the CLI as shipped"),
        ("condition", "text", None, "condition", "The condition that the cell ran under, if any"),
    ),
    *_of(
        "",
        ("order_index", "int", None, "order_index", "The cell's place in the sweep's order, from 0"),
        ("outcome", "text", None, "outcome.name", "What happened, in the words of docs/outcomes.md"),
        ("cause", "text", None, "outcome.cause", "What caused an infra_error, or the limit that was reached"),
        ("counted", "bool", None, "outcome.counted", "Whether this outcome is part of rates"),
        ("claim", "text", None, "claim.level", "`pipeline_only`, `imported`, `provisional` or `citable`"),
    ),
    *_of(
        "scores.pass_rate",
        ("passed", "float", "0 or 1", "pass", "Whether the cell passed; 0 where it was voided"),
        ("partial_score", "float", "share", "partial_score", "Share of the listed tests that passed"),
    ),
    *_of(
        "scores.tokens",
        ("prompt_tokens", "int", "tokens", "prompt_tokens", "Input of the counted calls, caches included"),
        ("completion_tokens", "int", "tokens", "completion_tokens", "Output of them, reasoning included"),
        ("total_tokens", "int", "tokens", "total_tokens", "Input and output together"),
        ("model_calls", "int", "calls", "model_calls", "Model calls that were sent upstream"),
        ("cost_usd", "float", "USD", "cost_usd", "What the counted calls cost"),
    ),
    *_of(
        "scores.latency",
        ("wall_clock_ms", "float", "ms", "wall_clock_ms", "Set-up and the agent's stage together"),
        ("container_active_ms", "float", "ms", "container_active_ms", "The agent's stage alone"),
        (
            "model_call_ms",
            "float",
            "ms",
            "model_call_ms",
            "Model calls under way, less waits for rate limits",
        ),
    ),
    *_of(
        "scores",
        (
            "blast_radius",
            "float",
            "share",
            "blast_radius.blast_radius",
            "Changed files unasked for ÷ changed",
        ),
        (
            *("blast_radius_agent", "float", "share", "blast_radius.blast_radius_agent"),
            "Lines that the agent changed unasked ÷ lines of the reference diff, at most 1",
        ),
        ("refusal", "float", "0, 0.5 or 1", "refusal.refusal", "Whether an impossible ticket was refused"),
        (
            *("false_refusal", "bool", None, "refusal.false_refusal"),
            "Whether a task that can be done was declined; null where a refusal is expected",
        ),
        ("integrity", "float", "0 or 1", "integrity.integrity", "1 without a severe finding, 0 where voided"),
        ("void", "bool", None, "integrity.void", "Whether a severe finding voids the cell"),
        (
            *("integrity_findings", "int", "findings", "integrity"),
            "Findings of all rules; null where not all could be read",
            column.findings_of,
        ),
        ("composite", "float", "0 to 1", "composite.composite", "cab-1, derived from the axes"),
        (
            "composite_bounds",
            "floats",
            "0 to 1",
            "composite.bounds",
            "What unmeasured terms leave open of it",
        ),
        (
            *("composite_published", "float", "0 to 1", "composite_published.composite"),
            "published-0.1, for comparison with published cells alone",
        ),
    ),
    *_of(
        "",
        ("attempts", "int", "tries", "attempts", "Earlier tries, which infrastructure ended", len),
        ("started_at", "time", "UTC", "timing.started_at", "When the cell started, by the wall clock"),
        ("ended_at", "time", "UTC", "timing.ended_at", "`started_at` plus `duration_s` of monotonic time"),
        ("duration_s", "float", "s", "timing.duration_s", "The whole cell, by the monotonic clock"),
    ),
    *_of(
        "identity",
        ("image_digest", "text", "sha256", "image_digest", "The image that the agent ran in"),
        ("task_content_hash", "text", "sha256", "task_content_hash", "Digest of the task's files"),
        ("model_build_id", "text", None, "model_build_id", "The model that the endpoint reported"),
        ("model_builds", "texts", None, "model_builds", "Each build that answered", column.builds),
    ),
    *_of(
        "",
        (
            *("methodology_version", "text", None, "methodology_version"),
            "The rules of scoring; numbers of two versions do not belong in one table",
        ),
        ("record_sha256", "text", "sha256, hex", "record_sha256", "Digest of the file `cell.json`"),
    ),
)
"""The columns that `index.jsonl` holds, in its order."""

_IDENTITY = _of(
    "identity",
    ("category", "text", None, "task", "The task's category", column.category),
    (
        "behaviour_mode",
        "text",
        None,
        "behaviour_mode",
        "`factory`: the CLI as shipped; `stack`: with plugins",
    ),
    ("deviations", "texts", None, "deviations.*.what", "Ways in which it is not as shipped"),
    ("rules_file", "text", None, "rules_file", "The file in which the CLI found the project's rules"),
    ("stack_plugins", "texts", None, "plugins.*.name", "The stack's plugins"),
    ("stack_digests", "texts", "sha256", "plugins.*.digest", "The digest of each"),
    ("stack_skipped", "json", None, "plugins.*.skipped", "For each, why the CLI does not take it, else null"),
    (
        "stack_offered",
        "json",
        None,
        "plugins.*.offered",
        "For each, whether an MCP server's tools were offered",
    ),
    ("container_image", "text", None, "container_image", "The name of the agent's image"),
    ("image_digest_kind", "text", None, "digest_kind", "What `image_digest` is: `manifest` or `image_id`"),
    ("verifier_digest", "text", "sha256", "verifier_digest", "The image that graded"),
    ("adapter_digest", "text", "sha256", "adapter_digest", "The adapter of the CLI"),
    ("cab_version", "text", None, "cab.version", "The version of cab that made the record"),
    ("cab_commit", "text", None, "cab.commit", "Its commit"),
    ("cab_dirty", "bool", None, "cab.dirty", "Whether its checkout had changes"),
    ("generation_settings", "json", None, "generation_settings", "Each set of settings that went upstream"),
    ("settings_set", "json", None, "settings_set", "The settings that the sweep set"),
    ("settings_overridden", "json", None, "settings_overridden", "What the CLI had asked for in their place"),
    ("platform", "text", None, "platform", "Operating system and processor"),
    ("engine_version", "text", None, "engine_version", "Version of the container engine"),
    ("memory_limit_bytes", "int", "bytes", "limits.memory_bytes", "Limit on the agent's memory"),
    ("cpu_limit", "float", "CPUs", "limits.cpus", "Limit on processors"),
    ("process_limit", "int", "processes", "limits.pids", "Limit on processes"),
    ("tmp_limit_bytes", "int", "bytes", "limits.tmp_bytes", "Limit on /tmp"),
    ("scratch_limit_bytes", "int", "bytes", "limits.scratch_bytes", "Limit on HOME and workdir"),
    ("scratch_limit_inodes", "int", "inodes", "limits.scratch_inodes", "The same, in inodes"),
    ("time_limit_s", "float", "s", "limits.timeout_s", "Limit on the agent's time"),
    ("call_limit", "int", "calls", "limits.max_calls", "Limit on model calls; null is none"),
    ("token_limit", "int", "tokens", "limits.max_tokens", "Limit on tokens; null is none"),
    ("cost_limit_usd", "float", "USD", "limits.max_usd", "Limit on cost; null is none"),
    ("concurrency", "int", "cells", "concurrency", "Cells that ran at a time"),
    ("machine_load", "float", "processes", "machine_load", "One-minute load average when the cell started"),
    ("agent_exit_code", "int", None, "exit_code", "Exit code of the CLI; null when a signal ended it"),
)
_CELL = _of(
    "",
    ("detail", "text", None, "outcome.detail", "What happened, for people"),
    ("claim_reasons", "texts", None, "claim.reasons", "Why no more may be said"),
    ("isolation", "text", None, "isolation.containers", "How agent and grader were kept apart"),
    ("egress", "text", None, "isolation.egress", "What of the network the agent could reach"),
    ("verifier", "text", None, "isolation.verifier", "`fresh` or `shared` place of grading"),
    (
        *("attempts_prompt_tokens", "int", "tokens", "attempts.*.input_tokens"),
        "Input of the earlier tries, which is in no other column",
        column.total,
    ),
    (
        *("attempts_completion_tokens", "int", "tokens", "attempts.*.output_tokens"),
        "Output of the earlier tries",
        column.total,
    ),
    (
        *("attempts_cost_usd", "float", "USD", "attempts.*.cost_usd"),
        "What the earlier tries cost",
        column.total,
    ),
    ("replay_of", "text", None, "replay_of", "The cell whose recorded answers this one was given"),
    ("recording", "text", None, "recording", "How the recording of the terminal came about"),
    ("hosts_tried", "texts", None, "hosts_tried.*.name", "Host names looked up in vain"),
    ("reproduce_command", "text", None, "reproduce.command", "The command that runs the cell again"),
    ("published_id", "text", None, "imported.published_id", "Id under which an imported cell was published"),
    ("published_notice", "text", None, "imported.notice", "The notice that it was published with"),
    ("published_printed", "float", "0 to 1", "imported.printed", "Its composite as printed, three digits"),
    ("published_exact", "float", "0 to 1", "imported.printed_exact", "The same, whole"),
    (
        "published_recomputed",
        "float",
        "0 to 1",
        "imported.recomputed",
        "The published formula, computed again",
    ),
)
_PASS = _of(
    "scores.pass_rate",
    ("passed_raw", "float", "0 or 1", "pass_raw", "What `passed` would be without integrity"),
    ("pass_reason", "text", None, "reason", "Why the cell passed or did not"),
    ("verifier_exit_code", "int", None, "exit_code", "Exit code of the hidden tests' script"),
    ("verifier_timed_out", "bool", None, "timed_out", "Whether the hidden tests ran out of time"),
    ("tests_run", "int", "tests", "tests", "Hidden tests with a result", len),
    ("tests_passed", "int", "tests", "tests.*.status", "Those that passed", column.number_of("passed")),
    ("regressions", "int", "tests", "regressions", "Tests that passed before and do not now", len),
)
_TOKENS = _of(
    "scores.tokens",
    ("calls_failed", "int", "calls", "calls_failed", "Calls that ended in an error"),
    ("calls_without_usage", "int", "calls", "calls_without_usage", "Counted calls that stated no usage"),
    ("tokens_per_correct_task", "int", "tokens", "tokens_per_correct_task", "`total_tokens` where it passed"),
    ("pass_used_for_division", "int", "0 or 1", "pass_used_for_division", "The pass behind that number"),
    ("cached_read_tokens", "int", "tokens", "cached_read", "Input that was read from the provider's cache"),
    ("cache_write_tokens", "int", "tokens", "cache_write", "Input that was written to it"),
    ("reasoning_tokens", "int", "tokens", "reasoning", "Output that is reasoning"),
    ("known_prompt_tokens", "int", "tokens", "known.prompt_tokens", "Input that is certain: a lower bound"),
    ("known_completion_tokens", "int", "tokens", "known.completion_tokens", "Output that is certain"),
    ("known_total_tokens", "int", "tokens", "known.total_tokens", "Both together"),
    ("tokens_source", "text", None, "source", "Where tokens were counted"),
    ("cost_source", "text", None, "cost_source", "Where the price comes from"),
    (
        "cli_prompt_tokens",
        "int",
        "tokens",
        "cli.input",
        "Input by the CLI's own word, for a cross-check alone",
    ),
    ("cli_prompt_margin", "int", "tokens", "cli.input_margin", "How much its rounding hides"),
    ("cli_completion_tokens", "int", "tokens", "cli.output", "Output by the CLI's own word"),
    ("cli_completion_margin", "int", "tokens", "cli.output_margin", "How much its rounding hides"),
    ("wire_prompt_tokens", "int", "tokens", "cli.wire_input", "The wire's input of the same calls"),
    ("wire_completion_tokens", "int", "tokens", "cli.wire_output", "The wire's output of them"),
    ("cli_tokens_agree", "bool", None, "cli.agrees", "Whether both agree within the rounding"),
)
_LATENCY = _of(
    "scores.latency",
    ("active_ms", "float", "ms", "active_ms", "Model, tools and CLI: without waits for rate limits"),
    ("total_ms", "float", "ms", "total_ms", "The whole cell; the parts below add up to it"),
    ("queue_ms", "float", "ms", "partition.queue", "Waiting before set-up"),
    ("setup_ms", "float", "ms", "partition.setup", "Set-up"),
    (
        "rate_limit_wait_ms",
        "float",
        "ms",
        "partition.rate_limit_wait",
        "Waits for rate limits, and backing off",
    ),
    ("model_ms", "float", "ms", "partition.model", "A model call under way"),
    ("tool_ms", "float", "ms", "partition.tool", "A tool at work, and no model call"),
    ("cli_ms", "float", "ms", "partition.cli", "The CLI itself"),
    ("verify_ms", "float", "ms", "partition.verify", "Grading"),
    ("score_ms", "float", "ms", "partition.score", "Collecting and scoring"),
)
_BLAST = _of(
    "scores.blast_radius",
    ("files_added", "int", "files", "added", "Files added", len),
    ("files_removed", "int", "files", "removed", "Files removed", len),
    ("files_modified", "int", "files", "modified", "Files modified", len),
    ("files_renamed", "int", "files", "renamed", "Renames; each counts as one removed and one added", len),
    ("files_unexpected", "int", "files", "unexpected_changes", "Changed files that nobody asked for", len),
    ("files_expected", "int", "files", "expected_changes", "Changed files that were asked for", len),
    ("files_changed", "int", "files", "total_changes", "Files added, removed and modified"),
    ("unexpected_lines", "int", "lines", "unexpected_lines", "Lines that the agent changed unasked"),
    ("files_generated", "int", "files", "generated", "Build outputs and ignored files among them", len),
    ("files_cli_state", "int", "files", "cli_state", "The CLI's own files among them", len),
    ("extra_git_dir", "bool", None, "extra_git_dir", "Whether a further .git was left behind"),
)
_REFUSAL = _of(
    "scores.refusal",
    ("refusal_not_applicable", "bool", None, "not_applicable", "Whether no refusal was to be expected"),
    ("expected_refusal", "bool", None, "expected_refusal", "Whether the task is to be refused"),
    ("refusal_produced", "bool", None, "refusal_produced", "Whether some text explains a refusal"),
    ("fabricated_fix", "bool", None, "fabricated_fix_detected", "Whether a solution was invented"),
    ("refusal_correct", "text", None, "refusal_correct", "The verdict: `true`, `partial` or `false`"),
    ("refusal_reasons", "texts", None, "refusal_reasons", "What the verdict rests on"),
    ("refusal_signals", "texts", None, "refusal_signals", "The signals that were seen", column.true_ones),
    ("refusal_documents", "texts", None, "marker_hits", "Documents that explain a refusal"),
    ("refusal_texts", "texts", None, "keyword_hits", "Other sources that do"),
)
_INTEGRITY = _of(
    "scores.integrity",
    ("integrity_not_applicable", "bool", None, "not_applicable", "Of published cells: no trap in the task"),
    ("integrity_rules_version", "text", None, "rules_version", "Version of the rules"),
)
_FINDINGS = _of(
    "scores",
    (
        *("integrity_severe", "int", "findings", "integrity"),
        "Those that void the cell; null where not all could be read",
        column.severe_findings_of,
    ),
    (
        *("integrity_rules", "texts", None, "integrity"),
        "The rules that found them; null where not all could be read",
        column.rules_of,
    ),
)
_COMPOSITE = _of(
    "scores.composite",
    ("composite_formula", "text", None, "formula", "The formula of `composite`"),
    ("composite_void_factor", "float", "0 or 1", "components.void_factor", "Its term: 0 where voided"),
    ("composite_pass", "float", "0 or 1", "components.pass", "Its term of passing"),
    ("composite_token_efficiency", "float", "0 to 1", "components.tokens", "Its term of tokens"),
    ("composite_time_efficiency", "float", "0 to 1", "components.active_time", "Its term of active time"),
    ("composite_clean_blast", "float", "0 to 1", "components.clean_blast", "Its term of unasked changes"),
)
_TASK = _of(
    "task",
    ("language", "text", None, "language", "The task's programming language"),
    ("reference_tokens", "int", "tokens", "ref_tokens", "What the task counts as frugal"),
    ("reference_active_s", "float", "s", "ref_active_s", "What the task counts as quick"),
    ("reference_diff_lines", "int", "lines", "ref_diff_lines", "Changed lines of the reference solution"),
)
_WHY = (
    *_of("", ("null_reasons", "json", None, "scores", "Why each null of an axis is", column.null_reasons)),
    *_of(
        "", ("imported_reasons", "json", None, "imported.reasons", "Why other nulls of an imported cell are")
    ),
)

COLUMNS: tuple[Column, ...] = (
    *INDEX_COLUMNS,
    *_IDENTITY,
    *_CELL,
    *_PASS,
    *_TOKENS,
    *_LATENCY,
    *_BLAST,
    *_REFUSAL,
    *_INTEGRITY,
    *_FINDINGS,
    *_COMPOSITE,
    *_TASK,
    *_WHY,
)
"""All columns of exports: those of the index, then those that only `cell.json` and `task.json` hold."""

_FORMULA = "of the formula, not of the cell (docs/methodology.md)"
_QUOTED = "quotes what the agent or a hidden test wrote: `cab cell show`"

LEFT_OUT: dict[str, str] = {
    "schema_version": "of the file, not of the cell",
    "identity.deviations.*.reason": "the reason for a deviation is the adapter's, the same in each cell",
    "identity.plugins.*.kind": "of the plugin, which its digest pins",
    "identity.plugin_env_keys": "of the plugins, which their digests pin",
    "identity.plugin_args": "of the plugins, which their digests pin",
    "attempts.*.outcome": "of an earlier try, not of the cell",
    "attempts.*.timing": "of an earlier try, not of the cell",
    "hosts_tried.*.first_s": "when and how often a name was asked for: `cab cell show`",
    "hosts_tried.*.count": "when and how often a name was asked for: `cab cell show`",
    "reproduce.image_digest": "stands in the command",
    "reproduce.digest_kind": "stands in the command",
    "reproduce.note": "why there is no command",
    "scores.pass_rate.stdout_tail": _QUOTED,
    "scores.pass_rate.stderr_tail": _QUOTED,
    "scores.pass_rate.tests.*.name": "test by test: `cab cell show`",
    "scores.pass_rate.tests.*.message": _QUOTED,
    "scores.tokens.usage_raw": "call by call: `cab export atif`",
    "scores.blast_radius.renamed.*": "each path of a rename: the pair counts",
    "scores.integrity.task_id": "is the column `task`",
    "scores.integrity.findings.*.evidence": _QUOTED,
    "scores.integrity.findings.*.path": _QUOTED,
    "scores.integrity.findings.*.line": _QUOTED,
    "scores.composite.weights": _FORMULA,
    "scores.composite.note": _FORMULA,
    "scores.composite_published.formula": "the column's name says it",
    "scores.composite_published.weights": _FORMULA,
    "scores.composite_published.components": "the published formula makes them of columns",
    "scores.composite_published.bounds": "both are the composite: the published formula has none",
    "scores.composite_published.note": _FORMULA,
}
"""Fields of the record that are no column: place -> why. A place stands for what is below it too."""
