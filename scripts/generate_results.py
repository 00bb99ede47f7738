"""Writes results of cells that never ran: `python scripts/generate_results.py DIRECTORY --cells 10000`.

For tests of pages, exports and reports, and to measure them by. Every record goes through cab's own models
and every score through its scorers; the same number gives the same bytes. Names of CLIs, models, tasks and
sweeps begin with `made-up`, so that nobody takes them for results. There are several sweeps: one large, one
of many runs, one with stacks, one with conditions, one by an older methodology, one of a scripted model, one
imported.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import random
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import generated_evidence as made

import scorers
from orchestrator.plan.spec import SweepSpec
from orchestrator.run.outcome import TABLE
from orchestrator.run.published_record import record_of, sweep_of
from orchestrator.store.cells import CELL, CELLS, SWEEP
from orchestrator.store.evidence import EVIDENCE, save_evidence
from orchestrator.store.index import INDEX, entry_of
from orchestrator.store.names import NO_STACK, CellKey
from orchestrator.store.published import ROW_FILE, PublishedCell, Row
from orchestrator.store.record import (
    Attempt,
    Cab,
    CellRecord,
    Claim,
    Deviation,
    HostTried,
    Identity,
    Isolation,
    Limits,
    Machine,
    ModelBuild,
    Outcome,
    Reproduce,
    SkippedCell,
    SweepRecord,
    Timing,
    UsedPlugin,
    to_json,
)
from scorers import tokens
from scorers.evidence import Evidence, Price, Rates, TaskFacts
from scorers.score import Scores, score

CAB = Cab(version="0.0.0", commit="0" * 40, dirty=False)
OLDER = "0"
"""The methodology of the sweep that is not of today's."""

EFFORTS = 4
PRICES: tuple[Price | None, ...] = (
    None,
    *(
        Price(rates=[Rates(input=rate, output=5 * rate)], source="made up, for no model that exists")
        for rate in (0.25, 1.0, 4.0)
    ),
)
_STARTED = datetime(2026, 9, 1, 6, 0, 0, tzinfo=UTC)
_CATEGORIES = ("bugs", "bugs", "bugs", "features", "features", "mutations", "mutations", "refusals")
_WHY_MUTE = "made up: these two cannot speak to each other"
_LIMITS = Limits(
    memory_bytes=1 << 32,
    cpus=2,
    pids=512,
    tmp_bytes=1 << 30,
    scratch_bytes=1 << 32,
    scratch_inodes=200_000,
    timeout_s=600,
    max_calls=30,
)


def digest(text: str) -> str:
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


@dataclass(frozen=True)
class Plan:
    """One sweep: its cells in their order, and what is special about it."""

    sweep_id: str
    keys: Sequence[CellKey]
    methodology: str = scorers.METHODOLOGY_VERSION
    scripted: bool = False
    day: int = 0
    fixed: Mapping[CellKey, str] = field(default_factory=dict)
    """Cells that go a certain way: one at least goes each, however few there are."""


@dataclass(frozen=True)
class Mould:
    """The files of all cells that went one way on one task at one effort; their scores without a price."""

    directory: Path
    found: Evidence
    scores: Scores
    axes: dict[str, dict[str, Any]]


@dataclass
class Moulds:
    """Made as they are asked for: cells link to their files, which is what makes ten thousand quick."""

    root: Path
    facts: dict[str, TaskFacts] = field(default_factory=dict)
    made: dict[tuple[str, str, int], Mould] = field(default_factory=dict)

    def of(self, task: str, way: str, effort: int) -> Mould:
        key = (task, way, effort)
        if key not in self.made:
            directory = self.root / f"{len(self.made)}"
            directory.mkdir(parents=True)
            found = made.build(self.facts[task], way, effort)
            made.write(directory, self.facts[task], found)
            counts = TABLE[made.WAYS[way].outcome].counted
            scored = score(self.facts[task], found, outcome_counts=counts)
            self.made[key] = Mould(directory, found, scored, scored.by_axis())
        return self.made[key]

    def priced(self, mould: Mould, tier: int) -> tuple[Path, dict[str, dict[str, Any]]]:
        """The evidence with a price, and the scores by it."""
        path = mould.directory.parent / f"{mould.directory.name}-{tier}"
        price = PRICES[tier]
        found = mould.found
        axes = mould.axes
        if price is not None:
            found = mould.found.model_copy(update={"price": price, "no_price": None})
            spent = tokens.score(found, mould.scores.pass_rate.passed).model_dump(mode="json", by_alias=True)
            axes = axes | {"tokens": spent}
        if not path.exists():
            path.mkdir()
            save_evidence(path, found)
        return path / EVIDENCE, axes


def plans(cells: int) -> tuple[list[Plan], list[CellKey], dict[str, TaskFacts]]:
    """The sweeps of about `cells` cells, at least as many; the keys of the imported one; the tasks."""
    size = max(4, min(16, round((cells / 40) ** (1 / 2))))
    clis = [f"made-up-cli-{chr(ord('a') + n)}" for n in range(size)]
    models = [f"made-up/{'large' if n % 3 else 'small'}-{n + 1}" for n in range(size)]
    few, some = (3, 2) if cells < 1000 else (8, 4)
    aside = few * some * (3 * 3 + 2 * 3 + 3 + 2 + 3) + some * 3 * 2
    count = max(8, math.ceil((cells - aside) / (size * size) * 1.02))
    facts = {}
    for number in range(count):
        category = f"made-up-{_CATEGORIES[number % len(_CATEGORIES)]}"
        facts[f"{category}/task-{number + 1:02}"] = made.facts_of(
            f"{category}/task-{number + 1:02}", category, number
        )
    tasks, first, three = list(facts), list(facts)[:some], models[:3]
    rng = random.Random(f"order/{cells}")

    def shuffled(keys: list[CellKey]) -> list[CellKey]:
        rng.shuffle(keys)
        return keys

    large = [CellKey(c, m, t) for c in clis for m in models for t in tasks]
    fixed = {}
    for number, way in enumerate(made.WAYS):
        refuses = way in ("declined", "fabricated")
        fitting = [key for key in large if facts[key.task].expected_refusal is refuses and not _mute(key)]
        fixed[fitting[number * 7919 % len(fitting)]] = way
    runs = [CellKey(c, m, t, r) for c in clis[:few] for m in three for t in first for r in (1, 2, 3)]
    stacks = [
        CellKey(c, m, t, 1, s)
        for c in clis[:few]
        for m in models[:2]
        for t in first
        for s in (NO_STACK, "careful", "facts")
    ]
    conditions = [
        CellKey(clis[0], models[1], t, r, NO_STACK, condition)
        for condition in ("transcript_replay", "compact_summary", "stateplane")
        for t in first
        for r in (1, 2)
    ]
    older = [CellKey(c, m, t) for c in clis[:few] for m in three for t in first]
    scripted = [
        CellKey(c, f"embedded/{s}", t) for c in clis[:few] for s in ("reference", "wrong") for t in first
    ]
    imported = [CellKey(c, m, t) for c in clis[:few] for m in three for t in first]
    today = [
        Plan("made-up-older", shuffled(older), methodology=OLDER),
        Plan("made-up-large", shuffled(large), day=30, fixed=fixed),
        Plan("made-up-runs", shuffled(runs), day=45),
        Plan("made-up-stacks", shuffled(stacks), day=50),
        Plan("made-up-conditions", shuffled(conditions), day=52),
        Plan("made-up-scripted", shuffled(scripted), scripted=True, day=55),
    ]
    return today, imported, facts


def _gauss(name: str, spread: float) -> float:
    return random.Random(f"skill/{name}").gauss(0, spread)


def way_of(plan: Plan, key: CellKey, task: TaskFacts) -> tuple[str, int]:
    """How a cell went, and its effort: by skills of CLI and model, the difficulty of the task, and chance."""
    if key in plan.fixed:
        return plan.fixed[key], 0
    rng = random.Random(f"cell/{key}/{plan.methodology}")
    effort = round(
        1.5 + _gauss(f"effort/{key.cli}", 0.9) + _gauss(f"effort/{key.model}", 0.9) + rng.gauss(0, 0.5)
    )
    effort = min(EFFORTS - 1, max(0, effort))
    if plan.scripted:
        return ("solved" if key.model.endswith("reference") else "failed"), 0
    faults = 0.12 if key.cli.endswith("-d") else 0.012
    chance = rng.random()
    if chance < faults:
        return rng.choice(("rate_limited", "endpoint_down", "unverifiable")), 0
    chance = rng.random()
    for way, share in (
        ("hostile", 0.01),
        ("timed_out", 0.02),
        ("limited", 0.01),
        ("crashed", 0.01),
        ("oom", 0.004),
    ):
        if chance < share:
            return way, min(effort, 1)
        chance -= share
    skill = 0.4 + _gauss(key.cli, 0.6) + _gauss(key.model, 1.0) - _gauss(task.task, 1.1)
    solves = rng.random() < 1 / (1 + math.exp(-skill))
    if task.expected_refusal:
        return ("declined" if solves else "fabricated"), 0
    if solves:
        return ("strayed" if rng.random() < 0.2 else "solved"), effort
    other = rng.choices(("partial", "failed", "refused", "cheated", "overflow"), (60, 25, 5, 5, 5))[0]
    return other, effort if other in ("partial", "failed") else 0


def record(
    plan: Plan, key: CellKey, index: int, axes: dict[str, Any], mould: Mould, way: made.Way
) -> CellRecord:
    rng = random.Random(f"record/{plan.sweep_id}/{key}")
    started = _STARTED + timedelta(days=plan.day, seconds=20 * index)
    plugins = (
        () if key.stack == NO_STACK else (UsedPlugin(name=key.stack, kind="rules", digest=digest(key.stack)),)
    )
    build = "made-up" if not plan.scripted else key.model
    claim = Claim(level="citable")
    if plan.scripted:
        claim = Claim(level="pipeline_only", reasons=("a scripted model, served by cab itself",))
    elif key.model.endswith("-2"):
        claim = Claim(level="provisional", reasons=("the endpoint reported no model build",))
    fault = Outcome(name="infra_error", cause="endpoint_down", detail="connection refused", counted=False)
    earlier = Attempt(outcome=fault, timing=Timing.since(started, 4.5), input_tokens=900, output_tokens=None)
    hostile = any(change.path.startswith("src/<") for change in mould.found.changes)
    return CellRecord(
        methodology_version=plan.methodology,
        identity=Identity(
            cell_id=key.cell_id(plan.sweep_id),
            sweep_id=plan.sweep_id,
            cli=key.cli,
            cli_version="0.0.0",
            model=key.model,
            task=key.task,
            run=key.run,
            stack=key.stack,
            behaviour_mode="stack" if plugins else "factory",
            deviations=(Deviation(what="it was never run", reason="this cell is made up"),),
            rules_file="AGENTS.md",
            plugins=plugins,
            condition=key.condition,
            container_image=f"cab/{key.cli}:0.0.0",
            image_digest=digest(key.cli),
            digest_kind="image_id",
            verifier_digest=digest("base"),
            task_content_hash=digest(key.task),
            adapter_digest=digest(f"adapter/{key.cli}"),
            cab=CAB,
            model_build_id=None if claim.level == "provisional" else build,
            model_builds=(ModelBuild(model=made.MARKUP[0] if hostile else build, fingerprint=None),),
            generation_settings=({"temperature": 0.2},),
            platform="linux/x86_64",
            engine_version="0.0.0",
            limits=_LIMITS,
            concurrency=2,
            machine_load=round(rng.random() * 2, 2),
            exit_code=mould.found.end.exit_code if mould.found.end else None,
        ),
        outcome=Outcome.model_validate(
            {
                "name": way.outcome,
                "cause": way.cause,
                "detail": way.detail,
                "counted": TABLE[way.outcome].counted,
            }
        ),
        claim=claim,
        isolation=Isolation(containers="separate", egress="none", verifier="fresh"),
        timing=Timing.since(started, max(phase.end for phase in mould.found.phases.values())),
        scores=axes,
        attempts=(earlier,) if rng.random() < 0.03 else (),
        order_index=index,
        recording="pty",
        hosts_tried=(HostTried(name='"><b>made-up.invalid', first_s=1.5, count=2),) if hostile else (),
        reproduce=Reproduce(note="this cell is made up: there is nothing to run"),
    )


def sweep_record(plan: Plan, skipped: Sequence[SkippedCell]) -> SweepRecord:
    clis, models = (sorted({getattr(key, name) for key in plan.keys}) for name in ("cli", "model"))
    conditions = sorted({key.condition for key in plan.keys if key.condition is not None}, reverse=True)
    tasks = sorted({key.task for key in plan.keys})
    data = {
        "name": plan.sweep_id,
        "description": "Made up: no cell of it was ever run.",
        "clis": clis,
        "models": [{"id": model, **({} if plan.scripted else {"endpoint": "made-up"})} for model in models],
        "endpoints": {}
        if plan.scripted
        else {"made-up": {"base_url": {"env": "MADE_UP"}, "key": {"env": "KEY"}}},
        "tasks": tasks,
        "conditions": conditions,
        "runs": max(key.run for key in plan.keys),
        "allow_unknown_price": True,
    }
    return SweepRecord(
        sweep_id=plan.sweep_id,
        started_at=_STARTED + timedelta(days=plan.day),
        spec=SweepSpec.of_data(data).model_dump(mode="json"),
        spec_digest=digest(plan.sweep_id),
        pins={name: digest(name) for name in ("base", *clis)},
        tasks={task: digest(task) for task in tasks},
        adapters={cli: digest(f"adapter/{cli}") for cli in clis},
        order=tuple(key.cell_id(plan.sweep_id) for key in plan.keys),
        seed=0,
        skipped=tuple(skipped),
        concurrency=2,
        prices={model: PRICES[_tier(model)] or "a made-up model has no price" for model in models},
        cab=CAB,
        machine=Machine(cores=2, memory_bytes=1 << 33, platform="linux/x86_64", kernel="0.0.0"),
    )


def _tier(model: str) -> int:
    return 0 if model.startswith("embedded/") else random.Random(f"price/{model}").randrange(len(PRICES))


def _mute(key: CellKey) -> bool:
    """Whether a CLI and a model of the large sweep cannot speak to each other."""
    return key.cli.endswith("-b") and key.model.endswith("-4")


def _not_run(plan: Plan, key: CellKey) -> bool:
    """A few cells of the large sweep were never reached."""
    return (
        plan.sweep_id == "made-up-large"
        and key not in plan.fixed
        and random.Random(f"reached/{key}").random() < 0.004
    )


def write_sweep(root: Path, plan: Plan, moulds: Moulds) -> int:
    """Write one sweep; how many of its cells are finished."""
    lines, skipped = [], []
    for index, key in enumerate(plan.keys):
        if plan.sweep_id == "made-up-large" and _mute(key):
            skipped.append(SkippedCell(cell_id=key.cell_id(plan.sweep_id), reason=_WHY_MUTE))
            continue
        if _not_run(plan, key):
            continue
        way, effort = way_of(plan, key, moulds.facts[key.task])
        mould = moulds.of(key.task, way, effort)
        evidence, axes = moulds.priced(mould, _tier(key.model))
        found = record(plan, key, index, axes, mould, made.WAYS[way])
        lines.append(_write_cell(root / plan.sweep_id, found, mould.directory, evidence))
    _finish(root / plan.sweep_id, sweep_record(plan, skipped), lines)
    return len(lines)


def _write_cell(sweep: Path, found: CellRecord, mould: Path, evidence: Path) -> bytes:
    """Write one cell, its evidence as links, and give its line of the index."""
    directory = sweep / CELLS / found.identity.key.path()
    directory.mkdir(parents=True)
    raw = to_json(found)
    (directory / CELL).write_bytes(raw)
    os.link(evidence, directory / EVIDENCE)
    for name in os.listdir(mould):  # noqa: PTH208 - ten thousand times
        os.link(mould / name, directory / name)
    return entry_of(found, raw).line()


def _finish(sweep: Path, found: SweepRecord, lines: Sequence[bytes]) -> None:
    (sweep / INDEX).write_bytes(b"".join(lines))
    (sweep / SWEEP).write_bytes(to_json(found))


def write_imported(root: Path, keys: Sequence[CellKey]) -> int:
    """A sweep as `cab import published` makes one."""
    rows = list(_published(keys))
    sweep = root / rows[0].cell.sweep_id
    lines = []
    for index, row in enumerate(rows):
        found = record_of(row, index, CAB, "made up")
        directory = sweep / CELLS / found.identity.key.path()
        directory.mkdir(parents=True)
        raw = to_json(found)
        (directory / CELL).write_bytes(raw)
        (directory / ROW_FILE).write_text(json.dumps(row.source))
        lines.append(entry_of(found, raw).line())
    _finish(sweep, sweep_of(rows[0].cell.sweep_id, rows, CAB), lines)
    return len(lines)


def _published(keys: Sequence[CellKey]) -> Iterator[Row]:
    """Rows of a published file, most of whose fields were not visible."""
    for index, key in enumerate(keys):
        rng = random.Random(f"published/{key}")
        started = _STARTED - timedelta(days=30) + timedelta(seconds=30 * index)
        took, passed, blast = rng.uniform(4, 300), rng.randrange(2), rng.choice((0.0, 0.0, 0.5))
        source: dict[str, Any] = dict.fromkeys(PublishedCell.model_fields) | {
            "cell_id": f"made-up-imported/{key.cli}/{key.model}/{key.task}",
            "sweep_id": "made-up-imported",
            "cli": key.cli,
            "model": key.model,
            "task": key.task,
            "started_at": started.isoformat(),
            "ended_at": (started + timedelta(seconds=took)).isoformat(),
            "page_token_source": "not recorded",
            "pass": passed,
            "wall_clock_ms": took * 1000,
            "blast_radius": blast,
            "expected_refusal": False,
            "integrity": 1,
            "integrity_not_applicable": True,
        }
        del source["passed"]
        yield Row(PublishedCell.model_validate(source), source, key)


def generate(root: Path, cells: int) -> int:
    """Write about `cells` cells, at least as many, into a new directory of results; how many they are."""
    random.seed(cells)  # OpenTelemetry's ids of spans come from there
    root.mkdir(parents=True)
    found, imported, facts = plans(cells)
    moulds = Moulds(root / ".moulds", facts)
    written = sum(write_sweep(root, plan, moulds) for plan in found) + write_imported(root, imported)
    shutil.rmtree(moulds.root)
    return written


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path, help="which is not there yet")
    parser.add_argument("--cells", type=int, default=10_000)
    options = parser.parse_args()
    print(f"{generate(options.directory, options.cells)} cells, all made up, in {options.directory}")  # noqa: T201


if __name__ == "__main__":
    main()
