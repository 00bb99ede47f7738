"""The harness's verdicts: asked for, kept with the digest of the patch that each is about, and given to the
cells of the run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from orchestrator.external.artifacts import Artifacts, Attempt
from orchestrator.external.container_agent import Cells
from orchestrator.external.harness_env import Harness, require_gradable
from orchestrator.external.harness_reports import TIMED_OUT
from orchestrator.external.results import Verdict
from orchestrator.external.tasks import ExternalTask
from orchestrator.external.verdicts import VERDICTS, verdicts_bytes
from scorers.evidence import TestResult, Verification


@dataclass(frozen=True)
class HarnessRequest:
    """Which harness judges, and how. `command` is a template that takes the place of its own command line;
    `timeout_s` is of one instance.
    """

    find: Callable[[], Harness]
    command: str | None = None
    workers: int = 1
    timeout_s: int = 1800

    def check(self, tasks: tuple[ExternalTask, ...]) -> None:
        """Raises InputError for tasks that it cannot grade."""
        require_gradable(tasks, self.find())


@dataclass(frozen=True)
class Predicted:
    """One file of predictions: those of one condition and run. `patches` are by instance."""

    condition: str
    run: int
    path: Path
    patches: Mapping[str, str]

    @property
    def which(self) -> tuple[str, int]:
        return self.condition, self.run

    def of(self, verdicts: Mapping[str, Verdict]) -> dict[Attempt, Verdict]:
        """Verdicts on these predictions, by attempt."""
        return {Attempt(it, self.condition, self.run): verdict for it, verdict in verdicts.items()}


def verdicts_of(
    request: HarnessRequest,
    artifacts: Artifacts,
    tasks: tuple[ExternalTask, ...],
    predicted: Predicted,
    work: Path,
    progress: Callable[[str], None],
) -> dict[str, Verdict]:
    """Have the harness judge a file of predictions, in images that are built first where they are carried
    tasks'. Raises EnvironmentFault where it does not come to an end.
    """
    # Imported here: most calls judge nothing, and the engine's client and the scorers take their time.
    from orchestrator.external.harness import evaluate, metadata
    from orchestrator.external.images import ensure_images

    harness = request.find()
    ensure_images(tasks, work.parent / "images", progress)

    seen = set[int]()

    def told(done: int, of: int) -> None:
        if done not in seen:
            seen.add(done)
            progress(f"{work.name}: {done} of {of} judged")

    found = evaluate(
        tasks,
        predicted.path,
        condition=predicted.condition,
        run_id=work.name,
        work=work,
        harness=harness,
        max_workers=request.workers,
        timeout_s=request.timeout_s,
        command=request.command,
        progress=told,
        out=artifacts.root,
    )
    text = verdicts_bytes(metadata(harness), predicted.patches, found)
    artifacts.write(work / VERDICTS, text)
    return found


def judge_cells(cells: Cells, verdicts: Mapping[Attempt, Verdict]) -> None:
    """Give each cell its verdict, and its scores by it; one of which the harness said nothing stays without.

    Raises StoreError.
    """
    told = {
        attempt: verdict
        for attempt, verdict in verdicts.items()
        if attempt in cells.found and verdict.outcome != "incomplete"
    }
    if not told:
        return
    from orchestrator.run.rescore import judged

    with cells.store as store:
        store.open()
        for attempt, verdict in told.items():
            key = cells.found[attempt].identity.key
            required = [name for name, _ in verdict.fail_to_pass], [name for name, _ in verdict.pass_to_pass]
            judged(store, key, verification_of(verdict), *required)


def verification_of(verdict: Verdict) -> Verification:
    """A verdict as scorers read one: resolved is a reward of 1, and everything else of 0."""
    tests = [
        TestResult(name=name, status="passed" if passed else "failed")
        for name, passed in (*verdict.fail_to_pass, *verdict.pass_to_pass)
    ]
    return Verification(
        exit_code=0,
        timed_out=verdict.reason == TIMED_OUT,
        reward=1.0 if verdict.outcome == "resolved" else 0.0,
        tests=tests,
        stdout_tail=f"the benchmark's harness: {verdict.outcome}"
        + (f" ({verdict.reason})" if verdict.reason else ""),
    )
