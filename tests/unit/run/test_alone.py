"""One cell in place, without a sweep: the stages of every cell, and a record that claims no more."""

from __future__ import annotations

import json
import os
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hello_cli import hello_fleet

from orchestrator.errors import EnvironmentFault, InputError
from orchestrator.fleet import Fleet
from orchestrator.gateway.contract import Endpoint
from orchestrator.plan.spec import LimitSpec
from orchestrator.run import alone
from orchestrator.run.alone import Asked, ImageFacts, machine_place, run_alone
from orchestrator.store.cells import read_cell
from orchestrator.store.evidence import load_evidence
from orchestrator.store.record import CellRecord

TASK = "polyglot/python-reverse-string"
KEY = "sk-real-0123456789abcdefghijklmnop"
PLACE = machine_place("1.2.3", {"PATH": os.environ["PATH"]})
DIGEST = "sha256:" + "a" * 64


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return hello_fleet(tmp_path / "images")


@pytest.fixture
def evidence(tmp_path: Path) -> Path:
    (tmp_path / "evidence").mkdir()
    return tmp_path / "evidence"


@pytest.fixture(autouse=True)
def scratch(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Of its own, so that what is left is seen; another user has to reach it."""
    place = Path(f"/var/tmp/cab-test-{os.getpid()}")
    place.mkdir(mode=0o711)
    monkeypatch.setattr(alone, "SCRATCH", str(place))
    yield place
    place.rmdir()  # which fails where anything is left


def test_a_cell_is_run_verified_scored_and_stored(fleet: Fleet, evidence: Path) -> None:
    stages: list[str] = []
    asked = Asked("hello", "embedded/reference", TASK, run=3, fleet=fleet)
    record = run_alone(asked, PLACE, evidence, on_stage=stages.append)
    assert stages == ["reference", "task_setup", "adapter_run", "collect", "verify", "score"]
    assert (record.outcome.name, record.scores["pass_rate"]["pass"]) == ("completed", 1)
    assert read_cell(evidence) == record
    assert load_evidence(evidence).calls
    assert {"calls.jsonl", "wire.jsonl.gz", "recording.cast", "diff.patch"} <= {
        path.name for path in evidence.iterdir()
    }
    identity = record.identity
    assert (identity.cli_version, identity.run, record.order_index, record.attempts) == ("1.2.3", 3, 0, ())
    assert identity.sweep_id.startswith("cell-20")
    assert (identity.container_image, identity.image_digest, identity.verifier_digest) == (None, None, None)
    assert record.isolation is not None
    assert (record.isolation.containers, record.isolation.verifier) == ("none", "shared")
    assert record.hosts_tried is None


def test_another_users_paths_are_what_the_cli_is_told(fleet: Fleet, evidence: Path) -> None:
    run_alone(Asked("hello", "embedded/idle", TASK, fleet=fleet), PLACE, evidence)
    with tarfile.open(evidence / "home.tar.gz") as archive:
        file = archive.extractfile("where")
        assert file is not None
        home, workdir = file.read().decode().split()
    assert home.endswith("/home")
    assert workdir.endswith("/workdir")


def test_doing_nothing_fails(fleet: Fleet, evidence: Path) -> None:
    record = run_alone(Asked("hello", "embedded/idle", TASK, fleet=fleet), PLACE, evidence)
    assert (record.outcome.name, record.scores["pass_rate"]["pass"]) == ("completed", 0)


def test_an_endpoint_that_is_down_is_not_the_agents_fault(
    fleet: Fleet, evidence: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint = Endpoint(name="endpoint", base_url="http://127.0.0.1:9/v1", key=KEY)
    asked = Asked("hello", "some/model", TASK, endpoint=endpoint, fleet=fleet)
    matrix = asked.matrix()
    assert matrix.plan.cells[0].endpoint == "endpoint"
    assert KEY not in matrix.spec.model_dump_json()
    built = alone._bench

    def at_once(*args: object) -> object:
        return replace(built(*args), call_retries=0)

    monkeypatch.setattr(alone, "_bench", at_once)
    record = run_alone(asked, PLACE, evidence)
    assert (record.outcome.name, record.outcome.counted) == ("infra_error", False)
    assert record.claim.level == "provisional"
    assert {"no container", "the endpoint reported no model build"} <= set(record.claim.reasons)
    written = b"".join(path.read_bytes() for path in evidence.iterdir())
    assert KEY.encode() not in written


def test_what_is_spent_and_how_long_it_takes_is_bounded(fleet: Fleet, evidence: Path) -> None:
    asked = Asked("hello", "embedded/loop", TASK, limits=LimitSpec(tokens=100), timeout_s=7.0, fleet=fleet)
    record = run_alone(asked, PLACE, evidence)
    assert (record.outcome.name, record.outcome.cause) == ("limit_reached", "tokens")
    assert record.identity.limits is not None
    assert (record.identity.limits.max_tokens, record.identity.limits.timeout_s) == (100, 7.0)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"cli": "helo"}, "unknown CLI 'helo'"),
        ({"task": "polyglot/python-reverse-sting"}, "python-reverse-string"),
        ({"model": "embedded/referense"}, "embedded/reference"),
        ({"model": "vendor/model"}, "has no endpoint"),
        ({"model": "local/model"}, "served to sweeps alone"),
    ],
)
def test_what_cannot_be_run_is_told_in_one_line(fleet: Fleet, changes: dict[str, str], text: str) -> None:
    asked = replace(Asked("hello", "embedded/reference", TASK, fleet=fleet), **changes)
    with pytest.raises(InputError) as error:
        asked.matrix()
    assert text in str(error.value)
    assert "\n" not in str(error.value)


def test_a_cli_that_asks_no_model_is_asked_with_none() -> None:
    assert Asked("noop", "none", TASK).matrix().plan.cells[0].key.model == "none"
    with pytest.raises(InputError, match="asks no model"):
        Asked("noop", "vendor/model", TASK).matrix()


FACTS = {
    "cli": "opencode",
    "cli_version": "1",
    "parent_id": DIGEST,
    "parent_tag": "cab/opencode:1",
    "cab_version": "0.1.0",
    "commit": "c" * 40,
    "dirty": False,
    "env": {"PATH": "/bin"},
}


def test_an_image_tells_what_it_is(tmp_path: Path) -> None:
    (tmp_path / "image.json").write_text(json.dumps(FACTS))
    place = ImageFacts.read(tmp_path / "image.json").place
    assert (place.alone, place.pin, place.tag) == (True, DIGEST, "cab/opencode:1")
    assert (place.provenance.commit, place.provenance.dirty) == ("c" * 40, False)
    assert place.weaknesses == ("single container: the image cannot tell its own digest",)


@pytest.mark.parametrize("text", [None, "{}", "no JSON", json.dumps(FACTS | {"more": 1})])
def test_what_is_no_image_of_cabs_is_told(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "image.json").write_text(text)
    with pytest.raises(EnvironmentFault, match=r"image\.json"):
        ImageFacts.read(tmp_path / "image.json")


def test_a_record_without_a_container_is_one_without_an_image(
    fleet: Fleet, evidence: Path, tmp_path: Path
) -> None:
    record = run_alone(Asked("hello", "embedded/idle", TASK, fleet=fleet), PLACE, evidence)
    data = record.model_dump(mode="json")
    data["isolation"]["containers"] = "separate"
    with pytest.raises(ValueError, match="container_image is null"):
        CellRecord.model_validate(data)
