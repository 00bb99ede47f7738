"""Bad input: one line that says what, where and how to mend it, exit code 2, and nothing written.

That no engine answers, and that it may not be used, is tried in tests/docker/test_sweep_output.py.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from orchestrator import cli, fleet
from orchestrator.errors import StoreError
from orchestrator.paths import IMAGES, TASKS
from orchestrator.plan.spec import load_spec
from orchestrator.run import machine, source, start
from orchestrator.store.cells import CellStore
from orchestrator.store.record import SweepRecord

TASK = "polyglot/python-reverse-string"
GOOD = f"name: mine\nclis: [noop]\ntasks: [{TASK}]\n"
HOSTED = (
    f"name: mine\nclis: [opencode]\nmodels: [{{id: paid/m, endpoint: h}}]\ntasks: [{TASK}]\n"
    "endpoints:\n  h: {base_url: {env: CAB_TEST_UNSET}}\n"
)
DIGEST = "sha256:" + "a" * 64


def locked(version: str = "1", *names: str) -> str:
    """An images.lock with the images of these names, whose noop told this version."""
    image = {
        "id": DIGEST,
        "tag": "cab/x:1",
        "inputs_hash": "0",
        "parent": None,
        "built_at": "",
        "size": 1,
    }
    images = {
        name: image | {"versions": {name: version, "sh": "1"}}
        for name in names or ("base", "noop", "opencode")
    }
    return json.dumps({"schema_version": 1, "images": images})


@pytest.fixture
def refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., str]:
    """Runs `cab sweep VERB` on a file with no engine there; the one line that it is refused with."""
    monkeypatch.setattr(cli.signal, "signal", lambda *_: None)
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent/docker.sock")
    monkeypatch.delenv("CAB_TEST_UNSET", raising=False)
    lock = tmp_path / "images.lock"
    lock.write_text(locked())
    (init := tmp_path / "init").touch()
    monkeypatch.setattr(machine, "IMAGES_LOCK", lock)
    monkeypatch.setattr(machine, "INIT_BINARY", init)

    def run(text: str = GOOD, *options: str, results: Path | None = None, verb: str = "run") -> str:
        spec = tmp_path / "mine.yaml"
        spec.write_text(text)
        place = results or tmp_path / "results"
        before = sorted(tmp_path.rglob("*"))
        where = () if verb == "plan" else ("-r", str(place))
        with pytest.raises(SystemExit) as end:
            cli.main(["sweep", verb, str(spec), *where, *options])
        captured = capsys.readouterr()
        assert end.value.code == 2
        assert captured.out == ""
        assert captured.err.count("\n") == 1
        assert "Traceback" not in captured.err
        assert sorted(tmp_path.rglob("*")) == before
        return captured.err

    return run


@pytest.mark.parametrize("verb", ["run", "plan"])
@pytest.mark.parametrize(
    ("text", "says"),
    [
        (GOOD.replace("clis", "cliz"), "mine.yaml:2:1: unknown key 'cliz' (did you mean 'clis'?)"),
        (GOOD.replace("noop", "nop"), "mine.yaml:2:8: unknown name 'nop' under clis (did you mean 'noop'?)"),
        (GOOD.replace("python-rev", "pyton-rev"), f"under tasks (did you mean '{TASK}'?)"),
        (GOOD.replace("[noop]", "[opencode]"), "mine.yaml:2:8: opencode asks a model, but models is empty"),
        (GOOD + "models: [gpt]\n", "mine.yaml:4:10: model 'gpt' has no endpoint (write {id: gpt, endpoint"),
        (GOOD.replace("mine", "1.10"), "mine.yaml:1:7: name: is no text but a number (quote it)"),
        (GOOD + "name: two\n", "mine.yaml:4:1: the key 'name' is there twice (line 1 has it too)"),
        (GOOD + "limits:\n\tcpus: 1\n", "a tab where YAML wants spaces (indent with spaces)"),
        ("", "holds no sweep (see sweeps/free.yaml for the form)"),
    ],
)
def test_a_sweep_file(refused: Callable[..., str], verb: str, text: str, says: str) -> None:
    assert says in refused(text, verb=verb)


def test_an_endpoint_without_its_variable(refused: Callable[..., str]) -> None:
    assert "mine.yaml: every cell is skipped: CAB_TEST_UNSET is not set" in refused(HOSTED)


@pytest.mark.parametrize("dry_run", [(), ("--dry-run",)])
def test_a_glob_that_names_nothing(refused: Callable[..., str], dry_run: tuple[str, ...]) -> None:
    said = refused(GOOD, "--only", "nop/*", *dry_run)
    assert "--only 'nop/*' names no cell of this sweep (did you mean 'noop/*'?)" in said


@pytest.mark.parametrize("option", ["--runs", "--concurrency"])
def test_a_number_out_of_range(refused: Callable[..., str], option: str) -> None:
    assert f"Invalid value for '{option}': 0 is not in the range" in refused(GOOD, option, "0")


@pytest.mark.parametrize(
    ("lock", "says"),
    [
        (None, "images.lock: no image 'base', 'noop' (run `cab images build base noop`)"),
        (locked("1", "base"), "images.lock: no image 'noop' (run `cab images build noop`)"),
        (
            '{"schema_version": 9, "images": {}}',
            "images.lock: schema_version: Input should be 1 (remove it, then",
        ),
        (locked("2.0"), "image noop: noop says '2.0', its adapter pins '1' (run `cab images build noop`)"),
    ],
)
def test_images(refused: Callable[..., str], tmp_path: Path, lock: str | None, says: str) -> None:
    path = tmp_path / "images.lock"
    path.unlink() if lock is None else path.write_text(lock)
    assert says in refused()


def test_a_call_about_one_cli_names_the_images_of_no_other(
    refused: Callable[..., str], tmp_path: Path
) -> None:
    text = GOOD.replace("[noop]", "[noop, oracle, opencode]") + "models: [embedded/idle]\n"
    (tmp_path / "images.lock").write_text(locked("1", "noop"))
    (tmp_path / "init").unlink()
    said = "images.lock: no image 'base', 'init' (run `cab images build base init`)"
    assert said in refused(text, "--only", "noop/*")
    said = "images.lock: no image 'base', 'oracle', 'init' (run `cab images build base init oracle`)"
    assert said in refused(text, "--only", "oracle/*", "--only", "noop/*")
    assert "run `cab images build base init opencode oracle`" in refused(text)
    (tmp_path / "images.lock").write_text(locked("2.0", "noop", "base"))
    said = refused(text, "--only", "noop/*")
    assert "no image 'init'; noop says '2.0', its adapter pins '1' (run `cab images build init noop`)" in said


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("ADAPTER = ", "ADAPTER = = ", "/noop/adapter.py:"),
        ("ADAPTER = Adapter(", "ADAPTER = Adapter(colour='red', ", "unexpected keyword argument 'colour'"),
        ("wire=None", 'wire="chta"', "wire is 'chta'; known: None, chat"),
    ],
)
def test_an_adapter(
    refused: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    old: str,
    new: str,
    says: str,
) -> None:
    shutil.copytree(IMAGES / "noop", tmp_path / "images" / "noop")
    adapter = tmp_path / "images" / "noop" / "adapter.py"
    assert old in adapter.read_text()
    adapter.write_text(adapter.read_text().replace(old, new))
    monkeypatch.setattr(fleet, "IMAGES", tmp_path / "images")
    said = refused()
    assert says in said
    assert said.endswith("(mend the adapter)\n")


@pytest.mark.parametrize(
    ("file", "change", "says"),
    [
        ("proof.json", lambda _: None, "the task is not proved as it is now (cab task validate"),
        ("instruction.md", lambda text: text + "more\n", "the task is not proved as it is now"),
        ("task.toml", lambda text: text.replace("ground_truth_files", "ground_truth_file"), "task.toml:"),
    ],
)
def test_a_task(
    refused: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    file: str,
    change: Callable[[str], str | None],
    says: str,
) -> None:
    shutil.copytree(TASKS / TASK, tmp_path / "tasks" / TASK)
    path = tmp_path / "tasks" / TASK / file
    text = change(path.read_text())
    path.unlink() if text is None else path.write_text(text)
    monkeypatch.setattr(source, "TASKS", tmp_path / "tasks")
    assert says in refused()


def test_results_that_are_a_file(refused: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert "is a file" in refused(results=tmp_path / "file")
    assert "Not a directory" in refused(results=tmp_path / "file" / "below")


@contextmanager
def _nobody() -> Iterator[None]:
    """Without root's right to write everywhere."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


def test_results_that_cannot_be_written(sweep: SweepRecord) -> None:
    with _nobody(), pytest.raises(StoreError) as caught:
        CellStore(Path("/usr/cab-test-results"), "done-1").create(sweep)
    says = "Permission denied (give this user the right to read and write there)"
    assert says in str(caught.value)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    if os.geteuid() != 0:
        pytest.skip("only root mounts a small disk")
    place = tmp_path / "disk"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)], check=True)
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk(sweep: SweepRecord, small_disk: Path) -> None:
    store = CellStore(small_disk, "done-1")
    ballast = small_disk / "ballast"
    with suppress(OSError):  # it ends when the disk is full
        ballast.write_bytes(b"x" * (1 << 20))
    with pytest.raises(StoreError) as caught:
        store.create(sweep)
    says = "No space left on device (free disk space, then give the same command again)"
    assert says in str(caught.value)
    assert not list(small_disk.rglob("*.json*"))
    ballast.unlink()
    store.create(sweep)
    assert store.sweep() == sweep
    store.close()


@pytest.fixture
def sweep(tmp_path: Path) -> SweepRecord:
    spec = tmp_path / "mine.yaml"
    spec.write_text(GOOD)
    loaded = load_spec(spec)
    return start.sweep_record(start.Matrix.of(loaded.spec, "done-1", loaded), loaded.digest, {"base": DIGEST})
