"""A build of a site that is there: what has changed since changes every page that shows it, and no other."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cell_samples
import pytest
from site_samples import CLIS, MODELS, TASKS, files, matrix, results, small

from orchestrator.site import build as building
from orchestrator.site import links, seen
from orchestrator.site.build import build
from orchestrator.site.folder import SEEN
from orchestrator.site.source import Source
from orchestrator.store.index import INDEX, IndexEntry, read_index
from orchestrator.store.names import CellKey

KEYS = [
    *(CellKey(cli, model, task) for cli in CLIS for model in MODELS for task in TASKS),
    *(CellKey(CLIS[0], model, TASKS[0], condition="memory") for model in MODELS),
]
Entries = list[IndexEntry]
"""The lines of an index."""


class Sweep:
    """A sweep with a record for each of `KEYS`, and those in its index that are finished."""

    def __init__(self, results: Path, chance: random.Random) -> None:
        found, self.folder, self.chance = cell_samples.evidence(), results, chance
        cell_samples.store(results, *((cell_samples.record(found, key=key), found) for key in KEYS))
        self.to_come = list(read_index(self._root / INDEX).values())
        self.entries: Entries = []
        self.finish(8)

    @property
    def _root(self) -> Path:
        return self.folder / cell_samples.SWEEP

    def finish(self, cells: int) -> None:
        for _ in range(cells):
            self.entries.append(self.to_come.pop(self.chance.randrange(len(self.to_come))))

    def alter(self, **changes: Any) -> None:
        """Have one line say something else."""
        at = self.chance.randrange(len(self.entries))
        self.entries[at] = self.entries[at].model_copy(update=changes)

    def alter_record(self, **changes: Any) -> None:
        self.alter(record_sha256=f"{self.chance.getrandbits(256):064x}", **changes)

    def tell(self, **changes: Any) -> None:
        """Have the sweep's own record say something else."""
        path = self._root / "sweep.json"
        path.write_text(json.dumps(json.loads(path.read_bytes()) | changes))

    def save(self) -> None:
        (self._root / INDEX).write_bytes(b"".join(entry.line() for entry in self.entries))


def _removed(sweep: Sweep) -> None:
    sweep.to_come.append(sweep.entries.pop(sweep.chance.randrange(len(sweep.entries))))


def _added(sweep: Sweep) -> None:
    sweep.finish(1)


def _judged_anew(sweep: Sweep) -> None:
    sweep.alter_record(passed=sweep.chance.choice((0.0, None)))


def _run_on_another_content(sweep: Sweep) -> None:
    sweep.alter_record(task_content_hash=f"sha256:{sweep.chance.getrandbits(256):064x}")


def _index_made_again(sweep: Sweep) -> None:
    """An older cab's line had not all that the record has: the record stays as it is."""
    sweep.alter(integrity_findings=sweep.chance.randrange(1, 9), claim="provisional")


def _left_out(sweep: Sweep) -> None:
    cell = sweep.chance.choice(sweep.entries)
    skipped = cell.cell_id.replace("#run1", "#run99")
    sweep.tell(skipped=[{"cell_id": skipped, "reason": f"left out {sweep.chance.random()}"}])


def _described(sweep: Sweep) -> None:
    sweep.tell(spec={"name": "free-1", "description": f"told {sweep.chance.random()}"})


CHANGES: tuple[Callable[[Sweep], None], ...] = (
    _removed,
    _added,
    _judged_anew,
    _run_on_another_content,
    _index_made_again,
    _left_out,
    _described,
)


@pytest.mark.parametrize("change", CHANGES, ids=lambda it: it.__name__.strip("_"))
def test_one_change_gives_the_bytes_of_a_build_from_nothing(
    tmp_path: Path, change: Callable[[Sweep], None]
) -> None:
    sweep = Sweep(tmp_path / "results", random.Random(1))
    sweep.save()
    build([sweep.folder], tmp_path / "site")
    change(sweep)
    sweep.save()
    again = build([sweep.folder], tmp_path / "site")
    assert 0 < again.written < again.kept
    build([sweep.folder], tmp_path / "whole")
    assert files(tmp_path / "site") == files(tmp_path / "whole")


@pytest.mark.parametrize("seed", range(2))
def test_any_changes_give_the_bytes_of_a_build_from_nothing(tmp_path: Path, seed: int) -> None:
    sweep = Sweep(tmp_path / "results", random.Random(seed))
    for _ in range(3):
        sweep.save()
        build([sweep.folder], tmp_path / "site")
        for change in sweep.chance.choices(CHANGES, k=2):
            change(sweep)
    sweep.save()
    build([sweep.folder], tmp_path / "site")
    build([sweep.folder], tmp_path / "whole")
    assert files(tmp_path / "site") == files(tmp_path / "whole")


def changed(sweep: Sweep, site: Path) -> tuple[set[str], set[str]]:
    """The pages that one more build changes, and those that it leaves."""
    before = {path: path.stat().st_mtime_ns for path in site.rglob("*.html")}
    sweep.save()
    build([sweep.folder], site)
    now = {path: path.stat().st_mtime_ns for path in site.rglob("*.html")}
    pages = {path: path.relative_to(site).as_posix() for path in now}
    other = {pages[path] for path in now if before.get(path) != now[path]}
    return other, set(pages.values()) - other


CODEX = "codex/openai~gpt=1/polyglot~sum/run1.html"


def test_a_changed_record_changes_every_page_that_shows_it_and_no_other(tmp_path: Path) -> None:
    sweep, site = Sweep(tmp_path / "results", random.Random(1)), tmp_path / "site"
    every = {entry.cell_id: entry for entry in (*sweep.entries, *sweep.to_come) if entry.condition is None}
    sweep.entries = list(every.values())
    changed(sweep, site)
    first = next(
        at
        for at, it in enumerate(sweep.entries)
        if (it.cli, it.model, it.task) == (CLIS[0], MODELS[0], TASKS[0])
    )
    sweep.entries[first] = sweep.entries[first].model_copy(update={"passed": 0.0, "record_sha256": "f" * 64})
    other, kept = changed(sweep, site)
    assert {
        *("index.html", "matrix.html", "pareto.html", "guide.html", "provenance.html"),
        *(f"cell/free-1/{CODEX}", links.card(f"cell/free-1/{CODEX}"), "sweep/free-1.html"),
        # Beside it: another CLI, another model and another task.
        "cell/free-1/opencode/openai~gpt=1/polyglot~sum/run1.html",
        "cell/free-1/codex/qwen~q3/polyglot~sum/run1.html",
        "cell/free-1/codex/openai~gpt=1/polyglot~sort/run1.html",
        *("cli/codex.html", "model/openai~gpt=1.html", "pair/codex/openai~gpt=1.html"),
        *("task/polyglot/sum.html", "category/polyglot.html"),
        *("cli/codex,card.html", "pair/codex/openai~gpt=1,card.html"),
    } <= other
    assert {
        *("compare.html", "methodology.html", "glossary.html"),
        "cell/free-1/opencode/qwen~q3/mutations~swap/run1.html",
        "cell/free-1/opencode/openai~gpt=1/polyglot~sum/run1,card.html",
        *("pair/opencode/qwen~q3.html", "task/polyglot/sort.html", "category/mutations.html"),
        *("cli/opencode.html", "model/qwen~q3.html", "cli/opencode,card.html"),
    } <= kept


def test_with_nothing_changed_no_index_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given, out = [small(tmp_path / "results")], tmp_path / "site"
    first = build(given, out)

    def never(*_: object, **__: object) -> Source:
        raise AssertionError

    monkeypatch.setattr(Source, "read", never)
    again = build(given, out)
    assert (again.written, again.kept, again.removed) == (0, first.written, 0)
    with pytest.raises(AssertionError):
        build(given, out, base_url="https://results.example/")
    (out / "index.html").write_bytes(b"")
    with pytest.raises(AssertionError):
        build(given, out)


def test_a_manifest_of_another_build_is_not_taken_for_ones_own(tmp_path: Path) -> None:
    one, out = [small(tmp_path / "results")], tmp_path / "site"
    build(one, out)
    mine = (out / SEEN).read_bytes()
    build([results(tmp_path / "other", "free-9", matrix("free-9", ("pi",), MODELS, TASKS))], out)
    # As a cab would that knows of no such note: it leaves it as it was.
    (out / SEEN).write_bytes(mine)
    build(one, out)
    build(one, tmp_path / "whole")
    assert files(out) == files(tmp_path / "whole")


@pytest.mark.parametrize("file", ["evidence.json", "diff.patch", "cell.json"])
def test_every_file_that_a_page_is_made_of_is_looked_at(tmp_path: Path, file: str) -> None:
    found = cell_samples.evidence()
    given = cell_samples.store(tmp_path / "results", (cell_samples.record(found), found))
    roots = [given / cell_samples.SWEEP]
    [path] = given.rglob(file)
    before = seen.seen(roots)
    assert seen.seen(roots) == before
    # The same bytes at the same place, and another file all the same.
    path.with_name("new").write_bytes(path.read_bytes())
    stat = path.stat()
    os.utime(path.with_name("new"), ns=(stat.st_atime_ns, stat.st_mtime_ns))
    path.with_name("new").replace(path)
    assert seen.seen(roots) != before


@pytest.mark.parametrize(
    "file", ["scorecard.json", "metadata.json", "patches/a/b/run1.patch", "harness/verdicts.json"]
)
def test_what_a_scorecard_is_held_against_is_looked_at(tmp_path: Path, file: str) -> None:
    """A run of `cab external`, whose results the sweep is among."""
    root = tmp_path / "results" / "sweep"
    root.mkdir(parents=True)
    for name in ("scorecard.json", file):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("one")
    before = seen.seen([root])
    assert seen.seen([root]) == before
    (tmp_path / file).write_text("another")
    assert seen.seen([root]) != before


def test_all_of_cab_that_pages_tell_of_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "docs" / "deep").mkdir(parents=True)
    (tmp_path / "docs" / "deep" / "a.md").write_text("one")
    monkeypatch.setattr(seen, "_CAB", (tmp_path / "docs", tmp_path / "lock"))
    states = [seen.seen([])]
    (tmp_path / "docs" / "deep" / "a.md").write_text("other")
    states.append(seen.seen([]))
    (tmp_path / "docs" / "b.md").touch()
    states.append(seen.seen([]))
    (tmp_path / "lock").touch()
    states.append(seen.seen([]))
    assert len(set(states)) == 4
    assert seen.seen([]) == states[-1]


def test_a_build_that_was_cut_short_is_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, out = [small(tmp_path / "results")], tmp_path / "site"
    build(given, out)
    whole = files(out)
    (out / "index.html").unlink()
    real = building.write

    def write(folder: Path, path: str, raw: bytes) -> None:
        if path == "index.html":
            raise KeyboardInterrupt
        real(folder, path, raw)

    monkeypatch.setattr(building, "write", write)
    with pytest.raises(KeyboardInterrupt):
        build(given, out)
    (out / "index.html").write_bytes(b"")
    monkeypatch.undo()
    build(given, out)
    assert files(out) == whole
