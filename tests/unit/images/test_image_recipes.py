"""What decides whether an image is built again, and in which order."""

import io
import os
import tarfile
from pathlib import Path

import pytest

from orchestrator.errors import InputError
from orchestrator.sandbox.images.recipe import ROOT, Recipe, load_recipes, with_parents

IDS = {ROOT: "sha256:aa", "base": "sha256:bb", "node": "sha256:cc"}
ADAPTER = """
from orchestrator.adapter import Adapter, Launch
ADAPTER = Adapter(name="agent", version="1.2.3", launch=lambda context: Launch(argv=("agent",)))
"""


def write(folder: Path, dockerfile: str, **files: str) -> None:
    folder.mkdir(parents=True)
    (folder / "Dockerfile").write_text(dockerfile)
    for name, content in files.items():
        (folder / name).write_text(content)


@pytest.fixture
def images(tmp_path: Path) -> Path:
    write(tmp_path / "agent", "ARG BASE\nARG NODE\nFROM ${NODE} AS npm\nFROM ${BASE}\n", tool="x")
    (tmp_path / "agent" / "adapter.py").write_text(ADAPTER)
    write(tmp_path / "base", "ARG BASE\nFROM ${BASE} AS all\nARG LATER\nFROM scratch\n")
    write(tmp_path / "node", "ARG ROOT\nFROM ${ROOT}\n")
    return tmp_path


def agent(images: Path) -> Recipe:
    return load_recipes(images)["agent"]


def test_parents_come_before_children(images: Path) -> None:
    assert list(load_recipes(images)) == ["base", "node", "agent"]


def test_parents_are_the_arguments_ahead_of_the_first_stage(images: Path) -> None:
    recipes = load_recipes(images)
    assert recipes["agent"].parents == {"BASE": "base", "NODE": "node"}
    assert recipes["base"].parents == {"BASE": ROOT}


def test_an_image_stands_on_what_its_last_stage_starts_from(images: Path) -> None:
    recipes = load_recipes(images)
    assert recipes["agent"].stands_on == "base"
    assert recipes["base"].stands_on == ROOT


def test_a_name_brings_what_it_stands_on(images: Path) -> None:
    recipes = load_recipes(images)
    assert [recipe.name for recipe in with_parents(recipes, ["base"])] == ["base"]
    assert [recipe.name for recipe in with_parents(recipes, ["agent"])] == ["base", "node", "agent"]


def test_an_unknown_name_is_refused_with_the_known_ones(images: Path) -> None:
    with pytest.raises(InputError, match=r"no image 'nothing'.*base, node, agent"):
        with_parents(load_recipes(images), ["nothing"])


def test_a_missing_parent_is_refused(images: Path) -> None:
    write(images / "odd", "ARG MISSING\nFROM ${MISSING}\n")
    with pytest.raises(InputError, match="images/missing, which is not there"):
        load_recipes(images)


def test_a_ring_of_parents_is_refused(images: Path) -> None:
    write(images / "one", "ARG TWO\nFROM ${TWO}\n")
    write(images / "two", "ARG ONE\nFROM ${ONE}\n")
    with pytest.raises(InputError, match="one → two → one"):
        load_recipes(images)


def test_the_tag_tells_the_version_of_the_cli_else_the_inputs(images: Path) -> None:
    recipes = load_recipes(images)
    assert recipes["agent"].tag("f" * 64) == "cab/agent:1.2.3"
    assert recipes["base"].tag("f" * 64) == "cab/base:ffffffffffff"


def test_inputs_change_with_content_name_mode_and_parent(images: Path) -> None:
    tool = images / "agent" / "tool"
    seen = {agent(images).inputs_hash(IDS)}
    tool.write_text("y")
    seen.add(agent(images).inputs_hash(IDS))
    tool.chmod(0o755)
    seen.add(agent(images).inputs_hash(IDS))
    tool.rename(images / "agent" / "other")
    seen.add(agent(images).inputs_hash(IDS))
    seen.add(agent(images).inputs_hash({**IDS, "node": "sha256:dd"}))
    assert len(seen) == 5


def test_inputs_do_not_change_with_the_adapter_its_words_or_times(images: Path) -> None:
    before = agent(images).inputs_hash(IDS)
    (images / "agent" / "adapter.py").write_text(ADAPTER + "# a remark\n")
    (images / "agent" / "README.md").write_text("# agent\n")
    os.utime(images / "agent" / "tool", (1, 1))
    assert agent(images).inputs_hash(IDS) == before


def test_the_context_holds_the_folder_and_the_machines_files_but_no_adapter(images: Path) -> None:
    (images / "agent" / "tool").chmod(0o700)
    context = agent(images).context({"ca.crt": b"certificates"})
    with tarfile.open(fileobj=io.BytesIO(context)) as tar:
        members = {member.name: member for member in tar.getmembers()}
    assert set(members) == {"Dockerfile", "tool", "host/ca.crt"}
    assert members["tool"].mode == 0o755
    assert {member.mtime for member in members.values()} == {0}
