"""`cab images`: build, list and verify the images that cells run in."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from orchestrator.cli.options import Group, images_dir_option, json_option
from orchestrator.report.text import print_json


@click.group(cls=Group)
def images() -> None:
    """Build, list and verify the images that cells run in."""


@images.command()
@click.argument("names", nargs=-1)
@click.option("--force", is_flag=True, help="Build again what is up to date, without the engine's cache.")
@images_dir_option
def build(names: tuple[str, ...], force: bool, images_dir: Path | None) -> None:
    """Build the named images and what they stand on; all of them when none is named.

    What is up to date is left alone, so a build that was killed goes on where it was. Which image has which
    id is written to images.lock. Where some fail the others are built all the same, and it ends with 1.
    """
    from orchestrator.cli._progress import BuildView
    from orchestrator.sandbox.images import Layout
    from orchestrator.sandbox.images import build as build_images

    layout = Layout(elsewhere=images_dir)
    with BuildView() as view:
        build_images(list(names) or None, force=force, on_progress=view.show, layout=layout)


@images.command("list")
@images_dir_option
@json_option
def list_(images_dir: Path | None, as_json: bool) -> None:
    """List all images: version, size, licence, when they were built, and which CLIs cannot be had."""
    from dataclasses import asdict

    from orchestrator.report.images import print_images
    from orchestrator.sandbox.images import Layout, known_lock
    from orchestrator.sandbox.images.listing import list_images

    layout = Layout(elsewhere=images_dir)
    found = list_images(known_lock(layout.lock), layout)
    if as_json:
        print_json([asdict(image) for image in found], indent=2)
    else:
        print_images(found)


@images.command()
@images_dir_option
@json_option
def verify(images_dir: Path | None, as_json: bool) -> None:
    """Check every image of images.lock.

    The engine has it, its inputs are unchanged, and its tools tell their pinned version as the agent's user.
    Ends with 0 when all is well, else with 1.
    """
    from dataclasses import asdict

    from orchestrator.report.called import as_called
    from orchestrator.sandbox.images import Layout, load_lock, not_built
    from orchestrator.sandbox.images import verify as verify_images

    layout = Layout(elsewhere=images_dir)
    lock = load_lock(layout.lock)
    findings = verify_images(lock, layout=layout)
    if as_json:
        print_json([asdict(finding) for finding in findings], indent=2)
    else:
        for finding in findings:
            click.echo(f"{finding.image}: {finding.problem} ({as_called(finding.mend)})")
        if not findings:
            width = max(map(len, lock.images), default=0)
            for name, image in lock.images.items():
                click.echo(f"{name:{width}}  {image.size / 1e6:6.0f} MB  {image.tools}".rstrip())
            click.echo(f"{len(lock.images)} images are as images.lock says")
        if names := not_built(lock, layout):
            click.echo(f"not built: {', '.join(names)}")
        for name, reason in layout.fleet.unavailable.items():
            click.echo(f"{name} cannot be had: {reason}")
    sys.exit(1 if findings else 0)
