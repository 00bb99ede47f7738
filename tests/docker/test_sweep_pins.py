"""What a sweep resolved before its first cell decides, whatever images, tasks and adapters became since."""

from __future__ import annotations

import io
import json
import shutil
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.docker.command import PYTHON_TASK, REPO, Cab, wait_for

ADAPTER = """\
from orchestrator.adapter import Adapter, Launch

ADAPTER = Adapter(
    name="variant",
    version="1",
    launch=lambda context: Launch(argv=("printenv", "VARIANT")),
    wire=None,
    tty=False,
    final_message="stdout",
)
"""


@dataclass
class Variants:
    """A CLI `variant`, which says which of its images it runs in."""

    cab: Cab
    built: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        (self.cab.root / "images" / "variant").mkdir(parents=True)
        self.adapter.write_text(ADAPTER)
        shutil.copytree(REPO / "tasks" / PYTHON_TASK, self.task)
        self.cab.patched(
            IMAGES=self.cab.root / "images",
            TASKS=self.cab.root / "tasks",
            IMAGES_LOCK=self.cab.root / "images.lock",
        )

    @property
    def adapter(self) -> Path:
        return self.cab.root / "images" / "variant" / "adapter.py"

    @property
    def task(self) -> Path:
        return self.cab.root / "tasks" / PYTHON_TASK

    def build(self, name: str) -> str:
        """Build the image anew, as `cab images build` does, and lock it; its id."""
        lock = json.loads((REPO / "images.lock").read_text())
        base = lock["images"]["base"]
        recipe = f"FROM {base['id']}\nENV VARIANT={name}-{self.cab.sweep_id}\n"
        image, _ = self.cab.docker.images.build(fileobj=io.BytesIO(recipe.encode()), rm=True)
        lock["images"]["variant"] = base | {"id": image.id, "tag": f"cab/variant:{name}"}
        (self.cab.root / "images.lock").write_text(json.dumps(lock))
        self.built.append(str(image.id))
        return str(image.id)

    def remove(self, image: str) -> None:
        self.cab.docker.images.remove(image, force=True)
        self.built.remove(image)


@pytest.fixture
def variants() -> Iterator[Variants]:
    with Cab.own() as cab:
        variants = Variants(cab)
        yield variants
        for image in list(variants.built):
            variants.remove(image)


def interrupted(cab: Cab, *command: str | Path) -> int:
    """Run the sweep for a cell or two; how many are stored then."""
    before = len(cab.index())
    running = cab.sweep(*map(str, command))
    wait_for(lambda: len(cab.index()) > before, "a cell to end")
    running.signal(signal.SIGINT)
    running.end(130)
    return len(cab.records())


def test_a_resume_runs_the_stored_image_or_nothing(variants: Variants) -> None:
    cab = variants.cab
    first = variants.build("first")
    assert interrupted(cab, "run", cab.spec(clis=["variant"], runs=9)) < 9
    assert cab.stored()["pins"]["variant"] == first

    second = variants.build("second")
    assert interrupted(cab, "resume") < 9
    for path in cab.sweep_dir.glob("cells/**/cell.json"):
        assert json.loads(path.read_text())["identity"]["image_digest"] == first
        assert path.with_name("stdout.log").read_text() == f"first-{cab.sweep_id}\n"

    variants.remove(first)
    before = cab.records()
    done = cab.sweep("resume").end(2)
    assert done.out == ""
    assert first in done.err
    assert second in done.err
    assert cab.records() == before
    assert cab.left() == {}


@pytest.mark.parametrize("what", ["adapter", "task"])
def test_a_changed_adapter_or_task_is_refused(variants: Variants, what: str) -> None:
    cab = variants.cab
    variants.build("only")
    spec = cab.spec(clis=["variant"], runs=4)
    assert interrupted(cab, "run", spec) < 4
    stored = cab.stored()
    changed = variants.adapter if what == "adapter" else variants.task / "instruction.md"
    changed.write_text(changed.read_text() + "\n")

    name, digests = ("variant", "adapters") if what == "adapter" else (PYTHON_TASK, "tasks")
    for again in (cab.sweep("resume"), cab.sweep("run", spec)):
        done = again.end(2)
        (line,) = done.err.splitlines()
        assert line.startswith(f"cab: {what} {name}: the sweep was started with {stored[digests][name]}")
        assert line.count("sha256:") == 2
        assert done.out == ""
    assert cab.stored() == stored
