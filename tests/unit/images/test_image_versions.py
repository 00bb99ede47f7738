"""No image counts as a CLI's whose own answer is another version than its adapter says."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from docker.errors import ImageNotFound

from orchestrator.adapter import Adapter, Launch
from orchestrator.errors import EnvironmentFault
from orchestrator.fleet import Fleet
from orchestrator.run.pins import resolve, tags_of
from orchestrator.sandbox.images import Layout, Lock, LockedImage, build, load_lock, stale
from orchestrator.sandbox.images.lock import save_lock, version_problem

ROOT = Path(__file__).resolve().parents[3]
BUILT, BASE = "sha256:" + "a" * 64, "sha256:" + "b" * 64
ADAPTER = """from orchestrator.adapter import Adapter, Launch
ADAPTER = Adapter(name="hello", version="VERSION", launch=lambda context: Launch(argv=("hello",)))
"""


def adapter(*, version: str = "1.0", **fields: Any) -> Adapter:
    return Adapter("hello", version, lambda _: Launch(argv=("hello",)), **fields)


def locked(image_id: str, tag: str, versions: Mapping[str, str]) -> LockedImage:
    return LockedImage(
        id=image_id, tag=tag, inputs_hash="0", parent=None, versions=dict(versions), built_at="", size=1
    )


class Engine:
    """An engine with one image, which it builds from anything; `told` is what its CLI answers."""

    def __init__(self) -> None:
        self.told = b"hello 1.0 (of today)\n"
        self.tags: list[str] = []
        self.labels = {"cab.reads.hello": "hello --version"}
        self.built = 0
        self.api = SimpleNamespace(build=self._build)
        self.images = SimpleNamespace(get=self._get, list=lambda **_: [])
        self.containers = SimpleNamespace(run=lambda *_, **__: self.told)

    def _build(self, **options: Any) -> Iterator[dict[str, Any]]:
        assert not options.get("tag")
        self.built += 1
        yield {"aux": {"ID": BUILT}}

    def _get(self, name: str) -> Any:
        if not self.built or name not in (BUILT, *self.tags):
            raise ImageNotFound(name)
        return SimpleNamespace(
            id=BUILT, tags=self.tags, tag=self.tags.append, labels=self.labels, attrs={"Size": 1}
        )


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = Layout(tmp_path)
    (layout.images / "base").mkdir(parents=True)
    shutil.copy(ROOT / "images" / "base" / "base.pin", layout.images / "base")
    (layout.images / "hello").mkdir()
    (layout.images / "hello" / "Dockerfile").write_text("FROM scratch\n")
    pin(layout, "1.0")
    return layout


def pin(layout: Layout, version: str) -> None:
    (layout.images / "hello" / "adapter.py").write_text(ADAPTER.replace("VERSION", version))


def made(layout: Layout, engine: Any) -> Lock:
    return build(["hello"], layout=layout, client=engine)


def test_a_build_that_agrees_is_tagged_and_locked(layout: Layout) -> None:
    engine = Engine()
    lock = made(layout, engine)
    assert engine.tags == ["cab/hello:1.0", "cab/pin:" + "a" * 12]
    assert lock.image("hello").versions == {"hello": "hello 1.0 (of today)"}
    assert made(layout, engine) == lock
    assert engine.built == 1
    assert list(stale(lock, layout)) == []


def test_a_build_that_tells_another_version_is_neither_tagged_nor_locked(layout: Layout) -> None:
    engine = Engine()
    pin(layout, "2.0")
    with pytest.raises(
        EnvironmentFault, match=r"image hello: hello says 'hello 1\.0 .*', its adapter pins '2\.0'"
    ):
        made(layout, engine)
    assert engine.tags == []
    assert not layout.lock.exists()


def test_an_adapter_that_moved_on_makes_the_image_stale_and_its_build_fail(layout: Layout) -> None:
    engine = Engine()
    lock = made(layout, engine)
    pin(layout, "2.0")
    (finding,) = stale(lock, layout)
    assert "its adapter pins '2.0'" in finding.problem
    with pytest.raises(EnvironmentFault, match="its adapter pins"):
        made(layout, engine)
    assert load_lock(layout.lock) == lock
    engine.told = b"2.0\n"
    assert made(layout, engine).image("hello").tag == "cab/hello:2.0"


def test_a_lock_without_versions_is_stale_and_read_again(layout: Layout) -> None:
    engine = Engine()
    lock = made(layout, engine)
    bare = lock.with_image("hello", lock.image("hello").model_copy(update={"versions": {}}))
    save_lock(bare, layout.lock)
    assert ["told no version" in finding.problem for finding in stale(bare, layout)] == [True]
    assert made(layout, engine).image("hello").versions == lock.image("hello").versions


@pytest.mark.parametrize(
    ("versions", "fields", "agrees"),
    [
        ({"hello": "1.0"}, {}, True),
        ({"hello": "hello version 1.0"}, {}, True),
        ({"hello": "11.0"}, {}, False),
        ({}, {}, False),
        ({"other": "1.0"}, {}, False),
        ({"other": "1.0"}, {"wire": None, "final_message": "stdout"}, True),
        ({}, {"wire": None, "final_message": "stdout"}, False),
    ],
)
def test_what_agrees(versions: dict[str, str], fields: dict[str, Any], agrees: bool) -> None:
    assert (version_problem(adapter(**fields), versions) is None) is agrees


def test_a_sweep_starts_with_agreeing_images_only(tmp_path: Path) -> None:
    (init := tmp_path / "init").touch()
    lock = Lock(
        images={"base": locked(BASE, "cab/base:0", {}), "hello": locked(BUILT, "t", {"hello": "1.0"})}
    )
    assert resolve(lock, {"hello": adapter()}, init, Fleet()) == {"base": BASE, "hello": BUILT}
    with pytest.raises(
        EnvironmentFault, match=r"says '1\.0', .* pins '2\.0' \(run `cab images build hello`\)"
    ):
        resolve(lock, {"hello": adapter(version="2.0")}, init, Fleet())


def test_a_pin_has_the_tag_of_the_lock_or_its_own(tmp_path: Path) -> None:
    pins = {"hello": BUILT, "base": BASE}
    assert tags_of(pins, tmp_path / "none")["hello"] == "cab/pin:" + "a" * 12
    save_lock(Lock().with_image("hello", locked(BUILT, "cab/hello:1.0", {})), tmp_path / "lock")
    assert tags_of(pins, tmp_path / "lock") == {"hello": "cab/hello:1.0", "base": "cab/pin:" + "b" * 12}
