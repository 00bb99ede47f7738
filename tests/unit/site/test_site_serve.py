"""The site on the loopback address: its files, and nothing else."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from orchestrator.errors import EnvironmentFault
from orchestrator.site.serve import LOOPBACK, address, server


@pytest.fixture
def served(tmp_path: Path) -> Iterator[ThreadingHTTPServer]:
    (tmp_path / "site" / "cli").mkdir(parents=True)
    (tmp_path / "site" / "index.html").write_text("<!doctype html>first page")
    (tmp_path / "site" / "cli" / "opencode.html").write_text("a page")
    (tmp_path / "secret.txt").write_text("not of the site")
    with server(tmp_path / "site", 0) as it:
        thread = threading.Thread(target=it.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield it
        it.shutdown()
        thread.join()


def ask(served: ThreadingHTTPServer, path: str, **headers: str) -> tuple[int, str, http.client.HTTPMessage]:
    port = served.server_address[1]
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=60)
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode("utf-8"), answer.headers
    finally:
        connection.close()


def test_files_are_served_and_never_kept(served: ThreadingHTTPServer) -> None:
    status, text, headers = ask(served, "/")
    assert (status, text) == (200, "<!doctype html>first page")
    assert headers["Cache-Control"] == "no-store"
    assert ask(served, "/cli/opencode.html")[1] == "a page"
    assert address(served) == f"http://127.0.0.1:{served.server_address[1]}/"


@pytest.mark.parametrize(
    "path", ["/cli/", "/../secret.txt", "/%2e%2e/secret.txt", "/none.html", "/%00", "/a%00.html"]
)
def test_folders_are_not_listed_and_nothing_outside_is_served(served: ThreadingHTTPServer, path: str) -> None:
    status, text, _ = ask(served, path)
    assert status == 404
    assert "opencode" not in text
    assert "not of the site" not in text


def test_who_comes_by_another_name_is_sent_away(served: ThreadingHTTPServer) -> None:
    port = served.server_address[1]
    assert ask(served, "/", Host=f"evil.example:{port}")[0] == 421
    for host in ("evil.example", "localhost.evil.example", f"evil.localhost:{port}", ""):
        assert ask(served, "/", Host=host)[0] == 421
    assert ask(served, "/", Host=f"localhost:{port}")[0] == 200


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "LocalHost:1"])
def test_a_port_that_is_left_out_is_80(served: ThreadingHTTPServer, host: str) -> None:
    assert ask(served, "/", Host=host)[0] == 200


def test_a_browser_that_goes_before_its_answer_is_no_news(
    served: ThreadingHTTPServer, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        raise BrokenPipeError
    except BrokenPipeError:
        served.handle_error(object(), (LOOPBACK, 1))
    assert capsys.readouterr().err == ""


def test_only_the_loopback_address_is_bound(served: ThreadingHTTPServer) -> None:
    assert served.server_address[0] == "127.0.0.1"


def test_a_port_that_is_taken_is_told(served: ThreadingHTTPServer, tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFault, match=r"something else listens there.*another --port"):
        server(tmp_path, served.server_address[1])
