"""What the models of a sweep cost: the sweep file's word, else the price library's.

Prices are looked up once, when a sweep starts, and stored with it: all its cells are priced alike, and a
later release of the library changes nothing of what was measured.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime

from orchestrator.errors import InputError
from orchestrator.plan.spec import EMBEDDED_MODELS, ModelSpec, SweepSpec
from orchestrator.store.names import NO_MODEL
from scorers.evidence import Price, Rates

Prices = Mapping[str, Price | str]
"""By model: its price, or why there is none."""

SCRIPTED = "a scripted model has no price"
LOCAL = "a local model runs on this machine, at no price"
ASKS_NONE = "the CLI asks no model"
NOT_LOOKED_UP = "no price was looked up when the sweep started"
NO_LIBRARY = "none was given, and an image holds no price library"
_FIELDS = ("input", "output", "cached_read", "cache_write")
_IN_LIBRARY = ("input_mtok", "output_mtok", "cache_read_mtok", "cache_write_mtok")


def prices_of(spec: SweepSpec, env: Mapping[str, str] = os.environ) -> dict[str, Price | str]:
    """The price of each model of a sweep as of now, or why it has none."""
    return {model.id: _price_of(spec, model, env) for model in spec.models}


def price_of(prices: Prices, model: str) -> Price | str:
    """A cell's price, or why it has none; a sweep stored by an earlier cab has no prices."""
    return ASKS_NONE if model == NO_MODEL else prices.get(model, NOT_LOOKED_UP)


def check_known(spec: SweepSpec, prices: Prices, place: str) -> None:
    """Raises InputError where the sweep needs a price that is not known. Scripted models spend no money."""
    if not spec.needs_prices:
        return
    for model, found in prices.items():
        if isinstance(found, str) and model not in EMBEDDED_MODELS:
            give = f"give {model} price: {{input: …, output: …}}"
            lift = "take price out of require" if "price" in spec.require else "set allow_unknown_price: true"
            raise InputError(
                f"the price of {model} is not known: {found}", place=place, mend=f"{give}, or {lift}"
            )


def _price_of(spec: SweepSpec, model: ModelSpec, env: Mapping[str, str]) -> Price | str:
    if model.price is not None:
        return Price(rates=[Rates(**model.price.model_dump())], source="sweep file")
    if model.endpoint is None:
        return LOCAL if model.local else SCRIPTED
    url = spec.endpoints[model.endpoint].base_url
    address = url.url or env.get(url.env or "")
    if not address:
        return f"{url.env} is not set"
    return from_library(model.id, address, datetime.now(UTC))


def from_library(model: str, address: str, at: datetime) -> Price | str:
    """The library's price at `at` of a model at the endpoint `address`, or why it has none.

    The endpoint decides: who else serves a model of that name may ask another price.
    """
    # Imported here: its data takes a third of a second, and few calls need it.
    try:
        from genai_prices import __version__
        from genai_prices.data_snapshot import get_snapshot
        from genai_prices.types import TieredPrices
    except ModuleNotFoundError:
        return NO_LIBRARY

    library = get_snapshot()
    try:
        provider = library.find_provider(None, None, address)
    except LookupError:
        return f"genai-prices {__version__} does not know the endpoint"
    try:
        _, info = library.find_provider_model(model, provider, None, None)
    except LookupError:
        return f"genai-prices {__version__} does not know the model at {provider.id}"
    stated = {
        ours: getattr(info.get_prices(at), theirs) for ours, theirs in zip(_FIELDS, _IN_LIBRARY, strict=True)
    }
    if stated["input"] is None or stated["output"] is None:
        return f"genai-prices {__version__} knows no price by token of {provider.id}/{info.id}"

    def rate(price: object, above: int) -> float | None:
        if isinstance(price, TieredPrices):
            return float(
                next((tier.price for tier in reversed(price.tiers) if tier.start <= above), price.base)
            )
        return None if price is None else float(str(price))

    starts = {
        tier.start for price in stated.values() if isinstance(price, TieredPrices) for tier in price.tiers
    }
    return Price(
        rates=[
            Rates.model_validate(
                {"above": above} | {name: rate(price, above) for name, price in stated.items()}
            )
            for above in sorted({0} | starts)
        ],
        source=f"genai-prices {__version__}, {provider.id}/{info.id} as of {at:%Y-%m-%d}",
    )
