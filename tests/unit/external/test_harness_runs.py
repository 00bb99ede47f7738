"""Calls of the harness: what is asked of it, what is kept of earlier calls, and what is refused before."""

from __future__ import annotations

import fcntl
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from rows_for_tests import CLASSIC, ROW

from orchestrator.errors import EnvironmentFault, InputError
from orchestrator.external import harness as under_test
from orchestrator.external.harness import evaluate
from orchestrator.external.harness_env import Harness, require_gradable
from orchestrator.external.predictions import write_predictions
from orchestrator.external.results import Verdict
from orchestrator.external.tasks import ExternalTask, task_of

STAND_IN = Path(__file__).with_name("stand_in_harness.py")
COMMAND = f"{{python}} {STAND_IN} {{dataset_name}} {{predictions_path}} {{run_id}} {{report_dir}}"
FIVE = Harness(Path(sys.executable), "5.0.2", "5", parsers=frozenset({"parse_log_pytest"}))
TASKS = tuple(task_of({**ROW, "instance_id": f"a__b-{number}"}, "here") for number in range(3))


@pytest.fixture(autouse=True)
def _no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(under_test, "require_docker", lambda _: None)
    monkeypatch.setattr(under_test, "_remove_containers", lambda _: None)
    monkeypatch.setattr(under_test, "_POLL_S", 0.01)


class Run:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.heard: list[tuple[int, int]] = []

    def __call__(
        self,
        patches: Mapping[str, str],
        *,
        tasks: tuple[ExternalTask, ...] = TASKS,
        command: str = COMMAND,
        run_id: str = "r1",
        condition: str = "stateplane",
        harness: Harness = FIVE,
        timeout_s: int = 60,
        max_workers: int = 1,
        heard: Callable[[int, int], None] | None = None,
    ) -> dict[str, Verdict]:
        predictions = self.directory / "predictions.jsonl"
        write_predictions(predictions, "stateplane", patches)
        return evaluate(
            tasks,
            predictions,
            condition=condition,
            run_id=run_id,
            work=self.directory / "harness",
            harness=harness,
            max_workers=max_workers,
            timeout_s=timeout_s,
            command=command,
            progress=heard or (lambda done, of: self.heard.append((done, of))),
        )

    @property
    def directories(self) -> list[Path]:
        return [path for path in (self.directory / "harness").iterdir() if path.is_dir()]

    @property
    def calls(self) -> list[str]:
        path = self.directory / "harness" / "calls"
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


def outcomes(verdicts: Mapping[str, Verdict]) -> list[str]:
    return [verdict.outcome for verdict in verdicts.values()]


def test_every_task_has_a_verdict_and_one_without_a_prediction_is_incomplete(run: Run) -> None:
    found = run({"a__b-0": "resolved", "a__b-2": ""})
    assert outcomes(found) == ["resolved", "incomplete", "empty_patch"]
    assert found["a__b-1"].reason == "there is no prediction"
    assert (run.heard[0], run.heard[-1]) == ((0, 2), (2, 2))


def test_what_is_judged_is_not_asked_again(run: Run) -> None:
    patches = {"a__b-0": "resolved", "a__b-1": "unresolved", "a__b-2": ""}
    first = run(patches)
    assert run(patches) == first
    assert run.calls == ["a__b-0 a__b-1 a__b-2"]


def test_a_patch_that_changed_is_judged_anew_and_the_others_are_kept(run: Run) -> None:
    run({"a__b-0": "resolved", "a__b-1": "unresolved"})
    assert outcomes(run({"a__b-0": "resolved", "a__b-1": "resolved"}))[:2] == ["resolved", "resolved"]
    assert run.calls == ["a__b-0 a__b-1", "a__b-1"]
    assert len(run.directories) == 2


@pytest.mark.parametrize("change", ["timeout", "version", "task"])
def test_so_is_one_whose_task_or_settings_changed(run: Run, change: str) -> None:
    patches = {"a__b-0": "resolved"}
    run(patches)
    if change == "timeout":
        run(patches, timeout_s=61)
    elif change == "version":
        run(patches, harness=Harness(FIVE.python, "5.0.3", "5", FIVE.parsers))
    else:
        run(patches, tasks=(task_of({**ROW, "instance_id": "a__b-0", "version": "0.2"}, "here"),))
    assert len(run.calls) == 2


def test_a_fault_is_asked_again(run: Run) -> None:
    patches = {"a__b-0": "resolved", "a__b-1": "fault"}
    assert outcomes(run(patches))[:2] == ["resolved", "error"]
    run(patches)
    assert run.calls == ["a__b-0 a__b-1", "a__b-1"]


def test_a_harness_that_dies_leaves_what_it_judged_and_says_how_it_ended(run: Run) -> None:
    found = run({"a__b-0": "resolved", "a__b-1": "die", "a__b-2": "resolved"})
    assert outcomes(found) == ["resolved", "incomplete", "incomplete"]
    assert found["a__b-2"].reason == "the harness ended with 1 and wrote no verdict: out of memory"
    assert run.heard[-1] == (1, 3)
    assert (
        outcomes(run({"a__b-0": "resolved", "a__b-1": "resolved", "a__b-2": "resolved"})) == ["resolved"] * 3
    )
    assert run.calls[1:] == ["a__b-1 a__b-2"]


def test_a_harness_that_outlived_its_runner_is_waited_for(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A runner that is killed ends nothing."""
    patches, left = {"a__b-0": "resolved", "a__b-1": "slow"}, list[subprocess.Popen[bytes]]()
    with monkeypatch.context() as killed:
        killed.setattr(under_test, "_end", left.append)
        killed.setattr(under_test.Ran, "is_graded", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            run(patches)
    assert left[0].poll() is None
    assert outcomes(run(patches))[:2] == ["resolved", "resolved"]
    assert run.calls == ["a__b-0 a__b-1"]
    left[0].wait()


def test_containers_of_a_harness_that_was_killed_with_its_runner_are_removed(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    removed: list[str] = []
    monkeypatch.setattr(under_test, "_remove_containers", removed.extend)
    patches = {"a__b-0": "resolved", "a__b-1": "die"}
    run(patches)
    [first] = run.directories
    assert removed == [first.name]
    removed.clear()
    run({"a__b-0": "resolved", "a__b-1": "resolved"})
    assert removed[0] == first.name
    # Also where nothing is left to judge: what was killed at its end may have left one.
    removed.clear()
    run({"a__b-0": "resolved"})
    assert first.name in removed
    assert len(run.calls) == 2


def test_who_waits_for_a_harness_hears_what_it_has_judged(run: Run) -> None:
    (run.directory / "harness").mkdir()
    with (run.directory / "harness" / "lock").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)

        def heard(done: int, of: int) -> None:
            run.heard.append((done, of))
            if len(run.heard) == 3:
                fcntl.flock(other, fcntl.LOCK_UN)

        # Whatever happens, it is not held for ever.
        late = threading.Timer(5, lambda: fcntl.flock(other, fcntl.LOCK_UN))
        late.start()
        run({"a__b-0": "resolved"}, heard=heard)
        assert late.is_alive()
        late.cancel()
    assert run.heard[:4] == [(0, 1)] * 4


def test_logs_name_no_directory_of_this_machine_and_hold_no_key(run: Run, tmp_path: Path) -> None:
    program = tmp_path / "loud.py"
    program.write_text(
        "import os, pathlib, sys\n"
        "print(sys.executable, os.getcwd(), os.path.expanduser('~/x'), 'sk-a1B2c3D4e5F6g7H8')\n"
        "for name in ('run.json', 'stateplane/a__b-0/run_instance.log'):\n"
        "    path = pathlib.Path('logs/run_evaluation', 'id', name)\n"
        "    path.parent.mkdir(parents=True, exist_ok=True)\n"
        "    path.write_text(os.getcwd())\n"
        "sys.exit(os.getcwd())\n"
    )
    command = f"{{python}} '{program}' {{dataset_name}} {{predictions_path}} {{run_id}}"
    found = run({"a__b-0": "x"}, command=command)
    [directory] = run.directories
    here = f"{{out}}/{directory.name}"
    told = (directory / "output.log").read_text()
    assert told == f"{{harness}}/bin/{Path(sys.executable).name} {here} ~/x [key taken out]\n{here}\n"
    assert found["a__b-0"].reason.endswith(f"wrote no verdict: {here}")
    assert {
        path.read_text() for path in directory.glob("logs/run_evaluation/id/**/*.*") if path.is_file()
    } == {here}


def test_an_exit_code_of_0_is_no_verdict(run: Run) -> None:
    found = run({"a__b-0": "resolved"}, command="true {dataset_name} {predictions_path} {run_id}")
    assert found["a__b-0"] == Verdict(
        outcome="incomplete", reason="the harness ended with 0 and wrote no verdict"
    )


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("run {dataset} {predictions_path} {run_id}", "did you mean 'dataset_name'"),
        ("run {dataset_name} {run_id}", "lacks {predictions_path}"),
        ("run {dataset_name} {predictions_path} {run_id} {", "is no command"),
        ("run '{dataset_name} {predictions_path} {run_id}", "is no command"),
        ("run {dataset_name} {predictions_path} {run_id} {}", "{} is no placeholder"),
        ("run {dataset_name.x} {predictions_path} {run_id}", "{dataset_name.x} is no placeholder"),
        ("run {dataset_name!r} {predictions_path} {run_id}", "no placeholder"),
        ("run {dataset_name:>9} {predictions_path} {run_id}", "no placeholder"),
    ],
)
def test_a_command_is_checked_before_it_runs(run: Run, command: str, said: str) -> None:
    with pytest.raises(InputError) as told:
        run({"a__b-0": "resolved"}, command=command)
    assert said in str(told.value)


def test_a_command_that_is_not_there_is_one_line(run: Run) -> None:
    with pytest.raises(EnvironmentFault, match="--harness-command"):
        run({"a__b-0": "x"}, command="./none {dataset_name} {predictions_path} {run_id}")


def test_placeholders_keep_their_words_whole_and_instance_ids_are_one_each(run: Run, tmp_path: Path) -> None:
    program = tmp_path / "say args.py"
    program.write_text("import sys, json; print(json.dumps(sys.argv[1:]))")
    command = (
        f"{{python}} '{program}' -d={{dataset_name}} -i {{instance_ids}} {{predictions_path}} {{run_id}} "
        "{max_workers}/{timeout} {split}"
    )
    run({"a__b-0": "x", "a__b-1": "y"}, command=command, max_workers=3)
    [directory] = run.directories
    words = json.loads((directory / "output.log").read_text())
    assert words == [
        f"-d={{out}}/{directory.name}/tasks.json",
        *("-i", "a__b-0", "a__b-1"),
        *(f"{{out}}/{directory.name}/predictions.jsonl", directory.name, "3/60", "test"),
    ]


def test_the_harness_gets_no_keys(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-never")
    monkeypatch.setattr(
        under_test, "COMMAND", "/usr/bin/env X={dataset_name} Y={predictions_path} Z={run_id}"
    )
    run({"a__b-0": "x"}, command=under_test.COMMAND)
    [directory] = run.directories
    told = (directory / "output.log").read_text()
    assert "HF_HUB_OFFLINE=1" in told
    assert "sk-never" not in told


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"run_id": "a/b"}, "'a/b' is no run id"),
        ({"run_id": "-r"}, "'-r' is no run id"),
        ({"condition": "transcript_replay"}, "is of 'stateplane', not 'transcript_replay'"),
        ({"timeout_s": 0}, "at least 1"),
        ({"max_workers": 0}, "at least 1"),
    ],
)
def test_wrong_arguments(run: Run, values: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        run({"a__b-0": "resolved"}, **values)


def test_a_prediction_of_no_task_is_refused_here_and_not_by_the_harness(run: Run) -> None:
    with pytest.raises(InputError, match=r"predictions\.jsonl: c__d-1 is none of the tasks"):
        run({"c__d-1": "resolved"})


class TestWhatAHarnessCanGrade:
    FOUR = Harness(Path("python"), "4.1.0", "4", specs=(("psf/requests", ("2.31", "2.9")),))

    def test_a_classic_row_is_refused_before_5_would_die_of_it(self, run: Run) -> None:
        with pytest.raises(InputError, match=r"a__b-1: a classic row.*1 more"):
            run(
                {"a__b-0": "x", "a__b-1": "y", "a__b-2": "z"},
                tasks=(
                    TASKS[0],
                    *(task_of({**CLASSIC, "instance_id": f"a__b-{n}"}, "here") for n in (1, 2)),
                ),
            )
        assert run.calls == []

    def test_a_parser_that_5_does_not_know(self) -> None:
        task = task_of({**ROW, "log_parser": "parse_log_pytst"}, "here")
        with pytest.raises(InputError, match="did you mean 'parse_log_pytest'"):
            require_gradable((task,), FIVE)

    @pytest.mark.parametrize(
        ("repo", "version", "said"),
        [
            ("psf/requests", "2.31", None),
            ("psf/requests", "3.0", "it knows 2.31, 2.9"),
            ("labelco/tinymath", "0.1", "it does not know the repository"),
        ],
    )
    def test_4_knows_repositories_and_versions(self, repo: str, version: str, said: str | None) -> None:
        found = self.FOUR.problem(task_of({**CLASSIC, "repo": repo, "version": version}, "here"))
        assert found is None if said is None else said in (found or "")
