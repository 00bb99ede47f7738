"""HOME as evidence: small regular files are kept, everything is listed, nothing is followed."""

import os
import tarfile

from orchestrator.run import home as module
from orchestrator.run.home import MAX_FILE_BYTES, archive


def kept(home, tmp_path):
    listed = archive(home, tmp_path / "home.tar.gz")
    with tarfile.open(tmp_path / "home.tar.gz") as tar:
        return listed, {member.name: tar.extractfile(member).read() for member in tar if member.isfile()}


def test_small_files_are_kept_and_large_ones_listed(tmp_path):
    home = tmp_path / "home"
    (home / ".config").mkdir(parents=True)
    (home / ".config/x.json").write_text("{}")
    (home / "big").write_bytes(b"x" * (MAX_FILE_BYTES + 1))
    listed, files = kept(home, tmp_path)
    assert files == {".config/x.json": b"{}"}
    assert {".config/x.json", "big"} <= listed.keys()


def test_nothing_is_followed(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    (tmp_path / "secret").write_text("secret")
    (home / "link").symlink_to(tmp_path / "secret")
    os.mkfifo(home / "pipe")
    listed, files = kept(home, tmp_path)
    assert files == {}
    assert (listed["link"].kind, listed["pipe"].kind) == ("symlink", "other")


def test_all_of_it_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MAX_TOTAL_BYTES", 10)
    home = tmp_path / "home"
    home.mkdir()
    for name in "abc":
        (home / name).write_text("1234")
    listed, files = kept(home, tmp_path)
    assert len(files) == 2
    assert len(listed) == 3


def test_no_mode_of_an_agents_file_reaches_whoever_unpacks(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    (home / "suid").write_text("x")
    (home / "suid").chmod(0o4755)
    archive(home, tmp_path / "home.tar.gz")
    with tarfile.open(tmp_path / "home.tar.gz") as tar:
        [member] = tar.getmembers()
    assert (member.mode, member.uid) == (0o755, 0)
