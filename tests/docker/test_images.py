"""Images through the real engine: built, locked, found to differ, and free of what belongs to the machine."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from orchestrator.errors import EnvironmentFault, NotAllBuilt
from orchestrator.sandbox.images import Finding, Layout, Lock, Progress, build, engine, load_lock, verify
from orchestrator.sandbox.images.lock import save_lock
from orchestrator.sandbox.images.sbom import Component, components

pytestmark = pytest.mark.docker

REPO = Path(__file__).resolve().parents[2]
TINY = """ARG BASE
FROM ${BASE}
COPY tool /usr/local/bin/tiny-tool
RUN date +%N >/built && mkdir /tiny-1.dist-info
RUN printf 'Name: tiny\\nVersion: %s\\n' "$(cat /built)" >/tiny-1.dist-info/METADATA
LABEL cab.reads.tool="tiny-tool --version"
"""
TOOL = "#!/bin/sh\ntouch /read-only 2>/dev/null && exit 3\necho 7.$(id -u)\n"


@pytest.fixture(scope="module")
def client() -> Iterator[docker.DockerClient]:
    client = engine.connect()
    yield client
    client.close()


@pytest.fixture
def name() -> str:
    return f"test-tiny-{secrets.token_hex(4)}"


@pytest.fixture
def layout(tmp_path: Path, name: str, client: docker.DockerClient) -> Iterator[Layout]:
    """A checkout of its own with the real base image, already built, and one tiny image that stands on it."""
    layout = Layout(tmp_path)
    for part in ("base", "node"):
        shutil.copytree(REPO / "images" / part, layout.images / part)
    (layout.images / name).mkdir()
    (layout.images / name / "Dockerfile").write_text(f"{TINY}LABEL cab.test={name}\n")
    (layout.images / name / "tool").write_text(TOOL)
    (layout.images / name / "tool").chmod(0o755)
    lock_what_is_below(layout)
    yield layout
    for image in client.images.list(filters={"label": f"cab.test={name}"}):
        for tag in image.tags:
            client.images.remove(tag, force=True)


BELOW = ("root", "node", "base")


def lock_what_is_below(layout: Layout) -> None:
    """As if nothing had been built here but the base, of which is known what is in it."""
    images = load_lock(REPO / "images.lock").images
    save_lock(Lock(images={name: images[name] for name in BELOW}), layout.lock)
    layout.sboms.mkdir(parents=True, exist_ok=True)
    for name in BELOW:
        for path in Layout(REPO).sboms.glob(f"{name}-*.cdx.json"):
            shutil.copy(path, layout.sboms)


def add_image(layout: Layout, name: str, suffix: str, dockerfile: str) -> str:
    """A further image with the same tool."""
    folder = layout.images / f"{name}-{suffix}"
    shutil.copytree(layout.images / name, folder)
    (folder / "Dockerfile").write_text(dockerfile)
    return folder.name


def findings(layout: Layout, client: docker.DockerClient, name: str) -> list[Finding]:
    """What is found of one image. The versions in those that it stands on are another test's."""
    lock, read = load_lock(layout.lock), engine.read_versions
    told = {image.id: dict(image.versions) for below, image in lock.images.items() if below in BELOW}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "read_versions", lambda *args: told.get(args[1]) or read(*args))
        found = verify(lock, layout=layout, client=client)
    return [finding for finding in found if finding.image == name]


def problems(layout: Layout, client: docker.DockerClient, name: str) -> list[str]:
    return [finding.problem for finding in findings(layout, client, name)]


def test_a_built_image_is_locked_tagged_and_verified(
    layout: Layout, client: docker.DockerClient, name: str
) -> None:
    lock = build([name], layout=layout, client=client)
    locked = lock.image(name)
    assert locked.parent == lock.image("base").id
    assert locked.versions == {"tool": "7.1000"}
    assert load_lock(layout.lock) == lock
    tags = client.images.get(locked.id).tags
    assert set(tags) == {locked.tag, f"cab/pin:{locked.id.removeprefix('sha256:')[:12]}"}
    assert problems(layout, client, name) == []


def test_what_is_up_to_date_is_left_alone(layout: Layout, client: docker.DockerClient, name: str) -> None:
    first = build([name], layout=layout, client=client).image(name)
    events: list[Progress] = []
    again = build([name], layout=layout, client=client, on_progress=events.append).image(name)
    assert again == first
    assert {event.event for event in events} == {"current"}


def test_another_checkout_takes_the_image_of_the_same_inputs(
    layout: Layout, client: docker.DockerClient, name: str
) -> None:
    first = build([name], layout=layout, client=client).image(name)
    lock_what_is_below(layout)
    assert build([name], layout=layout, client=client).image(name).id == first.id


def test_a_rebuild_without_cache_has_another_id_and_verify_finds_it(
    layout: Layout, client: docker.DockerClient, name: str
) -> None:
    first = build([name], layout=layout, client=client)
    kept = layout.lock.read_bytes()
    second = build([name], force=True, layout=layout, client=client)
    assert second.image(name).id != first.image(name).id
    layout.lock.write_bytes(kept)
    (found,) = findings(layout, client, name)
    tag, was, now = (first.image(name).tag, first.image(name).id, second.image(name).id)
    assert found.problem == f"{tag} is {now}, the lock says {was}: built again from the same inputs"
    (difference,) = found.differences
    assert re.fullmatch(r"pypi tiny \d+ → \d+", difference)
    assert client.images.get(first.image(name).id).tags, "the pinned image must outlive the move of its tag"
    build([name], layout=layout, client=client)
    assert problems(layout, client, name) == []


def test_a_retagged_image_is_found_with_what_it_holds_instead(
    layout: Layout, client: docker.DockerClient, name: str
) -> None:
    lock = build([name], layout=layout, client=client)
    locked, base = lock.image(name), lock.image("base")
    client.images.get(base.id).tag(locked.tag)
    try:
        (found,) = findings(layout, client, name)
    finally:
        client.images.remove(locked.tag)  # which is all that goes of the base
    assert found.problem == f"{locked.tag} is {base.id}, the lock says {locked.id}: made from other inputs"
    told = load_listed(layout, name, locked.id)
    assert ("deb", "git") in {(it.kind, it.name) for it in told}
    (package, tool) = found.differences
    assert re.fullmatch(r"pypi tiny \d+ removed", package)
    assert tool == "tool tool 7.1000 removed"


def load_listed(layout: Layout, name: str, image_id: str) -> list[Component]:
    path = layout.sboms / f"{name}-{image_id.removeprefix('sha256:')[:12]}.cdx.json"
    return components(json.loads(path.read_text()))


def test_changed_inputs_and_a_lost_image_are_found(
    layout: Layout, client: docker.DockerClient, name: str
) -> None:
    locked = build([name], layout=layout, client=client).image(name)
    (layout.images / name / "tool").write_text(TOOL + "# changed\n")
    assert problems(layout, client, name) == ["changed since it was built: tool"]
    for tag in client.images.get(locked.id).tags:
        client.images.remove(tag)
    assert f"the engine has no {locked.id}" in problems(layout, client, name)


def test_a_failed_build_names_its_log_and_shows_its_end(
    layout: Layout, client: docker.DockerClient, name: str
) -> None:
    (layout.images / name / "Dockerfile").write_text("ARG BASE\nFROM ${BASE}\nRUN echo so it goes; exit 7\n")
    events: list[Progress] = []
    with pytest.raises(EnvironmentFault, match=rf"{name}\.log: .*returned a non-zero code: 7"):
        build([name], layout=layout, client=client, on_progress=events.append)
    assert events[-1].event == "failed"
    assert "so it goes" in events[-1].tail
    assert name not in load_lock(layout.lock).images


SLOW = f"{TINY}RUN touch /half && sleep 6 && mv /half /whole\n"
BUILD = """
import sys
from pathlib import Path
from orchestrator.sandbox.images import Layout, build
tell = lambda it: print(it.event, it.detail, flush=True)
build(sys.argv[2:], layout=Layout(Path(sys.argv[1])), on_progress=tell)
"""


def test_a_build_that_was_killed_goes_on_where_it_was(
    layout: Layout, client: docker.DockerClient, name: str
) -> None:
    second = add_image(layout, name, "second", f"{SLOW}LABEL cab.test={name}\n")
    command = [sys.executable, "-c", BUILD, str(layout.repo), name, second]
    env = os.environ | {"PYTHONPATH": str(REPO)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) as killed:
        assert killed.stdout is not None
        told = iter(killed.stdout)
        assert any("sleep 6" in line for line in told), "the step was never begun"
        killed.kill()
    lock = load_lock(layout.lock)
    assert name in lock.images
    assert second not in lock.images
    found = client.images.list(filters={"label": f"cab.test={name}"})
    assert [image.id for image in found] == [lock.image(name).id], "half an image would be taken for whole"

    events: list[Progress] = []
    again = build([name, second], layout=layout, client=client, on_progress=events.append)
    assert again.image(name) == lock.image(name)
    outcomes = {it.image: it.event for it in events if it.event in ("current", "built")}
    assert (outcomes[name], outcomes[second]) == ("current", "built")
    whole = ["sh", "-c", "test -e /whole && test ! -e /half"]
    client.containers.run(again.image(second).id, whole, remove=True, network_mode="none")
    # The steps before the one that was killed came out of the engine's cache.
    assert again.image(second).build_s is None


def test_the_time_of_a_whole_build_is_locked_and_then_expected(
    layout: Layout, client: docker.DockerClient, name: str
) -> None:
    first = build([name], layout=layout, client=client).image(name)
    assert first.build_s is not None
    assert 0 < first.build_s < 300
    events: list[Progress] = []
    build([name], force=True, layout=layout, client=client, on_progress=events.append)
    (started,) = (it for it in events if it.event == "started")
    images = len({event.image for event in events})
    assert (started.at, started.of, started.left_s) == (images, images, first.build_s)


def test_the_failure_of_one_image_stops_only_what_stands_on_it(
    layout: Layout, client: docker.DockerClient, name: str
) -> None:
    broken = add_image(layout, name, "a", "ARG BASE\nFROM ${BASE}\nRUN echo so it goes; exit 7\n")
    wrong = add_image(layout, name, "b", "ARG BASE\nFROM ${BASE}\nBOIL water\n")
    events: list[Progress] = []
    with pytest.raises(NotAllBuilt, match=rf"2 images were not built: {broken}, {wrong} ") as error:
        build([name, broken, wrong], layout=layout, client=client, on_progress=events.append)
    assert error.value.exit_code == 1
    assert name in load_lock(layout.lock).images
    failed = {it.image: it.detail for it in events if it.event == "failed"}
    assert set(failed) == {broken, wrong}
    assert f"{broken}.log: " in failed[broken]
    assert "unknown instruction: BOIL" in failed[wrong]


def ids(layout: Layout) -> dict[str, str]:
    return {name: image.id for name, image in load_lock(layout.lock).images.items()}


def test_what_stands_on_a_failed_image_is_not_built(layout: Layout, client: docker.DockerClient) -> None:
    shutil.rmtree(layout.images / "node")
    shutil.copytree(REPO / "images" / "init", layout.images / "init")
    (layout.images / "base" / "Dockerfile").write_text("ARG BASE\nFROM ${BASE}\nRUN exit 3\n")
    before = ids(layout)
    events: list[Progress] = []
    with pytest.raises(NotAllBuilt, match="2 images were not built: base, init"):
        build(["init"], layout=layout, client=client, on_progress=events.append)
    (passed_over,) = (it for it in events if it.event == "passed_over")
    assert (passed_over.image, passed_over.detail) == ("init", "stands on base, which was not built")
    assert ids(layout) == before


def test_a_tool_that_fails_as_the_agent_fails_the_build(
    layout: Layout, client: docker.DockerClient, name: str
) -> None:
    (layout.images / name / "tool").write_text("#!/bin/sh\nexit 5\n")
    with pytest.raises(EnvironmentFault, match="`tiny-tool --version` fails as uid 1000"):
        build([name], layout=layout, client=client)
    assert name not in load_lock(layout.lock).images


def test_the_images_of_this_checkout_are_as_locked(client: docker.DockerClient) -> None:
    assert verify(load_lock(REPO / "images.lock"), client=client) == []


def test_opencode_tells_the_version_that_its_adapter_pins() -> None:
    assert load_lock(REPO / "images.lock").image("opencode").versions == {"opencode": "1.18.33"}


LEFTOVERS = """
set -e
for place in /host /var/lib/apt/lists/* ~root/.npm ~root/.cache /etc/pip.conf /opt/opencode; do
    [ ! -e "$place" ] || { echo "left over: $place"; exit 1; }
done
[ -z "$(ls -A /home/agent)" ] && [ -z "$(ls -A /workdir)" ]
[ "$(stat -c %U /home/agent /workdir | sort -u)" = agent ]
[ "$(id -u verifier)" = 1001 ]
[ "$(locale charmap)" = UTF-8 ]
cab-tests unittest --help >/dev/null
"""


@pytest.mark.parametrize("image", ["base", "opencode", "oracle", "noop"])
def test_an_image_holds_its_users_and_nothing_of_the_machine(client: docker.DockerClient, image: str) -> None:
    locked = load_lock(REPO / "images.lock").image(image)
    client.containers.run(locked.id, ["sh", "-c", LEFTOVERS], remove=True, network_mode="none", user="0")
    history = str(client.images.get(locked.id).history())
    assert "sources.list" not in history
    assert "index-url" not in history
