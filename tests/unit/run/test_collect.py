"""What is read of a cell is bounded, and nothing is followed out of the workdir."""

import json
import os

from orchestrator.run.collect import MAX_DOCUMENT_BYTES, MAX_DOCUMENTS, documents, write_manifest
from scorers.evidence import FileChange, FileState

FILE = FileState(kind="file", size=1, mode=0o644, sha256="0" * 64)


def change(path, *, after=FILE, origin="agent", kind="added"):
    return FileChange(path=path, change=kind, after=after, origin=origin)


def test_only_documents_of_the_agents_own_are_read(tmp_path):
    for name in ("a.md", "NOTES", "b.py", "c.md", "gone.md"):
        (tmp_path / name).write_text(name)
    found = documents(
        tmp_path,
        [
            change("a.md"),
            change("NOTES"),
            change("b.py"),
            change("c.md", origin="cli_state"),
            change("gone.md", after=None, kind="removed"),
        ],
    )
    assert found == {"a.md": "a.md", "NOTES": "NOTES"}


def test_a_document_that_became_something_else_is_empty(tmp_path):
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "link.md").symlink_to(tmp_path / "secret")
    os.mkfifo(tmp_path / "pipe.md")
    found = documents(tmp_path, [change("link.md"), change("pipe.md"), change("missing.md")])
    assert found == {"link.md": "", "pipe.md": "", "missing.md": ""}


def test_documents_are_bounded_in_size_and_number(tmp_path):
    (tmp_path / "big.md").write_bytes(b"\xff" * (MAX_DOCUMENT_BYTES + 100))
    assert len(documents(tmp_path, [change("big.md")])["big.md"]) == MAX_DOCUMENT_BYTES
    assert len(documents(tmp_path, [change(f"{n}.md") for n in range(50)])) == MAX_DOCUMENTS


def test_a_listing_is_json_whatever_the_names(tmp_path):
    names = ['quote".txt', "line\nend", os.fsdecode(b"\xff"), "\u202e"]
    write_manifest(tmp_path / "m.json", dict.fromkeys(names, FILE))
    stored = json.loads((tmp_path / "m.json").read_text("utf-8"))
    assert len(stored) == len(names)
    assert set(stored.values().__iter__().__next__()) >= {"kind", "size", "sha256"}
    write_manifest(tmp_path / "none.json", {})
    assert json.loads((tmp_path / "none.json").read_text()) == {}
