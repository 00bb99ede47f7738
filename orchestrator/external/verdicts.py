"""The harness's verdicts of one condition and run as they are kept: each with the digest of the patch that it
is about.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from orchestrator.errors import StoreError
from orchestrator.external.artifacts import digest_of
from orchestrator.external.results import Verdict
from orchestrator.store.files import store_errors

VERDICTS = "verdicts.json"


def verdicts_bytes(
    head: Mapping[str, object], patches: Mapping[str, str], found: Mapping[str, Verdict]
) -> bytes:
    """`verdicts.json`: what is told of the harness, and the verdict on each of `patches`."""
    kept = {
        name: {"patch": digest_of(patches[name]), "verdict": verdict.model_dump(mode="json")}
        for name, verdict in found.items()
        if name in patches
    }
    return f"{json.dumps({'v': 1, **head, 'verdicts': kept}, indent=1)}\n".encode()


def stored_verdicts(work: Path, patches: Mapping[str, str]) -> dict[str, Verdict]:
    """What the harness said before of these very patches. Raises StoreError for a damaged file."""
    path = work / VERDICTS
    if not path.exists():
        return {}
    with store_errors(path):
        raw = path.read_bytes()
    try:
        kept = json.loads(raw)["verdicts"]
        return {
            instance: Verdict.model_validate_json(json.dumps(it["verdict"]))
            for instance, it in kept.items()
            if instance in patches and it["patch"] == digest_of(patches[instance])
        }
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise StoreError("is damaged", place=str(path), mend="remove it, and run the harness") from None


def of_attempt(said: Verdict, patch_fault: str) -> Verdict:
    """The verdict on what an agent left, from the one on its prediction: where no patch could be made of it,
    the harness was given an empty one, and what it says of that is an error of the attempt's.
    """
    if said.outcome == "incomplete" or not patch_fault:
        return said
    return Verdict(outcome="error", reason=patch_fault, applied=False)
