"""Listening Unix sockets that do not tell where they are."""

from __future__ import annotations

import os
import socket
from pathlib import Path


def bound(path: Path) -> socket.socket:
    """A stream socket at `path`, whose directory must exist. Raises OSError.

    It is bound through its open directory: the name that a socket was bound by is shown to whoever is
    connected to it (/proc/net/unix), and an agent has no business with this machine's paths. Nor does the
    kernel's limit of 108 bytes apply to the path then.
    """
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        directory = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            made.bind(f"/proc/self/fd/{directory}/{path.name}")
        finally:
            os.close(directory)
    except OSError:
        made.close()
        raise
    return made
