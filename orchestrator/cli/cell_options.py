"""The options that say which one cell is meant, as far as a sweep file can say it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import click

from orchestrator.adapter import Wire
from orchestrator.cli.complete import clis, tasks
from orchestrator.errors import InputError

if TYPE_CHECKING:
    from pydantic import ValidationError

    from orchestrator.gateway.contract import Endpoint
    from orchestrator.run.alone import Asked
    from scorers.evidence import Price, Rates

EMBEDDED = "embedded/"
SETTINGS: dict[str, Any] = {
    "temperature": float,
    "top_p": float,
    "max_output_tokens": int,
    "reasoning_effort": str,
    "seed": int,
}
"""Generation settings by cab's names, each an option."""

C = TypeVar("C", bound=Callable[..., Any])

_OPTIONS: tuple[Callable[[Any], Any], ...] = (
    click.option(
        "--tui", "cli", required=True, metavar="CLI", help="The coding-agent CLI.", shell_complete=clis
    ),
    click.option(
        "--model",
        default="none",
        metavar="ID",
        help="A model at the endpoint, or embedded/NAME; a baseline asks none.",
    ),
    click.option("--task", required=True, metavar="CATEGORY/NAME", help="The task.", shell_complete=tasks),
    click.option(
        "--run", type=click.IntRange(1, 1000), default=1, show_default=True, help="The cell's run number."
    ),
    click.option("--stack", metavar="NAME=PLUGIN,…", help="A stack of plugins, by any name."),
)

_MEASURED: tuple[Callable[[Any], Any], ...] = (
    click.option(
        "--wire",
        type=click.Choice(get_args(Wire)),
        default="chat",
        show_default=True,
        help="What the endpoint speaks.",
    ),
    *(
        click.option(f"--{name.replace('_', '-')}", name, type=kind, help="Set on every request.")
        for name, kind in SETTINGS.items()
    ),
    click.option("--timeout", "timeout_s", type=float, metavar="S", help="Instead of the task's own."),
    click.option(
        "--max-tokens", type=int, metavar="N", help="What the cell may spend, input and output together."
    ),
    click.option("--max-usd", type=float, metavar="USD", help="The same in money; needs --price."),
    click.option(
        "--price",
        "prices",
        multiple=True,
        metavar="input=USD,output=USD",
        help="For a million tokens; may have cached_read and cache_write. Once more with above=TOKENS for "
        "calls of more input.",
    ),
    click.option(
        "--require",
        multiple=True,
        type=click.Choice(["tokens.wire"]),
        help="Do not count a cell of which a call's tokens were not stated.",
    ),
)


def cell_options(command: C) -> C:
    """The options; their values go to `asked_of`."""
    return _with(_OPTIONS, measured_options(command))


def measured_options(command: C) -> C:
    """Those that say how a model is asked, and what a cell may take."""
    return _with(_MEASURED, command)


def _with(options: tuple[Callable[[Any], Any], ...], command: C) -> C:
    for option in reversed(options):
        command = option(command)
    return command


def hosted(model: str) -> bool:
    """Whether a model is one at an endpoint."""
    return model != "none" and not model.startswith(EMBEDDED)


def check_key(key: str, place: str) -> None:
    """Raises InputError, which does not repeat the key, where no HTTP header can carry it."""
    if not (key.isascii() and key.isprintable()):
        thing = "the key holds a line end, or another character that no HTTP header can carry"
        raise InputError(thing, place=place, mend="set it to the key alone")


def asked_of(values: dict[str, Any], endpoint: Endpoint | None) -> Asked:
    """The cell that the options ask for. Raises InputError that names the option."""
    from pydantic import ValidationError

    from orchestrator.gateway.settings import GenerationSettings
    from orchestrator.plan.spec import LimitSpec
    from orchestrator.run.alone import Asked

    settings = {name: values[name] for name in SETTINGS if values[name] is not None}
    price = price_of(values["prices"])
    if values["max_usd"] is not None and price is None:
        mend = "give --price input=USD,output=USD, for a million tokens each"
        raise InputError("spending in USD is not limited without a price", place="--max-usd", mend=mend)
    if not hosted(values["model"]) and (settings or price):
        given = f"--{next(iter(settings)).replace('_', '-')}" if settings else "--price"
        raise InputError(f"is nothing to {values['model']}", place=given, mend="leave it out")
    try:
        asked = Asked(
            cli=values["cli"],
            model=values["model"],
            task=values["task"],
            run=values["run"],
            stack=_stack(values["stack"]),
            endpoint=endpoint,
            settings=GenerationSettings(**settings),
            price=price,
            limits=LimitSpec(tokens=values["max_tokens"], usd=values["max_usd"]),
            timeout_s=values["timeout_s"],
            require=tuple(values["require"]),
        )
        asked.spec()
    except ValidationError as error:
        raise _named(error) from None
    return asked


def _stack(text: str | None) -> Any:
    """The stack of `NAME=PLUGIN,PLUGIN`. Raises InputError, and ValidationError for what names none."""
    from orchestrator.plan.spec import StackSpec

    if text is None:
        return None
    name, _, plugins = text.partition("=")
    if not plugins:
        mend = "give NAME=PLUGIN, or NAME=PLUGIN,PLUGIN"
        raise InputError(f"{text!r} names no plugin", place="--stack", mend=mend)
    return StackSpec(name=name, plugins=tuple(plugins.split(",")))


def price_of(texts: tuple[str, ...]) -> Price | None:
    """What `--price` gives; None without any. Raises InputError."""
    from scorers.evidence import Price

    if not texts:
        return None
    rates = sorted((_rates(text) for text in texts), key=lambda rate: rate.above)
    if rates[0].above:
        mend = "give one --price without above"
        raise InputError("no price holds from the first token on", place="--price", mend=mend)
    return Price(rates=rates, source="--price")


def _rates(text: str) -> Rates:
    """`input=1.25,output=10`. Raises InputError."""
    from pydantic import ValidationError

    from scorers.evidence import Rates

    parts = [part.partition("=") for part in text.split(",")]
    try:
        return Rates.model_validate_strings({name: value for name, _, value in parts})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        thing = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        mend = "give input=USD,output=USD, for a million tokens each"
        raise InputError(thing, place=f"--price {text}", mend=mend) from None


def _named(error: ValidationError) -> InputError:
    """The first fault, by the option that its value came from."""
    first = error.errors(include_url=False)[0]
    names = {
        "id": "model",
        "name": "stack",
        "plugins": "stack",
        "tasks": "task",
        "timeout_s": "timeout",
        "tokens": "max-tokens",
        "usd": "max-usd",
    }
    field = str(first["loc"][0]) if first["loc"] else ""
    option = names.get(field, field.replace("_", "-"))
    return InputError(first["msg"].removeprefix("Value error, "), place=f"--{option}", mend="see --help")
