from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from store_samples import SWEEP_ID, cell_record, sweep_record

from orchestrator.errors import InputError, StoreError
from orchestrator.store import load_frame
from orchestrator.store.cells import CellStore
from orchestrator.store.names import CellKey
from orchestrator.store.record import to_json

KEYS = [CellKey("opencode", "embedded/reference", f"polyglot/t{number}") for number in range(8)]
KEY, OTHER = KEYS[:2]


@pytest.fixture
def store(tmp_path):
    with CellStore(tmp_path, SWEEP_ID) as store:
        store.create(sweep_record(*KEYS))
        yield store


def commit(store, key, **options):
    staging = store.staging(key)
    (staging.path / "verifier").mkdir()
    (staging.path / "verifier" / "out.log").write_text("ok")
    return store.commit(staging, cell_record(key, order_index=options.pop("order_index", 0)), **options)


def reopened(store) -> CellStore:
    store.close()
    again = CellStore(store.root.parent, SWEEP_ID)
    again.open()
    return again


def fail_with(monkeypatch, name, code, *, after=0):
    """Make os.`name` fail after so many calls, as a full disk does."""
    real, count = getattr(os, name), 0

    def call(*args, **options):
        nonlocal count
        count += 1
        if count > after:
            raise OSError(code, os.strerror(code))
        return real(*args, **options)

    monkeypatch.setattr(os, name, call)


def test_a_committed_cell_is_there_with_its_line(store):
    entry = commit(store, KEY)
    assert store.record(KEY) == cell_record(KEY)
    assert (store.cell_dir(KEY) / "verifier" / "out.log").read_text() == "ok"
    assert store.finished() == {entry.cell_id: entry}
    assert CellStore(store.root.parent, SWEEP_ID).finished() == store.finished()
    assert (entry.passed, entry.total_tokens, entry.composite, entry.composite_published) == (
        1,
        150,
        0.91,
        0.93,
    )
    assert entry.model_call_ms is None
    assert entry.ended_at == "2026-11-27T12:00:03.250000Z"


def test_a_finished_cell_is_not_replaced_unless_told(store):
    commit(store, KEY)
    with pytest.raises(StoreError, match="this cell is finished"):
        commit(store, KEY)
    store = reopened(store)
    assert len(store.finished()) == 1
    assert commit(store, KEY, replace=True, order_index=4).order_index == 4
    assert store.record(KEY).order_index == 4
    assert len(store.finished()) == 1


def test_rewriting_keeps_the_evidence(store):
    commit(store, KEY)
    store.rewrite(cell_record(KEY, order_index=3))
    assert store.record(KEY).order_index == 3
    assert (store.cell_dir(KEY) / "verifier" / "out.log").exists()
    assert reopened(store).finished()[KEY.cell_id(SWEEP_ID)].order_index == 3


def test_a_record_goes_only_where_its_cell_was_staged(store):
    with pytest.raises(StoreError, match="is staged for"):
        store.commit(store.staging(KEY), cell_record(OTHER))


def test_a_score_that_cannot_be_indexed_is_refused_before_anything_is_written(store):
    staging = store.staging(KEY)
    with pytest.raises(StoreError, match=r"#run1: cannot be indexed: total_tokens: Input should be"):
        store.commit(staging, cell_record(KEY, scores={"tokens": {"total_tokens": "many"}}))
    assert not list(staging.path.iterdir())


def test_cells_end_in_several_threads_at_once(store):
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda key: commit(store, key), KEYS))
    assert set(CellStore(store.root.parent, SWEEP_ID).finished()) == {key.cell_id(SWEEP_ID) for key in KEYS}


def test_discarding_leaves_nothing(store):
    staging = store.staging(KEY)
    (staging.path / "stdout.log").write_text("x")
    store.discard(staging)
    assert not list((store.root / ".staging").iterdir())


def test_a_second_runner_is_told_who_the_first_is(store):
    code = (
        "import sys; from pathlib import Path; from orchestrator.store.cells import CellStore\n"
        "from orchestrator.errors import StoreError\n"
        "try: CellStore(Path(sys.argv[1]), sys.argv[2]).open()\n"
        "except StoreError as error: print(error)\n"
    )
    command = [sys.executable, "-c", code, str(store.root.parent), SWEEP_ID]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert f"process {os.getpid()} is running this sweep (wait for it, or end it)" in said
    store.close()
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == ""


def test_only_the_staging_of_dead_processes_goes(store):
    code = (
        "import sys; from pathlib import Path; from orchestrator.store.cells import CellStore\n"
        "from orchestrator.store.names import CellKey\n"
        "print(CellStore(Path(sys.argv[1]), sys.argv[2]).staging(CellKey('a', 'b', 'c')).path, flush=True)\n"
        "sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", code, str(store.root.parent), SWEEP_ID]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        path = Path(other.stdout.readline().strip())
        assert store.clean_dead_staging() == 0
        assert path.is_dir()
        owner = path.with_suffix(".json")
        said = json.loads(owner.read_text())
        owner.write_text(json.dumps(said | {"start": said["start"] + 1}))
        assert store.clean_dead_staging() == 1, "another process now has the pid"
        path.mkdir()
        owner.write_text(json.dumps(said))
        other.kill()
        # Dead, and nobody has asked yet how it ended.
        os.waitid(os.P_PID, other.pid, os.WEXITED | os.WNOWAIT)
        assert store.clean_dead_staging() == 1
    assert not list((store.root / ".staging").iterdir())


def test_a_torn_last_line_is_cut_off(store):
    entry = commit(store, KEY)
    with store.index_path.open("ab") as index:
        index.write(entry.line()[:40])
    assert len(CellStore(store.root.parent, SWEEP_ID).finished()) == 1
    store = reopened(store)
    commit(store, OTHER)
    assert len(CellStore(store.root.parent, SWEEP_ID).finished()) == 2


@pytest.mark.parametrize("content", [b"", b'{"v":1}\n', b"\0\0\0\n", None])
def test_a_lost_or_damaged_index_is_rebuilt(store, content):
    commit(store, KEY)
    commit(store, OTHER)
    before = store.finished()
    store.close()
    if content is None:
        store.index_path.unlink()
    else:
        store.index_path.write_bytes(content)
    store = reopened(store)
    assert store.finished() == before
    commit(store, KEYS[2])
    assert len(CellStore(store.root.parent, SWEEP_ID).finished()) == 3


def test_a_damaged_index_names_its_line_to_readers(store):
    commit(store, KEY)
    with store.index_path.open("ab") as index:
        index.write(b"{}\n")
    with pytest.raises(StoreError, match=r"index\.jsonl:2: is damaged: .*rebuilds the index"):
        CellStore(store.root.parent, SWEEP_ID).finished()


def test_a_full_disk_leaves_no_half_written_record(store, monkeypatch):
    staging = store.staging(KEY)
    with monkeypatch.context() as patch:
        fail_with(patch, "write", errno.ENOSPC)
        with pytest.raises(StoreError, match="No space left on device") as caught:
            store.commit(staging, cell_record(KEY))
    assert "\n" not in str(caught.value)
    assert "free disk space" in str(caught.value)
    assert not list(staging.path.iterdir())
    assert store.finished() == {}
    store.commit(staging, cell_record(KEY))


def test_a_disk_full_at_the_index_loses_no_cell(store, monkeypatch):
    commit(store, OTHER)
    whole, staging = store.index_path.read_bytes(), store.staging(KEY)
    with monkeypatch.context() as patch:
        fail_with(patch, "write", errno.ENOSPC, after=1)
        with pytest.raises(StoreError, match="No space left"):
            store.commit(staging, cell_record(KEY))
    assert store.index_path.read_bytes() == whole
    assert KEY.cell_id(SWEEP_ID) in reopened(store).finished()


def test_a_short_write_to_the_index_is_taken_back(store, monkeypatch):
    commit(store, KEY)
    whole = store.index_path.read_bytes()
    staging, real = store.staging(OTHER), os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda fd, data: real(fd, data if data[:2] == b"{\n" else data[:10]))
        with pytest.raises(StoreError, match="No space left"):
            store.commit(staging, cell_record(OTHER))
    assert store.index_path.read_bytes() == whole
    assert len(reopened(store).finished()) == 2


def test_symbolic_links_in_the_evidence_are_not_followed(store, tmp_path):
    staging = store.staging(KEY)
    (staging.path / "link").symlink_to(tmp_path / "nowhere")
    store.commit(staging, cell_record(KEY))
    assert (store.cell_dir(KEY) / "link").is_symlink()


def test_sweeps_are_created_once_and_opened_where_they_are(store, tmp_path):
    commit(store, KEY)
    store.close()
    with pytest.raises(StoreError, match="this sweep exists"):
        CellStore(tmp_path, SWEEP_ID).create(sweep_record())
    with pytest.raises(StoreError, match="there is no such sweep"):
        CellStore(tmp_path, "other-20261127").open()
    with pytest.raises(InputError):
        CellStore(tmp_path, "../escape")
    store.root.rename(tmp_path / "renamed")
    with pytest.raises(StoreError, match="is the sweep 'free-20261127'"):
        CellStore(tmp_path, "renamed").open()
    (tmp_path / "renamed").rename(store.root)
    with CellStore(tmp_path, SWEEP_ID) as again:
        assert again.open() == sweep_record(*KEYS)


def test_a_sweep_without_a_finished_cell_is_created_anew(store, tmp_path):
    with pytest.raises(StoreError, match="is running this sweep"):
        CellStore(tmp_path, SWEEP_ID).create(sweep_record(KEY))
    dead = store.staging(KEY)
    store.close()
    with CellStore(tmp_path, SWEEP_ID) as again:
        again.create(sweep_record(KEY))
        assert again.sweep() == sweep_record(KEY)
        assert not dead.path.exists()


def test_a_cell_that_a_dead_runner_finished_keeps_its_sweep(store, tmp_path):
    staging = store.staging(KEY)
    (staging.path / "cell.json").write_bytes(to_json(cell_record(KEY)))
    store.close()
    with pytest.raises(StoreError, match="this sweep exists"):
        CellStore(tmp_path, SWEEP_ID).create(sweep_record(OTHER))
    assert CellStore(tmp_path, SWEEP_ID).sweep() == sweep_record(*KEYS)


def test_an_unknown_sweep_is_told_with_the_nearest_or_the_newest(tmp_path):
    with pytest.raises(StoreError, match=r"no such sweep.*run `cab sweep run sweeps/free.yaml`"):
        CellStore(tmp_path, "free-1").sweep()
    for age, name in enumerate(("a", "bb", "ccc", "dddd", "eeeee", "ffffff")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "sweep.json").touch()
        os.utime(tmp_path / name / "sweep.json", (1000 + age, 1000 + age))
    with pytest.raises(StoreError, match=r"known: ffffff, eeeee, dddd, ccc, bb\)"):
        CellStore(tmp_path, "zzzzzz").sweep()
    with pytest.raises(StoreError, match=r"did you mean 'ffffff'\?"):
        CellStore(tmp_path, "fffff").open()


def test_reading_needs_no_lock_and_writing_does(store):
    reader = CellStore(store.root.parent, SWEEP_ID)
    assert reader.sweep() == store.sweep()
    with pytest.raises(StoreError, match="not open for writing"):
        commit(reader, KEY)


def test_the_index_of_an_older_cab_is_read_and_made_whole_by_the_next_resume(store):
    integrity = {"integrity": {"integrity": 1, "findings": [{"severity": "note"}]}}
    staging = store.staging(KEY)
    store.commit(staging, cell_record(KEY, scores={**cell_record(KEY).scores, **integrity}))
    store.close()
    line = json.loads(store.index_path.read_bytes())
    assert line.pop("integrity_findings") == 1
    store.index_path.write_text(json.dumps(line) + "\n")
    older = CellStore(store.root.parent, SWEEP_ID).finished()[KEY.cell_id(SWEEP_ID)]
    assert older.integrity_findings is None
    assert load_frame(store.root)["integrity_findings"].to_list() == [None]
    assert reopened(store).finished()[KEY.cell_id(SWEEP_ID)].integrity_findings == 1
    assert load_frame(store.root)["integrity_findings"].to_list() == [1]
