"""`cab export` as one types it."""

from __future__ import annotations

import io
import json
import os
import re
import xml.etree.ElementTree as ET

import polars as pl
import pytest
from click.testing import CliRunner
from export_samples import SWEEP

from orchestrator.cli.export_cmd import export
from orchestrator.errors import CabError, InputError, StoreError


def call(*arguments: str):
    done = CliRunner().invoke(export, [str(argument) for argument in arguments])
    if isinstance(done.exception, CabError):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done


@pytest.mark.parametrize("form", ["parquet", "csv", "jsonl"])
def test_a_table_and_what_its_columns_are(made, tmp_path, form):
    path = tmp_path / f"cells.{form}"
    done = call(form, SWEEP, "-r", made, "-o", path, "--without", "detail")
    assert done.stderr.startswith("3 cells (1 pipeline_only, 2 provisional; methodology 1)")
    read = {"parquet": pl.read_parquet, "csv": pl.read_csv, "jsonl": pl.read_ndjson}[form](path)
    assert read.height == 3
    assert "detail" not in read.columns
    if form != "parquet":
        facts = json.loads((tmp_path / f"cells.{form}.columns.json").read_text())
        # polars gives the members of JSON in no order.
        assert sorted(fact["name"] for fact in facts) == sorted(read.columns)


def test_a_sweep_is_its_id_or_a_directory_and_dash_is_stdout(made):
    heads = {call("csv", name, "-r", made, "-o", "-").stdout for name in (SWEEP, f"{made}/{SWEEP}")}
    assert len(heads) == 1
    every = call("csv", made, "-o", "-").stdout
    assert pl.read_csv(io.BytesIO(every.encode())).height == 43
    assert ET.fromstring(call("junit", SWEEP, "-r", made, "-o", "-").stdout).tag == "testsuites"


def test_without_a_sweep_it_is_the_newest(results):
    os.utime(results / SWEEP / "sweep.json", (2**31, 2**31))
    assert call("csv", "-r", results, "-o", "-").stderr.startswith("3 cells")


def test_what_is_no_sweep_or_column_is_named_with_the_nearest(made, tmp_path):
    with pytest.raises(StoreError, match=f"there is no such sweep .*did you mean '{SWEEP}'"):
        call("csv", "mixed-2026112", "-r", made, "-o", "-")
    with pytest.raises(InputError, match=r"there is no column 'modle' \(did you mean 'model'\?\)"):
        call("csv", SWEEP, "-r", made, "-o", "-", "--without", "modle")


def test_two_sweeps_of_one_id_are_refused(made, results):
    with pytest.raises(InputError, match=f"two sweeps are named '{SWEEP}'"):
        call("csv", made / SWEEP, results / SWEEP, "-o", "-")
    assert call("csv", made / SWEEP, made / SWEEP, "-o", "-").stderr.startswith("3 cells")


def test_trajectories_spans_and_a_dataset(made, tmp_path):
    done = call("atif", SWEEP, "-r", made, "-o", tmp_path / "atif")
    assert done.stderr == "1 trajectory; 2 cells without a recorded answer\n"
    done = call("otlp", SWEEP, "-r", made, "-o", tmp_path / "spans.jsonl")
    lines = (tmp_path / "spans.jsonl").read_bytes().splitlines()
    assert len(lines) == 3
    spans = sum(len(json.loads(line)["resourceSpans"][0]["scopeSpans"][0]["spans"]) for line in lines)
    assert done.stderr.startswith(f"{spans} spans of 3 cells (1 pipeline_only, 2 provisional; methodology 1)")
    done = call("dataset", SWEEP, "-r", made, "-o", tmp_path / "dataset", "--title", "x")
    assert done.stderr == "results-methodology-1: 2 cells\npipeline_only-methodology-1: 1 cell\n"
    assert (tmp_path / "dataset" / "README.md").read_text().count("\n# x\n") == 1


def test_a_test_report_is_counted_with_what_did_not_run(made, tmp_path):
    said = call("junit", SWEEP, "-r", made, "-o", tmp_path / "cells.xml").stderr
    assert said.startswith("3 cells (1 pipeline_only, 2 provisional; methodology 1)")
    assert said.endswith("; 3 not run\n")


def test_cells_without_spans_are_counted(results, tmp_path):
    one = sorted((results / SWEEP).rglob("spans.jsonl"))[0]
    one.unlink()
    done = call("otlp", SWEEP, "-r", results, "-o", tmp_path / "spans.jsonl")
    assert done.stderr.endswith("; 1 without spans\n")


@pytest.mark.parametrize(
    ("form", "steps"),
    [
        *((form, 3) for form in ("parquet", "csv", "jsonl", "junit", "atif", "otlp")),
        # Written, and read again from both files; a line of metadata for each of the two parts.
        ("dataset", 3 * 3 + 2),
    ],
)
def test_progress_is_for_terminals(made, tmp_path, form, steps):
    arguments = [form, SWEEP, "-r", str(made), "-o"]
    in_pipe = call(*arguments, tmp_path / "pipe")
    assert "\x1b" not in in_pipe.output
    shown = CliRunner(env={"FORCE_COLOR": "1"}).invoke(export, [*arguments, str(tmp_path / "terminal")])
    assert shown.exit_code == 0, shown.output
    assert f"{steps}/{steps}" in re.sub(r"\x1b\[[0-9;]*m", "", shown.stderr)
    assert shown.stdout == in_pipe.stdout
    # The bar is gone: its line is cleared before what is said last.
    assert shown.stderr.endswith(f"\x1b[2K{in_pipe.stderr}")


def test_spans_that_go_nowhere_are_a_wrong_call(made):
    done = CliRunner().invoke(export, ["otlp", SWEEP, "-r", str(made)])
    assert done.exit_code == 2
    assert "give --output, --send, or both" in done.output


def test_the_columns_are_told_without_results():
    facts = json.loads(call("columns", "--json").stdout)
    assert {"name", "dtype", "unit", "source", "about"} == facts[0].keys()
    assert call("columns").stdout.startswith("# Columns\n")


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_what_is_no_file_is_not_replaced(made, tmp_path, form):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="is no file"):
        call(form, SWEEP, "-r", made, "-o", tmp_path / "pipe")
    assert (tmp_path / "pipe").is_fifo()


def test_a_link_to_a_file_stays_one(made, tmp_path):
    (tmp_path / "link.csv").symlink_to("real.csv")
    call("csv", SWEEP, "-r", made, "-o", tmp_path / "link.csv")
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "real.csv").stat().st_size
