"""Snapshots: whole when they are there, never changed by a later build, never replaced, and checkable."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest
from site_samples import MODELS, TASKS, matrix, results, small

from orchestrator.errors import InputError, StoreError
from orchestrator.site import build as building
from orchestrator.site import links
from orchestrator.site.build import build
from orchestrator.site.output import File
from orchestrator.site.snapshots import FACTS, SUMS, kept


def files(root: Path) -> dict[str, bytes]:
    return {
        path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()
    }


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("snapshots")
    build([small(folder / "results")], folder / "site", snapshot="2026-11")
    return folder


@pytest.fixture
def site(made: Path, tmp_path: Path) -> Path:
    """A site with a snapshot, beside the results that it was made of."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return tmp_path / "site"


def test_a_snapshot_is_a_whole_site_that_says_what_it_is(site: Path) -> None:
    whole = site / "snapshots" / "2026-11"
    made = {path for path in files(site) if not path.startswith(("snapshots/", ".cab"))}
    assert made | {SUMS, FACTS} == set(files(whole))
    index = (whole / "index.html").read_text("utf-8")
    assert "Snapshot <strong>2026-11</strong>" in index
    assert 'href="../../index.html"' in index
    deep = (whole / links.cli_page("codex")).read_text("utf-8")
    assert 'href="../../../index.html"' in deep
    assert "Snapshot <strong>" not in (site / "index.html").read_text("utf-8")


def test_later_builds_leave_it_as_it_is_and_list_it(site: Path, tmp_path: Path) -> None:
    before = files(site / "snapshots")
    given = tmp_path / "results"
    results(given, "later-1", matrix("later-1", ["codex"], MODELS, TASKS, passed=0.0))
    build([given], site)
    assert files(site / "snapshots") == before
    listed = (site / "snapshots.html").read_text("utf-8")
    [snapshot] = kept(site)
    assert 'href="snapshots/2026-11/index.html"' in listed
    assert snapshot.digest in listed
    assert snapshot.data_digest in listed


def test_its_digest_covers_every_byte(site: Path) -> None:
    root = site / "snapshots" / "2026-11"
    sums = dict(line.split("  ")[::-1] for line in (root / SUMS).read_text("utf-8").splitlines())
    found = {path: hashlib.sha256(raw).hexdigest() for path, raw in files(root).items() if path != SUMS}
    assert sums == found
    assert kept(site)[0].digest == hashlib.sha256((root / SUMS).read_bytes()).hexdigest()


def test_none_is_ever_replaced(site: Path, tmp_path: Path) -> None:
    before = files(site)
    with pytest.raises(InputError, match="ever replaced"):
        build([tmp_path / "results"], site, snapshot="2026-11")
    assert files(site) == before


def test_no_build_writes_into_one(site: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no site"):
        build([tmp_path / "results"], site / "snapshots" / "2026-11")


@pytest.mark.parametrize("name", ["", "..", ".hidden", "a/b", "a b", "x" * 101, "ü"])
def test_what_cannot_be_a_name_is_refused_before_anything_is_written(name: str, tmp_path: Path) -> None:
    given = small(tmp_path / "results")
    with pytest.raises(InputError, match="cannot name"):
        build([given], tmp_path / "site", snapshot=name)
    assert not (tmp_path / "site").exists()


def test_one_that_was_cut_short_is_none_and_the_next_build_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, out = [small(tmp_path / "results")], tmp_path / "site"
    build(given, out)

    def fails() -> bytes:
        raise StoreError("cut short")

    class Cut:
        @staticmethod
        def pages(source: object) -> list[File]:
            return [File("zz.txt", fails if source.snapshot else b"", ("1",))]

    monkeypatch.setattr(building, "MODULES", (*building.MODULES, Cut))
    with pytest.raises(StoreError, match="cut short"):
        build(given, out, snapshot="one")
    assert kept(out) == ()
    monkeypatch.undo()
    build(given, out, snapshot="one")
    assert [it.name for it in kept(out)] == ["one"]
    assert [path.name for path in (out / "snapshots").iterdir()] == ["one"]


def test_a_damaged_one_is_told(site: Path, tmp_path: Path) -> None:
    (site / "snapshots" / "2026-11" / FACTS).write_text("{}", "utf-8")
    with pytest.raises(StoreError, match="no whole snapshot"):
        build([tmp_path / "results"], site)


def test_sums_of_the_results_are_those_of_their_files(site: Path, tmp_path: Path) -> None:
    sums = (site / links.RECORDS_SUMS).read_bytes()
    page = (site / "provenance.html").read_text("utf-8")
    assert f"sha256:{hashlib.sha256(sums).hexdigest()}" in page
    lines = dict(line.split("  ")[::-1] for line in sums.decode().splitlines())
    record = tmp_path / "results" / "free-1" / "sweep.json"
    assert lines["free-1/sweep.json"] == hashlib.sha256(record.read_bytes()).hexdigest()
    cells = [path for path in lines if path.endswith("/cell.json")]
    assert "free-1/cells/codex/openai~gpt:1/polyglot~sort/run1/cell.json" in cells
    told = json.loads((site / links.RECORDS_JSON).read_bytes())["records"]
    assert sorted(told.values()) == sorted(lines[path] for path in cells)
