"""Which images a call needs, and what is said of those that are not there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from orchestrator.adapter import Adapter, Launch
from orchestrator.errors import CabError, EnvironmentFault, PinMismatch
from orchestrator.fleet import Fleet
from orchestrator.run.pins import check_images, with_late
from orchestrator.sandbox.docker import DockerSandbox
from orchestrator.sandbox.images import Lock, LockedImage

PIN, OTHER = "sha256:" + "a" * 64, "sha256:" + "b" * 64
BASE, NODE, NEW_BASE = ("sha256:" + letter * 64 for letter in "cde")


def image(image_id: str, *, parent: str | None = None, told: str = "") -> LockedImage:
    return LockedImage(
        id=image_id,
        tag="cab/tool:1",
        inputs_hash="c" * 64,
        parent=parent,
        versions={told: "1"} if told else {},
        built_at="2026-11-27T00:00:00+00:00",
        size=1,
    )


def engine_without(*gone: str) -> DockerSandbox:
    return cast(DockerSandbox, SimpleNamespace(has_image=lambda pin: pin not in gone))


@pytest.mark.parametrize(
    ("locked", "error", "mend"),
    [
        (PIN, EnvironmentFault, "run `cab images build tool`"),
        (OTHER, PinMismatch, "start a new sweep with --id"),
    ],
)
def test_an_image_that_is_gone(
    monkeypatch: pytest.MonkeyPatch, locked: str, error: type[CabError], mend: str
) -> None:
    lock = Lock().with_image("tool", image(locked))
    monkeypatch.setattr("orchestrator.sandbox.images.known_lock", lambda _: lock)
    with pytest.raises(error) as refused:
        check_images(engine_without(PIN), {"tool": PIN}, Fleet())
    assert type(refused.value) is error
    assert mend in refused.value.mend
    check_images(engine_without(), {"tool": PIN}, Fleet())


def test_all_images_that_are_gone_are_told_at_once_with_one_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "mine" / "tool").mkdir(parents=True)
    (tmp_path / "mine" / "tool" / "Dockerfile").touch()
    lock = Lock().with_image("tool", image(PIN)).with_image("base", image(BASE))
    monkeypatch.setattr("orchestrator.sandbox.images.known_lock", lambda _: lock)
    pins = {"base": BASE, "codex": NODE, "tool": PIN}
    with pytest.raises(EnvironmentFault) as refused:
        check_images(engine_without(PIN, BASE), pins, Fleet(elsewhere=tmp_path / "mine"))
    assert f"run `cab images build base tool --images-dir {tmp_path / 'mine'}`" in refused.value.mend
    assert "codex" not in str(refused.value)


def late(tmp_path: Path, images: Mapping[str, LockedImage], names: Iterable[str]) -> dict[str, str]:
    """What a sweep that was pinned for `tool` alone is pinned to by a call about `names`."""

    def launch(_: Any) -> Launch:
        return Launch(argv=("x",))

    (init := tmp_path / "init").touch()
    adapters = {name: Adapter(name, "1", launch) for name in names}
    return with_late({"base": BASE, "tool": PIN}, Lock(images=dict(images)), adapters, init, Fleet())


LOCKED = {
    "base": image(BASE),
    "node": image(NODE, parent=BASE),
    "more": image(OTHER, parent=NODE, told="more"),
}


def test_a_call_pins_the_images_of_the_clis_that_it_is_the_first_about(tmp_path: Path) -> None:
    assert late(tmp_path, {}, ["tool"]) == {"base": BASE, "tool": PIN}
    assert late(tmp_path, LOCKED, ["tool", "more"]) == {"base": BASE, "tool": PIN, "more": OTHER}
    with pytest.raises(EnvironmentFault, match=r"no image 'more' \(run `cab images build more`\)"):
        late(tmp_path, {"base": image(BASE)}, ["tool", "more"])


@pytest.mark.parametrize("below", [NEW_BASE, None])
def test_what_stands_on_another_base_is_not_pinned_late(tmp_path: Path, below: str | None) -> None:
    images = LOCKED | {"base": image(NEW_BASE), "node": image(NODE, parent=below)}
    with pytest.raises(PinMismatch, match=f"image more: {OTHER} does not stand on {BASE}.* has {NEW_BASE}"):
        late(tmp_path, images, ["more"])


def test_what_was_not_built_anew_on_what_it_stands_on_is_to_be_built(tmp_path: Path) -> None:
    images = LOCKED | {"node": image(NEW_BASE, parent=BASE)}
    with pytest.raises(EnvironmentFault, match=r"image more: .*run `cab images build more`"):
        late(tmp_path, images, ["more"])
