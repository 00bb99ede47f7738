"""Tasks of external benchmarks: rows as the official harness takes them, with what cab keeps beside them.

A row is a SWE-bench row: the classic columns, and for the harness's 5.x line `image`, `log_parser`,
`eval_type` and `eval_script`. cab's own keys stand beside these: `history` (a list of events),
`prior_patch` (work that an interrupted session left uncommitted), and for one scripted model `needs` and
`wrong_patch`. See docs/external.md.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from datetime import date
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from orchestrator.context.events import History
from orchestrator.errors import EnvironmentFault, InputError
from orchestrator.external.rows import place_of, read_rows
from orchestrator.nearest import nearest

HarnessLine = Literal["5", "4"]
"""The harness's two lines: 5.x takes all that it needs from the row, 4.x knows repositories by itself."""

OWN_KEYS = ("history", "prior_patch", "needs", "wrong_patch")
"""What cab reads beside a row and the harness is never given."""

START_MARKER, END_MARKER = ">>>>> Start Test Output", ">>>>> End Test Output"
"""What the output of an `eval_script` must show, each on a line of its own, around that of its tests."""

_NEEDS_5 = ("image", "log_parser", "eval_type", "eval_script")
_DOCS = "see docs/external.md"


def _json_list(value: object) -> object:
    """Lists of tests are lists in some releases of a data set, and JSON in a string in others."""
    if isinstance(value, str):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            raise ValueError("is neither a list nor a JSON list in a string") from None
    return value


def _diff(value: str) -> str:
    if value.strip() and not any(line.startswith(("diff --git ", "--- ")) for line in value.split("\n")):
        raise ValueError("is no diff: no line begins `diff --git` or `---`")
    return value


def _none_is_empty(value: object) -> object:
    return "" if value is None else value


_Tests = Annotated[tuple[str, ...], BeforeValidator(_json_list)]
_Text = Annotated[str, BeforeValidator(_none_is_empty)]
_InstanceId = Annotated[str, Field(max_length=120, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")]
"""Names directories here, and a container in the harness."""


class ExternalTask(BaseModel):
    """One task. `patch` is the reference solution; no prompt holds it, nor `test_patch`.

    `image`, `log_parser`, `eval_type`, `eval_script` are None where the row lacks them (a classic row).
    `row` is what the harness is given. `source` is the repository's tree at the base commit where cab carries
    it, else None. `prior_patch` is applied on it before an agent starts. `needs` are phrases of the history
    without which `embedded/follows-context` makes `wrong_patch` (against the base commit) of it.
    """

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True, strict=False)

    instance_id: _InstanceId
    repo: str = Field(min_length=1)
    base_commit: str = Field(pattern=r"^[0-9a-f]{7,64}$")
    problem_statement: str = Field(min_length=1)
    hints_text: _Text = ""
    version: _Text = ""
    patch: str | None = None
    test_patch: _Text = ""
    FAIL_TO_PASS: _Tests = ()
    PASS_TO_PASS: _Tests = ()
    image: Annotated[str, Field(min_length=1)] | None = None
    log_parser: Annotated[str, Field(min_length=1)] | None = None
    eval_type: Literal["pass_and_fail", "fail_only"] | None = None
    eval_script: Annotated[str, Field(min_length=1)] | None = None
    prior_patch: Annotated[_Text, AfterValidator(_diff)] = ""
    needs: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    wrong_patch: Annotated[_Text, AfterValidator(_diff)] = ""
    history: History = History()
    row: Mapping[str, Any] = MappingProxyType({})
    source: Path | None = None
    benchmark: Literal["swebench", "swe_lancer"] = "swebench"

    @cached_property
    def digest(self) -> str:
        """`sha256:…` over the row and cab's own keys."""
        text = json.dumps({"row": dict(self.row), **self.own}, sort_keys=True)
        return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"

    @property
    def own(self) -> dict[str, Any]:
        """cab's own keys and what stands under them."""
        told = {"history": self.history.as_json(), "prior_patch": self.prior_patch}
        if self.needs:
            told |= {"needs": list(self.needs), "wrong_patch": self.wrong_patch}
        return told

    def harness_problem(self, line: HarnessLine) -> str | None:
        """Why the harness's `line` cannot grade this task; None where the row does not say that."""
        if self.benchmark != "swebench":
            return "SWE-Lancer's own end-to-end tests are not implemented here: it loads and dry-runs"
        if not self.FAIL_TO_PASS:
            return "FAIL_TO_PASS is empty: any patch that breaks nothing would count as resolved"
        if line == "4":
            return None if self.version else "version is empty: swebench 4.x looks up how to test by it"
        if missing := [name for name in _NEEDS_5 if getattr(self, name) is None]:
            return (
                f"a classic row, without {', '.join(missing)}: swebench 5.x takes image, log_parser, "
                "eval_type and eval_script from the row; swebench 4.x takes classic rows"
            )
        for marker in (START_MARKER, END_MARKER):
            if marker not in str(self.eval_script):
                return f"eval_script never shows the line `{marker}`, without which nothing is graded"
        return None


def load_tasks_json(path: Path, ids: Collection[str] | None = None) -> tuple[ExternalTask, ...]:
    """The tasks of a file (a JSON list of rows, or a row a line), all or those of `ids` in the file's order.

    Raises InputError that names file, instance and field.
    """
    return chosen([task_of(row, place) for place, row in read_rows(path)], ids, str(path))


def load_dataset(name: str, split: str, ids: Collection[str] | None = None) -> tuple[ExternalTask, ...]:
    """The tasks of a data set, read by the package `datasets`: a hub's id or a directory.

    Raises EnvironmentFault where the package is not installed or the data set cannot be had, InputError as
    `load_tasks_json`.
    """
    if name.endswith((".json", ".jsonl")):
        raise InputError("is a file of rows", place=name, mend="give it with --tasks-json")
    if name.endswith(".parquet"):
        raise InputError("is a file of a data set", place=name, mend="give the data set's directory")
    try:
        import datasets
    except ImportError:
        raise EnvironmentFault(
            "data sets are read by the package `datasets`, which is not installed",
            place=f"--dataset_name {name}",
            mend="pip install datasets, or give rows in a file with --tasks-json",
        ) from None
    try:
        found = datasets.load_dataset(name, split=split)
        rows = [_of_dataset(row) for row in found]
    except Exception as error:  # of a hub, its client, file formats: no common ancestor
        said = next(iter(str(error).strip().splitlines()), "") or type(error).__name__
        raise EnvironmentFault(
            f"cannot be loaded: {said}",
            place=f"--dataset_name {name} --split {split}",
            mend="see name, split and network, or give rows in a file with --tasks-json",
        ) from error
    place = f"{name}/{split}"
    tasks = [task_of(row, place_of(f"{place}[{number}]", row)) for number, row in enumerate(rows)]
    return chosen(tasks, ids, place)


def _of_dataset(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of a data set as files have it: there all events have the same fields, some of them null."""
    found: dict[str, Any] = _as_json(dict(row))
    found = {key: value for key, value in found.items() if value is not None or key not in OWN_KEYS}
    if isinstance(events := found.get("history"), list):
        found["history"] = [_without_nulls(event) for event in events]
    return found


def _without_nulls(event: Any) -> Any:
    if not isinstance(event, dict):
        return event
    return {key: value for key, value in event.items() if value is not None}


def _as_json(value: Any) -> Any:
    """With times, which data sets have types for, as the texts that files of rows have."""
    if isinstance(value, dict):
        return {key: _as_json(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_as_json(one) for one in value]
    return value.isoformat() if isinstance(value, date) else value


def load_ids(path: Path) -> tuple[str, ...]:
    """`--instance-ids`: a JSON list of ids. Raises InputError."""
    try:
        raw = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"cannot be read: {error}", place=str(path), mend="a JSON list of ids") from None
    if not isinstance(raw, list) or not raw or not all(isinstance(one, str) and one for one in raw):
        raise InputError("is no list of instance ids", place=str(path), mend='such as ["a__b-1", "a__b-2"]')
    return tuple(dict.fromkeys(raw))


def chosen(
    tasks: Iterable[ExternalTask], ids: Collection[str] | None, place: str
) -> tuple[ExternalTask, ...]:
    """Those of `ids`, all when None, each once. Raises InputError for a double, an unknown id, or none."""
    by_id: dict[str, ExternalTask] = {}
    folded: dict[str, str] = {}
    for task in tasks:
        # The harness names containers by the id in lower case.
        other = folded.setdefault(task.instance_id.lower(), task.instance_id)
        if task.instance_id in by_id or other != task.instance_id:
            raise InputError(
                f"stands twice (as {other!r})", place=f"{place}: {task.instance_id}", mend="remove one"
            )
        by_id[task.instance_id] = task
    if not by_id:
        raise InputError("holds no task", place=place, mend=_DOCS)
    for wanted in ids or ():
        if wanted not in by_id:
            raise InputError(f"has no instance {wanted!r}", place=place, mend=nearest(wanted, list(by_id)))
    return tuple(task for name, task in by_id.items() if ids is None or name in ids)


def task_of(raw: Mapping[str, Any], place: str, *, source: Path | None = None) -> ExternalTask:
    """A task from a row. Raises InputError that names place and field."""
    for key in raw:
        if key not in OWN_KEYS and (near := nearest(key, OWN_KEYS, cutoff=0.75, otherwise="")):
            raise InputError(f"{key!r} is not known", place=place, mend=near)
    history = (
        History.of(given, f"{place}.history") if (given := raw.get("history")) is not None else History()
    )
    row = {key: value for key, value in raw.items() if key not in OWN_KEYS}
    fields = {key: raw[key] for key in raw if key in _ROW_FIELDS}
    try:
        json.dumps(raw, ensure_ascii=False).encode()
        return ExternalTask.model_validate({**fields, "history": history, "row": row, "source": source})
    except UnicodeEncodeError:
        raise InputError("holds half of a surrogate pair, which is no text", place=place, mend="") from None
    except (TypeError, ValueError, RecursionError) as error:
        if isinstance(error, ValidationError):
            raise field_error(error.errors()[0], place) from None
        raise InputError(f"holds what JSON cannot: {error}", place=place, mend="") from None


_ROW_FIELDS = frozenset(ExternalTask.model_fields) - {"history", "row", "source", "benchmark"}


def field_error(error: ErrorDetails, place: str) -> InputError:
    """The first thing that is wrong with a row, by its field."""
    field = ".".join(str(part) for part in error["loc"])
    if error["type"] == "missing":
        return InputError(f"{field} is missing", place=place, mend=f"add it; {_DOCS}")
    said = error["msg"].removeprefix("Value error, ")
    got = repr(error["input"])
    return InputError(f"{field}: {said}", place=place, mend=f"got {got if len(got) < 60 else got[:57] + '…'}")
