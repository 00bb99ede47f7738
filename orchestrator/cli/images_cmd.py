"""`cab images`: build and verify the images that cells run in."""

from __future__ import annotations

import sys

import click

from orchestrator.cli.options import Group, json_option
from orchestrator.report.text import print_json


@click.group(cls=Group)
def images() -> None:
    """Build and verify the images that cells run in."""


@images.command()
@click.argument("names", nargs=-1)
@click.option("--force", is_flag=True, help="Build again what is up to date, without the engine's cache.")
def build(names: tuple[str, ...], force: bool) -> None:
    """Build the named images and what they stand on; all of them when none is named.

    What is up to date is left alone. Which image has which id is written to images.lock.
    """
    from orchestrator.cli._progress import BuildView
    from orchestrator.sandbox.images import build as build_images

    with BuildView() as view:
        build_images(list(names) or None, force=force, on_progress=view.show)


@images.command()
@json_option
def verify(as_json: bool) -> None:
    """Check every image of images.lock.

    The engine has it, its inputs are unchanged, and its tools tell their pinned version as the agent's user.
    Ends with 0 when all is well, else with 1.
    """
    from dataclasses import asdict

    from orchestrator.report.called import as_called
    from orchestrator.sandbox.images import Layout, load_lock
    from orchestrator.sandbox.images import verify as verify_images

    lock = load_lock(Layout().lock)
    findings = verify_images(lock)
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
    sys.exit(1 if findings else 0)
