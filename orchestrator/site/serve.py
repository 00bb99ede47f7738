"""The site on this machine's loopback address."""

from __future__ import annotations

import errno
import io
import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, BinaryIO

from orchestrator.errors import EnvironmentFault

LOOPBACK = "127.0.0.1"


class _Handler(SimpleHTTPRequestHandler):
    """Files of one folder, never kept by a browser: the next build may change them."""

    def send_head(self) -> io.BytesIO | BinaryIO | None:
        """Answer only who asks this machine by its own name: another site's name may be made to lead here."""
        # Browsers leave the port out where it is 80.
        if self.headers.get("Host", "").lower().partition(":")[0] not in (LOOPBACK, "localhost"):
            self.send_error(421, "this is another machine's name")
            return None
        try:
            return super().send_head()
        except ValueError:
            self.send_error(404, "no path can hold that")
            return None

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        super().end_headers()

    def list_directory(self, path: object) -> None:
        del path
        self.send_error(404, "a folder without a page")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the name is the library's)
        """Say nothing: what is served is no news."""


class _Server(ThreadingHTTPServer):
    """Says nothing of a browser that has gone before it had its answer."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


def server(folder: Path, port: int) -> ThreadingHTTPServer:
    """A server of a folder's files that is bound to the loopback address; `port` 0 takes a free one.

    Raises EnvironmentFault where the port cannot be had.
    """
    try:
        return _Server((LOOPBACK, port), partial(_Handler, directory=str(folder)))
    except OSError as error:
        taken = error.errno == errno.EADDRINUSE
        raise EnvironmentFault(
            "something else listens there" if taken else str(error.strerror),
            place=f"{LOOPBACK}:{port}",
            mend="give another --port; 0 takes a free one",
        ) from None


def address(served: ThreadingHTTPServer) -> str:
    """Where a browser finds it."""
    return f"http://{LOOPBACK}:{served.server_address[1]}/"
