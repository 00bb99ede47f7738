"""cab as a wheel has it, without its checkout: what it carries, and `cab check` as a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from orchestrator import __version__
from orchestrator.paths import EXTERNAL, TASKS
from orchestrator.plan.task import list_tasks, load_task
from orchestrator.sandbox.inplace.confine import landlock_version

REPO = Path(__file__).resolve().parents[3]
TASK = "polyglot/python-reverse-string"
KEY = "sk-real-0123456789abcdefghijklmnop"
MARK = f"86399.{os.urandom(4).hex().translate(str.maketrans('abcdef', '012345'))}"
"""Seconds that no other call of these tests sleeps for."""

ENDED_S = 60.0

CLI = """#!/usr/bin/env python3
# In the place of mini-swe-agent's `mini`: does what the model's tool calls say, and tells what it could see.
import glob, json, os, subprocess, sys, urllib.request

if "--version" in sys.argv:
    print("mini-swe-agent 2.4.6")
    sys.exit()
seen = {"env": dict(os.environ), "environs": "", "wrote": []}
for path in glob.glob("/proc/[0-9]*/environ") + glob.glob("/proc/[0-9]*/cmdline"):
    try:
        seen["environs"] += open(path, errors="replace").read()
    except OSError:
        pass
for path in (os.environ["TMPDIR"], BESIDE):
    try:
        open(path + "/file", "w").close()
        seen["wrote"].append(path)
    except OSError:
        pass
with open(os.path.expanduser("~/seen.json"), "w") as file:
    json.dump(seen, file)
if HANGS:
    subprocess.Popen(["setsid", "sh", "-c", "trap '' INT TERM; setsid sleep MARK & sleep MARK"])
    subprocess.run(["sleep", "MARK"])
parameters = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
TOOLS = [{"type": "function", "function": {"name": "bash", "parameters": parameters}}]
messages = [{"role": "user", "content": "solve it"}]
while True:
    body = json.dumps({"model": "m", "messages": messages, "tools": TOOLS}).encode()
    headers = {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "Content-Type": "application/json"}
    request = urllib.request.Request(os.environ["OPENAI_API_BASE"] + "/chat/completions", body, headers)
    message = json.load(urllib.request.urlopen(request))["choices"][0]["message"]
    messages.append(message)
    if not message.get("tool_calls"):
        break
    for call in message["tool_calls"]:
        command = json.loads(call["function"]["arguments"])["command"]
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
        result = done.stdout + done.stderr + f"[exit {done.returncode}]"
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
"""


@dataclass
class User:
    """Somebody who has cab and a CLI installed, and keeps secrets in their HOME."""

    wheel: Path
    root: Path

    @property
    def scratch(self) -> Path:
        return self.root / "scratch"

    @property
    def home(self) -> Path:
        return self.root / "home"

    def install_cli(self, *, hangs: bool = False) -> None:
        text = CLI.replace("HANGS", str(hangs)).replace("MARK", MARK)
        program = self.root / "bin" / "mini"
        program.write_text(text.replace("BESIDE", repr(str(self.root / "beside"))))
        program.chmod(0o755)

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, self.wheel / "bin" / "cab", *arguments],
            env={
                "PATH": f"{self.root}/bin:{os.environ['PATH']}",
                "PYTHONPATH": str(self.wheel),
                "HOME": str(self.home),
                "CAB_SCRATCH": str(self.scratch),
                "OPENAI_API_KEY": "telltale-variable",
                **environment,
            },
            cwd=self.home,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, *arguments: str, **environment: str) -> tuple[int, str, str]:
        process = self.start(*arguments, **environment)
        out, err = process.communicate(timeout=ENDED_S)
        return process.returncode, out, err

    def check(self, *arguments: str, **environment: str) -> tuple[int, str, str]:
        return self.run("check", "--tui", "mini-swe-agent", "--task", TASK, *arguments, **environment)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the wheel of this checkout is installed, without what it depends on."""
    root = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(root)]
    subprocess.run(build, cwd=REPO, check=True, capture_output=True)
    [built] = root.glob("*.whl")
    assert built.stat().st_size < 5 << 19
    install = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--quiet"]
    subprocess.run([*install, "--target", root / "site", built], check=True, capture_output=True)
    return root / "site"


@pytest.fixture
def user(wheel: Path) -> Iterator[User]:
    """Below /var/tmp: a command may write to /tmp, and another user has to find the CLI."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        root = Path(name)
        root.chmod(0o755)
        for directory in ("bin", "home", "scratch", "beside"):
            (root / directory).mkdir()
        (root / "scratch").chmod(0o711)
        (root / "beside").chmod(0o777)
        one = User(wheel, root)
        one.install_cli()
        yield one


def processes() -> set[int]:
    """What the hanging CLI started."""
    found = set()
    for directory in Path("/proc").iterdir():
        try:
            if directory.name.isdigit() and MARK.encode() in (directory / "cmdline").read_bytes():
                found.add(int(directory.name))
        except OSError:
            continue
    return found


def until(condition: Any) -> None:
    deadline = time.monotonic() + ENDED_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


# ---- what it carries ----


def test_it_has_the_tasks_of_its_checkout_and_its_version(user: User) -> None:
    assert user.run("--version") == (0, f"cab, version {__version__}\n", "")
    code, out, err = user.run("task", "list", "--json")
    assert (code, err) == (0, "")
    found = {task["name"]: (task["content_hash"], task["proved"]) for task in json.loads(out)}
    tasks = (load_task(TASKS, name) for name in list_tasks(TASKS))
    assert found == {task.name: (task.content_hash, task.proved) for task in tasks}
    # Its installer compiled them, which is no part of them.
    assert list((user.wheel / "orchestrator" / "carried" / "tasks").rglob("__pycache__"))


def test_it_has_the_external_suites_of_its_checkout(wheel: Path) -> None:
    carried = wheel / "orchestrator" / "carried" / "external"
    ours = {path.relative_to(EXTERNAL) for path in EXTERNAL.rglob("*.json")}
    assert ours == {path.relative_to(carried) for path in carried.rglob("*.json")}
    assert ours


def test_it_has_the_player_of_recordings_with_its_licence(wheel: Path) -> None:
    player = wheel / "orchestrator" / "site" / "vendor" / "asciinema-player"
    names = {"LICENSE", "asciinema-player.css", "asciinema-player.min.js"}
    assert player.is_dir(), "no player in the checkout: run scripts/npm.sh asciinema-player"
    assert {path.name for path in player.iterdir()} == names
    assert all(path.stat().st_size > 10_000 for path in player.iterdir())


def test_what_needs_a_checkout_says_so_in_one_line(user: User) -> None:
    (user.home / "sweep.yaml").write_text(f"name: x\nclis: [noop]\ntasks: [{TASK}]\n")
    for command in (("images", "build"), ("sweep", "run", "sweep.yaml")):
        code, out, err = user.run(*command)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert "in a checkout of its repository" in err


# ---- cab check ----


def test_a_cell_runs_beside_the_users_home(user: User) -> None:
    secrets = [user.home / ".netrc", user.home / ".config" / "mini-swe-agent" / ".env"]
    for secret in secrets:
        secret.parent.mkdir(parents=True, exist_ok=True)
        secret.write_text("telltale-file\n")
        os.utime(secret, (1, 2))  # the time of its last reading is kept up to date only when it is the older
    control = user.root / "control"
    control.write_text("x")
    os.utime(control, (1, 2))
    control.read_text()

    code, out, err = user.check("--model", "embedded/reference", "--out", "evidence")

    assert code == 0, err
    assert "passed: all 15 hidden tests pass" in out
    assert "provisional, not for citation" in out.splitlines()[-1]
    assert "mini-swe-agent at" in err
    assert "2.4.6, the version that cab knows" in err
    assert "in no container" in err
    if control.stat().st_atime > 1:
        assert [secret.stat().st_atime for secret in secrets] == [1, 1]
    assert [secret.stat().st_mtime for secret in secrets] == [2, 2]
    assert {path.name for path in user.home.iterdir()} == {".netrc", ".config", "evidence"}
    assert list(user.scratch.iterdir()) == []

    [evidence] = (user.home / "evidence").iterdir()
    assert b"telltale" not in b"".join(path.read_bytes() for path in evidence.iterdir())
    record = json.loads((evidence / "cell.json").read_text())
    assert record["isolation"]["containers"] == "none"
    assert record["claim"]["level"] == "pipeline_only"
    identity = record["identity"]
    assert (identity["cli_version"], identity["image_digest"], identity["digest_kind"]) == (
        "2.4.6",
        None,
        None,
    )
    seen = seen_in(evidence)
    assert set(seen["env"]) <= {
        *("PATH", "HOME", "LANG", "TERM", "TMPDIR", "LC_CTYPE"),
        *("OPENAI_API_BASE", "OPENAI_API_KEY"),
        *("MSWEA_CONFIGURED", "MSWEA_COST_TRACKING", "LITELLM_LOCAL_MODEL_COST_MAP"),
        *("RUSTUP_HOME", "PYENV_ROOT", "JAVA_HOME", "GOROOT"),
    }
    assert seen["env"]["TMPDIR"] in seen["wrote"]
    if landlock_version() >= 2:
        assert seen["wrote"] == [seen["env"]["TMPDIR"]]

    code, out, err = user.run("cell", "show", str(evidence))
    assert (code, err) == (0, "")
    assert "mini-swe-agent 2.4.6, as it is installed on a machine" in out


def seen_in(evidence: Path) -> dict[str, Any]:
    """What the CLI wrote into its HOME."""
    with tarfile.open(evidence / "home.tar.gz") as archive:
        file = archive.extractfile("seen.json")
        assert file is not None
        seen: dict[str, Any] = json.load(file)
    return seen


def test_a_key_goes_to_the_endpoint_and_nowhere_else(user: User) -> None:
    keys = []

    class Endpoint(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            keys.append(self.headers["Authorization"])
            message = {"role": "assistant", "content": "Done."}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            body = json.dumps({"id": "1", "object": "chat.completion", "model": "m", "choices": [choice]})
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *args: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Endpoint) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}/v1"
        code, out, err = user.check(
            *("--model", "some/model", "--endpoint", url, "--key-env", "MY_KEY", "--out", "evidence"),
            *("--json",),
            MY_KEY=KEY,
        )
        server.shutdown()
    assert code == 0, err
    assert keys == [f"Bearer {KEY}"]
    record = json.loads(out)
    assert record["claim"]["level"] == "provisional"
    assert "no container" in record["claim"]["reasons"]
    assert "not for citation" in err
    [evidence] = (user.home / "evidence").iterdir()
    seen = seen_in(evidence)
    assert (
        seen["env"]["OPENAI_API_KEY"] in seen["environs"]
    )  # its own can be read, so the search is none in vain
    assert KEY not in json.dumps(seen) + out + err
    assert KEY.encode() not in b"".join(path.read_bytes() for path in evidence.iterdir())


@pytest.mark.parametrize("victim", ["cab", "supervisor", "Ctrl-C"])
def test_nothing_lives_on(user: User, victim: str) -> None:
    user.install_cli(hangs=True)
    process = user.start(
        *("check", "--tui", "mini-swe-agent", "--task", TASK, "--model", "embedded/reference")
    )
    until(lambda: len(processes()) >= 4)
    if victim == "Ctrl-C":
        os.killpg(process.pid, signal.SIGINT)
    elif victim == "cab":
        process.kill()
    else:
        [children] = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().splitlines()
        [supervisor] = children.split()
        os.kill(int(supervisor), signal.SIGKILL)
    _, err = process.communicate(timeout=ENDED_S)
    until(lambda: not processes())
    assert process.returncode == {"cab": -signal.SIGKILL, "supervisor": 1, "Ctrl-C": 130}[victim], err
    if victim == "cab":
        # What a killed one could not remove, the next one does.
        assert list(user.scratch.iterdir())
        code, _, err = user.run("check", "--tui", "noop", "--task", TASK)
        assert code == 0, err
    assert list(user.scratch.iterdir()) == []
