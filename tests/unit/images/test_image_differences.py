"""A stale image says which of its inputs changed, and what that makes different in it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from orchestrator.sandbox.images import Layout, Lock, LockedImage, stale
from orchestrator.sandbox.images.differ import changed_inputs
from orchestrator.sandbox.images.root import BasePin
from orchestrator.sandbox.images.sbom import Component, document

OLD, NEW = "sha256:" + "1" * 64, "sha256:" + "2" * 64
PIN = 'image = "debian:x"\nsuite = "x"\nepoch = 1\n'


def locked(image_id: str, inputs_hash: str = "", inputs: dict[str, str] | None = None) -> LockedImage:
    return LockedImage(
        id=image_id,
        tag="cab/any:1",
        inputs_hash=inputs_hash,
        parent=None,
        versions={},
        built_at="",
        size=1,
        inputs=inputs or {},
    )


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = Layout(tmp_path)
    for name, text in {"base": "FROM scratch\n", "tool": "ARG BASE\nFROM ${BASE}\n"}.items():
        (layout.images / name).mkdir(parents=True)
        (layout.images / name / "Dockerfile").write_text(text)
    layout.pin.write_text(PIN)
    (layout.images / "tool" / "package.json").write_text("{}")
    (layout.images / "tool" / "part").mkdir()
    (layout.images / "tool" / "part" / "x.py").write_text("1\n")
    return layout


def lock_of(layout: Layout, base_id: str = OLD) -> Lock:
    recipes, lock = layout.recipes, Lock()
    for name, image_id in {"base": base_id, "tool": NEW}.items():
        ids = {"base": base_id}
        made = locked(image_id, recipes[name].inputs_hash(ids), recipes[name].inputs(ids))
        lock = lock.with_image(name, made)
    return lock


def problems(lock: Lock, layout: Layout) -> list[str]:
    return [it.problem for it in stale(lock, layout) if it.image == "tool"]


def test_files_that_changed_came_or_went_are_named(layout: Layout) -> None:
    lock = lock_of(layout)
    assert problems(lock, layout) == []
    (layout.images / "tool" / "package.json").write_text('{"version": "2"}')
    assert problems(lock, layout) == ["changed since it was built: package.json"]
    (layout.images / "tool" / "part" / "x.py").unlink()
    (layout.images / "tool" / "new").write_text("")
    assert problems(lock, layout) == ["changed since it was built: package.json, part (gone), new (new)"]


def test_a_mode_counts(layout: Layout) -> None:
    lock = lock_of(layout)
    (layout.images / "tool" / "package.json").chmod(0o755)
    assert problems(lock, layout) == ["changed since it was built: package.json"]


def test_another_base_is_named_with_the_packages_that_differ_in_it(layout: Layout) -> None:
    before = lock_of(layout)
    after = before.with_image("base", locked(NEW, before.image("base").inputs_hash))
    layout.sboms.mkdir(parents=True)
    for image_id, version in ((OLD, "1"), (NEW, "2")):
        listed = document(locked(image_id), [Component("deb", "git", version), Component("deb", "tar", "1")])
        (layout.sboms / f"base-{image_id[7:19]}.cdx.json").write_text(json.dumps(listed))
    (finding,) = (it for it in stale(after, layout) if it.image == "tool")
    assert finding.problem == "changed since it was built: the image that it stands on (ARG BASE)"
    assert finding.differences == ("deb git 1 → 2",)


def test_a_changed_pin_of_the_root_says_what_it_was(layout: Layout) -> None:
    pin = BasePin(image="debian:x", suite="x", epoch=1)
    lock = Lock().with_image("root", locked(OLD, pin.inputs_hash(), pin.inputs()))
    layout.pin.write_text(PIN.replace('suite = "x"', 'suite = "y"'))
    (problem,) = (it.problem for it in stale(lock, layout) if it.image == "root")
    assert problem == "images/base/base.pin has changed since it was made: suite (x → y)"


def test_an_older_lock_has_no_names_to_tell(layout: Layout) -> None:
    lock = lock_of(layout)
    lock = lock.with_image("tool", locked(NEW, "0"))
    assert problems(lock, layout) == ["its files or its parent changed since it was built"]


def test_what_is_the_same_is_not_told() -> None:
    assert changed_inputs({"a": "1", "b": "2"}, {"a": "1", "b": "2"}) == []
