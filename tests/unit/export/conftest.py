from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from export_samples import make_results

from orchestrator.run.import_published import import_published
from orchestrator.store.chosen import chosen_sweeps
from orchestrator.store.published import read_published

PUBLISHED = Path(__file__).parents[2] / "data" / "published_cells.json"


@pytest.fixture(scope="session")
def made(tmp_path_factory) -> Path:
    """Results that no test may change: a sweep of cab's own, and an imported one beside it."""
    root = make_results(tmp_path_factory.mktemp("results"))
    import_published(read_published(PUBLISHED), PUBLISHED, root, replace=False)
    return root


@pytest.fixture
def results(made, tmp_path) -> Path:
    """The same, to change."""
    return Path(shutil.copytree(made, tmp_path / "results"))


@pytest.fixture(scope="session")
def stores(made):
    return chosen_sweeps([str(made)], made)
