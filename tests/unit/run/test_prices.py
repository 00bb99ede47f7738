"""A price is the sweep file's, else the library's by the endpoint; what is not known has a reason."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from orchestrator.errors import InputError
from orchestrator.plan.spec import Spending, SweepSpec
from orchestrator.run.budget import Budget
from orchestrator.run.prices import SCRIPTED, check_known, from_library, price_of, prices_of
from orchestrator.run.start import Options, of_file
from scorers.evidence import Price, Rates

OPENAI, ANTHROPIC, LOCAL = (
    "https://api.openai.com/v1",
    "https://api.anthropic.com/v1",
    "http://127.0.0.1:9/v1",
)
DAY = datetime(2026, 11, 28, tzinfo=UTC)


def spec(**fields: Any) -> SweepSpec:
    models = fields.pop("models", [{"id": "m/x", "endpoint": "up"}, "embedded/idle"])
    base = {"name": "n", "clis": ["opencode"], "tasks": ["polyglot/python-reverse-string"], "models": models}
    return SweepSpec.of_data(base | {"endpoints": {"up": {"base_url": {"env": "UP_URL"}}}} | fields)


def test_the_library_knows_a_model_by_its_endpoint() -> None:
    found = from_library("gpt-4o", OPENAI, DAY)
    assert isinstance(found, Price)
    (rates,) = found.rates
    assert rates.cached_read is not None
    assert 0 < rates.cached_read < rates.input < rates.output
    assert found.source.startswith("genai-prices ")
    assert found.source.endswith(", openai/gpt-4o as of 2026-11-28")


def test_prices_that_depend_on_a_calls_length_are_kept_so() -> None:
    found = from_library("claude-sonnet-4-5", ANTHROPIC, DAY)
    assert isinstance(found, Price)
    short, long = found.rates
    assert (short.above, long.above) == (0, 200_000)
    assert short.input < long.input
    assert short.cache_write is not None


def test_what_the_library_does_not_know_has_a_reason() -> None:
    assert "does not know the endpoint" in str(from_library("gpt-4o", LOCAL, DAY))
    assert "does not know the model at openai" in str(from_library("nobody/has-this", OPENAI, DAY))


def test_the_file_comes_first_and_a_script_has_no_price() -> None:
    given = {"id": "m/x", "endpoint": "up", "price": {"input": 1, "output": 2.5}}
    found = prices_of(spec(models=[given, "embedded/idle"]), {"UP_URL": OPENAI})
    rates = Rates(input=1, output=2.5)
    assert found == {"m/x": Price(rates=[rates], source="sweep file"), "embedded/idle": SCRIPTED}
    assert prices_of(spec(), {})["m/x"] == "UP_URL is not set"
    assert price_of(found, "none") == "the CLI asks no model"


@pytest.mark.parametrize(
    ("fields", "mend"),
    [
        ({"limits": {"usd": 1}}, "or set allow_unknown_price: true"),
        ({"budget": {"usd": 1}}, "or set allow_unknown_price: true"),
        ({"require": ["price"]}, "or take price out of require"),
    ],
)
def test_a_price_that_is_needed_and_not_known_is_refused(fields: dict[str, Any], mend: str) -> None:
    prices: dict[str, Price | str] = {"embedded/idle": SCRIPTED, "m/x": "why"}
    with pytest.raises(InputError, match=r"f: the price of m/x is not known: why \(give m/x price") as caught:
        check_known(spec(**fields), prices, "f")
    assert mend in str(caught.value)
    check_known(spec(**fields), {"embedded/idle": SCRIPTED}, "f")
    allowed = spec(**fields, allow_unknown_price=True)
    assert allowed.needs_prices is ("require" in fields)
    check_known(spec(limits={"tokens": 1}), prices, "f")


def test_a_sweep_is_refused_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UP_URL", LOCAL)
    file = tmp_path / "s.yaml"
    file.write_text(spec().model_dump_json(exclude_defaults=True))
    of_file(file, tmp_path / "r", "s-1")
    with pytest.raises(InputError, match=r"does not know the endpoint"):
        of_file(file, tmp_path / "r", "s-1", Options(require=("price",)))
    assert not (tmp_path / "r").exists()


def test_an_option_takes_the_place_of_its_part_of_the_budget() -> None:
    asked = Options(budget=Spending(tokens=7), require=("price", "tokens.wire"))
    applied = asked.applied(spec(budget={"tokens": 5, "usd": 1}, require=["tokens.wire"]))
    assert applied.budget == Spending(tokens=7, usd=1)
    assert applied.require == ("tokens.wire", "price")


def test_a_budget_is_used_up_by_either_part() -> None:
    budget = Budget(Spending(tokens=10, usd=1.0))
    budget.add(None, None)
    budget.add(9, 0.5)
    assert not budget.used_up
    budget.add(0, 0.5)
    assert budget.used_up
    assert Budget(Spending(tokens=1), tokens=1).used_up
    assert not Budget(tokens=10**9, usd=1e9).used_up


def test_a_local_model_has_no_price_unless_the_file_gives_one() -> None:
    free = {"id": "local/free", "price": {"input": 0, "output": 0}}
    models = {"name": "l", "clis": ["aider"], "tasks": ["a"], "models": ["local/tiny", free]}
    found = prices_of(SweepSpec.of_data(models), {})
    assert found["local/tiny"] == "a local model runs on this machine, at no price"
    assert isinstance(found["local/free"], Price)
    assert found["local/free"].rates == [Rates(input=0, output=0)]
