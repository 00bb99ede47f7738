"""What run-cell is told on its command line, and the one line that it answers where that cannot be."""

from __future__ import annotations

from typing import Any

import pytest
from click.testing import CliRunner

from orchestrator.cli.cell_options import asked_of
from orchestrator.cli.run_cell_cmd import missing_capabilities, run_cell
from orchestrator.errors import CabError, EnvironmentFault, InputError
from orchestrator.gateway.contract import Endpoint

TASK = "polyglot/python-reverse-string"
ENDPOINT = Endpoint(name="endpoint", base_url="http://localhost/v1", key="")


def values(*words: str, model: str = "openai/gpt") -> dict[str, Any]:
    usual = ["--tui", "opencode", "--model", model, "--task", TASK]
    return run_cell.make_context("run-cell", [*usual, *words]).params


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--temperature", "3"], r"^--temperature: .*less than or equal to 2"),
        (["--reasoning-effort", "huge"], r"^--reasoning-effort: .*'low'"),
        (["--max-tokens", "0"], r"^--max-tokens: .*greater than or equal to 1"),
        (["--max-usd", "1"], r"^--max-usd: .*without a price \(give --price"),
        (["--price", "input=1"], r"^--price input=1: output: .*required"),
        (["--price", "input=1,output=2,lunch=3"], r"^--price .*lunch: "),
        (["--price", "above=5,input=1,output=2"], r"^--price: no price holds from the first token"),
        (["--stack", "careful"], r"^--stack: 'careful' names no plugin"),
        (["--stack", "factory=rules"], r"^--stack: .*'factory' cannot name"),
    ],
)
def test_what_cannot_be_is_told_by_its_option(words: list[str], said: str) -> None:
    with pytest.raises(InputError, match=said):
        asked_of(values(*words), ENDPOINT)


@pytest.mark.parametrize("words", [["--temperature", "1"], ["--price", "input=1,output=2"]])
def test_what_a_scripted_model_does_not_heed_is_refused(words: list[str]) -> None:
    with pytest.raises(InputError, match=f"^{words[0]}: is nothing to embedded/reference"):
        asked_of(values(*words, model="embedded/reference"), None)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"task": "polyglot/python-revers"}, "did you mean 'polyglot/python-reverse-string'"),
        ({"model": "embedded/referense"}, "did you mean 'embedded/reference'"),
        ({"model": "local/x"}, "local model"),
        ({"model": "none"}, "opencode asks a model"),
        ({"model": "a b"}, "^--model: .*character that no name may hold"),
        ({"task": "poly glot"}, "^--task: "),
        ({"timeout_s": -1.0}, "^--timeout: "),
    ],
)
def test_a_cell_that_there_is_not_is_refused_in_one_line(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(CabError, match=said) as refused:
        asked_of({**values(), **changes}, ENDPOINT).matrix()
    assert "\n" not in str(refused.value)


def test_outside_an_image_it_says_what_it_is_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAB_KEY", "sk-of-a-test")
    done = CliRunner().invoke(run_cell, ["--tui", "opencode", "--task", TASK])
    assert isinstance(done.exception, EnvironmentFault)
    assert "docker run" in str(done.exception)


@pytest.mark.parametrize(
    ("effective", "missing"),
    [
        ("00000000a80425fb", []),  # what an engine gives root
        ("0000000000000000", ["CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "SETGID", "SETUID", "SETPCAP"]),
        ("00000000a80425db", ["KILL"]),
    ],
)
def test_capabilities_that_root_lacks_are_named(effective: str, missing: list[str]) -> None:
    assert missing_capabilities(f"Name:\tcab\nCapEff:\t{effective}\nSeccomp:\t2\n") == missing
