"""What an embedded model is told of a task: its solution as data, no command of the task's is run for it."""

from __future__ import annotations

from orchestrator.errors import InputError
from orchestrator.gateway.contract import Script
from orchestrator.gateway.scripts import ScriptKind
from orchestrator.plan.task import Solution, Task


def build_script(task: Task, kind: ScriptKind, wrong_name: str | None = None) -> Script:
    """The script of the reference, of one wrong fix (the first by name unless named), or of a model that
    needs to know nothing of the task.

    Raises InputError when there is no such wrong fix, or nothing that a context could tell.
    """
    if kind == "follows-context":
        return _following(task)
    if kind not in ("reference", "wrong"):
        return Script(kind=kind)
    solution = task.solution if kind == "reference" else _wrong_fix(task, wrong_name)
    if not solution.path.is_dir():
        mend = f"ask another model than embedded/{kind}"
        raise InputError("the task brings no solution", place=task.name, mend=mend)
    before = {path: task.workdir / path for path in solution.files}
    script = Script(
        kind=kind,
        before={
            path: file.read_text(encoding="utf-8") if file.is_file() else None
            for path, file in before.items()
        },
        files=dict(solution.files),
        reproduce=task.reproduce,
    )
    said = solution.final_message
    return script if said is None else script.model_copy(update={"final_message": said})


def _following(task: Task) -> Script:
    """The reference for a prompt that carries what the task needs to know, the first wrong fix for others."""
    if not task.needs:
        raise InputError(
            "nothing that was said before decides about the task",
            place=task.name,
            mend="ask embedded/follows-context about tasks that list what they `need` of earlier work",
        )
    reference, wrong = build_script(task, "reference"), build_script(task, "wrong")
    more = {"kind": "follows-context", "needs": list(task.needs), "otherwise": wrong}
    return reference.model_copy(update=more)


def _wrong_fix(task: Task, name: str | None) -> Solution:
    fixes = task.wrong_fixes()
    chosen = next(iter(fixes), "") if name is None else name
    if chosen not in fixes:
        mend = f"known: {', '.join(fixes)}"
        raise InputError(f"no wrong fix is named {chosen!r}", place=str(task.path / "wrong"), mend=mend)
    return fixes[chosen]
