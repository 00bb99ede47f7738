"""The proof of a task: what its verifications showed before anybody was measured by it.

A task is proved when doing nothing fails, the reference solution passes every time, each wrong fix fails, and
the tests say the same in every run.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from orchestrator.errors import InputError
from scorers.evidence import Verification
from scorers.paths import Globs
from scorers.refusal import explains

if TYPE_CHECKING:
    from orchestrator.plan.task import Solution, Task

SCHEMA_VERSION = 1


class Proof(BaseModel):
    """`proof.json`. `toolchain` names what it was proved with (such as the base image's id and versions).

    `fail_to_pass` fail (or cannot run) untouched and pass with the reference; `pass_to_pass` pass in both.
    `ref_diff_lines` counts lines added and removed by the reference; `runs` its verifications.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    schema_version: int = Field(default=SCHEMA_VERSION, ge=SCHEMA_VERSION, le=SCHEMA_VERSION)
    content_hash: str
    toolchain: dict[str, str]
    fail_to_pass: list[str]
    pass_to_pass: list[str]
    ref_diff_lines: int
    runs: int

    def to_json(self) -> str:
        """The text of `proof.json`: stable, so that proving again changes nothing."""
        return self.model_dump_json(indent=2) + "\n"


def read_proof(path: Path) -> Proof | None:
    """The proof at `path`, None where there is none.

    Raises InputError when the file is not a proof of this version.
    """
    try:
        return Proof.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValidationError as error:
        thing = f"is no proof of version {SCHEMA_VERSION}: {error.errors()[0]['msg']}"
        raise InputError(thing, place=str(path), mend="remove it and run cab task validate") from error


def derive(
    task: Task,
    *,
    noop: Verification,
    references: list[Verification],
    wrongs: dict[str, Verification],
    toolchain: dict[str, str],
) -> Proof:
    """Check the verifications of one task and fix its lists of tests.

    In refusal tasks the tests show only that nothing was fabricated; there a solution passes when its final
    message explains, too. What files alone tell, `check_files` has checked before. Raises InputError that
    names the check which failed, and not the task: the caller does.
    """
    check = _Checks(task)
    first = check.agreeing(references)
    check.reference(first)
    check.must_fail("doing nothing", noop, message="")
    solutions = task.wrong_fixes()
    if wrongs.keys() != solutions.keys():
        raise check.error(
            f"verified were {sorted(wrongs)}, the wrong fixes are {sorted(solutions)}", "verify each"
        )
    for name, verification in wrongs.items():
        check.must_fail(f"wrong/{name}", verification, message=solutions[name].final_message or "")
    before, after = _passed(noop), _passed(first)
    fail_to_pass = [] if task.expected_refusal else sorted(after - before)
    if not fail_to_pass and not task.expected_refusal:
        raise check.error(
            "no test fails untouched and passes with the reference", "test what the ticket asks"
        )
    return Proof(
        content_hash=task.content_hash,
        toolchain=toolchain,
        fail_to_pass=fail_to_pass,
        pass_to_pass=sorted(after & before),
        ref_diff_lines=diff_lines(task, task.solution),
        runs=len(references),
    )


def check_files(task: Task) -> None:
    """Check what can be told without running anything: canary, hidden literals, ground truth.

    Raises InputError with all findings, not naming the task: the caller does.
    """
    findings = [*_unmarked(task), *_unhidden(task), *_ground_truth(task)]
    if findings:
        mends = "; ".join(dict.fromkeys(mend for _, mend in findings))
        raise InputError("; ".join(thing for thing, _ in findings), mend=mends)


def _unmarked(task: Task) -> Iterator[tuple[str, str]]:
    """Tests and solve scripts without the canary."""
    for path in [*_tests(task), *sorted(task.path.glob("**/solve.sh"))]:
        if task.canary not in path.read_text(encoding="utf-8"):
            yield f"{path.relative_to(task.path)} lacks the canary", "add the canary in a comment"


def _unhidden(task: Task) -> Iterator[tuple[str, str]]:
    """Hidden literals that do not stand in the tests, and nowhere else."""
    hidden = "".join(path.read_text(encoding="utf-8") for path in _tests(task))
    visible = "".join(
        path.read_text(encoding="utf-8") for path in task.files() if task.workdir in path.parents
    )
    needed = visible + task.instruction + "".join(task.solution.files.values())
    for literal in task.hidden_literals:
        if literal not in hidden or literal in needed:
            thing = f"the hidden literal {literal!r} is not in the tests, or not in them alone"
            yield thing, "correct hidden_literals"


def _ground_truth(task: Task) -> Iterator[tuple[str, str]]:
    """Differences between what the reference changes and what task.toml says that it does."""
    mend = "make ground_truth_files what the reference changes"
    changed = [path for path, after in task.solution.files.items() if _differs(task.workdir / path, after)]
    patterns = {pattern: Globs([pattern]) for pattern in task.ground_truth_files}
    for path in changed:
        if not any(path in globs for globs in patterns.values()):
            yield f"the reference changes {path}, which ground_truth_files does not list", mend
    for pattern, globs in patterns.items():
        if not any(path in globs for path in changed):
            yield f"ground_truth_files lists {pattern}, which the reference does not change", mend


def _differs(path: Path, after: str) -> bool:
    return not path.is_file() or path.read_text(encoding="utf-8") != after


def _tests(task: Task) -> list[Path]:
    known = set(task.files())
    return [path for path in sorted(task.tests_dir.rglob("*")) if path in known]


class _Checks:
    """What must hold of single verifications."""

    def __init__(self, task: Task) -> None:
        self._task = task

    def error(self, thing: str, mend: str) -> InputError:
        return InputError(thing, mend=mend)

    def agreeing(self, references: list[Verification]) -> Verification:
        """The first of the verifications of the reference, when all say the same."""
        if not references:
            raise self.error("the reference was not verified", "verify it at least once")
        first = _summary(references[0])
        for number, verification in enumerate(references[1:], start=2):
            if difference := _summary(verification) ^ first:
                names = ", ".join(sorted({name for name, _ in difference}))
                thing = f"the reference's run {number} differs from run 1 in {names}"
                raise self.error(thing, "make the tests deterministic")
        return references[0]

    def reference(self, verification: Verification) -> None:
        """The reference passes, each of its tests does, and in refusal tasks its message explains."""
        if not _rewarded(verification):
            raise self.error(f"the reference fails: {_why(verification)}", "correct solution/ or the tests")
        if bad := sorted(test.name for test in verification.tests if test.status != "passed"):
            raise self.error(
                f"the reference passes without passing {', '.join(bad)}", "correct tests/test.sh"
            )
        names = [test.name for test in verification.tests]
        if not names or len(set(names)) < len(names):
            raise self.error(
                "tests/test.sh reports no tests or one name twice", "write ctrf.json, as cab-tests does"
            )
        message = self._task.solution.final_message or ""
        if self._task.expected_refusal and not explains(self._task.refusal, message):
            raise self.error("solution/final_message.md does not satisfy explains", "correct one of them")

    def must_fail(self, what: str, verification: Verification, *, message: str) -> None:
        """`verification` is a real failure: not a pass, and not a verifier that broke down."""
        if verification.timed_out or verification.reward is None:
            raise self.error(
                f"{what} could not be graded: {_why(verification)}", "a failure must leave reward 0"
            )
        refused = self._task.expected_refusal and not explains(self._task.refusal, message)
        if _rewarded(verification) and not refused:
            raise self.error(
                f"{what} passes", "tighten tests/" + (" or explains" if self._task.expected_refusal else "")
            )


def diff_lines(task: Task, solution: Solution) -> int:
    """Lines that `solution` removes from and adds to the workdir."""
    count = 0
    for path, after in solution.files.items():
        source = task.workdir / path
        old = source.read_text(encoding="utf-8").splitlines() if source.is_file() else []
        new = after.splitlines()
        for tag, i1, i2, j1, j2 in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            count += (i2 - i1) + (j2 - j1) if tag != "equal" else 0
    return count


def _rewarded(verification: Verification) -> bool:
    return verification.reward == 1 and verification.exit_code == 0 and not verification.timed_out


def _passed(verification: Verification) -> set[str]:
    return {test.name for test in verification.tests if test.status == "passed"}


def _summary(verification: Verification) -> set[tuple[str, str]]:
    results = {(test.name, test.status) for test in verification.tests}
    return results | {
        ("the reward", str(verification.reward)),
        ("the exit code", str(verification.exit_code)),
    }


def _why(verification: Verification) -> str:
    if verification.timed_out:
        return "the time was up"
    failed = [test.name for test in verification.tests if test.status != "passed"]
    detail = (
        f", failing {', '.join(failed)}"
        if failed
        else f", {verification.stderr_tail.strip()[-300:] or 'no output'}"
    )
    return f"reward {verification.reward}, exit code {verification.exit_code}{detail}"
