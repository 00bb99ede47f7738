"""The scorecard of a run, and what may be said of it: claims hold here, and every report asks here.

Below `harness_evaluated` no verdict leaves this module: it is taken off the results before anything is
reckoned, written or shown, so that no rate can be made of it anywhere. While a verdict is missing there are
counts of outcomes and no rate.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from pydantic import ValidationError

from orchestrator.analysis.conditions import MEASURES, Attempt, Conditions, of_conditions
from orchestrator.errors import InputError, StoreError
from orchestrator.external.agreement import held_against
from orchestrator.external.claims import NOT_RUN, claim_data
from orchestrator.external.results import Claim, ClaimLevel, Scorecard, TaskResult
from orchestrator.store.files import store_errors, write_durably

SCORECARD = "scorecard.json"

ABOUT: Mapping[ClaimLevel, str] = {
    "dry_run_pipeline_only": "a dry run: no agent worked and no patch is real; it tests the pipeline, and "
    "none of its numbers is a result",
    "patch_generation_only": "patches were made and not judged: whether any of them resolves its task is not "
    "known",
    "harness_evaluated": "patches were judged by the benchmark's harness",
}
"""What each level allows to be said."""

_OF_PROMPTS = ("prompt_tokens",)
"""All that a dry run measures: its prompts are real, its patches and their time are not."""


def enforced(card: Scorecard) -> Scorecard:
    """The card with nothing that its claim does not allow. Below `harness_evaluated` no result has a verdict;
    at it, the claim says partial where one is missing or the run says otherwise.
    """
    claim = card.claim
    if any(result.agent_outcome == NOT_RUN for result in card.results):
        # Whatever level the file says: what no agent made is never a result.
        claim = claim.model_copy(update={"level": "dry_run_pipeline_only"})
    if claim.level != "harness_evaluated":
        results = tuple(result.model_copy(update={"verdict": None}) for result in card.results)
        return card.model_copy(update={"claim": _with(claim, partial=False), "results": results})
    missing = any(attempt.outcome in (None, "incomplete") for attempt in attempts_of(card))
    return card.model_copy(
        update={"claim": _with(claim, partial=claim.partial or missing or bool(claim.doubts))}
    )


def conditions_of(card: Scorecard) -> Conditions:
    """The conditions of a run beside each other, as far as its claim allows."""
    card = enforced(card)
    attempts, level = attempts_of(card), card.claim.level
    if level == "harness_evaluated":
        found = of_conditions(attempts, card.conditions)
        partial = card.claim.partial and found.withheld is None
        if card.claim.doubts:
            return of_conditions(attempts, card.conditions, withheld=DOUBTED)
        return of_conditions(attempts, card.conditions, withheld=_PARTIAL) if partial else found
    withheld = f"the claim is {level}"
    if level == "dry_run_pipeline_only":
        attempts = [
            replace(attempt, values={name: attempt.values[name] for name in _OF_PROMPTS})
            for attempt in attempts
        ]
    return of_conditions(attempts, card.conditions, withheld=withheld)


_PARTIAL = "partial: the harness has not judged all of it"
DOUBTED = "the scorecard does not agree with the run beside it"


def claim_in_words(claim: Claim) -> str:
    """The first line of every artifact: the level, what it means, and why no more may be said."""
    about = ABOUT[claim.level]
    if claim.doubts:
        about = f"{DOUBTED}: {'; '.join(claim.doubts)}; the command of the run, given again, writes it anew"
        return f"claim: {claim.level}, IN DOUBT – {about}"
    level = f"{claim.level}, PARTIAL" if claim.partial else claim.level
    if claim.partial:
        about = f"{about}, and not all of them: no resolved rate"
    why = f" ({'; '.join(claim.reasons)})" if claim.reasons else ""
    return f"claim: {level} – {about}{why}"


def scorecard_bytes(card: Scorecard) -> bytes:
    """`scorecard.json`: the claim first, then what was run, then a line for each result. In ASCII: a terminal
    obeys some characters that JSON leaves as they are.
    """
    card = enforced(card)
    stored = card.model_dump(mode="json") | {"claim": claim_data(card.claim)}
    results = stored.pop("results")
    head = {name: stored.pop(name) for name in ("v", "claim")} | stored
    lines = ",\n".join(f"  {json.dumps(result)}" for result in results)
    told = "".join(f" {json.dumps(name)}: {json.dumps(it)},\n" for name, it in head.items())
    return f'{{\n{told} "results": [\n{lines}\n ]\n}}\n'.encode()


def write_scorecard(out: Path, card: Scorecard) -> None:
    """Write `scorecard.json` whole or not at all. Raises StoreError."""
    with store_errors(out):
        write_durably(out / SCORECARD, scorecard_bytes(card))


def read_scorecard(out: Path) -> Scorecard:
    """The scorecard of a run's directory, held against that run, with nothing that its claim does not allow.

    Raises InputError where there is none, StoreError where it cannot be read or is damaged.
    """
    path = out / SCORECARD
    if not path.is_file():
        mend = "give the --out of `cab external run`"
        raise InputError("there is no scorecard", place=str(path), mend=mend)
    with store_errors(path):
        raw = path.read_bytes()
    try:
        card = Scorecard.model_validate_json(raw)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        said = f"is no scorecard: {where}: {first['msg']}" if where else f"is no scorecard: {first['msg']}"
        mend = "give the command of the run again, which writes it anew"
        raise StoreError(said, place=str(path), mend=mend) from None
    return enforced(held_against(card, out))


def tasks_of(card: Scorecard) -> tuple[str, ...]:
    """The ids of all that was submitted, by name."""
    return tuple(sorted({*card.tasks, *(result.instance_id for result in card.results)}))


def _with(claim: Claim, *, partial: bool) -> Claim:
    return claim.model_copy(update={"partial": partial})


def attempts_of(card: Scorecard) -> list[Attempt]:
    """Every task under every condition as often as it was to be run; what has no result yet lacks all. None
    is judged below `harness_evaluated`.
    """
    judged = card.claim.level == "harness_evaluated"
    known = {(it.instance_id, it.condition, it.run): it for it in card.results}
    found = []
    for task in tasks_of(card):
        for condition in card.conditions:
            for run in range(1, card.runs + 1):
                result = known.get((task, condition, run))
                found.append(
                    _attempt(result, judged) if result else Attempt(task, condition, run, None, _NOTHING)
                )
    return found


_NOTHING: Mapping[str, float | None] = dict.fromkeys(MEASURES)


def _attempt(result: TaskResult, judged: bool) -> Attempt:
    verdict = result.verdict if judged else None
    return Attempt(
        task=result.instance_id,
        condition=result.condition,
        run=result.run,
        outcome=None if verdict is None else verdict.outcome,
        values={name: getattr(result, name) for name in MEASURES},
        cell_id=result.cell_id,
    )
