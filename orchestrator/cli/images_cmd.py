"""`cab images`: build, push, pull, list and verify the images that cells run in."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from orchestrator.cli import complete
from orchestrator.cli.options import Group, images_dir_option, json_option
from orchestrator.report.text import print_json

_SHOWN = 8
"""Differences that are told of an image; all of them are in JSON."""


@click.group(cls=Group)
def images() -> None:
    """Build, push, pull, list and verify the images that cells run in."""


@images.command()
@click.argument("names", nargs=-1, shell_complete=complete.images)
@click.option("--force", is_flag=True, help="Build again what is up to date, without the engine's cache.")
@click.option(
    "-j",
    "--jobs",
    type=click.IntRange(min=1),
    default=2,
    show_default=True,
    help="Images to build at a time, of those that do not stand on each other.",
)
@images_dir_option
def build(names: tuple[str, ...], force: bool, jobs: int, images_dir: Path | None) -> None:
    """Build the named images and what they stand on; all of them when none is named.

    What is up to date is left alone, so a build that was killed goes on where it was. Which image has which
    id is written to images.lock. Where some fail the others are built all the same, and it ends with 1.
    """
    from orchestrator.cli._progress import BuildView
    from orchestrator.sandbox.images import Layout
    from orchestrator.sandbox.images import build as build_images

    layout = Layout(elsewhere=images_dir)
    with BuildView() as view:
        build_images(list(names) or None, force=force, jobs=jobs, on_progress=view.show, layout=layout)


@images.command()
@click.argument("names", nargs=-1, shell_complete=complete.images)
@click.option("--to", "registry", metavar="REGISTRY", required=True, help="HOST[:PORT][/PATH].")
@click.option(
    "--proprietary", is_flag=True, help="Push also CLIs that their makers let nobody hand on: you may."
)
@images_dir_option
def push(names: tuple[str, ...], registry: str, proprietary: bool, images_dir: Path | None) -> None:
    """Push the named images of images.lock, and what they stand on, to a registry; all when none is named.

    Each goes to REGISTRY/<name>. The digest by which it can be pulled and run from there is printed, and
    written into images.lock. Logins are those of `docker login`. Proprietary CLIs stay here unless the
    registry is on loopback.
    """
    from orchestrator.cli._progress import PUSHING, BuildView
    from orchestrator.sandbox.images import Layout, Registry
    from orchestrator.sandbox.images import push as push_images

    layout, place = Layout(elsewhere=images_dir), Registry(registry)
    with BuildView(words=PUSHING) as view:
        pushed = push_images(
            place, list(names) or None, proprietary=proprietary, on_progress=view.show, layout=layout
        )
    _references(pushed)


@images.command()
@click.argument("names", nargs=-1, shell_complete=complete.images)
@click.option("--from", "registry", metavar="REGISTRY", help="HOST[:PORT][/PATH].")
@click.option(
    "--lock",
    "lock_file",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    metavar="FILE",
    help="Someone's images.lock, whose digests are pulled.",
)
@images_dir_option
def pull(
    names: tuple[str, ...], registry: str | None, lock_file: Path | None, images_dir: Path | None
) -> None:
    """Pull the named images, and what they stand on, from a registry; all when none is named.

    With --from alone those that were made from this checkout's inputs. Else by digest what --lock, or this
    checkout's own images.lock, says; --from then says which of several registries. What fits this checkout
    is written into images.lock as if it had been built here. Ends with 1 where some are not there or do not
    fit.
    """
    from orchestrator.cli._progress import PULLING, BuildView
    from orchestrator.sandbox.images import Layout, Registry
    from orchestrator.sandbox.images import pull as pull_images

    layout, place = Layout(elsewhere=images_dir), Registry(registry) if registry else None
    with BuildView(words=PULLING) as view:
        pulled = pull_images(
            list(names) or None, registry=place, lock_file=lock_file, on_progress=view.show, layout=layout
        )
    _references(pulled)


def _references(found: dict[str, str]) -> None:
    width = max(map(len, found), default=0)
    for name, reference in found.items():
        click.echo(f"{name:{width}}  {reference}")


@images.command()
@click.argument("names", nargs=-1, shell_complete=complete.images)
@images_dir_option
@json_option
def lock(names: tuple[str, ...], images_dir: Path | None, as_json: bool) -> None:
    """Resolve images.lock anew from what the engine has; build and pull nothing.

    The named images (all when none is named) and what they stand on are looked for by their inputs. Ends
    with 1 where one that was named, or was locked, is not there.
    """
    from orchestrator.cli._progress import LOCKING, BuildView
    from orchestrator.sandbox.images import Layout, relock

    layout = Layout(elsewhere=images_dir)
    with BuildView(words=LOCKING) as view:
        locked = relock(list(names) or None, on_progress=view.show, layout=layout)
    if as_json:
        print_json(locked.model_dump(), indent=2)


@images.command()
@click.argument("name", shell_complete=complete.images)
@json_option
def sbom(name: str, as_json: bool) -> None:
    """List what is in an image of images.lock: packages by name, version and licence; --json as CycloneDX."""
    from orchestrator.report.images import print_components
    from orchestrator.sandbox.images import Layout, engine, load_lock
    from orchestrator.sandbox.images.sbom import document, store

    layout = Layout()
    locked = load_lock(layout.lock).image(name)
    found = store(layout, engine.connect(), name, locked)
    if as_json:
        print_json(document(locked, found), indent=1)
    else:
        print_components(name, found)


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
@click.argument("names", nargs=-1, shell_complete=complete.images)
@images_dir_option
@json_option
def verify(names: tuple[str, ...], images_dir: Path | None, as_json: bool) -> None:
    """Check the named images and what they stand on, or every image of images.lock.

    The engine has it, its inputs are unchanged, and its tools tell their pinned version as the agent's user.
    What differs is named: files, pins, and the packages of an image that has taken its place. Ends with 0
    when all is well, else with 1.
    """
    from dataclasses import asdict

    from orchestrator.report.called import as_called
    from orchestrator.sandbox.images import Layout, load_lock, not_built
    from orchestrator.sandbox.images import verify as verify_images

    layout = Layout(elsewhere=images_dir)
    lock = load_lock(layout.lock)
    findings = verify_images(lock, names, layout=layout)
    if as_json:
        print_json([asdict(finding) for finding in findings], indent=2)
    else:
        for finding in findings:
            click.echo(f"{finding.image}: {finding.problem} ({as_called(finding.mend)})")
            for line in finding.differences[:_SHOWN]:
                click.echo(f"    {line}")
            if len(finding.differences) > _SHOWN:
                click.echo(f"    and {len(finding.differences) - _SHOWN} more: see --json")
        if not findings:
            looked_at = [name for name in names or lock.images if name in lock.images]
            width = max(map(len, looked_at), default=0)
            for name in looked_at:
                image = lock.images[name]
                click.echo(f"{name:{width}}  {image.size / 1e6:6.0f} MB  {image.tools}".rstrip())
            many = f"{len(looked_at)} images are" if len(looked_at) != 1 else "it is"
            click.echo(f"{many} as images.lock says")
        if not names:
            # A CLI's image for run-cell goes without saying where the CLI's own is not built.
            unbuilt = not_built(lock, layout)
            if unbuilt := [name for name in unbuilt if layout.recipes[name].stands_on not in unbuilt]:
                click.echo(f"not built: {', '.join(unbuilt)}")
            if unavailable := list(layout.fleet.unavailable):
                click.echo(f"cannot be had: {', '.join(unavailable)} (`cab images list` says why)")
    sys.exit(1 if findings else 0)
