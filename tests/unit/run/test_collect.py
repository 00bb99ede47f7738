"""What is read of a cell is bounded, and nothing is followed out of the workdir."""

import json
import os

import pytest

from orchestrator.adapter import Adapter, CliUsage, Launch
from orchestrator.run.collect import MAX_DOCUMENT_BYTES, MAX_DOCUMENTS, cli_usage, documents, write_manifest
from orchestrator.run.workdir import Difference
from scorers.evidence import CliUsage as Said
from scorers.evidence import FileState

FILE = FileState(kind="file", size=1, mode=0o644, sha256="0" * 64)


def agents_own(*names, now=FILE):
    """A difference in which the agent left these paths as `now`."""
    return Difference([], b"", dict.fromkeys(names, now))


def test_only_documents_that_are_there_are_read(tmp_path):
    for name in ("a.md", "NOTES", "b.py"):
        (tmp_path / name).write_text(name)
    found = agents_own("a.md", "NOTES", "b.py")
    found.own["gone.md"] = None
    assert documents(tmp_path, found) == {"a.md": "a.md", "NOTES": "NOTES"}


def test_a_document_of_any_name_is_read_and_shown_as_text(tmp_path):
    name = os.fsdecode(b"r\xe9sum\xe9.md")
    (tmp_path / name).write_text("why")
    assert documents(tmp_path, agents_own(name)) == {"r\\xe9sum\\xe9.md": "why"}


def test_a_document_that_became_something_else_is_empty(tmp_path):
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "link.md").symlink_to(tmp_path / "secret")
    os.mkfifo(tmp_path / "pipe.md")
    found = documents(tmp_path, agents_own("link.md", "pipe.md", "missing.md"))
    assert found == {"link.md": "", "pipe.md": "", "missing.md": ""}


def test_documents_are_bounded_in_size_and_number(tmp_path):
    (tmp_path / "big.md").write_bytes(b"\xff" * (MAX_DOCUMENT_BYTES + 100))
    assert len(documents(tmp_path, agents_own("big.md"))["big.md"]) == MAX_DOCUMENT_BYTES
    assert len(documents(tmp_path, agents_own(*(f"{n}.md" for n in range(50))))) == MAX_DOCUMENTS


def test_a_listing_is_json_whatever_the_names(tmp_path):
    names = ['quote".txt', "line\nend", os.fsdecode(b"\xff"), "\u202e"]
    write_manifest(tmp_path / "m.json", dict.fromkeys(names, FILE))
    stored = json.loads((tmp_path / "m.json").read_text("utf-8"))
    assert len(stored) == len(names)
    assert all(state["sha256"] == FILE.sha256 for state in stored.values())
    write_manifest(tmp_path / "none.json", {})
    assert json.loads((tmp_path / "none.json").read_text()) == {}


def _broken(printed):
    raise RecursionError(printed)


@pytest.mark.parametrize(
    ("reader", "found"),
    [
        (None, {"no_cli_usage": "the adapter reads no totals of the CLI's own"}),
        (lambda _: None, {"no_cli_usage": "the CLI did not print its totals"}),
        (_broken, {"no_cli_usage": "what the CLI printed could not be read: RecursionError"}),
        (
            lambda _: CliUsage("many", 1),
            {"no_cli_usage": "what the CLI printed could not be read: ValidationError"},
        ),
        (lambda printed: CliUsage(len(printed), 2), {"cli_usage": Said(input=4, output=2)}),
    ],
)
def test_what_the_cli_says_of_its_tokens_never_ends_a_cell(reader, found):
    adapter = Adapter("tool", "1", lambda _: Launch(()), reported_usage=reader)
    assert cli_usage(adapter, "text") == found
