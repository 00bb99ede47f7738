"""What the kernel keeps a command in place from: the standard library alone, since it runs before exec."""

from __future__ import annotations

import ctypes
import fcntl
import os
import resource
import signal
import struct
import termios
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PR_SET_PDEATHSIG, PR_CAPBSET_DROP = 1, 24
PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 36, 38
LAST_CAPABILITY = 63
OOM_SCORE = "500"
"""When memory runs out the command's processes go first: who tells the tale has to stay."""

FILES_SINCE, TCP_SINCE = 2, 4
"""Versions of Landlock since which changes and reads of files are held to some directories, and TCP to some
ports.
"""

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION = 1
_PATH_BENEATH, _NET_PORT = 1, 2
_CONNECT_TCP = 1 << 1
_SCOPE_SIGNAL = 1 << 1
_WRITE_FILE = 1 << 1
_READ_FILE = 1 << 2
_MAKE_AND_REMOVE = sum(1 << bit for bit in range(4, 13))
_REFER = 1 << 13
_TRUNCATE = 1 << 14
_OPENED_ANYWHERE = ("/dev", "/proc")
"""Trees whose files may be written, as far as their own permissions go, while nothing is made or removed."""

_IPC = {"shm": "shmctl", "sem": "semctl", "msg": "msgctl"}
_IPC_RMID = 0

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Order:
    """One command, and how it is kept.

    `user` is who it runs as: another than the supervisor's own only where that is root. With `alone`, every
    process of the uid is the command's, as in a container of one's own; else only descendants are.
    `landlock` is the version of the kernel's, 0 without. By it, TCP goes to `ports` alone (None: anywhere),
    and files are changed below `writable` alone (None: anywhere). No file below `hidden` is read.
    """

    argv: list[str]
    env: dict[str, str]
    cwd: str
    user: tuple[int, int]
    limit_s: float
    tty: bool
    alone: bool
    landlock: int
    ports: list[int] | None
    writable: list[str] | None
    hidden: str | None = None


def landlock_version() -> int:
    """The version of the kernel's Landlock; 0 where it has none, or refuses it. TCP is known since 4."""
    return max(0, int(_libc.syscall(_CREATE_RULESET, None, 0, _VERSION)))


def ruleset(order: Order) -> int | None:
    """A descriptor of the command's Landlock rules, None where it has none. Raises OSError."""
    files = _file_rights(order.landlock) if order.writable is not None else 0
    reads = _READ_FILE if files and order.hidden else 0
    ports = _CONNECT_TCP if order.ports is not None and order.landlock >= TCP_SINCE else 0
    scopes = _SCOPE_SIGNAL if order.landlock >= 6 else 0
    if not files and not ports:
        return None
    attributes = struct.pack("QQQ", files | reads, ports, scopes)
    size = 24 if order.landlock >= 6 else 16 if order.landlock >= TCP_SINCE else 8
    rules = _call(_CREATE_RULESET, attributes, size, 0)
    for port in (order.ports or []) if ports else ():
        _call(_ADD_RULE, rules, _NET_PORT, struct.pack("QQ", _CONNECT_TCP, port), 0)
    if files:
        for path in order.writable or []:
            _allow(rules, path, files | reads)
        for path in _OPENED_ANYWHERE:
            _allow(rules, path, files & (_WRITE_FILE | _TRUNCATE))
    if reads:
        for path in _beside(str(order.hidden)):
            _allow(rules, path, reads)
    return rules


def _beside(hidden: str) -> Iterator[str]:
    """All that is not below a path: whatever lies beside it, and beside each directory that it is in."""
    place = Path(hidden)
    for above in place.parents:
        yield from (str(path) for path in above.iterdir() if path != place)
        place = above


def _file_rights(version: int) -> int:
    if version < FILES_SINCE:
        return 0  # it would refuse every rename between two directories
    return _WRITE_FILE | _MAKE_AND_REMOVE | _REFER | (_TRUNCATE if version >= 3 else 0)


def _allow(rules: int, path: str, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        _call(_ADD_RULE, rules, _PATH_BENEATH, struct.pack("=Qi", rights, place), 0)
    finally:
        os.close(place)


def become(order: Order, rules: int | None) -> None:
    """Turn this process into the one that is to be replaced by the command. Raises OSError."""
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        with suppress(OSError):  # the C library keeps a few to itself
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    os.setsid()
    if order.tty:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(OOM_SCORE)
    if os.geteuid() == 0:
        for capability in range(LAST_CAPABILITY + 1):
            with suppress(OSError):  # there are fewer, or it is dropped already
                prctl(PR_CAPBSET_DROP, capability)
        uid, gid = order.user
        os.setgroups([])
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    # After the change of user, which clears it. A supervisor of the same user might be killed.
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if rules is not None:
        _call(_RESTRICT_SELF, rules, 0)
    os.chdir(order.cwd)


def remove_ipc(uid: int) -> None:
    """Remove the System V IPC objects that this uid made."""
    for kind, remove in _IPC.items():
        try:
            heading, *lines = Path(f"/proc/sysvipc/{kind}").read_text("ascii").splitlines()
        except (OSError, ValueError):
            continue
        owner = heading.split().index("cuid")
        for line in lines:
            fields = line.split()
            if int(fields[owner]) == uid:
                getattr(_libc, remove)(int(fields[1]), *((0,) if kind == "sem" else ()), _IPC_RMID, None)


def prctl(option: int, value: int) -> None:
    """Raises OSError."""
    if _libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _call(number: int, *arguments: Any) -> int:
    """One system call; integers are passed as longs. Raises OSError."""
    passed = [ctypes.c_long(it) if isinstance(it, int) else it for it in arguments]
    found = int(_libc.syscall(ctypes.c_long(number), *passed))
    if found < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return found
