"""`cab check` before its cell: what it takes of the user's environment, and what it finds missing."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
from hello_cli import hello_fleet

from orchestrator.errors import EnvironmentFault
from orchestrator.fleet import Fleet
from orchestrator.run import check
from orchestrator.run.alone import Asked
from orchestrator.run.check import check_key, environment, free_users, held_back, look

TASK = "polyglot/python-reverse-string"
TOLD = "echo hello 1.2.3"


@pytest.fixture
def place() -> Iterator[Path]:
    """Where another user finds programs, too."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        Path(name).chmod(0o755)
        (Path(name) / "bin").mkdir()
        yield Path(name)


@pytest.fixture
def scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        Path(name).chmod(0o711)
        yield Path(name)


def install(place: Path, name: str, script: str = "exit 0") -> None:
    program = place / "bin" / name
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


def fleet(place: Path) -> Fleet:
    """`hello`, whose program is `hello-cli` and whose pinned version is 1.2.3."""
    found = hello_fleet(place / "images")
    adapter = place / "images" / "hello" / "adapter.py"
    text = adapter.read_text().replace('("python3", "-c", SCRIPT)', '("hello-cli",)')
    adapter.write_text(text.replace('version="1"', 'version="1.2.3"'))
    return found


def asked(place: Path, task: str = TASK) -> Asked:
    return Asked("hello", "embedded/reference", task, fleet=fleet(place))


def only_git_and_python(place: Path) -> dict[str, str]:
    """An environment whose PATH has these, a shell, and what the test installs."""
    for name in ("sh", "git", "python3"):
        found = shutil.which(name, path="/usr/bin:/bin")
        assert found is not None
        (place / "bin" / name).symlink_to(found)
    return {"PATH": str(place / "bin")}


def test_a_cli_is_found_with_its_version(place: Path, scratch: Path) -> None:
    install(place, "hello-cli", TOLD)
    found = look(asked(place), only_git_and_python(place), scratch)
    assert (found.cli, found.program) == ("hello", str(place / "bin" / "hello-cli"))
    assert (found.version, found.pinned, found.difference) == ("1.2.3", "1.2.3", None)
    assert found.place.weaknesses == ("no container",)


@pytest.mark.parametrize(
    ("script", "version", "difference"),
    [
        ("echo v1.3.0-rc.1", "1.3.0-rc.1", "hello is 1.3.0-rc.1, cab knows 1.2.3"),
        ("echo node 22.1.0; echo hello 1.2.3", "1.2.3", None),
        ("exit 1", "not told", "hello does not tell its version, cab knows 1.2.3"),
    ],
)
def test_a_version_that_differs_is_a_weakness(
    place: Path, scratch: Path, script: str, version: str, difference: str | None
) -> None:
    install(place, "hello-cli", script)
    found = look(asked(place), only_git_and_python(place), scratch)
    assert (found.version, found.place.cli_version, found.difference) == (version, version, difference)
    assert found.place.weaknesses == ("no container", *([difference] if difference else []))


def test_the_cli_is_asked_without_the_users_home(place: Path, scratch: Path) -> None:
    install(place, "hello-cli", f'echo "$HOME $SECRET" >"$HOME/seen"; cat "$HOME/seen" >&2; {TOLD}')
    given = only_git_and_python(place) | {"HOME": str(place), "SECRET": "telltale"}
    assert look(asked(place), given, scratch).version == "1.2.3"
    assert not (place / "seen").exists()
    seen = [path.read_text() for path in scratch.rglob("seen")]
    assert len(seen) == 1
    assert "telltale" not in seen[0]


def test_a_cli_that_is_not_there_is_named_with_its_mend(place: Path, scratch: Path) -> None:
    with pytest.raises(EnvironmentFault) as fault:
        look(asked(place), only_git_and_python(place), scratch)
    assert str(fault.value) == (
        "--tui hello: hello-cli is not on PATH (install hello 1.2.3, or run it in its image, with Docker)"
    )


def test_a_cli_that_cannot_be_started_is_told(place: Path, scratch: Path) -> None:
    install(place, "hello-cli")
    (place / "bin" / "hello-cli").write_text("#!/nowhere/python\n")
    with pytest.raises(EnvironmentFault, match="hello-cli: cannot be started"):
        look(asked(place), only_git_and_python(place), scratch)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has a CLI run as somebody else")
def test_what_only_root_can_run_is_told(place: Path, scratch: Path) -> None:
    install(place, "hello-cli", TOLD)
    given = only_git_and_python(place)
    (place / "private").mkdir(mode=0o700)
    (place / "bin" / "hello-cli").rename(place / "private" / "hello-cli")
    with pytest.raises(EnvironmentFault, match=r"private/hello-cli: cannot be started by uid \d+"):
        look(asked(place), {"PATH": f"{place}/private:{given['PATH']}"}, scratch)


def test_tools_that_the_tests_want_are_named_before_anything_runs(place: Path, scratch: Path) -> None:
    install(place, "hello-cli", f"touch {place}/ran; {TOLD}")
    given = only_git_and_python(place)
    install(place, "cargo", "exit 1")
    wanted = asked(place, "mutations/rust-error-negated")
    with pytest.raises(EnvironmentFault, match="want rustc, cargo, which does not run here") as fault:
        look(wanted, given, scratch)
    assert "install rustc cargo" in fault.value.mend
    assert not (place / "ran").exists()
    for tool in ("rustc", "cargo"):
        install(place, tool)
    assert look(wanted, given, scratch).version == "1.2.3"


def test_nothing_of_the_environment_is_kept_but_where_programs_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".rustup").mkdir()
    monkeypatch.setattr(sys, "prefix", "/of/cab")
    given = {
        "PATH": "/usr/bin::relative:/of/cab/bin:/opt/bin",
        "HOME": str(tmp_path),
        "PYENV_ROOT": "/opt/pyenv",
        "OPENAI_API_KEY": "telltale",
        "CARGO_HOME": str(tmp_path / ".cargo"),
        "NODE_OPTIONS": "--require=telltale",
    }
    kept = {"PATH": "/usr/bin:/opt/bin", "PYENV_ROOT": "/opt/pyenv", "RUSTUP_HOME": f"{tmp_path}/.rustup"}
    assert environment(given) == kept
    assert environment(given, own=True) == kept | {"PATH": "/usr/bin:/opt/bin:/of/cab/bin"}


def test_users_are_nobodys() -> None:
    (agent, _), (verifier, _) = free_users()
    assert agent != verifier
    for uid in (agent, verifier):
        with pytest.raises(KeyError):
            pwd.getpwuid(uid)


def test_users_of_runs_at_once_are_others() -> None:
    assert len({free_users() for _ in range(3)}) > 1


@pytest.mark.parametrize(
    ("landlock", "said"),
    [
        (0, ("it can write what its user can, and uses your network", "no Landlock")),
        (3, ("writes to its scratch and to /tmp alone, and uses your network", "no Landlock")),
        (4, ("writes to its scratch and to /tmp alone, and connects to the model alone",)),
    ],
)
def test_what_does_not_hold_is_said(
    monkeypatch: pytest.MonkeyPatch, landlock: int, said: tuple[str, ...]
) -> None:
    monkeypatch.setattr(check, "landlock_version", lambda: landlock)
    lines = held_back()
    assert len(lines) == len(said)
    assert all(part in line for part, line in zip(said, lines, strict=True))


@pytest.mark.parametrize(("landlock", "uid", "refused"), [(1, 1000, True), (2, 1000, False), (0, 0, False)])
def test_no_key_is_taken_where_the_cli_could_read_it(
    monkeypatch: pytest.MonkeyPatch, landlock: int, uid: int, refused: bool
) -> None:
    monkeypatch.setattr(check, "landlock_version", lambda: landlock)
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    with pytest.raises(EnvironmentFault, match="shell's environment") if refused else nullcontext():
        check_key()


ORPHAN = f"sleep 86399.{int.from_bytes(os.urandom(4))}"
"""No other call of these tests sleeps for as many seconds."""

ORPHANS = f"""
import subprocess, sys, time
from orchestrator.run.check import nothing_left
def living():
    return int(subprocess.run(["pgrep", "-fc", "^{ORPHAN}"], capture_output=True, text=True).stdout)
with nothing_left():
    for _ in range(3):
        subprocess.run(["sh", "-c", "setsid sh -c 'setsid {ORPHAN} & {ORPHAN}' & sleep 0.1"])
    give_up = time.monotonic() + 20  # a busy machine is slow to start them
    while living() < 6 and time.monotonic() < give_up:
        time.sleep(0.02)
    print(living())
"""


def test_no_orphan_is_left() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ORPHANS], capture_output=True, text=True, check=True, timeout=120
    )
    assert int(done.stdout) == 6
    time.sleep(0.05)
    assert subprocess.run(["pgrep", "-f", f"^{ORPHAN}"], check=False).returncode == 1
