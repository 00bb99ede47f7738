"""Which CLIs there are: in the repository, in a folder elsewhere, and known ones that cannot run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from test_adapter_loading import adapter

from orchestrator.errors import InputError
from orchestrator.fleet import Fleet
from orchestrator.plan.spec import SweepSpec, load_spec
from orchestrator.report.live import go_on
from orchestrator.report.table import print_sweep
from orchestrator.run.start import Matrix, Options, Ready, of_stored, plan_of, sweep_record
from orchestrator.sandbox.images import Layout, Lock, build
from orchestrator.sandbox.images.listing import list_images
from orchestrator.store.cells import CellStore

ROOT = Path(__file__).resolve().parents[3]
TASK = "polyglot/python-reverse-string"
WHY = "no registry has it"


def cli(above: Path, name: str) -> Path:
    """A CLI that can run."""
    folder = above / name
    folder.mkdir(parents=True)
    (folder / "adapter.py").write_text(adapter().replace('name="hello"', f'name="{name}"'))
    (folder / "Dockerfile").write_text("FROM scratch\n")
    return folder


def unavailable(above: Path, name: str, text: str = f"{WHY}\n") -> Path:
    folder = above / name
    folder.mkdir(parents=True)
    (folder / "unavailable.txt").write_text(text)
    return folder


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A folder with one CLI that can run and one that cannot."""
    cli(tmp_path / "mine", "hello")
    unavailable(tmp_path / "mine", "gone")
    (tmp_path / "mine" / "notes").mkdir()
    return tmp_path / "mine"


def spec(tmp_path: Path, clis: str, models: str = "[embedded/reference, embedded/idle]") -> Path:
    path = tmp_path / "mine.yaml"
    path.write_text(f"name: mine\nclis: {clis}\nmodels: {models}\ntasks: [{TASK}]\nruns: 2\n")
    return path


def test_clis_of_both_folders_are_known(elsewhere: Path) -> None:
    fleet = Fleet(elsewhere=elsewhere)
    assert {"opencode", "hello"} <= set(fleet.runnable)
    assert fleet.unavailable["gone"] == WHY
    assert "gone" in fleet.known
    assert "notes" not in fleet.folders
    assert fleet.adapter("hello").version == "1.0"


def test_a_name_that_is_in_both_is_refused(elsewhere: Path) -> None:
    cli(elsewhere, "opencode")
    with pytest.raises(InputError, match=r"mine/opencode: opencode is a name of .*another name"):
        Fleet(elsewhere=elsewhere)


def test_a_folder_that_is_not_there_is_refused_with_the_option(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere: is not there, or no folder \(give --images-dir"):
        Fleet(elsewhere=tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("text", "file", "says"),
    [
        ("", None, "has 0 lines (say why in one line)"),
        ("one\ntwo\n", None, "has 2 lines (say why in one line)"),
        (WHY, "adapter.py", "there is a adapter.py (remove one of them)"),
        (WHY, "Dockerfile", "there is a Dockerfile (remove one of them)"),
    ],
)
def test_an_unavailable_cli_says_why_in_one_line_and_has_nothing_to_run(
    tmp_path: Path, text: str, file: str | None, says: str
) -> None:
    folder = unavailable(tmp_path / "mine", "gone", text)
    if file:
        (folder / file).touch()
    with pytest.raises(InputError, match=re.escape(says)):
        _ = Fleet(elsewhere=tmp_path / "mine").unavailable


def test_an_unavailable_cli_is_skipped_with_every_model_and_the_others_run(
    tmp_path: Path, elsewhere: Path
) -> None:
    loaded = load_spec(spec(tmp_path, "[hello, gone]"))
    plan = plan_of(loaded, "mine-1", Options(images_dir=elsewhere)).plan
    assert {cell.key.cli for cell in plan.cells} == {"hello"}
    assert len(plan.cells) == 4
    assert plan.skipped == tuple(
        (f"mine-1/gone/{model}/{TASK}#run{run}", WHY)
        for model in ("embedded/idle", "embedded/reference")
        for run in (1, 2)
    )


def test_an_unavailable_cli_is_told_also_where_no_model_is_named(tmp_path: Path, elsewhere: Path) -> None:
    plan = plan_of(load_spec(spec(tmp_path, "[noop, gone]", "[]")), "m", Options(images_dir=elsewhere)).plan
    assert [cell_id for cell_id, _ in plan.skipped] == [f"m/gone/none/{TASK}#run{run}" for run in (1, 2)]


def test_a_glob_stands_for_all_clis_that_it_matches_and_the_sweep_keeps_their_names(
    tmp_path: Path, elsewhere: Path
) -> None:
    loaded = load_spec(spec(tmp_path, '["hel*", "gon*", hello]'))
    matrix = plan_of(loaded, "mine-1", Options(images_dir=elsewhere))
    assert matrix.spec.clis == ("hello", "gone")
    assert sweep_record(matrix, loaded.digest, {}).spec["clis"] == ["hello", "gone"]
    with pytest.raises(InputError, match=r"mine.yaml:2:8: unknown name 'x\*' under clis"):
        plan_of(load_spec(spec(tmp_path, '["x*"]')), "mine-1", Options(images_dir=elsewhere))
    with pytest.raises(InputError, match=r"mine\.yaml:2:8: hello asks a model, but models is empty"):
        plan_of(load_spec(spec(tmp_path, '["hel*"]', "[]")), "mine-1", Options(images_dir=elsewhere))


def test_a_cli_elsewhere_is_unknown_without_the_option(tmp_path: Path, elsewhere: Path) -> None:
    with pytest.raises(InputError, match="unknown name 'hello' under clis"):
        plan_of(load_spec(spec(tmp_path, "[hello]")), "mine-1")
    with pytest.raises(InputError, match=r"unknown CLI 'hello'.*wants --images-dir"):
        Matrix.of(SweepSpec.of_data({"name": "x", "clis": ["hello"], "tasks": [TASK]}), "x-1")


def test_a_sweep_stores_no_path_and_a_resume_asks_for_the_folder(
    tmp_path: Path, elsewhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    loaded = load_spec(spec(tmp_path, "[hello]"))
    matrix = plan_of(loaded, "mine-1", Options(images_dir=elsewhere))
    results = tmp_path / "results"
    store = CellStore(results, "mine-1")
    store.create(sweep_record(matrix, loaded.digest, {"base": "sha256:" + "a" * 64}))
    store.close()
    assert str(tmp_path) not in (store.root / "sweep.json").read_text()
    with pytest.raises(InputError, match=r"images/ has no folder of hello, which it ran \(give --images-dir"):
        of_stored(results, "mine-1")
    (tmp_path / "other").mkdir()
    with pytest.raises(InputError, match=r"images/ or .*/other has no folder of hello, which it ran"):
        of_stored(results, "mine-1", Options(images_dir=tmp_path / "other"))
    assert len(of_stored(results, "mine-1", Options(images_dir=elsewhere)).todo()) == 4
    ready = Ready(matrix, store, matrix.plan.cells, matrix.plan.cells, None)
    assert go_on(ready) == f"cab sweep resume mine-1 --images-dir {elsewhere} -r {results}"
    print_sweep(store, as_json=False)
    assert f"go on with: cab sweep resume mine-1 --images-dir DIR -r {results}\n" in capsys.readouterr().out


def test_an_unavailable_cli_has_no_image_and_is_refused_by_name(tmp_path: Path, elsewhere: Path) -> None:
    layout = Layout(tmp_path / "checkout", elsewhere)
    layout.images.mkdir(parents=True)
    with pytest.raises(InputError, match=f"gone cannot be had: {WHY}") as refused:
        build(["gone"], layout=layout)
    assert refused.value.exit_code == 2
    states = {image.name: (image.state, image.reason) for image in list_images(Lock(), layout)}
    assert states == {"hello": ("not built", None), "gone": ("unavailable", WHY)}


def test_the_fleets_sweep_is_all_clis_that_ask_a_model() -> None:
    matrix = plan_of(load_spec(ROOT / "sweeps" / "fleet.yaml"), "fleet-1")
    asking = {name for name, adapter in matrix.adapters.items() if adapter.uses_model}
    assert {cell.key.cli for cell in matrix.plan.cells} == asking
    assert len(matrix.plan.cells) == 3 * len(asking)
    assert {cell_id.split("/")[1] for cell_id, _ in matrix.plan.skipped} == set(Fleet().unavailable)
