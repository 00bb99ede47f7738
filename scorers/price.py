"""What tokens cost at a given price, call by call: a rate may depend on the input of the call."""

from __future__ import annotations

from scorers.evidence import Price, Usage

PER = 1_000_000
"""Rates are for so many tokens."""


def cost_usd(usage: Usage, price: Price) -> float:
    """USD of one call. Cache reads and writes that the wire did not state are billed as other input."""
    rates = max(
        (rates for rates in price.rates if rates.above == 0 or usage.input > rates.above),
        key=lambda rates: rates.above,
    )
    read, written = usage.cached_read or 0, usage.cache_write or 0
    plain = max(0, usage.input - read - written)
    at_read = rates.input if rates.cached_read is None else rates.cached_read
    at_write = rates.input if rates.cache_write is None else rates.cache_write
    return (plain * rates.input + read * at_read + written * at_write + usage.output * rates.output) / PER
