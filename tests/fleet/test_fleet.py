"""Every CLI for real: `make test-fleet` builds all images and runs sweeps/fleet.yaml once, for all cases."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from command import REPO, Cab
from fleet_sweep import CLIS, TASKS, WHOLE_S, assert_driven, cell_dir, swept
from one_container import assert_reproduced
from wire_requests import main_requests, words

pytestmark = [pytest.mark.docker, pytest.mark.timeout(WHOLE_S + 600)]

LEAST = 16
"""CLIs that truly edit files by their own tools, at the least."""


@pytest.fixture(scope="module")
def fleet() -> Iterator[Cab]:
    with swept(CLIS) as cab:
        yield cab


@pytest.mark.parametrize("cli", CLIS)
def test_a_cli_solves_the_tasks_and_is_measured(fleet: Cab, cli: str) -> None:
    assert_driven(fleet, cli)


@pytest.mark.parametrize("cli", CLIS)
def test_the_command_of_a_cell_gives_its_scores_in_one_container(fleet: Cab, cli: str) -> None:
    assert_reproduced(fleet, cli)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("cli", CLIS)
def test_the_tasks_rules_are_in_the_first_request(fleet: Cab, cli: str, task: str) -> None:
    rules = (REPO / "tasks" / task / "environment" / "workdir" / "AGENTS.md").read_text("utf-8")
    assert rules.strip() in words(main_requests(cell_dir(fleet, cli, task))[0])


def test_the_fleet_is_large(fleet: Cab) -> None:
    records = fleet.records().values()
    failed = {it["identity"]["cli"] for it in records if it["scores"]["pass_rate"]["pass"] != 1}
    passed = {it["identity"]["cli"] for it in records} - failed
    assert len(passed) >= LEAST, f"{len(passed)} pass: {', '.join(sorted(passed))}"
