from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import pytest

from orchestrator.adapter import Wire
from orchestrator.plan.expand import expand, interleave
from orchestrator.plan.spec import SweepSpec
from orchestrator.store.names import CellKey

TASKS = [f"polyglot/t{number}" for number in range(6)]
HOSTED = {"base_url": {"env": "CAB_ENDPOINT"}, "key": {"env": "CAB_KEY"}}
SET = {"CAB_ENDPOINT": "http://127.0.0.1:1", "CAB_KEY": "k"}


@dataclass(frozen=True)
class Fake:
    wire: Wire | None = "chat"

    @property
    def uses_model(self) -> bool:
        return self.wire is not None


CLIS = {"opencode": Fake(), "aider": Fake(), "oracle": Fake(None), "noop": Fake(None)}


def plan(env=SET, **changes):
    fields = {
        "name": "free",
        "clis": tuple(CLIS),
        "models": ("embedded/reference", "embedded/idle", {"id": "openai/gpt", "endpoint": "hosted"}),
        "endpoints": {"hosted": HOSTED},
        "tasks": ("polyglot/*",),
        "seed": 1,
    }
    spec = SweepSpec.model_validate(fields | changes)
    return expand(spec, sweep_id="free-20261127", clis=CLIS, tasks=TASKS, env=env)


def test_every_point_of_the_matrix_once():
    cells = plan(runs=2).cells
    assert len(cells) == len({cell.cell_id for cell in cells}) == 2 * (2 * 3 * 6 + 2 * 6)
    assert [cell.order_index for cell in cells] == list(range(len(cells)))
    for cell in cells:
        assert cell.cell_id == cell.key.cell_id("free-20261127")
        assert (cell.endpoint == "hosted") == (cell.key.model == "openai/gpt")


def test_conditions_are_an_axis_whose_cells_differ_in_nothing_else():
    asked = {"models": ("embedded/reference",), "runs": 2}
    found, without = plan(conditions=("stateplane", "compact_summary"), **asked), plan(**asked)
    assert len(found.cells) == 2 * len(without.cells)
    assert {cell.key.condition for cell in found.cells} == {"stateplane", "compact_summary"}
    assert {replace(cell.key, condition=None) for cell in found.cells} == {cell.key for cell in without.cells}
    assert all(CellKey.of_id(cell.cell_id) == ("free-20261127", cell.key) for cell in found.cells)


@pytest.mark.parametrize("names", [("a/b",), ("a", "a"), ("",), ("a b",)])
def test_a_condition_names_files(names):
    with pytest.raises(ValueError, match=r"condition|twice"):
        plan(conditions=names)


def test_what_is_excluded_is_no_cell_and_not_skipped():
    rules = ({"cli": "aider", "model": "embedded/*"}, {"task": "*/t[0-4]", "model": "openai/gpt"})
    found = plan(env={}, exclude=rules)
    names = {(cell.key.cli, cell.key.model, cell.key.task) for cell in found.cells}
    assert {cli for cli, model, _ in names if model.startswith("embedded/")} == {"opencode"}
    assert sorted(cell_id.split("/", 1)[1] for cell_id, _ in found.skipped) == [
        "aider/openai/gpt/polyglot/t5#run1",
        "opencode/openai/gpt/polyglot/t5#run1",
    ]


@pytest.mark.parametrize("wire", ["responses", "messages", "gemini"])
def test_a_cli_of_another_wire_is_translated_to_chat(wire):
    spec = SweepSpec.model_validate(
        {
            "name": "free",
            "clis": ("codex",),
            "models": ("embedded/reference", {"id": "openai/gpt", "endpoint": "hosted"}),
            "endpoints": {"hosted": HOSTED},
            "tasks": ("polyglot/*",),
        }
    )
    found = expand(spec, sweep_id="s", clis={"codex": Fake(wire)}, tasks=TASKS, env=SET)
    assert (len(found.cells), found.skipped) == (2 * len(TASKS), ())


def test_a_model_to_whose_wire_the_clis_is_not_translated_is_skipped():
    speaks = {"hosted": {**HOSTED, "wire": "messages"}}
    found = plan(endpoints=speaks, clis=("opencode",))
    assert {cell.key.model for cell in found.cells} == {"embedded/reference", "embedded/idle"}
    assert {reason for _, reason in found.skipped} == {
        "the CLI speaks the wire chat, endpoint hosted speaks messages"
    }


def test_a_cli_without_a_model_has_one_cell_a_task():
    ids = [cell.cell_id for cell in plan().cells if cell.key.cli == "noop"]
    assert sorted(ids) == [f"free-20261127/noop/none/{task}#run1" for task in TASKS]


@pytest.mark.parametrize(
    ("env", "reason"),
    [
        ({}, "CAB_ENDPOINT and CAB_KEY are not set"),
        ({"CAB_ENDPOINT": "x"}, "CAB_KEY is not set"),
        ({"CAB_ENDPOINT": "x", "CAB_KEY": ""}, "CAB_KEY is not set"),
    ],
)
def test_a_hosted_model_without_its_variables_is_skipped(env, reason):
    planned = plan(env)
    assert len(planned.skipped) == 2 * 6
    assert {said for _, said in planned.skipped} == {reason}
    assert all("/openai/gpt/" in cell_id for cell_id, _ in planned.skipped)
    assert not any(cell.key.model == "openai/gpt" for cell in planned.cells)
    assert planned.skipped == tuple(sorted(planned.skipped))


def test_the_order_is_the_seeds():
    order = [cell.cell_id for cell in plan().cells]
    assert order == [cell.cell_id for cell in plan(clis=("noop", "oracle", "aider", "opencode")).cells]
    assert order != [cell.cell_id for cell in plan(seed=2).cells]


def test_the_order_is_the_same_on_every_machine_and_python():
    keys = [CellKey(cli, "m", task) for cli in ("a", "b") for task in ("x", "y", "z")]
    order = [f"{key.cli}{key.task}" for key in interleave(keys, 20260501)]
    assert order == ["ax", "bx", "az", "by", "ay", "bz"]


def test_no_cli_has_a_block_to_itself():
    cells = plan().cells
    share = Counter(cell.key.cli for cell in cells)
    # Each third of the sweep holds its share of each CLI, give or take one cell.
    third = len(cells) // 3
    for start in (0, third, 2 * third):
        part = Counter(cell.key.cli for cell in cells[start : start + third])
        for cli, count in share.items():
            assert abs(part[cli] - count / 3) <= 1.5


def test_the_first_run_of_all_comes_before_the_second_of_any():
    runs = [cell.key.run for cell in plan(runs=3).cells]
    assert runs == sorted(runs)


def test_another_task_does_not_reshuffle_the_rest_of_a_cli():
    keys = [CellKey("a", "m", f"t{number}") for number in range(20)]
    more = [key for key in interleave([*keys, CellKey("a", "m", "new")], 5) if key.task != "new"]
    assert more == interleave(keys, 5)


def test_a_stored_order_decides_what_of_the_plan_is_run():
    cells = plan().cells
    order = [cell.cell_id for cell in reversed(cells[2:])]
    stored = plan().in_order([*order, "free-20261127/gone/none/polyglot/t0#run1"])
    assert [cell.cell_id for cell in stored.cells] == order
    assert [cell.order_index for cell in stored.cells] == list(range(len(order)))


def test_a_local_model_is_asked_under_its_own_name_or_skipped():
    models = ("local/tiny", "local/gone")
    spec = SweepSpec.model_validate(
        {"name": "l", "clis": ("aider", "noop"), "models": models, "tasks": ("polyglot/*",)}
    )
    unfit = {"local/gone": "the model has not been added"}
    found = expand(spec, sweep_id="l-1", clis=CLIS, tasks=TASKS[:1], env={}, unfit=unfit)
    asked = {cell.key.model: (cell.endpoint, cell.script) for cell in found.cells}
    assert asked == {"local/tiny": ("local/tiny", None), "none": (None, None)}
    assert found.skipped == (("l-1/aider/local/gone/polyglot/t0#run1", "the model has not been added"),)


@pytest.mark.parametrize("wire", ["responses", "chat"])
def test_a_setting_that_the_wire_has_no_word_for_skips_the_pair(wire):
    spec = SweepSpec.model_validate(
        {
            "name": "free",
            "clis": ("tool",),
            "models": ({"id": "m", "endpoint": "up", "settings": {"seed": 7}},),
            "endpoints": {"up": {"base_url": "http://127.0.0.1:1", "wire": wire}},
            "tasks": ("polyglot/*",),
        }
    )
    found = expand(spec, sweep_id="free-1", clis={"tool": Fake(wire)}, tasks=TASKS, env={})
    reasons = {reason for _, reason in found.skipped}
    assert reasons == ({"the wire responses has no seed"} if wire == "responses" else set())
    assert len(found.cells) + len(found.skipped) == len(TASKS)


STACKS = ("factory", {"name": "careful", "plugins": ("careful", "facts")})


def test_a_stack_is_a_dimension_of_the_matrix():
    found = plan(stacks=STACKS)
    without = plan()
    ids = {cell.cell_id for cell in found.cells}
    assert {cell.cell_id for cell in without.cells} < ids
    assert "free-20261127/opencode/embedded/idle/polyglot/t0+careful#run1" in ids
    assert len(found.cells) == 2 * len(without.cells)
    assert {cell.key.stack for cell in plan(stacks=STACKS[1:]).cells} == {"careful"}


def test_a_stack_that_a_cli_does_not_take_is_skipped_with_the_reason():
    spec = SweepSpec.model_validate(
        {"name": "s", "clis": ("aider",), "models": ("embedded/idle",), "tasks": ("*",), "stacks": STACKS}
    )
    untaken = {("aider", "careful"): "takes nothing"}
    found = expand(spec, sweep_id="s", clis=CLIS, tasks=["a/b"], env={}, untaken=untaken)
    assert [cell.cell_id for cell in found.cells] == ["s/aider/embedded/idle/a/b#run1"]
    assert found.skipped == (("s/aider/embedded/idle/a/b+careful#run1", "takes nothing"),)


def test_an_exclusion_may_name_a_stack():
    found = plan(stacks=STACKS, exclude=({"cli": "aider", "stack": "factory"},))
    assert {cell.key.stack for cell in found.cells if cell.key.cli == "aider"} == {"careful"}
    assert {cell.key.stack for cell in found.cells if cell.key.cli == "opencode"} == {"none", "careful"}
