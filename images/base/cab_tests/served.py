"""Python's code under test, in a process of its own: has it, and answers what the tests ask of it."""

from __future__ import annotations

import importlib
import json
import os
import sys
from typing import Any

from cab_tests.peer import ANSWERS, REQUESTS
from cab_tests.plain import pack, unpack


def run(workdir: str) -> None:
    """Answer until the requests end."""
    sys.path.append(workdir)
    for end in (REQUESTS, ANSWERS):
        os.set_inheritable(end, False)
    kept: list[object] = []

    def number_of(value: object) -> int:
        kept.append(value)
        return len(kept) - 1

    with os.fdopen(REQUESTS) as questions, os.fdopen(ANSWERS, "w") as answers:
        for question in questions:
            verb, of, *rest = unpack(json.loads(question), kept.__getitem__)
            try:
                value = _done(verb, kept[of] if isinstance(of, int) else of, rest)
                answer = json.dumps(pack((True, value), number_of))
            except BaseException as error:  # noqa: BLE001 - whatever the code under test raises
                answer = json.dumps(pack((False, (type(error).__name__, f"{error}")), number_of))
            answers.write(answer + "\n")
            answers.flush()


def _done(verb: str, of: Any, rest: list[Any]) -> object:
    if verb == "import":
        return importlib.import_module(of)
    return getattr(of, rest[0]) if verb == "get" else of(*rest[0], **rest[1])
