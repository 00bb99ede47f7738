"""images.lock, and what can be told from it without an engine."""

from pathlib import Path

import pytest

from orchestrator.errors import EnvironmentFault
from orchestrator.sandbox.images import Layout, Lock, LockedImage, load_lock, not_built, stale
from orchestrator.sandbox.images.lock import save_lock, version_number
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


@pytest.mark.parametrize(
    ("told", "number"),
    [
        ("go version go1.24.4 linux/amd64", "1.24.4"),
        ("rustc 1.85.1 (4eb161250 2025-03-15) (built from a source tarball)", "1.85.1"),
        ("v22.20.0", "22.20.0"),
        ("javac 21.0.13.1", "21.0.13.1"),
        ("1.18.33", "1.18.33"),
        ("mmdebstrap trixie, SOURCE_DATE_EPOCH=1767225600", None),
        ("b4d50edaade709fb8cc4a5993dc93631395ded3dc4e3f85c4a43a3f01e1e48ea", None),
    ],
)
def test_the_number_of_a_version_is_found(told: str, number: str | None) -> None:
    assert version_number(told) == number


def test_tools_are_listed_by_name_and_number() -> None:
    image = locked().model_copy(
        update={"versions": {"go": "go1.24.4", "sha256": "b4d5", "cargo": "cargo 1.85.1"}}
    )
    assert image.tools == "cargo 1.85.1, go 1.24.4"


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


def test_an_image_that_was_never_built_is_found_where_every_cell_needs_it(layout: Layout) -> None:
    (layout.images / "base").mkdir()
    (layout.images / "base" / "Dockerfile").write_text("FROM scratch\n")
    (finding,) = stale(Lock(), layout)
    assert (finding.image, finding.problem) == ("base", "is not in images.lock")
    assert not_built(Lock(), layout) == ["base", "tiny"]
