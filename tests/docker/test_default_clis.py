"""The CLIs that `make setup` builds, one for each wire and aider, on the tasks of sweeps/fleet.yaml."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from command import Cab
from fleet_sweep import OF_SETUP, WHOLE_S, assert_driven, swept
from one_container import assert_reproduced

pytestmark = pytest.mark.timeout(WHOLE_S + 600)


@pytest.fixture(scope="module")
def fleet() -> Iterator[Cab]:
    with swept(OF_SETUP) as cab:
        yield cab


@pytest.mark.parametrize("cli", OF_SETUP)
def test_a_cli_solves_the_tasks_and_is_measured(fleet: Cab, cli: str) -> None:
    assert_driven(fleet, cli)


@pytest.mark.parametrize("cli", OF_SETUP)
def test_the_command_of_a_cell_gives_its_scores_in_one_container(fleet: Cab, cli: str) -> None:
    assert_reproduced(fleet, cli)
