"""A CLI's own totals are a cross-check: they stand beside the wire's and change no number."""

from pathlib import Path

import pytest

from orchestrator.adapter import CliUsage, load_adapter
from scorers.evidence import CliUsage as Said
from scorers.evidence import Evidence, ModelCall, Usage
from scorers.tokens import score

AIDER = load_adapter(Path(__file__).parents[3] / "images", "aider")


def call(index, usage=None, **given):
    return ModelCall(index=index, start=index, end=index + 1, request_hash="h", usage=usage, **given)


@pytest.mark.parametrize(
    ("printed", "found"),
    [
        ("Tokens: 523 sent, 19 received.\r\n", CliUsage(523, 19)),
        ("Tokens: 7.2k sent, 105 received. Cost: $0.01\nTokens: 12k sent, 1.0k received.",
         CliUsage(19_200, 1105, 550, 50)),
        ("Tokens: 4.4k sent, 1.2k cache write, 3.1k cache hit, 163 received.", CliUsage(4400, 163, 50)),
        ("Tokens: many sent, 1 received.", None),
        ("Tokens: " + "9" * 5000 + " sent, 1 received.", None),
        ("", None),
    ],
)  # fmt: skip
def test_what_aider_prints(printed, found):
    assert AIDER.reported_usage(printed) == found


@pytest.mark.parametrize(("said", "agrees"), [(1049, True), (1051, False)])
def test_it_stands_beside_the_wires_of_the_main_thread(said, agrees):
    calls = [call(0, Usage(input=1000, output=10)), call(1, Usage(input=70, output=7), main=False)]
    usage = Said(input=said, output=10, input_margin=50)
    tokens = score(Evidence(calls=calls, cli_usage=usage), 1)
    assert (tokens.prompt_tokens, tokens.source) == (1070, "wire")
    assert (tokens.cli.input, tokens.cli.wire_input, tokens.cli.wire_output) == (said, 1000, 10)
    assert tokens.cli.agrees is agrees


def test_it_takes_the_place_of_nothing_that_the_wire_did_not_state():
    usage = Said(input=100, output=10)
    tokens = score(Evidence(calls=[call(0)], cli_usage=usage), 1)
    assert (tokens.total_tokens, tokens.cli.wire_input, tokens.cli.agrees) == (None, None, None)
    assert tokens.reasons["total_tokens"] == "1 of 1 counted calls stated no usage"


def test_without_it_the_reason_stands():
    tokens = score(Evidence(no_cli_usage="the CLI did not print its totals"), 1)
    assert (tokens.cli, tokens.reasons["cli"]) == (None, "the CLI did not print its totals")
