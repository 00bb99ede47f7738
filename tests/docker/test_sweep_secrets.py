"""The endpoint's key is nowhere but in cab, its gateway and the requests to the endpoint.

A sweep of real CLIs asks an endpoint that gives the key back in what it answers. While cells run, their
containers are searched; afterwards everything that was stored, exported or printed, and the images.
"""

from __future__ import annotations

import base64
import gzip
import io
import json
import os
import secrets
import tarfile
import threading
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import docker.errors
import pytest

from orchestrator.adapter import HOME, WORKDIR
from orchestrator.sandbox.images import Layout, build, load_lock
from tests.docker.command import ENDED_S, HOSTED, REPO, Cab, serving, wait_for
from tests.docker.secret_search import BLOCK, Search
from tests.docker.tiny_images import forget, lay

# How long the engine may take to start sending images, s.
FIRST_BYTE_S = 900
WRITABLE = ("tmp", HOME.strip("/"), WORKDIR.strip("/"), "run/cab")

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root reads the processes of others")


def fresh_key() -> str:
    """Shaped like real ones, with characters that other forms have to escape."""
    return f"sk-proj-{secrets.token_urlsafe(24)}/+{secrets.token_urlsafe(24)}=="


def search_containers(search: Search, cab: Cab, label: str) -> list[str]:
    """Search the running containers with a label, from outside; the ids of those searched."""
    searched = []
    for container in cab.docker.containers.list(filters={"label": label}, ignore_removed=True):
        try:
            search.data(
                json.dumps(cab.docker.api.inspect_container(container.id)).encode(), "inspect", "inspect"
            )
            top = container.top()
        except docker.errors.APIError:  # it ended meanwhile
            continue
        pids = [int(row[top["Titles"].index("PID")]) for row in top["Processes"]]
        for pid in pids:
            search.process(pid)
        for place in WRITABLE:
            search.tree(Path(f"/proc/{pids[0]}/root/{place}"), "container files")
        searched.append(str(container.id))
    return searched


# ---- the endpoint that gives the key away ----


def event(delta: Mapping[str, object], **more: object) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": None, **more}
    chunk = {
        "id": "c",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "stub-1",
        "choices": [choice],
    }
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


def streamed(text: str, command: str | None = None) -> bytes:
    """A streamed answer; with a command it calls the CLI's shell."""
    events = [event({"role": "assistant", "content": text})]
    if command is not None:
        arguments = json.dumps({"command": command, "description": "write"})
        function = {"name": "bash", "arguments": arguments}
        call = {"index": 0, "id": f"call_{secrets.token_hex(4)}", "type": "function", "function": function}
        events.append(event({"tool_calls": [call]}))
    events.append(event({}, finish_reason="tool_calls" if command else "stop"))
    usage = {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}
    end = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "stub-1", "choices": []}
    events += [b"data: " + json.dumps({**end, "usage": usage}).encode() + b"\n\n", b"data: [DONE]\n\n"]
    return b"".join(events)


@dataclass
class GivesAway:
    """Answers by turns: an error 500, a call of the shell, an error 400, a final text; each holds the key."""

    keys: list[str] = field(default_factory=list)
    replies: list[str] = field(default_factory=list)
    searched: threading.Event = field(default_factory=threading.Event)
    given_away: threading.Event = field(default_factory=threading.Event)

    def __call__(self, number: int, headers: Mapping[str, str]) -> tuple[int, bytes]:
        sent = headers["Authorization"]
        self.keys.append(sent.removeprefix("Bearer "))
        key = self.keys[-1]
        basic = base64.b64encode(f"user:{key}".encode()).decode()
        text = f"you sent {sent}, Basic {basic}, ?key={quote(key, safe='')}"
        if number > 6:
            # By now some containers hold what a first answer made of it.
            self.given_away.set()
            self.searched.wait(ENDED_S)
        kind = ("error 500", "shell", "error 400", "final", "shell", "final")[number % 6]
        self.replies.append(kind)
        if kind.startswith("error"):
            message = {"message": text, "type": "invalid_request_error", "code": None}
            return int(kind.split()[1]), json.dumps({"error": message}).encode()
        if kind == "shell":
            quoted = text.replace("'", "")
            return 200, streamed(
                text, f"echo '{quoted}' | tee leak.txt /tmp/leak.txt | gzip > ~/leak.gz; sleep 1"
            )
        return 200, streamed(text)


# ---- the searcher itself ----


@pytest.mark.parametrize(
    "write",
    [
        str.encode,
        lambda key: quote(key, safe="").encode(),
        lambda key: (
            quote(key, safe="").replace("%2F", "%2f").replace("%2B", "%2b").replace("%3D", "%3d").encode()
        ),
        lambda key: base64.b64encode(key.encode()),
        lambda key: base64.b64encode(b"Bearer " + key.encode()),
        lambda key: base64.urlsafe_b64encode(b"user:" + key.encode()),
        lambda key: key.encode().hex().encode(),
        lambda key: gzip.compress(b"not this") + gzip.compress(key.encode()),
        lambda key: gzip.compress(tarred(gzip.compress(base64.b64encode(key.encode())))),
        lambda key: zipped(key.encode()),
    ],
)
def test_the_search_finds(write: Callable[[str], bytes], tmp_path: Path) -> None:
    key = fresh_key()
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "file").write_bytes(write(key))
    search = Search([key, fresh_key()])
    search.tree(tmp_path, "files")
    assert search.found, write(key)
    other = Search([fresh_key()])
    other.tree(tmp_path, "files")
    assert other.found == []


def test_the_search_finds_what_lies_behind_a_hole(tmp_path: Path) -> None:
    key, path = fresh_key(), tmp_path / "sparse"
    with path.open("wb") as file:
        for at in (0, 1 << 30):
            file.seek(at)
            file.write(key.encode())
        file.truncate(1 << 32)
    search = Search([key])
    search.file(path, "files")
    assert search.found == [f"plain: {path}"]
    assert search.looked["files"] < 1 << 20
    with path.open("r+b") as file:
        file.write(b"\0" * len(key))
    search = Search([key])
    search.file(path, "files")
    assert search.found == [f"plain: {path}"]


def test_the_search_finds_what_lies_across_blocks() -> None:
    key = fresh_key()
    search = Search([key])
    search.stream([b"x" * 50 + key[:9].encode(), key[9:].encode() + b"y" * 200], "stream", "stream")
    assert search.found == ["plain: stream"]


def tarred(content: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        entry = tarfile.TarInfo("inner")
        entry.size = len(content)
        tar.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def zipped(content: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("inner", content)
    return buffer.getvalue()


@pytest.fixture
def cab() -> Iterator[Cab]:
    with Cab.own() as cab:
        yield cab


def test_the_search_of_a_container_finds(cab: Cab) -> None:
    """Environment, command line, a file in each place, one of them compressed."""
    key = fresh_key()
    encoded = base64.b64encode(key.encode()).decode()
    base = json.loads((REPO / "images.lock").read_text())["images"]["base"]["id"]
    script = f"mkdir -p {HOME} && echo {encoded} | base64 -d | gzip > {HOME}/a.gz && echo $KEY > /tmp/b"
    container = cab.docker.containers.run(
        base,
        ["sh", "-c", f"{script} && sleep 60"],
        environment={"KEY": quote(key, safe="")},
        network_mode="none",
        labels={"cab.sweep": cab.sweep_id},
        user="0:0",
        detach=True,
        remove=True,
    )
    root = wait_for(lambda: container.reload() or container.attrs["State"]["Pid"], "the container")
    wait_for(lambda: Path(f"/proc/{root}/root/tmp/b").exists(), "its files")
    search = Search([key])
    assert search_containers(search, cab, f"cab.sweep={cab.sweep_id}") == [container.id]
    for place in (
        "url: inspect",
        "base64 at 0: inspect",
        f"url: /proc/{root}/environ",
        f"/proc/{root}/cmdline",
    ):
        assert any(place in found for found in search.found), (place, search.found)
    for place in (f"url: /proc/{root}/root/tmp/b", f"plain: /proc/{root}/root{HOME}/a.gz > gzip"):
        assert place in search.found


# ---- the sweep ----


@pytest.mark.timeout(600)
def test_the_key_is_nowhere(cab: Cab) -> None:
    key = fresh_key()
    # A real key of whoever set this machine up could be in the images.
    search = Search([key, *filter(None, [os.environ.get("CAB_KEY")])])
    spec = cab.spec(clis=["opencode"], runs=3, concurrency=3, retries=1, **HOSTED)
    gives_away = GivesAway()
    with serving(gives_away) as endpoint, serving(lambda *_: (200, b"")) as collector:
        running = cab.sweep(
            "run",
            spec,
            CAB_ENDPOINT=endpoint.url,
            CAB_KEY=key,
            OTEL_EXPORTER_OTLP_ENDPOINT=collector.url,
        )
        assert gives_away.given_away.wait(ENDED_S)
        containers = search_containers(search, cab, f"cab.sweep={cab.sweep_id}")
        (gateway,) = cab.gateways()
        search.process(gateway)
        search.data(
            Path(f"/proc/{running.process.pid}/cmdline").read_bytes(), "command line of cab", "cmdline"
        )
        gives_away.searched.set()
        done = running.end()
        assert done.code in {0, 1}, done

    assert set(gives_away.keys) == {key}
    assert {"error 500", "shell", "error 400", "final"} <= set(gives_away.replies)
    assert containers
    for body in collector.bodies:
        search.data(body, "OTLP export", "OTLP")
    search.data((done.out + done.err).encode(), "output", "output")
    search.tree(cab.results, "results")
    search.tree(cab.root / "scratch", "scratch")
    search.tree(cab.root / "tmp", "temporary files")
    assert search.found == []
    # It was looked where something was.
    kinds = {"inspect", "environ", "cmdline", "container files", "OTLP", "output", "results", "scratch"}
    assert kinds <= {kind for kind, size in search.looked.items() if size}
    wires = [gzip.decompress(path.read_bytes()) for path in cab.sweep_dir.glob("cells/**/wire.jsonl.gz")]
    assert any(b"you sent Bearer ****" in wire for wire in wires), "no answer that held the key was recorded"
    assert cab.left() == {}


def test_images_hold_no_key(cab: Cab, monkeypatch: pytest.MonkeyPatch, init_binary: Path) -> None:
    """History, configuration and layers of an image that is built while keys are set, and of this checkout's
    where its user has a key, which they could hold; layers are searched once each.
    """
    own, name, images = os.environ.get("CAB_KEY"), f"test-key-{secrets.token_hex(4)}", set[str]()
    if own:
        images |= {image.id for image in load_lock(REPO / "images.lock").images.values()}
    search = Search([key := fresh_key(), *filter(None, [own])])
    for variable in ("CAB_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(variable, key)
    layout = Layout(cab.root / "checkout")
    lay(layout, name, init_binary)
    try:
        images |= {image.id for image in build([name], layout=layout, client=cab.docker).images.values()}
        for image in images:
            search.data(json.dumps(cab.docker.api.inspect_image(image)).encode(), image, "configuration")
            search.data(json.dumps(cab.docker.api.history(image)).encode(), image, "history")
        search.stream(saved(cab, sorted(images)), "layers", "layers")
    finally:
        forget(cab.docker, name)
    assert search.found == []
    assert search.looked["layers"] > init_binary.stat().st_size


def saved(cab: Cab, images: list[str]) -> Iterator[bytes]:
    """All layers of some images as one tar. The SDK's own `save` takes one image at a time.

    The engine writes the whole tar to its own disk before it sends the first byte: minutes on a busy one.
    """
    api = cab.docker.api
    answer = api._get(api._url("/images/get"), params={"names": images}, stream=True, timeout=FIRST_BYTE_S)
    yield from answer.iter_content(BLOCK)
