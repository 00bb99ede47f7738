"""A hostile CLI in the container that it shares with cab and the tests (`cab run-cell`): it finds neither key
nor tests nor solution, and nothing of it is left when the tests come.

The same search as root finds all of them, so that a search which cannot find is no proof.
"""

from __future__ import annotations

import base64
import json
import os
import secrets
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from orchestrator.sandbox.images import load_lock
from tests.docker.command import REPO

TASK = "polyglot/python-reverse-string"
THIEF = (Path(__file__).parent / "in_place_thief.py").read_text("utf-8")
KINDS = ("key", "tests", "solution")
STAY_S = 6
OPEN_PORT = 4712

ADAPTER = """\
from orchestrator.adapter import Adapter, Launch, LaunchContext

def launch(context: LaunchContext) -> Launch:
    env = {{"KEY": context.credential, "URL": context.base_url, "STAY_S": "{stay}", "OTHER_PORT": "{port}"}}
    return Launch(argv=("python3", "-c", {thief!r}, {markers!r}, "leave"), env=env)

ADAPTER = Adapter(name="noop", version="1", launch=launch, wire="chat", tty=False)
"""

TEST_SH = """\
#!/bin/sh
# {marker}
echo "found: $(ls -A /tmp /dev/shm /dev/mqueue 2>&1 | tr '\\n' ' ')"
echo "shared memory: $(grep -c . /proc/sysvipc/shm)"
echo "users: $(ps -eo uid= | sort -u | tr -d ' ' | tr '\\n' ' ')"
echo "cab: $(ls /opt/cab 2>&1)"
echo "solution: $(ls -d /solution 2>&1)"
echo "home: $(ls -d /home/agent 2>&1)"
sleep 2
exec cab-tests unittest
"""


@dataclass(frozen=True)
class Seen:
    """What the thief said, what the same search found as root, what the tests saw, and which users had
    processes at the same moment.
    """

    thief: dict[str, Any]
    root: dict[str, Any]
    tests: str
    users: list[frozenset[str]]
    record: dict[str, Any]
    out: Path


def docker(*args: str, **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["docker", *args], capture_output=True, text=True, check=False, timeout=120, **more)


def users_of(name: str) -> frozenset[str]:
    """Users that have a living process there."""
    lines = docker("exec", name, "ps", "-eo", "uid=,stat=").stdout.splitlines()
    return frozenset(line.split()[0] for line in lines if not line.split()[1].startswith("Z"))


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    place, marks = tmp_path_factory.mktemp("thief"), {kind: f"sk-{secrets.token_hex(16)}" for kind in KINDS}
    encoded = json.dumps(
        {kind: base64.b64encode(mark.encode()).decode()[::-1] for kind, mark in marks.items()}
    )
    adapter = ADAPTER.format(stay=STAY_S, port=OPEN_PORT, thief=THIEF, markers=encoded)
    files = {
        "adapter.py": adapter,
        "test.sh": TEST_SH.format(marker=marks["tests"]),
        "solve.sh": f"# {marks['solution']}\n",
    }
    for file, text in files.items():
        (place / file).write_text(text)
    (place / "out" / "earlier").mkdir(parents=True)
    # As an earlier cell that passed left it.
    (place / "out" / "earlier" / "diff.patch").write_text(marks["solution"])
    task, name = f"/opt/cab/tasks/{TASK}", f"cab-thief-{secrets.token_hex(4)}"
    mounts = {
        "adapter.py": "/opt/cab/images/noop/adapter.py:ro",
        "test.sh": f"{task}/tests/test.sh:ro",
        "solve.sh": f"{task}/solution/solve.sh:ro",
        "out": "/out",
    }
    volumes = [word for file, target in mounts.items() for word in ("-v", f"{place / file}:{target}")]
    image = os.environ.get("CAB_TEST_CELL_IMAGE") or load_lock(REPO / "images.lock").image("noop+cell").id
    cell = ["run-cell", "--tui", "noop", "--model", "vendor/model", "--task", TASK, "--json"]
    environment = ["-e", f"CAB_KEY={marks['key']}", "-e", "CAB_ENDPOINT=http://127.0.0.1:9/v1"]
    running = subprocess.Popen(
        ["docker", "run", "--rm", "--name", name, *environment, *volumes, str(image), *cell],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    users, root = [], None
    try:
        while running.poll() is None:
            users.append(users_of(name))
            if root is None and "1000" in users[-1]:
                server = (
                    f"import socket,time; s=socket.create_server(('127.0.0.1', {OPEN_PORT})); time.sleep(60)"
                )
                docker("exec", "-d", name, "python3", "-c", server)
                root = json.loads(docker("exec", name, "python3", "-c", THIEF, encoded, "look").stdout)
            time.sleep(0.05)
        printed, errors = running.communicate()
    finally:
        docker("rm", "-f", name)
        running.wait()
    assert root is not None, errors
    record = json.loads(printed)
    [log] = (place / "out").glob("**/stdout.log")
    evidence = json.loads((log.parent / "evidence.json").read_text())["evidence"]
    tests = (evidence["verification"] or {"stdout_tail": ""})["stdout_tail"]
    return Seen(json.loads(log.read_text()), root, tests, users, record, place / "out")


def test_it_finds_nothing_that_is_kept_from_it(seen: Seen) -> None:
    assert seen.thief["uid"] == 1000
    assert seen.thief["found"] == []
    assert seen.thief["looked"]["processes"] >= 2
    assert seen.thief["looked"]["files"] > 50


def test_the_same_search_as_root_finds_all(seen: Seen) -> None:
    assert seen.root["uid"] == 0
    found = {tuple(it) for it in seen.root["found"]}
    assert {("key", "environ"), ("key", "memory"), ("tests", "/opt"), ("solution", "/opt")} <= found


def test_its_attacks_come_to_nothing(seen: Seen) -> None:
    attacks = seen.thief["attacks"]
    assert attacks["others"] >= 2
    assert attacks["kill"] == attacks["ptrace"] == ["PermissionError"]
    assert attacks["ptrace of its own"] == "attached"
    assert attacks["list"] == {"/opt/cab": "PermissionError", "/root": "PermissionError"}
    assert attacks["credential"] == [200, 401, 401]
    assert attacks["become root"] == "PermissionError"
    assert attacks["setuid programs"] > 0
    assert attacks["no new privileges"]


def test_it_connects_to_the_gateway_alone_and_writes_where_it_may_alone(seen: Seen) -> None:
    assert seen.record["isolation"]["egress"] == "tcp-restricted"
    assert seen.thief["attacks"]["connect"] == "PermissionError"
    written = {path for path, how in seen.thief["attacks"]["write"].items() if how == "written"}
    assert written == {
        *("/tmp/planted", "/dev/shm/planted", "/dev/mqueue/planted"),
        *("/workdir/planted", "/home/agent/planted"),
    }
    assert seen.thief["attacks"]["links"] == ["made", "made"]
    assert seen.thief["attacks"]["shared memory"]


def test_nothing_of_it_is_left_for_the_tests(seen: Seen) -> None:
    said = dict(line.split(": ", 1) for line in seen.tests.splitlines() if ": " in line)
    assert not {"planted", "link", "fifo", "stolen"} & set(said["found"].split())
    assert said["shared memory"] == "1"  # the heading
    assert "1000" not in said["users"].split()
    assert "1001" in said["users"].split()
    assert all("denied" in said[name] or "No such" in said[name] for name in ("cab", "solution", "home"))


def test_no_process_of_its_lives_beside_the_tests(seen: Seen) -> None:
    assert any({"1000"} <= users for users in seen.users)
    assert any({"1001"} <= users for users in seen.users)
    assert not any({"1000", "1001"} <= users for users in seen.users)


def test_what_it_did_counts_as_nothing(seen: Seen) -> None:
    assert seen.record["outcome"]["counted"]
    assert seen.record["scores"]["pass_rate"]["pass"] == 0
    assert seen.record["claim"]["level"] == "provisional"
    assert seen.record["isolation"]["containers"] == "single-container"
    assert not list(seen.out.glob("**/planted"))
