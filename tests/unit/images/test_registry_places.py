"""Where images may be pushed to: what is on loopback, and what stays here when it is not."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from docker.errors import APIError

from orchestrator.errors import EnvironmentFault, InputError
from orchestrator.sandbox.images import Layout, Lock, LockedImage, Progress, Registry, pull, push
from orchestrator.sandbox.images.lock import load_lock, save_lock

ADAPTER = """from orchestrator.adapter import Adapter, Launch
ADAPTER = Adapter(name="NAME", version="1", licence="LICENCE", launch=lambda context: Launch(argv=("x",)))
"""


@pytest.mark.parametrize(
    ("address", "loopback"),
    [
        ("localhost:5000/cab", True),
        ("127.0.0.1:5000", True),
        ("127.3.2.1/cab", True),
        ("[::1]:5000/cab", True),
        ("registry.example/team/cab", False),
        ("localhost.example:5000", False),
        ("10.0.0.7:5000/cab", False),
        ("[fd00::1]:5000", False),
        ("someone/cab", False),
    ],
)
def test_what_is_on_loopback(address: str, loopback: bool) -> None:
    assert Registry(address).is_loopback is loopback


@pytest.mark.parametrize(
    "address",
    ["", "http://localhost:5000", "localhost:5000/", "localhost:5000/cab:1", "a/B", "a b", "a/../b"],
)
def test_what_is_no_place(address: str) -> None:
    with pytest.raises(InputError, match=r"no place in a registry.*localhost:5000/cab"):
        Registry(address)


def test_each_image_has_a_repository_by_its_tag() -> None:
    place = Registry("localhost:5000/cab")
    assert place.repository("cab/opencode:1.18.33") == "localhost:5000/cab/opencode"
    assert place.repository("cab/opencode-cell:1.18.33") == "localhost:5000/cab/opencode-cell"


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """Two CLIs, `free` and `closed`, both locked."""
    layout = Layout(tmp_path)
    lock = Lock()
    for name, licence in (("free", "MIT"), ("closed", "proprietary")):
        folder = layout.images / name
        folder.mkdir(parents=True)
        (folder / "Dockerfile").write_text("FROM scratch\n")
        (folder / "adapter.py").write_text(ADAPTER.replace("NAME", name).replace("LICENCE", licence))
        lock = lock.with_image(
            name,
            LockedImage(
                id=f"sha256:{name}",
                tag=f"cab/{name}:1",
                inputs_hash="0",
                parent=None,
                versions={},
                built_at="",
                size=1,
            ),
        )
    save_lock(lock, layout.lock)
    return layout


class Engine:
    """An engine that pushes anything; `pushed` are the repositories."""

    def __init__(self) -> None:
        self.pushed: set[str] = set()
        self.api = SimpleNamespace(push=self._push)
        self.images = SimpleNamespace(get=self._get, remove=lambda *_, **__: None)

    def _push(self, repository: str, **_: Any) -> Any:
        self.pushed.add(repository)
        return iter([{"aux": {"Digest": "sha256:" + "d" * 64}}])

    def _get(self, name: str) -> Any:
        return SimpleNamespace(id=name, tags=[], tag=lambda *_: True)


AWAY, HERE = Registry("registry.example/cab"), Registry("localhost:5000/cab")


def test_a_proprietary_cli_is_refused_by_name_before_anything_is_pushed(layout: Layout) -> None:
    engine: Any = Engine()
    with pytest.raises(InputError, match=r"image closed: closed is proprietary.*--proprietary"):
        push(AWAY, ["free", "closed"], layout=layout, client=engine)
    assert engine.pushed == set()


def test_one_that_is_not_locked_is_told_before_anything_is_pushed(layout: Layout) -> None:
    engine: Any = Engine()
    save_lock(Lock(images={"closed": load_lock(layout.lock).image("closed")}), layout.lock)
    with pytest.raises(EnvironmentFault, match=r"no image 'free'.*cab images build free"):
        push(HERE, ["free", "closed"], layout=layout, client=engine)
    assert engine.pushed == set()


def test_one_that_cannot_be_had_is_refused_with_its_reason(layout: Layout) -> None:
    engine: Any = Engine()
    (layout.images / "gone").mkdir()
    (layout.images / "gone/unavailable.txt").write_text("no registry has it\n")
    with pytest.raises(InputError, match="gone cannot be had: no registry has it"):
        push(HERE, ["gone"], layout=layout, client=engine)
    with pytest.raises(InputError, match="gone cannot be had: no registry has it"):
        pull(["gone"], registry=HERE, layout=layout, client=engine)


def test_a_refusal_is_the_engines_words_without_its_clients(layout: Layout) -> None:
    engine: Any = Engine()

    def refuse(*_: Any, **__: Any) -> Any:
        raise APIError("500 Server Error for http+docker://localhost/v1", explanation="connection refused")

    engine.api.push = refuse
    with pytest.raises(EnvironmentFault, match="the engine and the registry say: connection refused"):
        push(HERE, ["free"], layout=layout, client=engine)


def test_of_all_images_the_proprietary_stay_and_are_named(layout: Layout) -> None:
    engine: Any = Engine()
    events: list[Progress] = []
    assert list(push(AWAY, layout=layout, client=engine, on_progress=events.append)) == ["free"]
    assert engine.pushed == {"registry.example/cab/free"}
    assert [it.image for it in events if it.event == "passed_over"] == ["closed"]


@pytest.mark.parametrize(("place", "told"), [(HERE, False), (AWAY, True)])
def test_they_go_to_loopback_or_where_it_is_said(layout: Layout, place: Registry, told: bool) -> None:
    engine: Any = Engine()
    assert set(push(place, proprietary=told, layout=layout, client=engine)) == {"free", "closed"}
    assert engine.pushed == {f"{place.address}/free", f"{place.address}/closed"}


@pytest.mark.parametrize(
    ("said", "mend"),
    [
        ("no basic auth credentials", "docker login"),
        ("denied: requested access to the resource is denied", "docker login"),
        ("http: server gave HTTP response to HTTPS client", "insecure-registries"),
        ("dial tcp 127.0.0.1:5000: connect: connection refused", "see that the registry runs there"),
    ],
)
def test_a_refusal_names_its_mend(layout: Layout, said: str, mend: str) -> None:
    engine: Any = Engine()
    engine.api.push = lambda *_, **__: iter([{"error": said}])
    with pytest.raises(EnvironmentFault, match=rf"registry\.example/cab/free:id-free: .*{mend}") as error:
        push(AWAY, ["free"], layout=layout, client=engine)
    assert said in str(error.value)
