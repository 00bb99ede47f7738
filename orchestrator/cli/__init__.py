"""The `cab` command. Each verb group is a module of its own, imported only when it is called.

Exit codes: 0 all went well; 1 some cell ended in infra_error or verify_error, some image was not built, or a
gate failed; 2 bad input or something is missing on the machine; 130 interrupted; 141, by SIGPIPE and without
a word, where the reader of the output is gone, as after `| head`.
"""

from __future__ import annotations

import importlib
import keyword
import os
import select
import signal
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn

import click

from orchestrator import __version__
from orchestrator.cli.options import Group
from orchestrator.errors import CabError
from orchestrator.paths import IMAGE_FILE

INTERRUPTED = 130
MAX_ERROR = 2000
"""Characters of an error's line."""

COMMANDS = {
    "sweep": ("orchestrator.cli.sweep_cmd", "Plan, run, resume and look at sweeps."),
    "report": ("orchestrator.cli.report_cmd", "Show rates with their intervals, and what they took."),
    "compare": ("orchestrator.cli.report_cmd", "Say whether one side is better than another."),
    "cell": ("orchestrator.cli.cell_cmd", "Show one finished cell, or score it again."),
    "explain": ("orchestrator.cli.explain_cmd", "Show how a number came about, term by term."),
    "task": ("orchestrator.cli.task_cmd", "List tasks, and prove them."),
    "model": ("orchestrator.cli.model_cmd", "Add local models, list, remove and serve them."),
    "import": ("orchestrator.cli.import_cmd", "Import results that others published."),
    "external": ("orchestrator.cli.external_cmd", "Run external benchmarks under context conditions."),
    "site": ("orchestrator.cli.site_cmd", "Make a static site of results, and look at it here."),
    "gate": ("orchestrator.cli.gate_cmd", "Say whether a sweep is worse than the nights before it."),
    "history": ("orchestrator.cli.history_cmd", "Show past nights: rates, flaky tasks, what changed."),
    "export": ("orchestrator.cli.export_cmd", "Write finished cells for other programs."),
    "images": ("orchestrator.cli.images_cmd", "Build and list the images, check them against their pins."),
    "run-cell": ("orchestrator.cli.run_cell_cmd", "Run one cell, inside a CLI's image."),
    "check": ("orchestrator.cli.check_cmd", "Run one task with a CLI installed here, without Docker."),
    "completion": ("orchestrator.cli.completion_cmd", "Print what makes a shell complete cab's words."),
    "doctor": ("orchestrator.cli.doctor_cmd", "Say what this machine has, lacks, and how to mend it."),
}


IN_IMAGES = "run-cell"


def _commands() -> dict[str, tuple[str, str]]:
    """All of them; in an image, which holds no engine's client and no results, the one that is for it."""
    return {IN_IMAGES: COMMANDS[IN_IMAGES]} if IMAGE_FILE.is_file() else COMMANDS


class ClosedPipe(Exception):
    """A BrokenPipeError on its way past click, which would end with 1 and not say why."""


@contextmanager
def _past_click() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError as error:
        raise ClosedPipe from error


class LazyGroup(Group):
    """A group whose commands are imported when called, so that `cab --help` costs no heavy import."""

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        with _past_click():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        with _past_click():
            return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(_commands())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in _commands():
            return None
        # A function cannot be called `import`: it has the underscore that Python's style gives it.
        function = f"{cmd_name}_" if keyword.iskeyword(cmd_name) else cmd_name.replace("-", "_")
        command = getattr(importlib.import_module(COMMANDS[cmd_name][0]), function)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in _commands().items()])


@click.group(
    cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(__version__, prog_name="cab")
def cab() -> None:
    """Measure coding-agent CLIs: every number with a source."""


def main(args: list[str] | None = None) -> NoReturn:
    """The entry point. Where the reader of the output is gone, cab ends as most programs do: by SIGPIPE."""
    pipes = [number for number in (1, 2) if _is_pipe(number)]
    try:
        try:
            _main(args)
        finally:
            if sys.stdout is not None:
                # What is left would else be written when nothing can be made of its fault any more.
                sys.stdout.flush()
    except (BrokenPipeError, ClosedPipe) as error:
        _end_of(error, pipes)
    except SystemExit as end:
        # rich makes an end with 1 of it, as if some cell had not ended well.
        if isinstance(end.__context__, BrokenPipeError):
            _end_of(end.__context__, pipes)
        raise


def _is_pipe(number: int) -> bool:
    try:
        mode = os.fstat(number).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def _end_of(error: BrokenPipeError | ClosedPipe, pipes: Sequence[int]) -> NoReturn:
    """End by SIGPIPE, which Python turns into `error`; raise that where it came of another pipe or socket."""
    watch = select.poll()
    for number in pipes:
        watch.register(number, 0)
    # rich puts /dev/null in the place of one whose reader is gone.
    if not watch.poll(0) and all(map(_is_pipe, pipes)):
        raise error
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGPIPE)
    # PID 1 of a container outlives it.
    os._exit(128 + signal.SIGPIPE)


def _main(args: list[str] | None) -> NoReturn:
    """Run a command: a CabError becomes one line on stderr and its exit code, never a traceback."""
    # SIGTERM unwinds as Ctrl-C does; while cells run, both have a gentler meaning (report/live.py).
    interrupted = _Interrupted()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupted)
    try:
        # An image's entry blocks them, so that none is lost before this.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})
        # Standalone, click would end an interrupted command with 1.
        sys.exit(cab.main(args=args, prog_name="cab", standalone_mode=False))
    except click.UsageError as error:
        _explain(error)
        sys.exit(error.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(INTERRUPTED)
    except CabError as error:
        if interrupted.seen:
            sys.exit(INTERRUPTED)
        # A place or a thing may be named by what an agent wrote; the mend is cab's own.
        from orchestrator.report.called import as_called
        from orchestrator.report.text import safe_line

        error.mend = as_called(error.mend)
        click.echo(safe_line(f"cab: {error}", MAX_ERROR), err=True)
        sys.exit(error.exit_code)


class _Interrupted:
    """Raises KeyboardInterrupt, and knows that it did: one that is raised inside a finaliser or a callback is
    swallowed there, and what then fails is no fault to report.
    """

    seen = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.seen = True
        signal.default_int_handler(number, frame)


def _explain(error: click.UsageError) -> None:
    """One line that says what is wrong with the arguments; the help, where none was given at all."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()
        return
    from orchestrator.report.called import as_called

    command = error.ctx.command_path if error.ctx else "cab"
    message = " ".join(error.format_message().split())
    click.echo(f"{command}: {message} ({as_called(f'see {command} --help')})", err=True)
