"""What `cab doctor` says, with a machine whose answers are known."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cli.doctor_cmd import line
from orchestrator.sandbox.docker import no_engine as no_engine_error
from orchestrator.sandbox.doctor import Check, Machine, examine
from orchestrator.sandbox.images import Layout, Lock, LockedImage
from orchestrator.sandbox.images.lock import load_lock, save_lock
from orchestrator.sandbox.images.recipe import load_recipes

INFO = {
    "ServerVersion": "20.10.24",
    "Driver": "overlay2",
    "CgroupVersion": "2",
    "NCPU": 2,
    "MemoryLimit": True,
    "PidsLimit": True,
}
KEY = "sk-a-key-that-must-not-be-shown"


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine on which nothing is missing."""
    layout = Layout(tmp_path)
    (layout.images / "tiny").mkdir(parents=True)
    (layout.images / "tiny" / "Dockerfile").write_text("FROM scratch\n")
    image = LockedImage(
        id="sha256:" + "a" * 64,
        tag="cab/tiny:1",
        inputs_hash=load_recipes(layout.images)["tiny"].inputs_hash({}),
        parent=None,
        versions={},
        built_at="2026-11-27T00:00:00+00:00",
        size=1,
    )
    save_lock(Lock().with_image("tiny", image), layout.lock)
    return Machine(
        env={"CAB_ENDPOINT": "https://models.example", "CAB_KEY": KEY},
        layout=layout,
        python=(3, 11),
        system="Linux",
        is_root=True,
        engine_info=lambda: INFO,
        has_image=lambda _: True,
        may_use_socket=lambda: True,
        has_loop_device=lambda: True,
        has_command=lambda _: True,
        free_bytes=lambda _: 100 << 30,
        git_version=lambda: "git version 2.47.3",
    )


def check(machine: Machine, name: str) -> Check:
    return next(check for check in examine(machine) if check.name == name)


def no_engine() -> dict[str, Any]:
    raise no_engine_error(OSError("refused"))


def test_nothing_is_missing_on_a_complete_machine(machine: Machine) -> None:
    assert {check.state for check in examine(machine)} == {"ok"}


def test_the_engine_is_described(machine: Machine) -> None:
    assert check(machine, "engine").found == "20.10.24, storage driver overlay2, cgroup v2, 2 CPUs"


def test_the_key_is_never_shown(machine: Machine) -> None:
    assert KEY not in repr(examine(machine))
    assert "CAB_KEY" in check(machine, "endpoint").found


def test_without_a_key_sweeps_still_run(machine: Machine) -> None:
    found = check(replace(machine, env={"CAB_ENDPOINT": "https://models.example"}), "endpoint")
    assert found.state == "note"
    assert found.found.startswith("CAB_KEY not set")


def test_an_old_python_is_missing(machine: Machine) -> None:
    assert check(replace(machine, python=(3, 10)), "python").state == "missing"


def test_no_git_is_missing(machine: Machine) -> None:
    assert check(replace(machine, git_version=lambda: None), "git").state == "missing"


def test_no_engine_is_missing_and_set_up_mends_it(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    found = check(replace(machine, engine_info=no_engine), "engine")
    assert found.found == "no Docker engine answers at the default socket"
    assert (found.state, found.mend) == ("missing", "run `make setup`")


def test_no_engine_at_docker_host_is_mended_there(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    host = "tcp://127.0.0.1:1"
    monkeypatch.setenv("DOCKER_HOST", host)
    changed = replace(machine, env={"DOCKER_HOST": host}, engine_info=no_engine, may_use_socket=lambda: False)
    found = check(changed, "engine")
    assert found.found == f"no Docker engine answers at {host}"
    assert found.mend == "unset DOCKER_HOST, or start the engine it names"


def test_without_an_engine_images_are_not_said_to_be_current(machine: Machine) -> None:
    found = check(replace(machine, engine_info=no_engine), "images")
    assert (found.state, found.found) == ("note", "not checked: no engine answers")


def test_a_forbidden_socket_is_told_from_an_absent_engine(machine: Machine) -> None:
    found = check(replace(machine, may_use_socket=lambda: False, engine_info=no_engine), "engine")
    assert found.state == "missing"
    assert "group docker" in found.mend


def test_an_engine_that_cannot_limit_is_missing(machine: Machine) -> None:
    found = check(replace(machine, engine_info=lambda: {**INFO, "PidsLimit": False}), "engine")
    assert found.state == "missing"
    assert "cannot limit pids" in found.found


@pytest.mark.parametrize(
    "change",
    [
        {"is_root": False},
        {"has_loop_device": lambda: False},
        {"has_command": lambda name: name != "mkfs.ext4"},
        {"free_bytes": lambda _: 1 << 30},
    ],
)
def test_what_only_makes_it_worse_is_a_note(machine: Machine, change: dict[str, Any]) -> None:
    states = [check.state for check in examine(replace(machine, **change))]
    assert states.count("note") == 1
    assert "missing" not in states


def test_images_of_other_inputs_are_missing(machine: Machine) -> None:
    (machine.layout.images / "tiny" / "Dockerfile").write_text("FROM scratch\nLABEL a=b\n")
    found = check(machine, "images")
    assert found.state == "missing"
    assert found.mend == "run `cab images build tiny`"


def test_images_that_the_engine_lost_are_missing(machine: Machine) -> None:
    lost = replace(machine, has_image=lambda _: False)
    assert check(lost, "images").state == "ok"  # no sweep runs it
    (machine.layout.images / "tiny" / "adapter.py").write_text(
        "from orchestrator.adapter import Adapter, Launch\n"
        "ADAPTER = Adapter(name='tiny', version='1', launch=lambda _: Launch(argv=('tiny',)))\n"
    )
    image = load_lock(machine.layout.lock).image("tiny")
    told = image.model_copy(update={"versions": {"tiny": "1"}})
    save_lock(Lock().with_image("tiny", told), machine.layout.lock)
    assert check(machine, "images").state == "ok"
    found = check(lost, "images")
    assert (found.state, found.mend) == ("missing", "run `cab images build tiny`")
    assert found.found.endswith(" as tiny")


def test_a_cli_that_was_not_built_or_cannot_be_had_is_told_and_is_no_fault(machine: Machine) -> None:
    for name, file in (("other", "Dockerfile"), ("gone", "unavailable.txt")):
        (machine.layout.images / name).mkdir()
        (machine.layout.images / name / file).write_text("no registry has it\n")
    found = check(machine, "images")
    assert found.state == "ok"
    assert found.found.endswith("; not built: other; gone cannot be had: no registry has it")


def test_images_that_were_never_built_are_missing(machine: Machine) -> None:
    machine.layout.lock.unlink()
    assert check(machine, "images").state == "missing"


def test_telemetry_variables_are_named(machine: Machine) -> None:
    env = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}
    assert check(replace(machine, env=env), "telemetry").found == (
        "spans go to files and OTLP; set: OTEL_EXPORTER_OTLP_ENDPOINT"
    )


def test_a_line_names_state_check_and_mend() -> None:
    assert line(Check("git", "missing", "not installed", "install git")) == (
        "MISSING git         not installed (install git)"
    )
