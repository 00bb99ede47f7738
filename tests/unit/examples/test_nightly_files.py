"""The unit files, the workflow and the commands of docs/nightly.md do what they say, elsewhere."""

from __future__ import annotations

import re
import shutil
import stat
import subprocess
from pathlib import Path

import pytest
from nightly_examples import EXAMPLES, ROOT, Machine, exec_lines, shell_of_docs, steps, unit, workflow

from orchestrator.plan.spec import load_spec
from orchestrator.run.start import plan_of

UNITS = sorted(path.name for path in EXAMPLES.iterdir() if path.suffix in {".service", ".timer"})
SECTIONS = {".service": {"Unit", "Service", "Install"}, ".timer": {"Unit", "Timer", "Install"}}
SPEC = ROOT / "sweeps" / "nightly.yaml"


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine whose script says what it was called with and ends with $CODE."""
    made = Machine(tmp_path)
    script = made.at("/opt/cab") / "examples/nightly/nightly.sh"
    script.write_text('#!/bin/sh\necho "nightly $*"\nexit "${CODE:-0}"\n')
    cab = made.at("/opt/cab") / ".venv/bin/cab"
    cab.parent.mkdir(parents=True)
    cab.write_text('#!/bin/sh\necho "cab $*"\n')
    cab.chmod(0o755)
    return made


# The sweep


def test_the_nightly_sweep_can_be_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAB_ENDPOINT", "https://endpoint.example/v1")
    monkeypatch.setenv("CAB_KEY", "a-key")
    loaded = load_spec(SPEC)
    matrix = plan_of(loaded)
    matrix.check_proved()
    hosted = [model.id for model in loaded.spec.models if model.endpoint]
    assert loaded.spec.runs == 3
    assert len(matrix.plan.cells) == 2 * len(matrix.tasks) * (1 + len(hosted)) * 3
    assert {cell.key.cli for cell in matrix.plan.cells} == {"opencode", "aider"}
    monkeypatch.delenv("CAB_KEY")
    without = plan_of(loaded).plan
    assert {cell.key.model for cell in without.cells} == {"embedded/reference"}
    assert len(without.skipped) == len(matrix.plan.cells) - len(without.cells)


def test_its_tasks_are_all_there_are() -> None:
    assert {glob.partition("/")[0] for glob in load_spec(SPEC).spec.tasks} == {
        path.name for path in (ROOT / "tasks").iterdir()
    }


# systemd


@pytest.mark.parametrize("name", UNITS)
def test_a_unit_file_is_one(name: str) -> None:
    found = unit(name)
    assert set(found.sections()) <= SECTIONS[Path(name).suffix]
    assert found["Unit"]["Description"]
    for reference in (found["Unit"].get("OnFailure"), found.get("Timer", "Unit", fallback=None)):
        assert reference is None or re.sub(r"@\w+", "@", reference) in UNITS


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_takes_the_unit_files(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    place = machine.at("/etc/systemd/system")
    for name in UNITS:
        (place / name).write_text(machine.moved((EXAMPLES / name).read_text()))
    shutil.copy(EXAMPLES / "nightly.env", machine.at("/etc/cab"))
    files = [place / name.replace("@.", "@run.") for name in UNITS]
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *files], capture_output=True, text=True, check=False
    )
    ours = [line for line in done.stderr.splitlines() if "cab" in line]
    assert (done.returncode, ours) == (0, []), done.stderr


def test_the_service_runs_a_night_and_never_with_an_open_key_file(machine: Machine) -> None:
    key_file = machine.at("/etc/cab") / "nightly.env"
    shutil.copy(EXAMPLES / "nightly.env", key_file)
    check, run = exec_lines("cab-nightly@.service", "run")
    key_file.chmod(0o644)
    refused = machine.run(check)
    assert (refused.returncode, refused.stderr) == (2, "nightly.env: its mode is not 600\n")
    key_file.chmod(0o600)
    assert machine.run(check).returncode == 0
    assert machine.run(run).stdout == "nightly run sweeps/nightly.yaml\n"
    assert machine.run(exec_lines("cab-nightly@.service", "resume")[1]).stdout.startswith("nightly resume ")
    service = unit("cab-nightly@.service")["Service"]
    assert service["EnvironmentFile"] == "/etc/cab/nightly.env"
    assert service["SuccessExitStatus"].split() == ["1", "130"]


def test_the_alert_says_where_to_look(machine: Machine) -> None:
    (alert,) = exec_lines("cab-nightly-alert.service")
    machine.program("logger", 'for word; do last=$word; done; echo "$last"')
    said = machine.run(["logger", *alert[1:]])
    assert (alert[0], said.returncode) == ("/usr/bin/logger", 0)
    assert "journalctl -u" in said.stdout


def test_the_commands_of_the_docs_install_it(machine: Machine) -> None:
    install, look = shell_of_docs()
    machine.program("systemctl", 'echo "systemctl $*"')
    done = machine.run(install)
    assert done.returncode == 0, done.stderr
    for place, mode in (("/etc/cab/nightly.env", 0o600), ("/etc/cab", 0o700)):
        assert stat.S_IMODE(machine.at(place).stat().st_mode) == mode
    assert sorted(path.name for path in machine.at("/etc/systemd/system").iterdir()) == UNITS
    assert "systemctl enable cab-nightly@resume.service" in done.stdout.splitlines()
    assert machine.run(exec_lines("cab-nightly@.service", "run")[0]).returncode == 0
    assert machine.run(look).stdout == f"cab sweep status -r {machine.results}\n"


# CI


def test_the_workflow_gives_the_key_to_one_step_only() -> None:
    data = workflow()
    job = data["jobs"]["nightly"]
    with_key = [step["name"] for step in job["steps"] if "secrets." in str(step)]
    assert with_key == ["Run"]
    assert "secrets." not in str({**data, "jobs": None}) + str({**job, "steps": None})
    assert not any("CAB_KEY" in text for text in steps().values())
    assert data["concurrency"]["cancel-in-progress"] is False
    assert set(data[True] if True in data else data["on"]) == {"schedule", "workflow_dispatch"}


def test_the_workflow_and_the_timer_name_the_same_hour() -> None:
    data = workflow()
    (schedule,) = (data[True] if True in data else data["on"])["schedule"]
    minute, hour = schedule["cron"].split()[:2]
    assert unit("cab-nightly.timer")["Timer"]["OnCalendar"] == f"*-*-* {hour}:{minute}:00 UTC"


@pytest.mark.parametrize(
    ("code", "ends", "says"),
    [
        *((0, 0, ""), (1, 0, "::warning"), (2, 2, "::error"), (3, 3, "::error title=nightly::worse")),
        *((137, 137, "::error"), (130, 0, "::warning")),
    ],
)
def test_the_run_step_fails_where_a_person_is_needed(
    machine: Machine, code: int, ends: int, says: str
) -> None:
    done = machine.run(steps()["Run"], CODE=str(code))
    said = done.stdout.removeprefix("nightly run sweeps/nightly.yaml\n")
    assert said != done.stdout
    assert (done.returncode, said[: len(says) or None]) == (ends, says)


def test_the_report_step_shows_the_newest_sweep(machine: Machine, tmp_path: Path) -> None:
    summary = tmp_path / "summary.md"
    shown = "```\ncab history -r {0}\ncab sweep status -r {0}\n```\n"
    done = machine.run(steps()["Report"], GITHUB_STEP_SUMMARY=str(summary), NIGHTLY_RESULTS="there")
    assert done.returncode == 0, done.stderr
    assert summary.read_text() == shown.format("there")
    for night in ("nightly-20261127", "nightly-20261128"):
        (tmp_path / "results" / night).mkdir(parents=True)
        (tmp_path / "results" / night / "gate.md").write_text(f"## {night}\n")
    env = {"GITHUB_STEP_SUMMARY": str(summary), "NIGHTLY_RESULTS": str(tmp_path / "results")}
    summary.unlink()
    machine.run(
        steps()["Report"], GITHUB_STEP_SUMMARY=str(summary), NIGHTLY_RESULTS=str(tmp_path / "results")
    )
    assert summary.read_text() == "## nightly-20261128\n\n" + shown.format(tmp_path / "results")
    # Of a night without a verdict that of an older one is not shown.
    (tmp_path / "results" / "nightly-20261129").mkdir()
    summary.unlink()
    machine.run(steps()["Report"], **env)
    assert summary.read_text() == shown.format(tmp_path / "results")
    assert set(steps()) == {"Set up", "Run", "Report"}
    assert steps()["Set up"] == "make setup"
