"""`cab model`: the GGUF files that sweeps may ask as `local/NAME`."""

from __future__ import annotations

from pathlib import Path

import click

from orchestrator.cli.complete import local_models
from orchestrator.cli.options import Group, json_option


@click.group(cls=Group)
def model() -> None:
    """Add local models (GGUF files), list, remove and serve them."""


@model.command("list")
@json_option
def list_(as_json: bool) -> None:
    """List the local models."""
    from orchestrator.gateway.local.registry import Registry
    from orchestrator.report.called import as_called
    from orchestrator.report.text import print_json, safe_line

    registry = Registry.default()
    models = registry.models()
    if as_json:
        print_json([found.model_dump(mode="json") for found in models])
        return
    if not models:
        click.echo(as_called("no local model has been added (add one: `cab model add FILE`)"))
    width = max((len(found.id) for found in models), default=0)
    for found in models:
        reason = registry.reason_to_skip(found.id)
        state = f"cannot run: {as_called(reason)}" if reason else found.title or found.architecture
        click.echo(safe_line(f"{found.id:{width}}  {found.size / 1e6:6.0f} MB  {found.sha256[:12]}  {state}"))


@model.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--name", help="Instead of the name that the file states.")
@click.option("--sha256", help="Refuse the file when it has another checksum.")
def add(file: Path, name: str | None, sha256: str | None) -> None:
    """Add a GGUF file as local/NAME.

    The file stays where it is and is not copied; its checksum is taken now, and again before each sweep.
    """
    from orchestrator.gateway.local.registry import Registry

    added = Registry.default().add(file, name=name, sha256=sha256)
    click.echo(f"{added.id}  sha256 {added.sha256}")


@model.command()
@click.argument("name", shell_complete=local_models)
def rm(name: str) -> None:
    """Forget a local model. Its file stays."""
    from orchestrator.gateway.local.registry import PREFIX, Registry

    removed = Registry.default().remove(name.removeprefix(PREFIX))
    click.echo(f"{removed.id} is forgotten; its file is still {removed.path}")


@model.command()
@click.argument("name", shell_complete=local_models)
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Instead of a free one.")
@click.option("--log", type=click.Path(path_type=Path, dir_okay=False), help="Append what llama.cpp says.")
def serve(name: str, port: int, log: Path | None) -> None:
    """Serve a local model on loopback until Ctrl-C, and print its URL and key.

    A sweep starts and ends its own servers and needs none of this: it is for trying a model by hand.
    """
    from orchestrator.errors import EnvironmentFault
    from orchestrator.gateway.local.registry import PREFIX, Registry
    from orchestrator.gateway.local.server import LocalServer

    chosen = Registry.default().get(name.removeprefix(PREFIX))
    with LocalServer.start(chosen, log=log, port=port) as server:
        click.echo(f"base URL  {server.endpoint.base_url}")
        click.echo(f"key       {server.endpoint.key}")
        server.wait()
    raise EnvironmentFault("the server ended by itself", place=chosen.id, mend="--log FILE tells more")
