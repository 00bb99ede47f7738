"""The official harness, unmodified, on carried tasks: each kind of patch is graded as it should be."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import docker
import pytest

from orchestrator.external.harness import evaluate
from orchestrator.external.harness_env import Harness, cache_root, harness_python
from orchestrator.external.harness_reports import NOT_APPLIED, TIMED_OUT
from orchestrator.external.predictions import write_predictions
from orchestrator.external.results import Verdict
from orchestrator.external.suites import SWEBENCH, load_suite

HANGS, GOOD, BREAKS, EMPTY, WRONG, STRANGE = IDS = [
    f"cab-swe__{name}"
    for name in ("cronlet-12", "cronlet-15", "ledgerline-31", "ledgerline-34", "semrange-7", "semrange-10")
]
TIMEOUT_S = 20


def patch(instance: str, kind: str) -> str:
    return (SWEBENCH / "smoke" / instance / f"{kind}.patch").read_text()


@pytest.fixture(scope="module")
def harness() -> Harness:
    if not (cache_root() / "5.0.2").is_dir():
        pytest.fail("the SWE-bench harness is not installed: run `make harness`")
    return harness_python()


@pytest.fixture(scope="module")
def graded(harness: Harness, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Verdict]:
    """One run of the harness with a patch of each kind."""
    patches = {
        HANGS: patch(HANGS, "hang"),
        GOOD: patch(GOOD, "gold"),
        BREAKS: patch(BREAKS, "regress"),
        EMPTY: "",
        WRONG: patch(WRONG, "wrong"),
        STRANGE: patch(GOOD, "gold"),
    }
    return run(tmp_path_factory.mktemp("mixed"), "mixed", patches, harness)


def run(directory: Path, condition: str, patches: Mapping[str, str], harness: Harness) -> dict[str, Verdict]:
    predictions = directory / "predictions" / f"{condition}.run1.jsonl"
    write_predictions(predictions, condition, patches)
    return evaluate(
        load_suite("smoke"),
        predictions,
        condition=condition,
        run_id=f"test-{directory.name}",
        work=directory / "harness" / f"{condition}.run1",
        harness=harness,
        max_workers=2,
        timeout_s=TIMEOUT_S,
    )


def counts(tests: tuple[tuple[str, bool], ...]) -> tuple[int, int]:
    return sum(passed for _, passed in tests), len(tests)


def test_a_gold_patch_is_resolved(graded: dict[str, Verdict]) -> None:
    found = graded[GOOD]
    assert (found.outcome, found.reason, found.applied) == ("resolved", "", True)
    assert counts(found.fail_to_pass) == (4, 4)


def test_a_wrong_patch_is_unresolved(graded: dict[str, Verdict]) -> None:
    found = graded[WRONG]
    assert (found.outcome, found.applied) == ("unresolved", True)
    assert counts(found.fail_to_pass) == (1, 3)


def test_a_patch_that_breaks_what_worked_is_unresolved(graded: dict[str, Verdict]) -> None:
    found = graded[BREAKS]
    assert found.outcome == "unresolved"
    assert counts(found.fail_to_pass) == (3, 3)
    assert [name for name, passed in found.pass_to_pass if not passed] == [
        "tests/test_journal.py::test_a_description_keeps_its_semicolon"
    ]


def test_no_patch_a_strange_one_and_one_that_hangs_are_told_apart(graded: dict[str, Verdict]) -> None:
    assert graded[EMPTY] == Verdict(outcome="empty_patch")
    assert graded[STRANGE] == Verdict(outcome="error", reason=NOT_APPLIED, applied=False)
    assert graded[HANGS] == Verdict(outcome="error", reason=TIMED_OUT, applied=True)


def test_the_other_gold_patches_resolve_also_after_a_kill_and_an_interrupt(
    harness: Harness, tmp_path: Path
) -> None:
    """The runner is killed together with its harness once something is judged, and neither can clean up; the
    next one is interrupted. The same call again keeps what was judged, asks for the rest, and leaves no
    container and no path of this machine in the harness's output.
    """
    rest = [instance for instance in IDS if instance != GOOD]
    gold = {instance: patch(instance, "gold") for instance in rest}
    killed = runner(tmp_path, gold)
    first = judged_beyond({}, tmp_path, killed)
    [of_harness] = Path(f"/proc/{killed.pid}/task/{killed.pid}/children").read_text().split()
    for pid in (killed.pid, int(of_harness)):
        os.kill(pid, signal.SIGKILL)
    killed.wait(10)
    assert containers(tmp_path.name), "nothing was under way"

    interrupted = runner(tmp_path, gold)
    judged_beyond(first, tmp_path, interrupted)
    interrupted.send_signal(signal.SIGINT)
    interrupted.wait(120)
    assert containers(tmp_path.name) == []
    judged = reports(tmp_path)
    assert 1 < len(judged) < len(rest)
    assert first.items() <= judged.items()

    found = run(tmp_path, "gold", gold, harness)

    assert [found[instance].outcome for instance in rest] == ["resolved"] * len(rest)
    assert found[GOOD].outcome == "incomplete"
    assert judged.items() <= reports(tmp_path).items()
    assert containers(tmp_path.name) == []
    outputs = [path.read_text() for path in tmp_path.rglob("output.log")]
    assert len(outputs) == 3
    assert not [text for text in outputs if str(tmp_path) in text]


def reports(directory: Path) -> dict[Path, int]:
    """When each instance was judged, by its report."""
    return {path: path.stat().st_mtime_ns for path in directory.rglob("report.json")}


def judged_beyond(
    known: Mapping[Path, int], directory: Path, process: subprocess.Popen[bytes]
) -> dict[Path, int]:
    """All that is judged as soon as that is more than what was."""
    while len(found := reports(directory)) <= len(known) and process.poll() is None:
        time.sleep(0.1)
    return found


def runner(directory: Path, gold: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Another process that has the harness judge these patches."""
    program = f"""
import signal, sys
from pathlib import Path
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.path.insert(0, {str(Path(__file__).parent)!r})
from test_external_harness import run
from orchestrator.external.harness_env import harness_python
run(Path({str(directory)!r}), "gold", {gold!r}, harness_python())
"""
    return subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.DEVNULL)


def containers(of: str) -> list[str]:
    """The harness's containers of a run that are still there."""
    client = docker.from_env()
    found = client.containers.list(all=True, filters={"name": f"test-{of}"}, ignore_removed=True)
    client.close()
    return [container.name for container in found]
