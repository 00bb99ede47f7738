"""CLIs' images for run-cell: what is in them, when they are made again, and what they say of themselves."""

from __future__ import annotations

import io
import socket
import subprocess
import tarfile
from pathlib import Path

import pytest

from orchestrator.run.alone import ImageFacts
from orchestrator.run.pins import cell_images
from orchestrator.sandbox.images import Layout, Lock, LockedImage
from orchestrator.sandbox.images.cell import IMAGE_FILE, carried_tasks, image_file
from orchestrator.sandbox.images.differ import changed_inputs
from orchestrator.sandbox.images.listing import list_images
from orchestrator.sandbox.images.lock import save_lock
from orchestrator.sandbox.images.recipe import Recipe, load_recipes, with_children, with_needed, with_parents

REPO = Path(__file__).resolve().parents[3]
ADAPTER = """
from orchestrator.adapter import Adapter, Launch
ADAPTER = Adapter(name="agent", version="1.2.3", launch=lambda context: Launch(argv=("agent",)))
"""
IDS = {"root": "sha256:aa", "base": "sha256:bb", "agent": "sha256:cc", "cell": "sha256:dd"}


def git(repo: Path, *words: str) -> str:
    identity = ("-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", *identity, *words], cwd=repo, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def commit(repo: Path) -> str:
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "--allow-empty", "-m", "x")
    return git(repo, "rev-parse", "HEAD")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A checkout with one CLI, one task and the real folder of run-cell's images."""
    files = {
        "images/base/Dockerfile": "ARG BASE\nFROM ${BASE}\n",
        "images/agent/Dockerfile": "ARG BASE\nFROM ${BASE}\n",
        "images/agent/adapter.py": ADAPTER,
        "images/other/Dockerfile": "ARG BASE\nFROM ${BASE}\n",
        "images/cell/Dockerfile": (REPO / "images/cell/Dockerfile").read_text(),
        "images/cell/child/Dockerfile": (REPO / "images/cell/child/Dockerfile").read_text(),
        "orchestrator/code.py": "1\n",
        "scorers/score.py": "1\n",
        "plugins/one/plugin.toml": "x = 1\n",
        "tasks/polyglot/sum/task.toml": "x = 1\n",
        "requirements-cell.lock": "click==8\n",
        "README.md": "words\n",
    }
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    git(tmp_path, "init", "-q")
    commit(tmp_path)
    return tmp_path


def child(repo: Path) -> Recipe:
    return load_recipes(repo / "images")["agent+cell"]


def test_each_cli_has_one_that_stands_on_its_own_image(repo: Path) -> None:
    recipes = load_recipes(repo / "images")
    assert [name for name in recipes if name.endswith("+cell")] == ["agent+cell"]
    made = recipes["agent+cell"]
    assert (made.stands_on, made.parents) == ("agent", {"CLI": "agent", "CELL": "cell"})
    assert made.tag("f" * 64) == "cab/agent-cell:1.2.3"
    assert made.version_problem({}) is None, "its CLI told its version in the image below"
    assert recipes["agent"].version_problem({}) is not None


def test_a_cli_that_is_built_brings_it_along(repo: Path) -> None:
    recipes = load_recipes(repo / "images")
    asked = with_children(recipes, ["agent"])
    assert [it.name for it in with_parents(recipes, asked)] == ["base", "agent", "cell", "agent+cell"]
    assert with_children(recipes, ["base"]) == ["base"]


def test_one_who_builds_one_cli_can_run_it(repo: Path) -> None:
    assert with_needed(load_recipes(repo / "images"), ["agent"]) == ["agent", "agent+cell"]
    (repo / "images/init").mkdir()
    (repo / "images/init/Dockerfile").write_text("FROM scratch\n")
    recipes = load_recipes(repo / "images")
    assert with_needed(recipes, ["agent"]) == ["agent", "agent+cell", "init"]
    assert with_needed(recipes, ["base"]) == ["base"]


@pytest.mark.parametrize(
    ("path", "again"),
    [
        ("orchestrator/code.py", True),
        ("tasks/polyglot/sum/task.toml", True),
        ("plugins/one/plugin.toml", True),
        ("requirements-cell.lock", True),
        ("README.md", False),
        ("images/agent/adapter.py", False),
        ("orchestrator/site/vendor/player/player.js", False),
        ("tasks/polyglot/sum/vendor/module.go", True),
    ],
)
def test_what_they_carry_is_made_again_when_it_changed(repo: Path, path: str, again: bool) -> None:
    before = load_recipes(repo / "images")["cell"].inputs_hash(IDS)
    (repo / path).parent.mkdir(parents=True, exist_ok=True)
    with (repo / path).open("a") as file:
        file.write("# more\n")
    assert (load_recipes(repo / "images")["cell"].inputs_hash(IDS) != before) is again


def test_a_child_is_made_again_for_its_adapter_and_its_commit_alone(repo: Path) -> None:
    seen = [child(repo).inputs_hash(IDS)]
    (repo / "README.md").write_text("other words\n")
    commit(repo)
    seen.append(child(repo).inputs_hash(IDS))
    assert seen[0] == seen[1], "a commit that touches nothing of it"
    (repo / "images/agent/adapter.py").write_text(ADAPTER + "# a remark\n")
    seen.append(child(repo).inputs_hash(IDS))
    made = commit(repo)
    seen.append(child(repo).inputs_hash(IDS))
    assert len(set(seen)) == 3
    facts = child(repo).facts
    assert facts is not None
    assert (facts["commit"], facts["dirty"]) == (made, False)
    (repo / "tasks/polyglot/sum/new").write_text("x")
    changed = child(repo).facts
    assert changed is not None
    assert changed["dirty"] is True


def test_another_clis_changed_adapter_is_no_change_of_it(repo: Path) -> None:
    (repo / "images/other/adapter.py").write_text(ADAPTER.replace('"agent"', '"other"'))
    commit(repo)
    before = child(repo).inputs_hash(IDS)
    with (repo / "images/other/adapter.py").open("a") as file:
        file.write("# a remark\n")
    assert child(repo).inputs_hash(IDS) == before


def test_what_made_it_another_is_named_among_its_inputs(repo: Path) -> None:
    was = child(repo).inputs(IDS)
    (repo / "images/agent/adapter.py").write_text(ADAPTER.replace("1.2.3", "1.2.4"))
    assert changed_inputs(was, child(repo).inputs(IDS)) == [
        "cab",
        "version of the CLI (1.2.3 → 1.2.4)",
        "cab differs from its commit (False → True)",
    ]
    (repo / "images/agent/adapter.py").write_text(ADAPTER)
    (repo / "orchestrator/code.py").write_text("2\n")
    old, made = was["cab's commit"], commit(repo)
    assert changed_inputs(was, child(repo).inputs(IDS)) == [f"cab's commit ({old} → {made})"]


def test_where_its_parts_are_not_there_is_none(repo: Path) -> None:
    (repo / "requirements-cell.lock").unlink()
    assert list(load_recipes(repo / "images")) == ["base", "agent", "other"]


def test_outside_a_checkout_no_commit_is_told(repo: Path) -> None:
    (repo / ".git").rename(repo / "gone")
    facts = child(repo).facts
    assert facts is not None
    assert (facts["commit"], facts["dirty"]) == (None, None)


def test_an_image_says_of_itself_what_run_cell_reads(repo: Path, tmp_path: Path) -> None:
    made = child(repo)
    assert made.facts is not None
    env = ["PATH=/usr/bin", "OPTS=-a=b", "EMPTY="]
    said = image_file(made.facts, parent_id="sha256:cc", parent_tag="cab/agent:1.2.3", env=env)
    (tmp_path / "image.json").write_bytes(said)
    read = ImageFacts.read(tmp_path / "image.json")
    assert (read.cli, read.cli_version, read.parent_id) == ("agent", "1.2.3", "sha256:cc")
    assert read.env == {"PATH": "/usr/bin", "OPTS": "-a=b", "EMPTY": ""}
    assert read.place.environment == {**read.env, "HOSTNAME": socket.gethostname()}, "as an engine has it"
    with tarfile.open(fileobj=io.BytesIO(made.context({}, {IMAGE_FILE: said}))) as tar:
        assert set(tar.getnames()) == {"Dockerfile", "cab/images/agent/adapter.py", IMAGE_FILE}


def locked(image_id: str, **fields: object) -> LockedImage:
    usual = {
        "tag": "cab/x:1",
        "inputs_hash": "0",
        "parent": None,
        "versions": {},
        "built_at": "2026",
        "size": 1,
    }
    return LockedImage.model_validate({**usual, "id": image_id, **fields})


def test_a_pinned_cli_has_the_one_that_was_built_of_it(repo: Path, tmp_path: Path) -> None:
    tasks = carried_tasks(repo)
    assert list(tasks) == ["polyglot/sum"]
    lock = Lock(
        images={
            "cell": locked("sha256:dd", tasks=tasks),
            "agent+cell": locked(
                "sha256:ee", parent="sha256:cc", cell="sha256:dd", manifests={"x/y": "sha256:ff"}
            ),
        }
    )
    path = tmp_path / "images.lock"
    save_lock(lock, path)
    found = cell_images({"agent": "sha256:cc", "base": "sha256:bb"}, path)
    assert found.keys() == {"agent"}
    assert (found["agent"].id, found["agent"].tasks) == ("sha256:ee", tasks)
    assert found["agent"].manifests == {"x/y": "sha256:ff"}
    assert cell_images({"agent": "sha256:00"}, path) == {}, "another CLI's image than the pinned one"
    save_lock(lock.with_image("cell", locked("sha256:d2", tasks=tasks)), path)
    assert cell_images({"agent": "sha256:cc"}, path)["agent"].tasks == {}, "tasks of another image"
    assert cell_images({"agent": "sha256:cc"}, tmp_path / "none") == {}


def test_the_list_tells_it_beside_its_cli(repo: Path) -> None:
    layout = Layout(repo)
    (agent,) = [it for it in list_images(Lock(), layout) if it.name == "agent"]
    assert (agent.state, agent.run_cell) == ("not built", "not built")
    assert "agent+cell" not in {it.name for it in list_images(Lock(), layout)}
    recipes = layout.recipes
    current = locked("sha256:ee", inputs_hash=recipes["agent+cell"].inputs_hash(IDS), parent="sha256:cc")
    below = {name: locked(IDS[name]) for name in ("agent", "cell", "base")}
    assert {
        it.name: it.run_cell for it in list_images(Lock(images={**below, "agent+cell": current}), layout)
    }["agent"] == "current"
