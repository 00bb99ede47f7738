"""A checkout of its own with a base image of two files, and one image that stands on it: quick to build."""

from __future__ import annotations

import shutil
from pathlib import Path

import docker

from orchestrator.sandbox.images import Layout

REPO = Path(__file__).resolve().parents[2]


def lay(layout: Layout, name: str, init_binary: Path) -> None:
    """Its recipes: `base`, and `name`, which is also how both are labelled."""
    below, above = layout.images / "base", layout.images / name
    below.mkdir(parents=True)
    above.mkdir()
    shutil.copy(REPO / "images" / "base" / "base.pin", below)
    shutil.copy(init_binary, below / "init")
    (below / "own").write_text(name)
    (below / "Dockerfile").write_text(f"FROM scratch\nCOPY init own /\nLABEL cab.test={name}\n")
    (above / "data").write_text("1\n")
    (above / "Dockerfile").write_text("ARG BASE\nFROM ${BASE}\nCOPY data /\n")


def forget(client: docker.DockerClient, name: str) -> None:
    """Remove all images of a test, with every tag and digest."""
    for image in client.images.list(filters={"label": f"cab.test={name}"}):
        for reference in image.tags:
            client.images.remove(reference, force=True)
    assert not client.images.list(filters={"label": f"cab.test={name}"})
