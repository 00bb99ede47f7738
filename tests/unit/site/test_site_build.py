"""A build of the site: only what changed, nothing left behind, the same bytes, nobody else's files."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote, urlsplit

import cell_samples
import pytest
from site_samples import MODELS, TASKS, files, matrix, results, small

from orchestrator.errors import InputError, StoreError
from orchestrator.site import build as building
from orchestrator.site.build import MANIFEST, build
from orchestrator.site.output import File, Page, data_file
from orchestrator.site.pages import leaderboard
from orchestrator.site.source import Source
from orchestrator.store.names import CellKey


@pytest.fixture
def looking_again() -> Iterator[None]:
    """Where a test puts other code in place, cab's files stay as they are: builds look again anyhow."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(building, "is_left_by", lambda *_: False)
        yield


class Links(HTMLParser):
    """Every address that a page loads or leads to, and all that its policy would refuse."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.inline: list[str] = []
        self._in_script = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.links += [value for name, value in attrs if name in ("href", "src", "data-src") and value]
        if given.get("id"):
            self.ids.add(str(given["id"]))
        self.inline += [f"{tag} {name}" for name in given if name == "style" or name.startswith("on")]
        if tag == "style" or (tag == "script" and "src" not in given):
            self.inline.append(tag)


def check_links(out: Path) -> int:
    """Assert that every link of every page leads to a file of the site, and that no page has anything inline.
    The number of links."""
    whole = {path: Links() for path in sorted(out.rglob("*.html"))}
    for path, parsed in whole.items():
        parsed.feed(path.read_text("utf-8"))
    count = 0
    for path, parsed in whole.items():
        assert parsed.inline == [], path
        for link in parsed.links:
            parts = urlsplit(link)
            if parts.scheme in ("http", "https", "mailto"):
                continue
            assert not parts.scheme, (path, link)
            assert not link.startswith("/"), (path, link)
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            assert target.is_file(), (path, link)
            assert target.is_relative_to(out.resolve()), (path, link)
            if parts.fragment and target in whole and "=" not in parts.fragment:
                assert unquote(parts.fragment) in whole[target].ids, (path, link)
            count += 1
    return count


def test_every_link_leads_to_a_file(tmp_path: Path) -> None:
    build([small(tmp_path / "results")], tmp_path.resolve() / "site")
    assert check_links(tmp_path.resolve() / "site") > 4


def test_a_second_build_writes_nothing(tmp_path: Path) -> None:
    given, out = [small(tmp_path / "results")], tmp_path / "site"
    first = build(given, out)
    before = {path: (out / path).stat().st_mtime_ns for path in files(out)}
    second = build(given, out)
    assert (first.kept, second.written, second.removed) == (0, 0, 0)
    assert second.kept == first.written
    assert {path: (out / path).stat().st_mtime_ns for path in files(out)} == before


def test_the_same_results_give_the_same_bytes(tmp_path: Path) -> None:
    cells = matrix("free-1", ("codex", "opencode"), MODELS, TASKS)
    one = results(tmp_path / "one", "free-1", cells)
    # The order in which cells happen to end decides nothing.
    other = results(tmp_path / "other", "free-1", cells)
    index = other / "free-1" / "index.jsonl"
    index.write_bytes(b"".join(sorted(index.read_bytes().splitlines(keepends=True), reverse=True)))
    build([one], tmp_path / "site-1")
    build([other], tmp_path / "site-2")
    assert files(tmp_path / "site-1") == files(tmp_path / "site-2")


def test_an_incremental_build_ends_with_the_bytes_of_a_whole_one(tmp_path: Path) -> None:
    given = small(tmp_path / "results")
    build([given], tmp_path / "site")
    results(given, "free-2", matrix("free-2", ("pi",), MODELS, TASKS))
    again = build([given], tmp_path / "site")
    assert again.written
    assert again.kept
    build([given], tmp_path / "whole")
    assert files(tmp_path / "site") == files(tmp_path / "whole")


@pytest.mark.usefixtures("looking_again")
def test_a_build_beside_another_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given, out = [small(tmp_path / "results")], tmp_path / "site"

    def beside() -> bytes:
        with pytest.raises(StoreError, match="another build is at work there"):
            build(given, out)
        return b"made by the first"

    monkeypatch.setattr(building, "MODULES", (*building.MODULES, module_of(File("a.txt", beside, ("1",)))))
    build(given, out)
    assert (out / "a.txt").read_bytes() == b"made by the first"
    monkeypatch.undo()
    build(given, out)
    build(given, tmp_path / "whole")
    assert files(out) == files(tmp_path / "whole")


def test_a_cell_whose_page_goes_changes_what_leads_to_it(tmp_path: Path) -> None:
    found = cell_samples.evidence()
    keys = [CellKey("opencode", "zai/glm-5.2", "polyglot/a", run) for run in (1, 2)]
    given = cell_samples.store(
        tmp_path / "results", *((cell_samples.record(found, key=key), found) for key in keys)
    )
    build([given], tmp_path / "site")
    [*_, gone] = sorted(given.rglob("cell.json"))
    shutil.rmtree(gone.parent)
    build([given], tmp_path / "site")
    build([given], tmp_path / "whole")
    assert files(tmp_path / "site") == files(tmp_path / "whole")


def test_the_player_put_in_place_later_changes_the_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, out = [small(tmp_path / "results")], tmp_path / "site"
    build(given, out)
    monkeypatch.setattr(building, "PLAYER", not building.PLAYER)
    assert build(given, out).written > 1


def test_a_first_build_that_was_killed_left_no_folder_of_something_else(tmp_path: Path) -> None:
    out = tmp_path / "site"
    out.mkdir()
    (out / f"{MANIFEST}.new").write_text('{"v":')
    build([small(tmp_path / "results")], out)
    assert not (out / f"{MANIFEST}.new").exists()


@pytest.mark.usefixtures("looking_again")
def test_what_a_killed_build_had_begun_goes_with_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, out = [small(tmp_path / "results")], tmp_path / "site"
    monkeypatch.setattr(building, "MODULES", (*building.MODULES, module_of(File("a/b.txt", b"x"))))
    build(given, out)
    (out / "a" / "b.txt.new").write_text("begun")
    monkeypatch.undo()
    build(given, out)
    assert not (out / "a").exists()


def test_names_as_long_as_they_may_be_have_pages(tmp_path: Path) -> None:
    models = [f"{'m' * 254}{end}" for end in "ab"]
    cells = matrix("free-1", ("c" * 255, "pi"), models, TASKS[:1])
    build([results(tmp_path / "results", "free-1", cells)], tmp_path.resolve() / "site")
    assert len(list((tmp_path / "site" / "model").glob("mmm*.html"))) == 2
    check_links(tmp_path.resolve() / "site")


def test_pages_that_differ_in_case_alone_are_told(tmp_path: Path) -> None:
    cells = matrix("free-1", ("pi",), ("Qwen/Qwen3", "qwen/qwen3"), TASKS[:1])
    built = build([results(tmp_path / "results", "free-1", cells)], tmp_path / "site")
    assert built.alike is not None
    assert {path.lower() for path in built.alike} == {built.alike[0].lower()}
    assert build([small(tmp_path / "others")], tmp_path / "other").alike is None


def module_of(*outputs: Page | File) -> Any:
    """A page module that makes just these."""
    return SimpleNamespace(pages=lambda _: outputs)


@pytest.mark.usefixtures("looking_again")
def test_what_is_no_longer_made_goes_with_its_folder_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, out = [small(tmp_path / "results")], tmp_path / "site"
    more = module_of(File("a/b/old.txt", b"x"))
    monkeypatch.setattr(building, "MODULES", (*building.MODULES, more))
    build(given, out)
    (out / "mine.txt").write_text("not the site's")
    monkeypatch.undo()
    assert build(given, out).removed == 1
    assert not (out / "a").exists()
    assert (out / "mine.txt").exists()


@pytest.mark.usefixtures("looking_again")
def test_a_build_cut_short_is_made_good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given, out = [small(tmp_path / "results")], tmp_path / "site"
    build(given, out)
    whole = files(out)

    def fails() -> bytes:
        raise StoreError("cut short")

    cut = module_of(File("aa.txt", b"written"), File("b.txt", fails, ("1",)))
    monkeypatch.setattr(building, "MODULES", (*building.MODULES, cut))
    with pytest.raises(StoreError, match="cut short"):
        build(given, out)
    assert (out / "aa.txt").exists()
    monkeypatch.undo()
    build(given, out)
    assert files(out) == whole


@pytest.mark.usefixtures("looking_again")
def test_a_change_of_the_code_makes_every_page_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given, out = [small(tmp_path / "results")], tmp_path / "site"
    outputs = (File("copied.txt", b"as it is"), File("made.txt", lambda: b"by code", ("1",)))
    monkeypatch.setattr(building, "MODULES", (leaderboard, module_of(*outputs)))
    first = build(given, out)
    monkeypatch.setattr(building, "code_digest", lambda: "another")
    again = build(given, out)
    data = list((out / "data").rglob("*.js"))
    assert again.written == len(["index.html", "made.txt", *data])
    assert again.written + again.kept == first.written


def test_a_file_that_is_gone_is_made_again(tmp_path: Path) -> None:
    given, out = [small(tmp_path / "results")], tmp_path / "site"
    build(given, out)
    (out / "index.html").unlink()
    assert build(given, out).written == 1
    assert (out / "index.html").is_file()


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "thesis.txt").write_text("years of work")
    with pytest.raises(InputError, match="holds something"):
        build([small(tmp_path / "results")], tmp_path / "site")
    assert [path.name for path in (tmp_path / "site").iterdir()] == ["thesis.txt"]


def test_a_manifest_cannot_have_files_outside_the_folder_removed(tmp_path: Path) -> None:
    given, out = [small(tmp_path / "results")], tmp_path / "site"
    build(given, out)
    (tmp_path / "victim.txt").write_text("here")
    stored = json.loads((out / MANIFEST).read_bytes())
    stored["files"]["../victim.txt"] = {"inputs": "", "size": 4}
    (out / MANIFEST).write_text(json.dumps(stored))
    build(given, out)
    assert (tmp_path / "victim.txt").exists()


def test_a_damaged_manifest_is_told(tmp_path: Path) -> None:
    given, out = [small(tmp_path / "results")], tmp_path / "site"
    build(given, out)
    (out / MANIFEST).write_text("{")
    with pytest.raises(StoreError, match="is damaged"):
        build(given, out)


@pytest.mark.parametrize("path", ["../up.html", "/abs.html", "a\\b.html", ""])
def test_a_page_outside_the_site_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setattr(building, "MODULES", (module_of(File(path, b"")),))
    with pytest.raises(ValueError, match="does not lie"):
        build([small(tmp_path / "results")], tmp_path / "site")


def test_two_files_at_one_path_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    twice = module_of(File("a.txt", b"1"), File("a.txt", b"2"))
    monkeypatch.setattr(building, "MODULES", (twice,))
    with pytest.raises(ValueError, match="made twice"):
        build([small(tmp_path / "results")], tmp_path / "site")


@pytest.mark.parametrize("url", ["results.example", "ftp://results.example/", "https://a.example/?q=1"])
def test_a_base_url_that_is_no_address_is_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises(InputError, match="no address"):
        build([small(tmp_path / "results")], tmp_path / "site", base_url=url)


def test_the_base_url_is_the_canonical_address(tmp_path: Path) -> None:
    build([small(tmp_path / "results")], tmp_path / "site", base_url="https://results.example/cab")
    page = (tmp_path / "site" / "index.html").read_text("utf-8")
    assert '<link rel="canonical" href="https://results.example/cab/index.html">' in page


def test_two_sweeps_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="two sweeps are called free-1"):
        build([small(tmp_path / "a"), small(tmp_path / "b")], tmp_path / "site")
    # The same one given twice is no other.
    assert len(Source.read([tmp_path / "a", tmp_path / "a" / "free-1"]).frame) == 5


def test_no_cells_are_told(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no finished cell"):
        build([tmp_path / "empty"], tmp_path / "site")


def test_data_files_hold_nothing_that_ends_a_script_early() -> None:
    def script(value: object) -> bytes:
        made = data_file("x.js", lambda: value, ("x",)).content
        assert callable(made)
        return made()

    raw = script({"a": "</script>\u2028'\"\n"})
    assert raw.isascii()
    assert raw.startswith(b'cab.data("x.js",')
    assert b"\n" not in raw[:-1]
    with pytest.raises(ValueError, match="Out of range"):
        script(float("nan"))
