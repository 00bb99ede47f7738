"""Kills a writer of cells, by SIGKILL, before each of its system calls and in the middle of each write.

`crash_worker.py DIRECTORY SCENARIO` leaves one results directory for each point at which it killed, named
by number; after each kill it also kills one `open` that mends, at a point that moves on. Prints how many
points there were.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from store_samples import SWEEP_ID, cell_record, sweep_record

from orchestrator.store.cells import CellStore
from orchestrator.store.names import CellKey

OLD = CellKey("opencode", "embedded/reference", "polyglot/old")
NEW = CellKey("opencode", "embedded/reference", "polyglot/new")
CALLS = ("open", "write", "rename", "replace", "unlink", "mkdir", "rmdir", "ftruncate")


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def arm(fatal: int) -> None:
    """Make the process die at the `fatal`th of its system calls; a write counts twice: undone, half done."""
    count = 0

    def armed(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*args: Any, **options: Any) -> Any:
            nonlocal count
            if count == fatal:
                die()
            count += 1
            if name == "write":
                if count == fatal:
                    call(args[0], bytes(args[1])[: len(args[1]) // 2])
                    die()
                count += 1
            return call(*args, **options)

        return wrapper

    for name in CALLS:
        setattr(os, name, armed(name, getattr(os, name)))


def killed(work: Callable[[], None]) -> bool:
    """Run `work` in a child; whether it was killed. A child that fails by itself fails this program."""
    pid = os.fork()
    if pid == 0:
        work()
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        return True
    if status:
        raise SystemExit("the child failed by itself")
    return False


def prepare(results: Path) -> None:
    with CellStore(results, SWEEP_ID) as store:
        store.create(sweep_record(OLD, NEW))
        staging = store.staging(OLD)
        (staging.path / "diff.patch").write_text("old")
        store.commit(staging, cell_record(OLD))


def commit(store: CellStore, key: CellKey, *, replace: bool) -> None:
    staging = store.staging(key)
    (staging.path / "diff.patch").write_text("new")
    store.commit(staging, cell_record(key, order_index=7), replace=replace)


SCENARIOS: dict[str, Callable[[CellStore], Any]] = {
    "commit": lambda store: commit(store, NEW, replace=False),
    "replace": lambda store: commit(store, OLD, replace=True),
    "rewrite": lambda store: store.rewrite(cell_record(OLD, order_index=7)),
}


def main(root: Path, scenario: str) -> None:
    point = 0
    while True:
        results = root / str(point)
        prepare(results)

        def write(results: Path = results, fatal: int = point) -> None:
            with CellStore(results, SWEEP_ID) as store:
                store.open()
                arm(fatal)
                SCENARIOS[scenario](store)

        def mend(results: Path = results, fatal: int = point) -> None:
            arm(fatal % 25)
            CellStore(results, SWEEP_ID).open()

        if not killed(write):
            break
        (results / "written").write_text(str(finished_new(results)))
        killed(mend)
        point += 1
    sys.stdout.write(f"{point + 1}\n")


def finished_new(results: Path) -> bool:
    """Whether the new record is whole somewhere, so that the cell is finished."""
    return any('"order_index": 7' in path.read_text() for path in results.rglob("cell.json"))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
