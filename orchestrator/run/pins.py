"""Digests that decide, on a resume, whether stored cells may stand beside new ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from orchestrator.errors import PinMismatch
from orchestrator.paths import IMAGES_LOCK

if TYPE_CHECKING:
    from orchestrator.sandbox.docker import DockerSandbox


def check_images(sandbox: DockerSandbox, pins: Mapping[str, str]) -> None:
    """Refuse to run another image than a pinned one. Raises PinMismatch that names both ids."""
    from orchestrator.sandbox.images import load_lock

    for name, pin in pins.items():
        if not sandbox.has_image(pin):
            locked = load_lock(IMAGES_LOCK).images.get(name)
            raise PinMismatch(
                f"the sweep is pinned to {pin}, which this engine has no more; images.lock has "
                f"{locked.id if locked else 'none'}",
                place=f"image {name}",
                mend="load the pinned image, or start a new sweep with --id",
            )


def check_same(what: str, stored: Mapping[str, str], now: Mapping[str, str]) -> None:
    """Refuse to go on with a task or adapter that has changed. Raises PinMismatch that names both digests."""
    for name, digest in stored.items():
        if now.get(name) != digest:
            raise PinMismatch(
                f"the sweep was started with {digest}, and it is {now.get(name, 'gone')} now",
                place=f"{what} {name}",
                mend="undo the change, or start a new sweep with --id",
            )
