"""`cab external run` without any engine: what it writes, what it refuses, and how it goes on."""

from __future__ import annotations

import getpass
import json
import shutil
import socket
from pathlib import Path

import pytest
from external_samples import HISTORY, git, row, tasks_file, tree
from run_samples import CONDITIONS, MEND, FakeHarness, request, said

from orchestrator.cli import cab
from orchestrator.errors import CabError, InputError, StoreError
from orchestrator.external.harness_reports import TIMED_OUT
from orchestrator.external.judging import verification_of
from orchestrator.external.results import Verdict
from orchestrator.external.runner import CommandAsked, evaluate, run
from orchestrator.external.scorecard import conditions_of, read_scorecard


def call(*words: str) -> int:
    """The exit code of `cab external run`. Raises the CabError that the command would print."""
    try:
        cab.main(args=["external", "run", *words], standalone_mode=False)
    except SystemExit as end:
        return int(end.code or 0)
    raise AssertionError("it always exits")


def refused(*words: str) -> str:
    with pytest.raises(CabError) as caught:
        call(*words)
    return str(caught.value)


def files(root: Path) -> dict[str, bytes]:
    return {it.relative_to(root).as_posix(): it.read_bytes() for it in root.rglob("*") if it.is_file()}


@pytest.fixture
def rows(tmp_path: Path) -> str:
    return str(tasks_file(tmp_path / "rows.json", row(history=HISTORY), row("lab__calc-2")))


def test_a_dry_run_writes_all_artifacts_and_claims_nothing(tmp_path: Path, rows: str) -> None:
    out = tmp_path / "out"
    conditions = ("--conditions", ",".join(CONDITIONS))
    assert call("--tasks-json", rows, "--dry-run", *conditions, "--out", str(out)) == 0
    made = files(out)
    expected = ["metadata.json", "tasks.json", "scorecard.json", "report.md", "report.csv"]
    expected += [f"prompts/lab__calc-{n}/{name}.md" for n in (1, 2) for name in CONDITIONS]
    expected += [f"patches/lab__calc-{n}/{name}/run1.patch" for n in (1, 2) for name in CONDITIONS]
    expected += [f"predictions/{name}.run1.jsonl" for name in CONDITIONS]
    expected += ["stateplane/lab__calc-1/stateplane/snapshot.md"]
    expected += [f"stateplane/lab__calc-{n}/stateplane/receipt.md" for n in (1, 2)]
    assert set(expected) <= set(made)
    # Nothing is injected where there is nothing to tell, so there is no snapshot.
    assert "stateplane/lab__calc-2/stateplane/snapshot.md" not in made
    card = json.loads(made["scorecard.json"])
    assert card["claim"]["level"] == "dry_run_pipeline_only"
    assert all(result["verdict"] is None for result in card["results"])
    assert all("dry_run_pipeline_only" in made[name].decode() for name in ("report.md", "report.csv"))


def test_a_made_up_patch_fits_a_repository(tmp_path: Path, rows: str) -> None:
    call("--tasks-json", rows, "--dry-run", "--out", str(tmp_path / "out"))
    where = tree(tmp_path / "repo")
    git(where, "init", "-q")
    git(where, "apply", str(tmp_path / "out" / "patches" / "lab__calc-1" / "stateplane" / "run1.patch"))
    assert (where / "cab-dry-run-lab__calc-1.txt").is_file()


def test_no_artifact_names_this_machine(tmp_path: Path) -> None:
    key = "sk-a1B2c3D4e5F6g7H8"
    script = f"printf x > new.txt  # {tmp_path} --log={tmp_path}/it {key}"
    command = CommandAsked(("/usr/bin/env", "sh", "-c", script), 30.0)
    run(request(tmp_path, agent=command, source={"file": True}), said)
    ours = {name: text for name, text in files(tmp_path / "out").items() if not name.startswith("worktrees/")}
    metadata = json.loads(ours["metadata.json"])
    assert metadata["asked"]["command"][0] == "…/env"
    assert metadata["asked"]["command"][-1].endswith(f"# …/{tmp_path.name} --log=…/it [key taken out]")
    for secret in {
        key,
        str(tmp_path),
        str(Path.home()) + "/",
        socket.gethostname(),
        f"/{getpass.getuser()}/",
    }:
        assert not [name for name, text in ours.items() if secret.encode() in text], secret


def test_the_same_command_goes_on_and_another_is_refused(tmp_path: Path, rows: str) -> None:
    words = ("--tasks-json", rows, "--dry-run", "--out", str(tmp_path / "out"))
    call(*words)
    before = files(tmp_path / "out")
    kept = [it for name in ("prompts", "patches") for it in (tmp_path / "out" / name).rglob("*.*")]
    times = {it: it.stat().st_mtime_ns for it in kept}
    call(*words, "--json", "--max-workers", "3")
    assert files(tmp_path / "out") == before
    # Prompts and patches, of which a large run has thousands, are not written again.
    assert {it: it.stat().st_mtime_ns for it in times} == times
    text = refused(*words, "--runs", "2", "--stateplane-profile", "minimal")
    assert 'profile is "minimal" and was null; runs is 2 and was 1' in text
    assert "give another --out" in text
    assert files(tmp_path / "out") == before


def test_a_directory_of_something_else_is_left_alone(tmp_path: Path, rows: str) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("x")
    said = refused("--tasks-json", rows, "--dry-run", "--out", str(tmp_path / "mine"))
    assert "is a directory of something else" in said


def test_a_changed_task_is_another_command(tmp_path: Path, rows: str) -> None:
    words = ("--dry-run", "--out", str(tmp_path / "out"))
    call("--tasks-json", rows, *words)
    other = row(problem_statement="Other.", history=HISTORY)
    edited = tasks_file(tmp_path / "edited.json", other, row("lab__calc-2"))
    assert "tasks is" in refused("--tasks-json", str(edited), *words)


def test_a_command_makes_patches_and_the_claim_says_so(tmp_path: Path) -> None:
    card, interrupted = run(request(tmp_path, runs=2), said)
    assert not interrupted
    assert card.claim.level == "patch_generation_only"
    assert "isolation none: the agent ran on the machine itself" in card.claim.reasons
    assert len(card.results) == 4
    assert {result.patch_lines for result in card.results} == {2}
    assert all(result.agent_outcome == "completed" and result.elapsed_s for result in card.results)
    metadata = json.loads((tmp_path / "out" / "metadata.json").read_text())
    assert metadata["isolation"] == ["none"]
    patch = (tmp_path / "out" / "patches" / "lab__calc-1" / "stateplane" / "run2.patch").read_text()
    assert "+    return sum(values) / len(values)" in patch


def test_a_change_that_no_patch_holds_is_told_by_the_claim(tmp_path: Path) -> None:
    script = f"{MEND}; head -c {5 << 20} /dev/zero > large.bin"
    card, _ = run(request(tmp_path, script), said)
    assert "2 of 2 patches lack a change that is too large for one" in card.claim.reasons
    assert {result.patch_lines for result in card.results} == {2}


def test_a_run_that_was_killed_goes_on_with_what_is_missing(tmp_path: Path) -> None:
    script = f"{MEND}; printf x >> '{tmp_path}/times'"
    asked = request(tmp_path, script)
    whole, _ = run(asked, said)
    # As if it had been killed after the first attempt: the second has no record, reports are old or torn.
    (tmp_path / "out" / "agent_logs" / "lab__calc-1" / "stateplane" / "run1.json").unlink()
    (tmp_path / "out" / "scorecard.json").write_text("{")
    (tmp_path / "out" / "predictions" / "stateplane.run1.jsonl").unlink()
    again, _ = run(asked, said)
    assert (tmp_path / "times").read_text() == "xxx"
    assert [it.patch_bytes for it in again.results] == [it.patch_bytes for it in whole.results]
    assert (tmp_path / "out" / "predictions" / "stateplane.run1.jsonl").is_file()


def test_verdicts_are_what_raises_the_claim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeHarness(monkeypatch, transcript_replay="unresolved", stateplane="resolved")
    asked = request(tmp_path)
    assert run(asked, said)[0].claim.level == "patch_generation_only"
    card = evaluate(tmp_path / "out", fake.request, said)
    assert (card.claim.level, card.claim.partial) == ("harness_evaluated", False)
    assert fake.asked == list(CONDITIONS)
    # What it said stays known to a call that does not ask it.
    assert run(asked, said)[0].claim.level == "harness_evaluated"
    assert fake.asked == list(CONDITIONS)


def test_a_verdict_on_another_patch_counts_for_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = FakeHarness(monkeypatch, transcript_replay="resolved", stateplane="resolved")
    asked = request(tmp_path)
    run(asked, said)
    evaluate(tmp_path / "out", fake.request, said)
    diff = tmp_path / "out" / "agent_logs" / "lab__calc-1" / "stateplane" / "run1.diff"
    diff.write_text(diff.read_text().replace(") / len", ") / 1 + len"))
    card, _ = run(asked, said)
    assert (card.claim.level, card.claim.partial) == ("harness_evaluated", True)
    assert [result.verdict is None for result in card.results] == [False, True]


def test_what_does_not_apply_is_an_error_of_its_attempt_and_the_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = request(tmp_path)
    run(asked, said)
    diff = tmp_path / "out" / "agent_logs" / "lab__calc-1" / "stateplane" / "run1.diff"
    diff.write_text(diff.read_text().replace("-    return sum", "-    return some"))
    heard: list[str] = []
    card, _ = run(asked, heard.append)
    [whole, broken] = card.results
    fault = "what the agent left does not apply to the tree that it was given: patch failed: calc.py:1"
    assert (whole.patch_fault, whole.verdict) == ("", None)
    assert (broken.patch_fault, broken.patch_bytes, broken.verdict) == (fault, 0, None)
    assert f"lab__calc-1 stateplane run 1: {fault}" in heard
    assert "of 1 of 2 attempts what the agent left does not apply to the tree that it was given" in (
        card.claim.reasons
    )

    # The harness is given an empty patch for it, and what that is called is an error.
    fake = FakeHarness(monkeypatch, transcript_replay="resolved", stateplane="empty_patch")
    judged = evaluate(tmp_path / "out", fake.request, said)
    assert (judged.claim.level, judged.claim.partial) == ("harness_evaluated", False)
    assert [it.verdict.outcome for it in judged.results if it.verdict] == ["resolved", "error"]
    assert judged.results[1].verdict == Verdict(outcome="error", reason=fault, applied=False)
    assert [it.resolved.value for it in conditions_of(judged).conditions] == [1.0, 0.0]
    assert fault in (tmp_path / "out" / "report.csv").read_text().splitlines()[2]
    assert run(asked, said)[0] == judged
    assert read_scorecard(tmp_path / "out") == judged


def test_a_run_whose_work_is_gone_is_not_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeHarness(monkeypatch, transcript_replay="resolved", stateplane="resolved")
    asked = request(tmp_path)
    run(asked, said)
    before = (tmp_path / "out" / "scorecard.json").read_bytes()
    shutil.rmtree(tmp_path / "out" / "agent_logs")
    with pytest.raises(
        InputError, match=r"agent_logs: holds no attempt that has ended: .*give the whole command"
    ):
        evaluate(tmp_path / "out", fake.request, said)
    metadata = tmp_path / "out" / "metadata.json"
    metadata.write_text(metadata.read_text().replace('"mode": "command"', '"mode": "cli"'))
    sweep = json.loads(metadata.read_text())["run_id"]
    with pytest.raises(InputError, match=f"results/{sweep}: holds no attempt that has ended"):
        evaluate(tmp_path / "out", fake.request, said)
    assert (tmp_path / "out" / "scorecard.json").read_bytes() == before
    assert fake.asked == []


def test_what_the_harness_left_open_is_partial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeHarness(monkeypatch, transcript_replay="incomplete", stateplane="resolved")
    card, _ = run(request(tmp_path, harness=fake.request), said)
    assert (card.claim.level, card.claim.partial) == ("harness_evaluated", True)


@pytest.mark.parametrize(
    ("verdict", "reward", "timed_out"),
    [
        (Verdict(outcome="resolved", fail_to_pass=(("t", True),)), 1.0, False),
        (Verdict(outcome="unresolved", fail_to_pass=(("t", False),)), 0.0, False),
        (Verdict(outcome="error", reason=TIMED_OUT), 0.0, True),
        (Verdict(outcome="empty_patch"), 0.0, False),
    ],
)
def test_a_verdict_is_a_reward_for_the_scorers(verdict: Verdict, reward: float, timed_out: bool) -> None:
    found = verification_of(verdict)
    assert (found.reward, found.timed_out, found.exit_code) == (reward, timed_out, 0)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "no tasks are named"),
        (("--suite", "smoke", "--tasks-json", "x.json"), "--suite and --tasks-json: name different tasks"),
        (("--suite", "smok", "--dry-run"), "no suite 'smok'"),
        (("--suite", "smoke", "--conditions", "stateplan", "--dry-run"), "'stateplan' is no condition"),
        (("--suite", "smoke", "--conditions", "stateplane,stateplane", "--dry-run"), "a condition twice"),
        (("--suite", "smoke", "--agent", "codx"), "--agent codx: is no CLI"),
        (("--suite", "smoke", "--agent", "command"), "needs --agent-command"),
        (("--suite", "smoke", "--agent-command", "x"), "is for --agent command"),
        (("--suite", "smoke", "--agent", "command", "--agent-command", "'"), "is no command line"),
        (("--suite", "smoke", "--agent", "command", "--agent-command", "x", "--model", "m"), "--model: says"),
        (("--suite", "smoke", "--agent", "aider", "--codex-model", "m"), "is for --agent codex, not aider"),
        (("--suite", "smoke", "--agent", "aider", "--codex-home", "."), "--codex-home: is for codex"),
        (("--suite", "smoke", "--model", "a", "--codex-model", "b"), "name two models"),
        (("--suite", "smoke", "--model", "embedded/none"), "is no embedded model"),
        (("--suite", "smoke", "--model", "gpt-x"), "CAB_ENDPOINT is not set"),
        (("--suite", "smoke", "--agent", "noop", "--model", "gpt-x"), "noop asks no model"),
        (("--suite", "smoke", "--temperature", "0"), "an embedded model has neither"),
        (("--suite", "smoke", "--dry-run", "--harness-command", "x"), "is for --run-harness"),
        (("--suite", "smoke", "--dry-run", "--json", "--csv"), "three ways to print"),
        (("--suite", "smoke", "--benchmark", "swe_lancer"), "read and dry-run, no more"),
        (("--suite", "smoke", "--dry-run", "--repos-dir", "gone"), "--repos-dir: gone is no directory"),
        (("--run-harness",), "holds no run to evaluate"),
    ],
)
def test_what_cannot_be_run_is_told_by_its_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], said: str
) -> None:
    monkeypatch.delenv("CAB_ENDPOINT", raising=False)
    assert said in refused(*words, "--out", str(tmp_path / "out"))
    assert not (tmp_path / "out" / "metadata.json").exists()


def test_a_dry_run_is_not_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeHarness(monkeypatch)
    with pytest.raises(InputError, match="they are not judged"):
        run(request(tmp_path, agent=None, harness=fake.request), said)

    run(request(tmp_path, agent=None), said)
    with pytest.raises(InputError, match="they are not judged"):
        evaluate(tmp_path / "out", fake.request, said)


@pytest.mark.parametrize(
    ("damaged", "text"),
    [
        ("metadata.json", "{}"),
        ("metadata.json", '{"v": 1, "run_id": "a", "asked": {}}'),
        ("metadata.json", "[" * 100_000),
        ("prompts/lab__calc-1/stateplane.json", None),
        ("prompts/lab__calc-1/stateplane.json", '{"prompt_tokens": 1'),
        ("agent_logs/lab__calc-1/stateplane/run1.diff", None),
    ],
)
def test_a_damaged_run_is_told_by_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damaged: str, text: str | None
) -> None:
    fake = FakeHarness(monkeypatch)
    run(request(tmp_path), said)
    path = tmp_path / "out" / damaged
    path.write_text(text) if text is not None else path.unlink()
    with pytest.raises(StoreError, match=path.name):
        evaluate(tmp_path / "out", fake.request, said)


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf"])
def test_a_command_has_some_time(tmp_path: Path, rows: str, seconds: str) -> None:
    words = ("--tasks-json", rows, "--agent", "command", "--agent-command", "true", "--timeout", seconds)
    assert "--timeout: is no number of seconds" in refused(*words, "--out", str(tmp_path / "out"))
