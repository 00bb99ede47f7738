"""A scorecard is held against the run beside it: what was edited, lost or is old is told, and has no rate."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from external_samples import HISTORY, task, tree
from run_samples import FakeHarness, request, said

from orchestrator.cli import cab
from orchestrator.external.runner import run
from orchestrator.external.scorecard import conditions_of, read_scorecard

Card = dict[str, Any]


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of two tasks."""
    where = tmp_path_factory.mktemp("judged")
    with pytest.MonkeyPatch.context() as patched:
        fake = FakeHarness(patched, transcript_replay="unresolved", stateplane="resolved")
        source = tree(where / "repo")
        tasks = (task(source, history=HISTORY), task(source, instance_id="lab__calc-2"))
        run(request(where, tasks=tasks, harness=fake.request), said)
    return where / "out"


@pytest.fixture
def out(judged: Path, tmp_path: Path) -> Path:
    """A copy of its files, less what no card is held against."""
    for path in judged.rglob("*"):
        of = path.relative_to(judged)
        if path.is_file() and of.parts[0] not in ("worktrees", "tasks"):
            (tmp_path / of).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / of).write_bytes(path.read_bytes())
    return tmp_path


def test_a_run_agrees_with_its_card(out: Path) -> None:
    card = read_scorecard(out)
    assert card.claim.doubts == ()
    assert card.claim.level == "harness_evaluated"
    assert conditions_of(card).withheld is None


def lacks_a_task(card: Card) -> None:
    card["results"] = [it for it in card["results"] if it["instance_id"] != "lab__calc-2"]
    card["tasks"] = ["lab__calc-1"]


def lacks_a_failure(card: Card) -> None:
    del card["results"][0]


def turns_a_verdict(card: Card) -> None:
    card["results"][0]["verdict"]["outcome"] = "resolved"


def has_one_twice(card: Card) -> None:
    card["results"].append(card["results"][-1])


def has_one_more(card: Card) -> None:
    card["results"].append(card["results"][-1] | {"instance_id": "lab__calc-3"})


def has_smaller_prompts(card: Card) -> None:
    for result in card["results"]:
        result |= {"prompt_tokens": 1, "elapsed_s": 0.5, "patch_bytes": 1}


def has_another_model(card: Card) -> None:
    card |= {"model": "vendor/best", "runs": 1, "agent": "codex"}


def drops_a_reason(card: Card) -> None:
    card["claim"]["reasons"] = []


@pytest.mark.parametrize(
    ("edit", "told"),
    [
        (lacks_a_task, "it lacks lab__calc-2 transcript_replay run 1, lab__calc-2 stateplane run 1"),
        (lacks_a_task, "of the run are other tasks"),
        (lacks_a_failure, "it lacks lab__calc-1 transcript_replay run 1"),
        (turns_a_verdict, "the run says otherwise of lab__calc-1 transcript_replay run 1 (verdict)"),
        (has_one_twice, "it has lab__calc-2 stateplane run 1 twice"),
        (has_one_more, "the run has nothing of lab__calc-3 stateplane run 1"),
        (
            has_smaller_prompts,
            "lab__calc-2 transcript_replay run 1 and 1 more (prompt_tokens, patch_bytes, elapsed_s)",
        ),
        (has_another_model, "of the run are other agent, model"),
        (drops_a_reason, "the run came to another claim"),
    ],
)
def test_a_card_that_was_edited_is_in_doubt_and_has_no_rate(
    out: Path, edit: Callable[[Card], None], told: str
) -> None:
    path = out / "scorecard.json"
    card = json.loads(path.read_text())
    edit(card)
    path.write_text(json.dumps(card))
    read = read_scorecard(out)
    assert any(told in doubt for doubt in read.claim.doubts), read.claim.doubts
    assert read.claim.partial
    assert conditions_of(read).withheld == "the scorecard does not agree with the run beside it"
    for form in ((), ("--markdown",), ("--csv",), ("--json",)):
        done = CliRunner().invoke(cab, ["external", "report", str(out), *form], catch_exceptions=False)
        assert done.exit_code == 0
        assert ("IN DOUBT" in done.stdout) or (form == ("--csv",) and ",True," in done.stdout)


def test_a_card_that_is_older_than_the_run_is_told(out: Path) -> None:
    path = out / "harness" / "stateplane.run1" / "verdicts.json"
    path.write_text(path.read_text().replace('"outcome": "resolved"', '"outcome": "unresolved"'))
    [doubt] = read_scorecard(out).claim.doubts
    assert doubt.endswith("lab__calc-2 stateplane run 1 (verdict)")


def test_another_patch_of_the_same_size_is_told(out: Path) -> None:
    path = out / "patches" / "lab__calc-2" / "stateplane" / "run1.patch"
    raw = path.read_bytes()
    path.write_bytes(raw[:-2] + bytes([raw[-2] ^ 1]) + raw[-1:])
    [doubt] = read_scorecard(out).claim.doubts
    assert "lab__calc-2 stateplane run 1 (patch_sha256" in doubt


@pytest.mark.parametrize(
    "gone", ["prompts/lab__calc-1/stateplane.json", "patches/lab__calc-2/stateplane/run1.patch"]
)
def test_evidence_that_is_gone_is_told_by_its_file(out: Path, gone: str) -> None:
    (out / gone).unlink()
    [doubt] = read_scorecard(out).claim.doubts
    assert doubt.startswith("the run beside it cannot be read: ")
    assert f"{gone}: " in doubt
    assert str(out) not in doubt


def test_a_verdict_on_a_patch_that_is_not_the_one_there_backs_nothing(out: Path) -> None:
    patch = out / "patches" / "lab__calc-1" / "stateplane" / "run1.patch"
    patch.write_bytes(patch.read_bytes().replace(b"/ len", b"* len"))
    [doubt] = read_scorecard(out).claim.doubts
    assert doubt == "the run says otherwise of lab__calc-1 stateplane run 1 (patch_sha256, verdict)"


def test_a_card_of_an_older_cab_names_no_tasks_and_gets_them_of_the_run(out: Path) -> None:
    path = out / "scorecard.json"
    card = json.loads(path.read_text())
    assert card.pop("tasks") == ["lab__calc-1", "lab__calc-2"]
    path.write_text(json.dumps(card))
    assert read_scorecard(out).tasks == ("lab__calc-1", "lab__calc-2")
    assert read_scorecard(out).claim.doubts == ()


def test_a_card_alone_says_so(out: Path) -> None:
    (out / "metadata.json").unlink()
    card = read_scorecard(out)
    assert card.claim.reasons[-1] == "taken as it stands: no run is beside it"
    assert conditions_of(card).withheld is None


def test_a_dry_run_agrees(tmp_path: Path) -> None:
    run(request(tmp_path, agent=None), said)
    assert read_scorecard(tmp_path / "out").claim.doubts == ()
