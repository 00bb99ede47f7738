"""An image that the engine lacks: what is said depends on whether images.lock still has it."""

from types import SimpleNamespace

import pytest

from orchestrator.errors import EnvironmentFault, PinMismatch
from orchestrator.run.pins import check_images
from orchestrator.sandbox.images import Lock, LockedImage

PIN, OTHER = "sha256:" + "a" * 64, "sha256:" + "b" * 64


@pytest.mark.parametrize(
    ("locked", "error", "mend"),
    [
        (PIN, EnvironmentFault, "run `cab images build tool`"),
        (OTHER, PinMismatch, "start a new sweep with --id"),
    ],
)
def test_an_image_that_is_gone(monkeypatch, locked, error, mend):
    image = LockedImage(
        id=locked,
        tag="cab/tool:1",
        inputs_hash="c" * 64,
        parent=None,
        versions={},
        built_at="2026-11-27T00:00:00+00:00",
        size=1,
    )
    monkeypatch.setattr("orchestrator.sandbox.images.load_lock", lambda _: Lock().with_image("tool", image))
    with pytest.raises(error) as refused:
        check_images(SimpleNamespace(has_image=lambda _: False), {"tool": PIN})
    assert type(refused.value) is error
    assert mend in refused.value.mend
    check_images(SimpleNamespace(has_image=lambda _: True), {"tool": PIN})
