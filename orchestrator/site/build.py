"""From results to a folder of pages: only what has changed is made again, and what is no longer made goes.

`.cab-site.json` in the folder tells of each file the digest of all that decides its bytes. Before the first
file is touched, those that are about to change lose theirs: what a build that was cut short has left is
known to be a site's, and none of it is taken for finished.
"""

from __future__ import annotations

import fcntl
import gc
import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from orchestrator.errors import InputError, StoreError
from orchestrator.run.provenance import Provenance
from orchestrator.site import links, render, snapshots
from orchestrator.site.apart import made_apart
from orchestrator.site.folder import (
    MANIFEST,
    UNFINISHED,
    Made,
    is_left_by,
    is_relative,
    is_there,
    leave,
    read_manifest,
    remove,
    write,
    write_manifest,
)
from orchestrator.site.output import File, Page, digest_of
from orchestrator.site.pages import MODULES
from orchestrator.site.player import PLAYER
from orchestrator.site.seen import seen
from orchestrator.site.source import Source, sweeps_of
from orchestrator.store.files import store_errors

ASSETS = Path(__file__).parent / "assets"
_CODE = Path(__file__).parents[1]

Progress = Callable[[int, int], None]
"""Told how many files are done, of how many."""


@dataclass(frozen=True)
class Built:
    """What a build did: numbers of files that were written, left as they were, and removed. `alike` are two
    files that a host which takes no heed of case has as one; None where there are none.
    """

    out: Path
    written: int
    kept: int
    removed: int
    alike: tuple[str, str] | None = None


def build(
    results: Sequence[Path],
    out: Path,
    *,
    base_url: str | None = None,
    snapshot: str | None = None,
    progress: Progress = lambda *_: None,
) -> Built:
    """Make the site of all results below `results` in the folder `out`, or bring it up to date.

    With `snapshot`, the same site is put away under that name as well. The same results and cab give the same
    bytes. Raises InputError where `out` holds something that no build put there, `base_url` is no address or
    there is such a snapshot already; StoreError for what the file system refuses.
    """
    base_url = _checked(base_url)
    if snapshot is not None:
        snapshots.check_new(out, snapshot)
    before = read_manifest(out)  # refuses a folder that is no site's before anything is read
    roots, cab, kept = sweeps_of(results), Provenance.read(), snapshots.kept(out)
    # From before the first record is read: what changes meanwhile is seen by the next build.
    looked = _seen(roots, cab, base_url, kept)
    if snapshot is None and is_left_by(out, looked) and _whole(out, before):
        return Built(out, written=0, kept=len(before), removed=0, alike=_alike(before))
    source = Source.read(results, base_url=base_url)
    with _alone(out), _collecting_rarely():
        source = replace(source, snapshots=snapshots.kept(out))
        built = _brought_up_to_date(source, out, looked, progress)
        if snapshot is None:
            return built
        snapshots.take(out, snapshot, lambda folder: _put_away(source, folder, snapshot, progress), MANIFEST)
        source = replace(source, snapshots=snapshots.kept(out))
        again = _brought_up_to_date(source, out, None, progress)
    return replace(built, written=built.written + again.written, kept=again.kept)


def _seen(
    roots: Mapping[str, Path], cab: Provenance, base_url: str | None, kept: Sequence[snapshots.Snapshot]
) -> str:
    """What a build looks at, as it is now."""
    facts = (cab.version, cab.commit, cab.dirty, base_url, kept, PLAYER)
    return seen(roots.values(), repr(facts), *render.library_versions(), sys.version)


def _whole(out: Path, files: Mapping[str, Made]) -> bool:
    return all(is_there(out, path, made) for path, made in files.items())


@contextmanager
def _alone(out: Path) -> Iterator[None]:
    """Keep other builds from the folder: two at once would leave files of both, and a manifest of one. The
    lock is the folder's own, so that nothing is left in it.
    """
    with store_errors(out):
        out.mkdir(parents=True, exist_ok=True)
        folder = os.open(out, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with store_errors(out):
            try:
                fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise StoreError(
                    "another build is at work there", place=str(out), mend="wait for it, or end it"
                ) from None
        yield
    finally:
        os.close(folder)


@contextmanager
def _collecting_rarely() -> Iterator[None]:
    """Look for garbage in circles less often. What a build makes is mostly kept, and there are millions of
    objects to look through: by the usual measure that takes a third of the time.
    """
    before = gc.get_threshold()
    gc.set_threshold(_OBJECTS, 20, 100)
    try:
        yield
    finally:
        gc.set_threshold(*before)


_OBJECTS = 100_000
"""New ones between two looks at the youngest: a few pages' worth."""


def _put_away(source: Source, folder: Path, name: str, progress: Progress) -> snapshots.Facts:
    """Make the site of the same results as a snapshot, which says so on every page."""
    below = None if source.base_url is None else f"{source.base_url}{snapshots.SNAPSHOTS}/{name}/"
    _brought_up_to_date(replace(source, base_url=below, snapshots=(), snapshot=name), folder, None, progress)
    return snapshots.Facts(
        name=name,
        cells=len(source.frame),
        last=str(source.frame["ended_at"].dt.strftime("%Y-%m-%dT%H:%M:%SZ").max()),
        methodologies=source.methodologies,
        cab_version=source.cab.version,
        cab_commit=source.cab.commit,
        data_digest=source.digest,
    )


def _brought_up_to_date(source: Source, out: Path, looked: str | None, progress: Progress) -> Built:
    """`looked` is what the build had seen, None of one that the next is to look at in any case."""
    before = read_manifest(out)
    outputs = _outputs(source)
    made = _common(source, outputs)
    digests = {path: _inputs(output, made) for path, output in outputs.items()}
    fresh = {
        path: old
        for path, old in before.items()
        if digests.get(path) == old.inputs and is_there(out, path, old)
    }
    stale = [output for path, output in outputs.items() if path not in fresh]
    gone = [path for path in before if path not in outputs]
    with store_errors(out):
        out.mkdir(parents=True, exist_ok=True)
        unfinished = dict.fromkeys((*gone, *(output.path for output in stale)), UNFINISHED)
        if unfinished:
            write_manifest(out, fresh | unfinished)
        for path in gone:
            remove(out, path)
        env = render.environment(site_facts(source, outputs), outputs)
        sizes = _make(stale, out, env, progress)
        if unfinished:
            write_manifest(out, fresh | {path: Made(digests[path], size) for path, size in sizes.items()})
        if looked is not None:
            leave(out, looked)
    return Built(out, written=len(stale), kept=len(fresh), removed=len(gone), alike=_alike(outputs))


def _alike(paths: Iterable[str]) -> tuple[str, str] | None:
    """The first two paths that differ in case alone."""
    known: dict[str, str] = {}
    for path in sorted(paths):
        other = known.setdefault(path.lower(), path)
        if other != path:
            return other, path
    return None


def _make(stale: Sequence[Page | File], out: Path, env: Any, progress: Progress) -> dict[str, int]:
    """Write all that is stale; the sizes by path."""
    sizes: dict[str, int] = {}

    def make(output: Page | File) -> int:
        raw = _bytes(output, env)
        write(out, output.path, raw)
        return len(raw)

    def made(output: Page | File, size: int) -> None:
        sizes[output.path] = size
        progress(len(sizes), len(stale))

    many = [output for output in stale if output.apart]
    progress(0, len(stale))
    with made_apart(many, make) as of_many:
        for output in stale:
            if not output.apart:
                made(output, make(output))
        for output, size in of_many:
            made(output, make(output) if size is None else size)
    return sizes


def site_facts(source: Source, made: Mapping[str, Page | File]) -> dict[str, Any]:
    """What every page may say of the site as `site`: nothing that a further cell would change."""
    cab = source.cab
    return {
        "cab_version": cab.version,
        "cab_commit": cab.commit,
        "cab_dirty": bool(cab.dirty),
        "base_url": source.base_url,
        "snapshot": source.snapshot or "",
        "nav": [(path, text) for path, text in NAV if path in made],
    }


NAV = (
    (links.INDEX, "Leaderboard"),
    (links.MATRIX, "Matrix"),
    (links.PARETO, "Trade-offs"),
    (links.GUIDE, "Guide"),
    (links.COMPARE, "Compare"),
    (links.GALLERY, "Recordings"),
    (links.METHODOLOGY, "Methodology"),
    (links.GLOSSARY, "Glossary"),
    (links.PROVENANCE, "Provenance"),
    (links.SNAPSHOTS, "Snapshots"),
)
"""The pages that every page leads to, where they are made."""


def _outputs(source: Source) -> dict[str, Page | File]:
    """Everything that the site consists of, by path. Raises ValueError for two files at one path."""
    outputs: dict[str, Page | File] = {}
    for output in (*_assets(), *(made for module in MODULES for made in module.pages(source))):
        if not is_relative(output.path):
            raise ValueError(f"{output.path!r} does not lie below the site's root")
        if output.path in outputs:
            raise ValueError(f"{output.path} is made twice")
        outputs[output.path] = output
    return outputs


def _assets() -> Iterable[File]:
    for path in sorted(ASSETS.rglob("*")):
        if path.is_file():
            yield File(f"assets/{path.relative_to(ASSETS).as_posix()}", path)
    # Some hosts would otherwise pass over files whose names begin with an underscore.
    yield File(".nojekyll", b"")


def _common(source: Source, outputs: Mapping[str, Page | File]) -> str:
    """The digest of what decides the bytes of every page: cab, its libraries, what all pages say, and which
    cells have no page: whatever leads to a cell leads nowhere then, though no record has changed.
    """
    facts = site_facts(source, outputs)
    cells = source.frame.select("cell_id", "sweep_id").iter_rows()
    pages = (links.cell_page(sweep_id, source.key(cell_id)) for cell_id, sweep_id in cells)
    absent = sorted(path for path in pages if path not in outputs)
    given = json.dumps([facts, PLAYER, absent], sort_keys=True)
    return digest_of(code_digest(), *render.library_versions(), given)


def code_digest() -> str:
    """The digest of all of cab that pages are made by: modules, templates and assets."""
    whole = hashlib.sha256()
    roots = (_CODE, _CODE.parent / "scorers")
    for root in roots:
        for path in sorted(root.rglob("*")):
            if path.suffix in (".py", ".html", ".svg", ".toml", ".xml") and path.is_file():
                whole.update(f"{path.relative_to(root.parent)}\0".encode())
                whole.update(hashlib.sha256(path.read_bytes()).digest())
    return whole.hexdigest()


def _inputs(output: Page | File, common: str) -> str:
    if isinstance(output, Page):
        return digest_of(common, output.template, *output.inputs)
    with store_errors(output.content if isinstance(output.content, Path) else Path(output.path)):
        return digest_of(common, output.digest()) if callable(output.content) else output.digest()


def _bytes(output: Page | File, env: Any) -> bytes:
    if isinstance(output, Page):
        return render.render(env, output.path, output.template, output.context())
    if isinstance(output.content, Path):
        return output.content.read_bytes()
    return output.content() if callable(output.content) else output.content


def _checked(base_url: str | None) -> str | None:
    """An address that ends in '/'. Raises InputError for what is none."""
    if base_url is None:
        return None
    parts = urlsplit(base_url)
    if parts.scheme not in ("http", "https") or not parts.netloc or parts.query or parts.fragment:
        raise InputError(
            f"{base_url!r} is no address of a site",
            place="--base-url",
            mend="give one such as https://results.example/cab/",
        )
    return base_url if base_url.endswith("/") else f"{base_url}/"
