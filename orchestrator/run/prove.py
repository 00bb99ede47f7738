"""Proving a task: its solutions are run and verified as an agent's work would be, before anyone is measured
by it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from secrets import token_hex

from orchestrator.adapter import SOLUTION, WORKDIR
from orchestrator.errors import InputError
from orchestrator.fleet import Fleet
from orchestrator.paths import IMAGES_LOCK, INIT_BINARY
from orchestrator.plan.proof import Proof, check_files, derive
from orchestrator.plan.task import Solution, Task
from orchestrator.run.grader import Grader
from orchestrator.run.pins import BASE, resolve
from orchestrator.run.workdir import Classifier, compare, copy_tree, scan
from orchestrator.sandbox.contract import ContainerSpec, Mount
from orchestrator.sandbox.docker import DockerSandbox
from orchestrator.sandbox.images import known_lock
from orchestrator.sandbox.scratch import ScratchRoot
from scorers.evidence import Verification

SOLVE_TIMEOUT_S = 120.0


def prove(task: Task, *, runs: int, on_progress: Callable[[str], None]) -> Proof:
    """Prove one task: doing nothing and each wrong fix fail, the reference passes `runs` times alike.

    What its files alone tell comes first. Raises InputError that names the check which failed.
    """
    check_files(task)
    lock = known_lock(IMAGES_LOCK)
    base = resolve(lock, {}, INIT_BINARY, Fleet())[BASE]
    with _grader(base) as grader:
        on_progress(f"{task.name}: doing nothing")
        noop = _verify(grader, task, None)
        references = []
        for number in range(1, runs + 1):
            on_progress(f"{task.name}: reference, {number} of {runs}")
            references.append(_verify(grader, task, task.solution))
        wrongs = {}
        for name, fix in task.wrong_fixes().items():
            on_progress(f"{task.name}: wrong/{name}")
            wrongs[name] = _verify(grader, task, fix)
    toolchain = dict(lock.image(BASE).versions)
    return derive(task, noop=noop, references=references, wrongs=wrongs, toolchain=toolchain)


@contextmanager
def _grader(base: str) -> Iterator[Grader]:
    """A grader on this machine's engine, and a clean machine afterwards."""
    scratch = ScratchRoot.default()
    scratch.sweep_dead()
    token = f"prove-{token_hex(8)}"
    with closing(Grader(DockerSandbox(INIT_BINARY), scratch, base, token, token)) as grader:
        yield grader


def _verify(grader: Grader, task: Task, solution: Solution | None) -> Verification:
    """Run a solution's solve.sh where an agent would work (None: do nothing), and verify what it leaves."""
    template, limits = grader.template(task), grader.limits
    with grader.scratch.cell(limits.scratch_bytes, limits.scratch_inodes, grader.agent[0]) as scratch:
        workdir = scratch.path / "workdir"
        copy_tree(template.path, workdir, grader.agent)
        if solution is not None:
            _solve(grader, solution, scratch.path)
        difference = compare(template, workdir, scan(workdir), Classifier(template.path))
        return grader.verify(task, workdir, difference, "prove")


def _solve(grader: Grader, solution: Solution, scratch: Path) -> None:
    copy_tree(solution.path, scratch / "solution")
    (scratch / "run").mkdir()
    end = grader.sandbox.run(
        ContainerSpec(
            name=f"cab-{token_hex(6)}",
            image_id=grader.base,
            argv=("sh", f"{SOLUTION}/solve.sh"),
            env={"HOME": "/tmp", "LANG": "C.UTF-8"},
            workdir=WORKDIR,
            user=grader.agent,
            mounts=(
                Mount(scratch / "workdir", WORKDIR, read_only=False),
                Mount(scratch / "solution", SOLUTION),
            ),
            run_dir=scratch / "run",
            time_limit_s=SOLVE_TIMEOUT_S,
            labels=grader.labels("prove"),
        )
    )
    if end.exit_code != 0:
        how = "ran out of time" if end.timed_out else f"ended with exit code {end.exit_code}"
        raise InputError(
            f"solve.sh {how}", place=str(solution.path), mend="run it by hand in a copy of the workdir"
        )
