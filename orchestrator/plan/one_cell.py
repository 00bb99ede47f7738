"""One cell as it is asked for on a command line, by the words of a sweep file."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from orchestrator.adapter import Wire
from orchestrator.errors import InputError
from orchestrator.gateway.local.registry import PREFIX as LOCAL
from orchestrator.nearest import nearest
from orchestrator.plan.expand import REPLAY
from orchestrator.plan.spec import EMBEDDED, EMBEDDED_MODELS, FACTORY, SweepSpec
from orchestrator.store.names import NO_MODEL
from scorers.evidence import Price, Rates

ENDPOINT = "endpoint"
"""The name of the one endpoint that there may be."""

OPTIONS = {
    "models": "--model",
    "clis": "--tui",
    "tasks": "--task",
    "stacks": "--stack",
    "endpoints": "--wire",
    "timeout_s": "--timeout",
    "tokens": "--max-tokens",
    "usd": "--max-usd",
}
"""The option that gives a part of a spec, by its key."""


@dataclass(frozen=True)
class OneCell:
    """`stack` is `NAME=PLUGIN,PLUGIN` or None; `settings` are generation settings by cab's names, `prices`
    texts as `_rates` reads them. `endpoint_env` names the variable of the base URL of the model's endpoint.
    """

    cli: str
    model: str
    task: str
    run: int = 1
    stack: str | None = None
    wire: Wire = "chat"
    settings: dict[str, Any] = field(default_factory=dict)
    timeout_s: float | None = None
    max_tokens: int | None = None
    max_usd: float | None = None
    prices: tuple[str, ...] = ()
    require: tuple[str, ...] = ()
    endpoint_env: str = "CAB_ENDPOINT"

    @property
    def hosted(self) -> bool:
        """Whether the model is one at an endpoint."""
        return self.model != NO_MODEL and not self.model.startswith(EMBEDDED)

    @property
    def price(self) -> Price | None:
        """What the model costs, as given. Raises InputError."""
        if not self.prices:
            return None
        rates = sorted((_rates(text) for text in self.prices), key=lambda rate: rate.above)
        if rates[0].above:
            raise InputError(
                "no price holds from the first token on", place="--price", mend="give one without above"
            )
        return Price(rates=rates, source="--price")

    def spec(self) -> SweepSpec:
        """The sweep of this one cell (its run is always 1). Raises InputError that names the option."""
        self._check_model()
        if self.max_usd is not None and not self.prices:
            raise InputError(
                "spending in USD cannot be limited without a price",
                place="--max-usd",
                mend="give --price input=USD,output=USD, for a million tokens each",
            )
        model: dict[str, Any] = {"id": self.model}
        if self.hosted:
            model |= {"endpoint": ENDPOINT, "settings": self.settings}
        data = {
            "name": "cell",
            "clis": [self.cli],
            "models": [] if self.model == NO_MODEL else [model],
            "endpoints": (
                {ENDPOINT: {"base_url": {"env": self.endpoint_env}, "wire": self.wire}} if self.hosted else {}
            ),
            "tasks": [self.task],
            "stacks": [_stack(self.stack)],
            "limits": {"tokens": self.max_tokens, "usd": self.max_usd},
            "timeout_s": self.timeout_s,
            "require": list(self.require),
            "allow_unknown_price": True,
        }
        try:
            return SweepSpec.of_data(data)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            message = first["msg"].removeprefix("Value error, ")
            raise InputError(message, place=_option(first["loc"]), mend="see --help") from None

    def _check_model(self) -> None:
        if self.model.startswith((LOCAL, REPLAY)):
            raise InputError(
                f"{self.model} is served where its file is",
                place="--model",
                mend="run it in a sweep, or give a model at an endpoint",
            )
        if self.model.startswith(EMBEDDED) and self.model not in EMBEDDED_MODELS:
            mend = nearest(self.model, EMBEDDED_MODELS)
            raise InputError(f"unknown embedded model {self.model!r}", place="--model", mend=mend)
        if not self.hosted and self.settings:
            given = f"--{next(iter(self.settings)).replace('_', '-')}"
            raise InputError(f"{self.model} takes no settings", place=given, mend=f"leave {given} out")
        if not self.hosted and self.prices:
            raise InputError(f"{self.model} has no price", place="--price", mend="leave --price out")


def _stack(text: str | None) -> str | dict[str, Any]:
    if text is None or text == FACTORY:
        return FACTORY
    name, equals, plugins = text.partition("=")
    if not equals or not plugins:
        raise InputError(
            f"{text!r} names no plugin", place="--stack", mend="give NAME=PLUGIN, or NAME=PLUGIN,PLUGIN"
        )
    return {"name": name, "plugins": plugins.split(",")}


def _rates(text: str) -> Rates:
    """`input=1.25,output=10`, as `--price` has it. Raises InputError."""
    parts = [part.partition("=") for part in text.split(",")]
    try:
        return Rates.model_validate_strings({name: value for name, _, value in parts})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        at = ".".join(str(part) for part in first["loc"])
        raise InputError(
            f"{at}: {first['msg']}",
            place=f"--price {text}",
            mend=f"give {', '.join(f'{name}=…' for name in Rates.model_fields)}; input and output at least",
        ) from None


def _option(at: tuple[int | str, ...]) -> str:
    """The option that a place in the spec was given by."""
    words = [part for part in at if isinstance(part, str)]
    if "settings" in words:
        return f"--{words[-1].replace('_', '-')}"
    return next((OPTIONS[word] for word in words if word in OPTIONS), "run-cell")
