"""`cab completion bash | zsh | fish`."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_CAB_COMPLETE"


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print what makes SHELL complete cab's commands, and names of sweeps, cells, tasks and images.

    \b
    bash   cab completion bash >> ~/.bashrc
    zsh    cab completion zsh >> ~/.zshrc
    fish   cab completion fish > ~/.config/fish/completions/cab.fish
    """
    from orchestrator.cli import cab

    of_shell = get_completion_class(shell)
    assert of_shell is not None, shell
    click.echo(of_shell(cab, {}, "cab", VARIABLE).source())
