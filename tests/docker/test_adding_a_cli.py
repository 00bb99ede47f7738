"""docs/adding-a-cli.md holds: its files are written, its commands are run, and its CLI solves the task."""

from __future__ import annotations

import getpass
import json
import re
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import docker.errors
import pytest
from command import _LAUNCH, REPO, Cab
from secret_search import Search

WALK = (REPO / "docs" / "adding-a-cli.md").read_text("utf-8")
SWEEP = "tinker-1"
_BLOCK = re.compile(r"(?:^`([^`\n]+)`:\n\n)?^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def walked() -> Iterator[Cab]:
    """A checkout of its own in which the walk was walked to its end."""
    with Cab.own() as cab:
        checkout = cab.root / "checkout"
        (checkout / "build").mkdir(parents=True)
        (checkout / "images").symlink_to(REPO / "images")
        shutil.copy(REPO / "images.lock", checkout)
        shutil.copy(REPO / "build" / "init", checkout / "build")
        cab.sweep_id = SWEEP
        cab.patched(ROOT=checkout, IMAGES_LOCK=checkout / "images.lock")
        command = [sys.executable, "-c", _LAUNCH, json.dumps(cab.paths)]
        (cab.root / "bin").mkdir()
        (cab.root / "bin" / "cab").write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
        (cab.root / "bin" / "cab").chmod(0o755)
        try:
            for name, kind, text in _BLOCK.findall(WALK):
                _do(cab, name, kind, text)
            yield cab
        finally:
            _forget(cab, checkout / "images.lock")


def _do(cab: Cab, name: str, kind: str, text: str) -> None:
    """Write a file of the walk, or run its commands."""
    if name:
        (cab.root / name).parent.mkdir(parents=True, exist_ok=True)
        (cab.root / name).write_text(text)
        return
    assert kind == "sh", text
    env = {
        "PATH": f"{cab.root / 'bin'}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
        "PYTHONPATH": str(REPO),
        "CAB_SCRATCH": str(cab.root / "scratch"),
        "TMPDIR": str(cab.root / "tmp"),
        "HOME": str(cab.root),
    }
    script = ["bash", "-euo", "pipefail", "-c", text]
    done = subprocess.run(script, cwd=cab.root, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"


def _forget(cab: Cab, lock: Path) -> None:
    """Remove the image that the walk built."""
    image = json.loads(lock.read_text())["images"].get("tinker")
    if image is None:
        return
    try:
        tags = cab.docker.images.get(image["id"]).tags
    except docker.errors.ImageNotFound:
        return
    for tag in tags:
        cab.docker.images.remove(tag)


def test_the_walk_writes_the_four_files_that_it_speaks_of() -> None:
    named = [name for name, _, _ in _BLOCK.findall(WALK) if name]
    folder = "my-clis/tinker"
    assert named == [f"{folder}/tinker", f"{folder}/Dockerfile", f"{folder}/adapter.py", "tinker.yaml"]


def test_the_reference_passes_and_idle_does_not(walked: Cab) -> None:
    records = walked.records().values()
    passed = {record["identity"]["model"]: record["scores"]["pass_rate"]["pass"] for record in records}
    assert passed == {"embedded/reference": 1, "embedded/idle": 0}


def test_its_own_count_is_that_of_the_wire(walked: Cab) -> None:
    for record in walked.records().values():
        tokens = record["scores"]["tokens"]
        assert tokens["source"] == "wire"
        assert tokens["prompt_tokens"] > 0
        assert tokens["cli"]["input"] == tokens["prompt_tokens"]
        assert tokens["cli"]["output"] == tokens["completion_tokens"]


def test_a_cell_of_it_is_replayed_with_the_folder_and_asks_for_it(walked: Cab) -> None:
    (cell,) = (cell_id for cell_id in walked.records() if "/embedded/reference/" in cell_id)
    replay = ("cell", "replay", cell, "-r", walked.results)
    done = walked.start(*replay, "--images-dir", walked.root / "my-clis").end(0)
    assert "tinker" in done.out
    assert (
        "images/ has no folder of tinker, which it ran (give --images-dir" in walked.start(*replay).end(2).err
    )


def test_a_resume_asks_for_the_folder_again(walked: Cab) -> None:
    refused = walked.sweep("resume").end(2)
    assert "images/ has no folder of tinker, which it ran (give --images-dir" in refused.err
    resumed = walked.sweep("resume", "--images-dir", walked.root / "my-clis").end(0)
    assert "nothing to do" in resumed.err


def test_nothing_that_was_stored_names_a_place_of_this_machine(walked: Cab) -> None:
    places = [str(walked.root), str(REPO), str(Path.home())]
    hosts = [socket.gethostname(), getpass.getuser()]
    # A short name is a part of words, and the administrator's is one of every container.
    search = Search([*(it for it in places if it != "/root"), *(it for it in hosts if len(it) > 5)])
    search.tree(walked.sweep_dir, "stored")
    assert search.found == []
    assert search.looked["stored"] > 10_000
