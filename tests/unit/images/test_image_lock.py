"""images.lock, and what can be told from it without an engine."""

from pathlib import Path

import pytest

from orchestrator.errors import EnvironmentFault
from orchestrator.sandbox.images import Layout, Lock, LockedImage, load_lock, stale
from orchestrator.sandbox.images.lock import save_lock
from orchestrator.sandbox.images.recipe import load_recipes


def locked(inputs_hash: str = "f" * 64) -> LockedImage:
    return LockedImage(
        id="sha256:" + "a" * 64,
        tag="cab/tiny:1",
        inputs_hash=inputs_hash,
        parent=None,
        versions={},
        built_at="2026-11-27T00:00:00+00:00",
        size=1,
    )


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    (tmp_path / "images" / "tiny").mkdir(parents=True)
    (tmp_path / "images" / "tiny" / "Dockerfile").write_text("FROM scratch\n")
    return Layout(tmp_path)


def test_a_lock_is_read_as_it_was_written(tmp_path: Path) -> None:
    lock = Lock().with_image("tiny", locked())
    save_lock(lock, tmp_path / "images.lock")
    assert load_lock(tmp_path / "images.lock") == lock
    assert [path.name for path in tmp_path.iterdir()] == ["images.lock"]


def test_without_a_lock_the_mend_is_named(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFault, match=r"no image was built yet.*cab images build"):
        load_lock(tmp_path / "images.lock")


def test_a_broken_lock_names_file_field_and_mend(tmp_path: Path) -> None:
    path = tmp_path / "images.lock"
    path.write_text('{"schema_version": 1, "images": {"tiny": {"id": 5}}}')
    with pytest.raises(EnvironmentFault, match=r"images\.lock: images\.tiny\.id: .*remove it"):
        load_lock(path)


def test_an_image_that_is_not_in_the_lock_names_its_mend() -> None:
    with pytest.raises(EnvironmentFault, match=r"no image 'tiny'.*cab images build tiny"):
        Lock().image("tiny")


def test_a_current_lock_has_no_findings(layout: Layout) -> None:
    inputs = load_recipes(layout.images)["tiny"].inputs_hash({})
    assert list(stale(Lock().with_image("tiny", locked(inputs)), layout)) == []


def test_an_image_of_other_inputs_is_found(layout: Layout) -> None:
    (finding,) = stale(Lock().with_image("tiny", locked()), layout)
    assert finding.image == "tiny"
    assert "changed since it was built" in finding.problem


def test_an_image_that_was_never_built_is_found(layout: Layout) -> None:
    (finding,) = stale(Lock(), layout)
    assert finding.problem == "is not in images.lock"
