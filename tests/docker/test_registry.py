"""Images go to a registry and come back by digest: Debian's own, on loopback, with images of a few files."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest
from docker.errors import ContainerError
from registry_process import RegistryProcess, program
from tiny_images import forget, lay

from orchestrator.errors import EnvironmentFault, NotAllPulled
from orchestrator.sandbox.images import (
    Layout,
    Lock,
    Progress,
    Registry,
    build,
    engine,
    load_lock,
    pull,
    push,
    relock,
    stale,
    verify,
)

pytestmark = [
    pytest.mark.docker,
    pytest.mark.skipif(program() is None, reason="no docker-registry: run scripts/registry.sh"),
]

REPO = Path(__file__).resolve().parents[2]
USAGE = 12
"""What PID 1 of cab's ends with where it is told nothing to run: a program that needs nothing of an image."""


@pytest.fixture(scope="module")
def client() -> Iterator[docker.DockerClient]:
    client = engine.connect()
    yield client
    client.close()


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RegistryProcess]:
    with RegistryProcess(tmp_path_factory.mktemp("registry")) as registry:
        yield registry


@pytest.fixture(scope="module")
def name() -> str:
    return f"test-pushed-{secrets.token_hex(4)}"


@pytest.fixture(scope="module")
def shipped(
    tmp_path_factory: pytest.TempPathFactory,
    name: str,
    init_binary: Path,
    client: docker.DockerClient,
    registry: RegistryProcess,
) -> Iterator[Layout]:
    """A checkout with a base of two files and one image that stands on it, both built and pushed."""
    layout = Layout(tmp_path_factory.mktemp("checkout"))
    lay(layout, name, init_binary)
    build([name], layout=layout, client=client)
    push(Registry(registry.address), layout=layout, client=client)
    yield layout
    forget(client, name)


@pytest.fixture
def layout(tmp_path: Path, shipped: Layout) -> Layout:
    """The same checkout once more."""
    shutil.copytree(shipped.repo, tmp_path / "checkout")
    return Layout(tmp_path / "checkout")


@pytest.fixture
def clone(layout: Layout) -> Layout:
    """The same, where nothing was built."""
    other = layout.repo.with_name("clone")
    shutil.copytree(layout.images, other / "images")
    return Layout(other)


def references(layout: Layout) -> dict[str, str]:
    found = {name: image.manifests for name, image in load_lock(layout.lock).images.items()}
    return {name: "@".join(*manifests.items()) for name, manifests in found.items()}


def runs(client: docker.DockerClient, reference: str) -> bool:
    with pytest.raises(ContainerError) as ended:
        client.containers.run(reference, ["/init"], remove=True, network_mode="none")
    return bool(ended.value.exit_status == USAGE)


def test_what_was_pushed_comes_back_by_digest_and_runs_by_it_without_the_registry(
    layout: Layout, client: docker.DockerClient, name: str, registry: RegistryProcess
) -> None:
    lock, pushed = load_lock(layout.lock), references(layout)
    repository, _, digest = pushed[name].partition("@")
    assert repository == f"{registry.address}/{name}"
    assert digest != lock.image(name).id

    forget(client, name)
    (lost,) = (it for it in verify(lock, layout=layout, client=client) if it.image == name)
    assert lost.problem == f"the engine has no {lock.image(name).id}"
    assert f"cab images pull {name}" in lost.mend

    assert pull([name], layout=layout, client=client) == pushed
    assert verify(load_lock(layout.lock), layout=layout, client=client) == []
    assert load_lock(layout.lock) == lock
    assert runs(client, pushed[name])
    with registry.stopped():
        assert runs(client, pushed[name])
        # Whoever tidies up tags takes neither the image nor its digest away.
        client.images.remove(lock.image(name).tag)
        assert runs(client, pushed[name])
        assert pull([name], layout=layout, client=client) == pushed
        assert client.images.get(lock.image(name).tag).id == lock.image(name).id


def test_another_checkout_pulls_by_its_inputs_and_has_nothing_to_build(
    layout: Layout, clone: Layout, client: docker.DockerClient, name: str, registry: RegistryProcess
) -> None:
    forget(client, name)
    place = Registry(registry.address)
    assert pull([name], registry=place, layout=clone, client=client) == references(layout)
    lock = load_lock(clone.lock)
    assert ids(lock) == ids(load_lock(layout.lock))
    assert list(stale(lock, clone)) == []
    events: list[Progress] = []
    assert build([name], layout=clone, client=client, on_progress=events.append) == lock
    assert {event.event for event in events} == {"current"}


def ids(lock: Lock) -> dict[str, str]:
    return {name: image.id for name, image in lock.images.items()}


def test_an_image_of_other_inputs_is_not_locked_and_the_file_that_differs_is_named(
    layout: Layout, clone: Layout, client: docker.DockerClient, name: str, registry: RegistryProcess
) -> None:
    (clone.images / name / "data").write_text("2\n")
    with pytest.raises(NotAllPulled, match=rf"image {name}: does not fit this checkout: data changed"):
        pull(lock_file=layout.lock, layout=clone, client=client)
    assert list(load_lock(clone.lock).images) == ["base"]
    with pytest.raises(NotAllPulled, match=rf"/{name} has none that was made from these inputs"):
        pull([name], registry=Registry(registry.address), layout=clone, client=client)


def test_a_manifest_keeps_a_tag_when_a_rebuild_is_pushed(
    layout: Layout, client: docker.DockerClient, name: str, registry: RegistryProcess
) -> None:
    place = Registry(registry.address)
    pull(["base"], layout=layout, client=client)
    (layout.images / name / "data").write_text("to be built twice\n")
    first = build([name], layout=layout, client=client).image(name)
    old = push(place, [name], layout=layout, client=client)[name]
    second = build([name], force=True, layout=layout, client=client).image(name)
    new = push(place, [name], layout=layout, client=client)[name]
    assert first.id != second.id
    assert old != new
    kept = [f"id-{image.id.removeprefix('sha256:')[:12]}" for image in (first, second)]
    assert {first.inputs_hash[:12], *kept} <= set(registry.tags(f"cab-test/{name}"))
    # Both digests are known here, and the tags that move are the registry's alone.
    assert client.images.get(old).id == first.id
    tags = {
        second.tag,
        f"cab/pin:{second.id.removeprefix('sha256:')[:12]}",
        f"{place.address}/{name}:{kept[1]}",
    }
    assert set(client.images.get(new).tags) == tags


def test_a_registry_that_is_not_there_is_named_with_what_to_see_to(
    layout: Layout, client: docker.DockerClient, name: str, tmp_path: Path
) -> None:
    place = Registry(RegistryProcess(tmp_path).address)
    pull([name], layout=layout, client=client)
    with pytest.raises(EnvironmentFault, match=r"cab-test/base:.*refused.*see that the registry runs there"):
        push(place, [name], layout=layout, client=client)
    with pytest.raises(EnvironmentFault, match=r"cab-test/base:.*refused.*see that the registry runs there"):
        pull([name], registry=place, layout=layout, client=client)


def test_a_lost_lock_is_resolved_from_what_the_engine_has(
    layout: Layout, client: docker.DockerClient, name: str
) -> None:
    pull([name], layout=layout, client=client)
    lock = load_lock(layout.lock)
    layout.lock.unlink()
    again = relock(layout=layout, client=client)
    assert ids(again) == ids(lock)
    assert references(layout) == {it: "@".join(*image.manifests.items()) for it, image in lock.images.items()}
    (layout.images / name / "data").write_text("2\n")
    with pytest.raises(NotAllPulled, match=rf"the engine does not have {name} of this checkout's inputs"):
        relock(layout=layout, client=client)
