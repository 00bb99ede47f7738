"""The command that runs a cell again in one container: what it says, and that it is read as it was meant."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from store_samples import DIGEST, cell_record

from orchestrator.cli.cell_options import asked_of
from orchestrator.cli.run_cell_cmd import run_cell
from orchestrator.gateway.contract import Endpoint
from orchestrator.report.reproduce import one_container
from orchestrator.run.alone import Asked as AskedAlone
from orchestrator.store.names import CellKey
from orchestrator.store.record import CellRecord, Identity, Reproduce, UsedPlugin, parse, to_json
from orchestrator.store.reproduce import NOT_PUSHED, Asked, CellImage, as_pushed, reference_of, reproduce
from scorers.evidence import Price, Rates

TASK = "polyglot/python-reverse-string"
CHILD, MANIFEST, OTHER = ("sha256:" + digit * 64 for digit in "bcd")
IMAGE = CellImage(CHILD, {TASK: DIGEST})
PUSHED = CellImage(CHILD, {TASK: DIGEST}, {"localhost:5000/cab/x": OTHER, "example.org/cab/x": MANIFEST})


def identity(key: CellKey | None = None, **changes: Any) -> Identity:
    of = key or CellKey("opencode", "openai/gpt", TASK)
    return cell_record(of).identity.model_copy(update=changes)


def command(found: Reproduce) -> str:
    assert found.command is not None
    return found.command


def test_the_published_form_is_all_that_a_usual_cell_needs() -> None:
    found = reproduce(identity(), Asked(wire="chat"), PUSHED)
    assert found.command == (
        f"docker run --rm -e CAB_ENDPOINT -e CAB_KEY example.org/cab/x@{MANIFEST} "
        f"run-cell --tui opencode --model openai/gpt --task {TASK}"
    )
    assert (found.image_digest, found.digest_kind, found.note) == (MANIFEST, "manifest", None)


def test_an_image_that_was_never_pushed_goes_by_its_bare_id_and_says_so() -> None:
    found = reproduce(identity(), Asked(wire="chat"), IMAGE)
    assert f" {CHILD} run-cell" in command(found)
    assert (found.image_digest, found.digest_kind, found.note) == (CHILD, "image_id", NOT_PUSHED)


@pytest.mark.parametrize(
    "key", [CellKey("noop", "none", TASK), CellKey("opencode", "embedded/reference", TASK)]
)
def test_what_asks_no_endpoint_is_given_none(key: CellKey) -> None:
    said = command(reproduce(identity(key), Asked(), IMAGE))
    assert "CAB_" not in said
    assert ("--model" in said) is (key.model != "none")


def test_a_task_that_is_not_in_the_image_as_it_was_run_is_mounted(tmp_path: Path) -> None:
    said = command(reproduce(identity(), Asked(wire="chat"), CellImage(CHILD, {TASK: OTHER})))
    assert f'-v "$PWD"/tasks/{TASK}:/opt/cab/tasks/{TASK}:ro {CHILD}' in said
    assert "-v" not in command(reproduce(identity(), Asked(wire="chat"), IMAGE))


@pytest.mark.parametrize(
    ("model", "image", "why"),
    [
        ("local/small", IMAGE, "local model"),
        ("replay/openai/gpt", IMAGE, "replay"),
        ("openai/gpt", None, "cab images build opencode"),
    ],
)
def test_where_there_is_no_command_the_reason_is_given(model: str, image: CellImage | None, why: str) -> None:
    found = reproduce(identity(CellKey("opencode", model, TASK)), Asked(), image)
    assert found.command is None
    assert why in str(found.note)
    assert why.removeprefix("cab ") in str(
        one_container(cell_record(CellKey("a", "b", TASK), reproduce=found))
    )


def read_back(said: str) -> tuple[list[str], AskedAlone]:
    """The words ahead of run-cell, and the cell that the rest asks for, as run-cell reads it."""
    words = shlex.split(said)
    at = words.index("run-cell")
    values = run_cell.make_context("run-cell", words[at + 1 :]).params
    endpoint = Endpoint(name="endpoint", base_url="http://localhost/v1", key="", wire=values["wire"])
    return words[:at], asked_of(values, endpoint)


def test_all_that_a_sweep_set_is_read_back_as_it_was() -> None:
    limits = identity().limits
    assert limits is not None
    own = limits.model_copy(
        update={"memory_bytes": 1 << 31, "cpus": 1.5, "pids": 99, "max_tokens": 5000, "max_usd": 0.25}
    )
    plugins = tuple(UsedPlugin(name=name, kind="rules", digest=DIGEST) for name in ("careful", "facts"))
    of = identity(
        CellKey("opencode", "org/model:free", TASK, 3, "a-stack"),
        limits=own,
        plugins=plugins,
        settings_set={"temperature": 0.7, "max_output_tokens": 100, "reasoning_effort": "low", "seed": 7},
    )
    price = Price(
        rates=[Rates(input=1.25, output=10), Rates(above=200_000, input=2.5, output=15, cached_read=0.1)],
        source="x",
    )
    docker, asked = read_back(
        command(reproduce(of, Asked("messages", price, timeout_s=604799.5, require_tokens=True), IMAGE))
    )
    assert docker[3:] == [
        *("--memory", str(1 << 31), "--cpus", "1.5", "--pids-limit", "99"),
        *("-e", "CAB_ENDPOINT", "-e", "CAB_KEY", CHILD),
    ]
    assert (asked.cli, asked.model, asked.task, asked.run) == ("opencode", "org/model:free", TASK, 3)
    assert asked.stack is not None
    assert (asked.stack.name, asked.stack.plugins) == ("a-stack", ("careful", "facts"))
    assert asked.settings.given() == of.settings_set
    assert asked.price is not None
    assert asked.price.rates == price.rates
    assert (asked.limits.tokens, asked.limits.usd, asked.timeout_s) == (5000, 0.25, 604799.5)
    assert asked.require == ("tokens.wire",)
    assert asked.endpoint is not None
    assert asked.endpoint.wire == "messages"


def test_a_command_goes_by_manifest_digest_once_its_image_was_pushed(tmp_path: Path) -> None:
    found = reproduce(identity(), Asked(wire="chat"), IMAGE)
    lock = tmp_path / "images.lock"
    assert as_pushed(found, lock) == found
    lock.write_text(
        json.dumps({"images": {"opencode+cell": {"id": CHILD, "manifests": dict(PUSHED.manifests)}}})
    )
    assert as_pushed(found, lock) == reproduce(identity(), Asked(wire="chat"), PUSHED)
    lock.write_text(
        json.dumps({"images": {"opencode+cell": {"id": OTHER, "manifests": dict(PUSHED.manifests)}}})
    )
    assert as_pushed(found, lock) == found
    lock.write_text("[]")
    assert as_pushed(found, lock) == found


def test_it_is_printed_on_a_line_of_its_own_with_what_speaks_against_it() -> None:
    record = cell_record(CellKey("opencode", "openai/gpt", TASK))
    assert one_container(record) is None
    found = reproduce(identity(), Asked(wire="chat"), IMAGE)
    head, line = str(one_container(record.model_copy(update={"reproduce": found}))).splitlines()
    assert NOT_PUSHED in head
    assert line == f"  {found.command}"


def test_a_record_keeps_it_and_older_records_are_read() -> None:
    key = CellKey("opencode", "openai/gpt", TASK)
    record = cell_record(key, reproduce=reproduce(identity(), Asked(wire="chat"), IMAGE))
    assert parse(CellRecord, to_json(record), place="cell.json") == record
    older = json.loads(to_json(cell_record(key)))
    del older["reproduce"]
    assert parse(CellRecord, json.dumps(older).encode(), place="cell.json").reproduce is None


@pytest.mark.parametrize("host", ["127.example.com", "localhost.example.com", "127.0.0.1.example"])
def test_a_name_that_only_looks_like_loopback_is_one_that_others_can_reach(host: str) -> None:
    manifests = {f"{host}/cab/x": "sha256:a", "zz.example/cab/x": "sha256:b"}
    assert reference_of("sha256:id", manifests) == f"{host}/cab/x@sha256:a"


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:5000", "127.0.0.1:5", "127.9.9.9", "[::1]:5000", "[0:0:0:0:0:0:0:1]"]
)
def test_a_registry_on_loopback_comes_last(host: str) -> None:
    manifests = {f"{host}/cab/x": "sha256:a", "zz.example/cab/x": "sha256:b"}
    assert reference_of("sha256:id", manifests) == "zz.example/cab/x@sha256:b"
