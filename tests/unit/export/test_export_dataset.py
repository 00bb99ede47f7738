"""A dataset is ready to be published, or refused with the place of what it would tell."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import polars as pl
import pytest
from export_samples import SWEEP
from ruamel.yaml import YAML

from orchestrator.adapter import HOME
from orchestrator.errors import InputError
from orchestrator.export.dataset import Publication, write_dataset
from orchestrator.export.leaks import Check
from orchestrator.store.chosen import chosen_sweeps
from orchestrator.store.columns import COLUMNS

NOTHING = Check([], [], [])
TITLE = 'A "mixed" title: #1'
PLACES = ["/srv/measure/results", "/home/ada"]


@pytest.fixture(scope="module")
def dataset(stores, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("out") / "dataset"
    counts = write_dataset(stores, path, COLUMNS, Publication(TITLE, "cc-by-4.0"), NOTHING)
    assert {part.name: count for part, count in counts.items()} == {
        "results-methodology-1": 2,
        "imported-methodology-published-0.1": 40,
        "pipeline_only-methodology-1": 1,
    }
    return path


def front_matter(dataset: Path) -> dict:
    text = (dataset / "README.md").read_text("utf-8")
    assert text.startswith("---\n")
    return YAML(typ="safe").load(text.split("---\n")[1])


def test_claims_and_methodology_versions_are_files_of_their_own(dataset):
    for path in (dataset / "data").glob("*.parquet"):
        frame = pl.read_parquet(path)
        assert frame["methodology_version"].n_unique() == 1
        kinds = {"provisional": "results", "citable": "results"}
        assert {kinds.get(claim, claim) for claim in frame["claim"]} == {path.name.partition("-")[0]}
        lines = [json.loads(line) for line in path.with_suffix(".jsonl").read_bytes().splitlines()]
        assert [line["cell_id"] for line in lines] == frame["cell_id"].to_list()


def test_the_card_is_read_as_the_hub_reads_it(dataset):
    front = front_matter(dataset)
    assert (front["pretty_name"], front["license"]) == (TITLE, "cc-by-4.0")
    assert front["size_categories"] == ["n<1K"]
    assert [config["config_name"] for config in front["configs"] if config.get("default")] == [
        "results-methodology-1"
    ]
    for config in front["configs"]:
        [files] = config["data_files"]
        assert (dataset / files["path"]).is_file()


def test_a_dataset_of_the_pipeline_alone_says_so_first(made, tmp_path):
    results = tmp_path / "results"
    results.mkdir()
    (results / SWEEP).symlink_to(made / SWEEP)
    [store] = chosen_sweeps([SWEEP], results)
    index = (made / SWEEP / "index.jsonl").read_bytes().splitlines(keepends=True)
    root = results / "only"
    root.mkdir()
    for name in ("sweep.json", "cells"):
        (root / name).symlink_to(store.root / name)
    (root / "index.jsonl").write_bytes(b"".join(line for line in index if b"pipeline_only" in line))
    only = type(store)(results, "only")
    only.sweep_id = SWEEP
    write_dataset([only], tmp_path / "out", COLUMNS, Publication("x"), NOTHING)
    assert "\n# x\n\n**Nothing in here is a result" in (tmp_path / "out" / "README.md").read_text()
    assert not any("default" in config for config in front_matter(tmp_path / "out")["configs"])


def test_provenance_has_the_pins_and_not_the_endpoints(dataset):
    text = (dataset / "provenance.json").read_text("utf-8")
    [mixed] = [sweep for sweep in json.loads(text)["sweeps"] if sweep["sweep_id"] == SWEEP]
    assert (mixed["finished"], mixed["planned"]) == (3, 5)
    assert mixed["pins"]["opencode"].startswith("sha256:")
    assert "10.1.2.3" not in text


def test_checksums_are_those_of_every_other_file(dataset):
    lines = (dataset / "SHA256SUMS").read_text().splitlines()
    sums = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
    found = {str(path.relative_to(dataset)): path for path in dataset.rglob("*") if path.is_file()}
    assert sums.keys() == found.keys() - {"SHA256SUMS"}
    for name, digest in sums.items():
        assert hashlib.sha256(found[name].read_bytes()).hexdigest() == digest


def test_the_same_results_are_the_same_bytes(stores, dataset, tmp_path):
    write_dataset(stores, tmp_path / "again", COLUMNS, Publication(TITLE, "cc-by-4.0"), NOTHING)
    for path in dataset.rglob("*"):
        if path.is_file():
            assert (tmp_path / "again" / path.relative_to(dataset)).read_bytes() == path.read_bytes(), path


def test_a_place_that_holds_something_is_left_alone(stores, tmp_path):
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(InputError, match="holds something already"):
        write_dataset(stores, tmp_path, COLUMNS, Publication("x"), NOTHING)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def leaky(results: Path, text: str) -> None:
    """Put a text into the record of a cell, as an endpoint's error could have."""
    from export_samples import BROKEN

    from orchestrator.store.cells import CellStore
    from orchestrator.store.record import Outcome

    with CellStore(results, SWEEP) as store:
        store.open()
        record = store.record(BROKEN)
        outcome = Outcome(name="infra_error", cause="endpoint_down", detail=text, counted=False)
        store.rewrite(record.model_copy(update={"outcome": outcome}))


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("cannot read\n/srv/measure/results/x", "a path of this machine: '/srv/measure/results'"),
        ("wrote /home/grace/.cache", "a home directory: '/home/grace'"),
        ("on host blue-heron.lan", "a host or user name: 'blue-heron'"),
        ("owned by Babbage", "a host or user name: 'Babbage'"),
        ("in babbage_results", "a host or user name: 'babbage'"),
        ("on babbage-laptop", "a host or user name: 'babbage'"),
        ("cab-of-BABBAGE", "a host or user name: 'BABBAGE'"),
        ("run_blue-heron_2", "a host or user name: 'blue-heron'"),
        ("connect to 10.1.2.3:8080", "an address: '10.1.2.3'"),
        ("connect to [fe80::1:2]", "an address: 'fe80::1:2'"),
        ("key sk-abcdefghijklmnopqrstuv is wrong", "a key: 'sk-abc…'"),
        ("Authorization: Bearer abcdefghijklmnop", "a key: 'Bearer…'"),
        ("https://me:secret@example.test/", "a key: '://me:…'"),
        (f"npm_{'a1' * 18} and xai-{'b2' * 20}", "a key: 'npm_a1…', in 4 places; also 'xai-b2…'"),
        ("file=%2Fhome%2Fgrace%2Fx", "a home directory: '/home/grace'"),
        ("connect to ::ffff:10.1.2.3", "an address: '10.1.2.3'"),
        ("sent hunter2-hunter2", "a value that the environment names as a secret: '…'"),
    ],
)
def test_what_must_not_be_told_is_refused_with_its_place(results, tmp_path, text, what):
    leaky(results, text)
    check = Check(PLACES, ["blue-heron", "babbage"], ["hunter2-hunter2"])
    with pytest.raises(InputError) as caught:
        write_dataset(chosen_sweeps([SWEEP], results), tmp_path / "out", COLUMNS, Publication("x"), check)
    assert what in str(caught.value)
    assert str(caught.value).startswith("data/results-methodology-1.")
    assert not (tmp_path / "out").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["results"]


def test_the_column_is_named_and_may_be_left_out_or_the_text_allowed(results, tmp_path):
    leaky(results, "connect to 10.1.2.3:8080")
    stores = chosen_sweeps([SWEEP], results)
    with pytest.raises(InputError, match=r"jsonl:2, column detail: .*--without detail.*--allow TEXT"):
        write_dataset(stores, tmp_path / "out", COLUMNS, Publication("x"), NOTHING)
    fewer = [column for column in COLUMNS if column.name != "detail"]
    write_dataset(stores, tmp_path / "fewer", fewer, Publication("x"), NOTHING)
    write_dataset(stores, tmp_path / "allowed", COLUMNS, Publication("x"), Check([], [], [], ["10.1.2.3"]))


def test_parquet_is_read_value_by_value(tmp_path):
    path = tmp_path / "x.parquet"
    pl.DataFrame({"a": ["fine"], "b": [["\n/home/grace/x"]]}).write_parquet(path)
    assert [(leak.text, leak.place) for leak in NOTHING.file(path, "x")] == [("/home/grace", "x:1, column b")]
    check = Check(PLACES, [], [])
    pl.DataFrame({"reasons": [json.dumps({"x": "no\n/srv/measure/results"})]}).write_parquet(path)
    assert [leak.place for leak in check.file(path, "x")] == ["x:1, column reasons"]
    pl.DataFrame({"a": ["fine"]}).write_parquet(path, metadata={"by": "10.1.2.3"})
    assert [leak.text for leak in NOTHING.file(path, "x")] == ["10.1.2.3"]


@pytest.mark.parametrize(
    "text",
    [
        f"{HOME}/.config and /app/src, /tmp/x, /workdir/a.rs",
        "127.0.0.1:8377 and [::1] and 0.0.0.0",
        "20.10.24+dfsg1, 1.2.3, 6.1.0-13, 2026-11-27T12:00:00Z",
        "again::retry::tests and dead::beef and a::b",
        "task-abcdefghijklmnopqrstuvwxyz and disk-full",
        "sk-learn-based-classification-model and 100%2F3",
        "sha256:" + "a" * 64,
        "https://example.test/v1 and user@example.test",
        "root, agent and localhost",
    ],
)
def test_what_tells_nobody_passes(text):
    check = Check(["/app", "/", "/srv/measure/results"], ["root", "localhost", "ab"], ["short"])
    assert check.text(text) == []


@pytest.mark.parametrize(
    "text", ["aggregate", "gated", "gates_2", "in_aggregate-2", "gate7", "Gateé", "7gate"]
)
def test_a_word_that_contains_a_name_is_no_name(text):
    assert Check([], ["gate"], []).text(text) == []


def test_the_check_knows_this_machine(monkeypatch, tmp_path):
    monkeypatch.setenv("SOME_API_KEY", "q8-q8-q8-q8")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr("platform.node", lambda: "blue-heron.example.test")
    monkeypatch.setattr("getpass.getuser", lambda: "babbage")
    check = Check.of_this_machine([tmp_path / "results"])
    for text in ("blue-heron", "babbage", str(tmp_path / "home"), str(tmp_path / "results"), str(Path.cwd())):
        assert check.text(f"x {text} y"), text
    path = tmp_path / "x.md"
    path.write_text("it is q8-q8-q8-q8\n")
    assert [leak.place for leak in check.file(path, "x.md")] == ["x.md:1"]
