"""Every word that the site uses in a sense of its own: once, for the glossary's page and for every tooltip.

What a term means in full stands in docs/methodology.md; here is the sentence that a reader needs beside a
number. Outcomes are the outcome table's own words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from orchestrator.run.outcome import TABLE
from scorers.aggregate import MIN_COVERAGE

COVERAGE_NEEDED = f"{MIN_COVERAGE:.0%}".replace("%", "\u00a0%")

GROUPS = {
    "ran": "What was run",
    "claim": "What may be said of it",
    "axis": "What was measured",
    "rate": "Rates and their uncertainty",
    "outcome": "What happened to a cell",
    "compare": "Comparisons",
    "evidence": "Evidence and its identity",
}
"""Sections of the page, in their order, with their headings."""


@dataclass(frozen=True)
class Term:
    """One entry. `also` are other words that pages show for it, such as a column's short name; `see` is a
    heading of the methodology that says all of it.
    """

    name: str
    group: str
    text: str
    also: tuple[str, ...] = ()
    see: str | None = None

    @property
    def slug(self) -> str:
        return slug(self.name)


_RAN = (
    Term(
        "cell",
        "ran",
        "One CLI with one model on one task, once: a row of the data, with its evidence and its record.",
        ("cells", "cell_id", "cell id"),
    ),
    Term(
        "CLI",
        "ran",
        "A coding agent that runs on the command line, as shipped, at an exact version. With a stack it is "
        "listed on its own, as CLI+stack.",
        ("CLIs", "cli"),
    ),
    Term(
        "model",
        "ran",
        "The language model that answered the CLI's calls, by the name under which the sweep asked for it.",
        ("models",),
    ),
    Term("pair", "ran", "A CLI with a model: what one would use.", ("pairs", "CLI × model", "pairing")),
    Term(
        "task",
        "ran",
        "A ticket with a workdir and hidden tests. It is proved before anybody is measured by it: doing nothing "
        "fails, the reference solution passes, known wrong fixes fail.",
        ("tasks",),
    ),
    Term("category", "ran", "Tasks of one kind; the first part of a task's name.", ("categories",)),
    Term(
        "run",
        "ran",
        "One of several repetitions of the same cell. Runs of one task are not independent of each other, so "
        "intervals are made over tasks.",
        ("runs",),
    ),
    Term(
        "sweep",
        "ran",
        "All cells that one file asked for, run in a recorded order with one set of pinned images and tasks.",
        ("sweeps", "sweep_id"),
    ),
    Term(
        "stack",
        "ran",
        "Plugins that are added to a CLI as shipped: rules, settings, arguments, MCP servers.",
        ("stacks", "plugins"),
    ),
    Term("condition", "ran", "A named variation of a sweep, such as another limit.", ("conditions",)),
    Term(
        "build",
        "ran",
        "The build of a model that answered, as the endpoint reported it: its name for the model, and its "
        "fingerprint where it gives one. Another build is another model under the same name.",
        ("builds", "model build", "builds seen"),
    ),
    Term(
        "wire",
        "ran",
        "The protocol in which a CLI calls its model: chat, responses, messages or gemini. Tokens are counted on it.",
        ("protocol",),
        "tokens",
    ),
    Term(
        "translated",
        "ran",
        "The CLI speaks another wire than the endpoint, and cab's gateway translates between them. The "
        "translation is a part of what is measured, and each such call says so.",
        ("translation",),
        "translation",
    ),
    Term(
        "scripted model",
        "ran",
        "A model of cab's own that plays a script: it tests the pipeline, and says nothing of any model.",
        ("scripted", "embedded"),
    ),
    Term(
        "baseline",
        "ran",
        "No CLI: noop does nothing and oracle applies the reference solution. They show that a task can tell "
        "the two apart.",
        ("baselines",),
    ),
    Term(
        "deviation",
        "ran",
        "One way in which the measured run differs from the CLI as shipped, with what forces it.",
        ("deviations",),
    ),
    Term("skipped before", "ran", "A cell that the plan left out, for a reason known before.", ("reason",)),
)

_CLAIM = (
    Term(
        "claim",
        "claim",
        "How far a number may be trusted. Of a rate it is the weakest of its cells'.",
        ("claims", "claim level"),
    ),
    Term(
        "pipeline_only",
        "claim",
        "No model was asked: a scripted model, a baseline or a replay. It checks that cab works and is no "
        "result of anything.",
        ("pipeline check", "pipeline checks"),
    ),
    Term(
        "imported",
        "claim",
        "Published by others and read, not run, by cab: it cannot be scored again.",
        (),
    ),
    Term(
        "provisional",
        "claim",
        "Measured, but something speaks against citing it: the record says what, such as an endpoint that "
        "reports no build.",
    ),
    Term(
        "citable",
        "claim",
        "Nothing speaks against it: proved task, pinned image, clean checkout, tokens stated on every call, a "
        "model build that was reported; of a rate also at least three runs of every task and a coverage of at "
        f"least {COVERAGE_NEEDED}.",
    ),
    Term(
        "unranked",
        "claim",
        f"Each cell is citable and the rate is not: fewer than three runs of a task, or coverage below "
        f"{COVERAGE_NEEDED}.",
    ),
)

_AXIS = (
    Term(
        "pass",
        "axis",
        "Of a cell: whether every hidden test passed in a fresh container. Of several: the mean over tasks of "
        "the mean over their counted runs.",
        ("passed", "pass rate", "pass_rate", "failed"),
        "pass_rate",
    ),
    Term(
        "partial score",
        "axis",
        "The share of the tests that must begin to pass which do; 0 when a test that passed before fails.",
        ("partial_score", "partial"),
        "pass_rate",
    ),
    Term(
        "tokens",
        "axis",
        "Input and output tokens of all model calls, counted by cab's gateway on the wire. A CLI's own count "
        "is never used.",
        ("total tokens", "tokens in", "tokens out", "in", "out", "total_tokens"),
        "tokens",
    ),
    Term(
        "tokens per solved task",
        "axis",
        "Tokens of all counted attempts, failed ones too, divided by the number of passes.",
        ("tokens a pass", "tokens per solved", "tokens / solved", "tokens per pass"),
        "tokens",
    ),
    Term(
        "cost",
        "axis",
        "US dollars for the counted calls, call by call, at the retail price in force when the sweep started; "
        "not measured where no price is known.",
        ("cost usd", "usd", "price", "prices"),
        "tokens",
    ),
    Term(
        "cost per solved task",
        "axis",
        "Cost of all counted attempts, failed ones too, divided by the number of passes.",
        ("usd per solved", "usd a pass", "cost per solved", "cost / solved", "usd / solved"),
        "tokens",
    ),
    Term(
        "wall",
        "axis",
        "Seconds of the cell's set-up and of the agent, waiting for rate limits included.",
        ("wall s", "wall time", "wall_s"),
        "latency",
    ),
    Term(
        "active",
        "axis",
        "Seconds in which the model, a tool or the CLI itself worked: without waits for rate limits.",
        ("active s", "active time", "active_s"),
        "latency",
    ),
    Term(
        "model time",
        "axis",
        "Seconds of model calls, overlaps counted once, without waits for rate limits.",
        ("model s", "model_s"),
        "latency",
    ),
    Term(
        "blast",
        "axis",
        "Lines that the agent changed where nobody asked it to, as a share of the reference change's lines, 1 "
        "at most. The CLI's own files and build outputs do not count.",
        ("blast radius", "blast_radius", "blast (agent's lines)", "blast_radius_agent"),
        "blast_radius",
    ),
    Term(
        "blast (all files)",
        "axis",
        "Unexpected files as a share of all changed files, the CLI's own included; only for comparison with "
        "published cells.",
        (),
        "blast_radius",
    ),
    Term(
        "refusal",
        "axis",
        "On a task that cannot be done as asked: 1 when the agent explains why and leaves it alone, 0.5 when "
        "it explains and makes something up all the same, else 0. Not applicable on other tasks.",
        ("refusals", "refusal expected", "right refusals", "refused"),
        "refusal",
    ),
    Term(
        "false refusal",
        "axis",
        "A refusal of a task that can be done.",
        ("false refusals",),
        "refusal",
    ),
    Term(
        "integrity",
        "axis",
        "1 when no severe finding speaks against how the work was done, 0 when one does.",
        ("integrity findings",),
        "integrity",
    ),
    Term(
        "finding",
        "axis",
        "What an integrity rule found, with the rule, the evidence and the line. A severe one voids the cell; "
        "a note changes no number.",
        ("findings", "severe", "note", "rule", "evidence"),
        "integrity",
    ),
    Term(
        "void",
        "axis",
        "A severe integrity finding: the cell's pass counts as 0, whatever the tests said.",
        ("voided",),
        "integrity",
    ),
    Term(
        "composite",
        "axis",
        "One number derived from the axes by a named formula. The axes are canonical, the composite is not.",
        ("composites",),
        "composites",
    ),
    Term(
        "cab-1",
        "axis",
        "cab's own composite: no pass, no points; what passes gains by few tokens, little time "
        "and a clean diff.",
        (),
        "composites",
    ),
    Term(
        "published-0.1",
        "axis",
        "The composite of a published benchmark, for comparison with its cells only: doing nothing scores up "
        "to 0.6.",
        (),
        "composites",
    ),
    Term(
        "hosts tried",
        "axis",
        "Host names that were looked up in the agent's container, which has no network.",
        (),
        "hosts-that-were-tried",
    ),
)

_RATE = (
    Term(
        "–",
        "rate",
        "Not measured. The reason stands beside it or in the record; it is never 0.",
        ("not measured",),
        "what-was-not-measured",
    ),
    Term("n/a", "rate", "Does not apply, such as a refusal where none is expected.", ("does not apply",)),
    Term("no pass", "rate", "Nothing passed that tokens or cost could be divided by.", ()),
    Term(
        "counted",
        "rate",
        "Cells whose outcome is the agent's doing: they are verified, and part of every rate.",
        (),
        "outcomes",
    ),
    Term(
        "infra",
        "rate",
        "Cells that a fault of the endpoint, the engine or cab ended: never counted against an agent, tried "
        "again, and shown beside every rate.",
        ("infra errors", "infra error"),
        "outcomes",
    ),
    Term(
        "not run",
        "rate",
        "Cells that never ran: skipped, incompatible, out of budget or cancelled.",
        (),
        "outcomes",
    ),
    Term(
        "coverage",
        "rate",
        "Counted cells as a share of counted and infra cells. Nothing ranks above another below "
        f"{COVERAGE_NEEDED}.",
        (),
        "rates-of-a-sweep",
    ),
    Term(
        "bounds",
        "rate",
        "The rate if all infra cells had failed, and if all had passed.",
        ("[low, high]", "low", "high", "censored"),
        "rates-of-a-sweep",
    ),
    Term(
        "95 % interval",
        "rate",
        "Where the true rate plausibly lies, given how few tasks were seen: Wilson's interval at one run of each "
        "task, a bootstrap over tasks at more.",
        ("interval", "95 %", "uncertainty"),
    ),
    Term(
        "shared units",
        "rate",
        "The (model, task) or (CLI, task) pairs that all compared have attempted; a marginal rate uses no other.",
        ("units", "shared"),
        "rates-of-a-sweep",
    ),
    Term(
        "pass@k",
        "rate",
        "The chance that at least one of k runs of a task passes, estimated without bias, averaged over tasks.",
        ("pass@1", "pass@2", "pass@3", "pass@5", "pass@10"),
    ),
    Term(
        "pass^k",
        "rate",
        "The chance that all of k runs of a task pass, averaged over tasks: how reliable it is.",
        ("pass^1", "pass^2", "pass^3", "pass^5", "pass^10"),
    ),
    Term(
        "spread over runs",
        "rate",
        "How much the result of one task differs from run to run: the mean over tasks of the standard deviation "
        "of pass.",
        ("run spread", "spread"),
    ),
)

_OUTCOME_ALSO = {
    "infra_error": ("infra_error (cause)",),
}

_COMPARE = (
    Term(
        "better",
        "compare",
        "The difference is significant after correction for the number of comparisons.",
        ("worse",),
    ),
    Term(
        "no detectable difference",
        "compare",
        "The data cannot tell the two apart. That is not the same as equal; the number of runs that would be "
        "needed stands beside it.",
        ("tied",),
    ),
    Term("too few shared tasks", "compare", "Fewer tasks in common than a verdict needs.", ()),
    Term(
        "Pareto front",
        "compare",
        "Pairs than which no other is both better and cheaper (or quicker).",
        ("pareto", "on the front"),
    ),
    Term(
        "rank",
        "compare",
        f"A place in an order; none is given where bounds cross or coverage is below {COVERAGE_NEEDED}.",
        ("ranks",),
        "rates-of-a-sweep",
    ),
)

_EVIDENCE = (
    Term(
        "outcome",
        "evidence",
        "What happened to a cell, kept apart from how good its work was.",
        ("outcomes",),
        "outcomes",
    ),
    Term(
        "record",
        "evidence",
        "cell.json: what ran, what came of it, all scores and why each missing one is missing.",
        ("records",),
    ),
    Term(
        "record digest",
        "evidence",
        "SHA-256 of a cell's record. One changed byte gives another.",
        ("sha256", "digest"),
    ),
    Term(
        "data digest",
        "evidence",
        "One SHA-256 over the digests of all records: sites of the same results have the same one.",
        (),
    ),
    Term(
        "image digest", "evidence", "The SHA-256 by which a container image is pinned.", ("image", "images")
    ),
    Term(
        "content hash",
        "evidence",
        "SHA-256 over all files of a task. Another hash is another task under the same name.",
        ("task hash",),
    ),
    Term(
        "methodology version",
        "evidence",
        "The version of the rules by which a record's numbers were made. Numbers of two versions never share a "
        "table.",
        ("methodology",),
    ),
    Term(
        "hidden tests",
        "evidence",
        "Tests that the agent never sees; they decide about pass.",
        ("hidden test",),
    ),
    Term(
        "protected files",
        "evidence",
        "Files that the verifier restores before it grades, so that changing them earns nothing.",
        ("protected",),
    ),
    Term(
        "proved",
        "evidence",
        "Shown, before it was used, to fail untouched, to pass with its reference solution "
        "and to fail every known wrong fix.",
        ("proof",),
    ),
    Term(
        "snapshot",
        "evidence",
        "A build of this site that was put away under a name and stays as it was.",
        ("snapshots",),
    ),
    Term("machine load", "evidence", "The one-minute load average of the machine when the cell started.", ()),
)


def _outcomes() -> Iterator[Term]:
    for name, rule in TABLE.items():
        counts = (
            "Counted." if rule.counted else "Not counted, and tried again." if rule.retried else "Not run."
        )
        yield Term(
            name, "outcome", f"{_sentence(rule.meaning)} {counts}", _OUTCOME_ALSO.get(name, ()), "outcomes"
        )


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def slug(name: str) -> str:
    """The anchor of a term. Names of marks alone get words of their own."""
    words = re.sub(r"[^a-z0-9]+", "-", name.lower().replace("^", "-hat-").replace("@", "-at-")).strip("-")
    return words or {"–": "not-measured"}[name]


TERMS: tuple[Term, ...] = (*_RAN, *_CLAIM, *_AXIS, *_RATE, *_outcomes(), *_COMPARE, *_EVIDENCE)


def _by_word() -> dict[str, Term]:
    words: dict[str, Term] = {}
    for term in TERMS:
        for word in (term.name, *term.also):
            if words.setdefault(_key(word), term) is not term:
                raise ValueError(f"{word!r} is a word of {words[_key(word)].name!r} and of {term.name!r}")
    return words


def _key(word: str) -> str:
    return " ".join(word.split()).casefold()


_WORDS: Mapping[str, Term] = MappingProxyType(_by_word())


def find(word: str) -> Term | None:
    """The entry for a word that a page shows, in whatever case; None where there is none."""
    return _WORDS.get(_key(word))
