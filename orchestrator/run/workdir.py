"""The workdir of a cell: laid out, listed before and after, and compared.

What an agent leaves behind is hostile. So nothing here follows a symlink, opens anything but a regular file,
or runs git inside the agent's repository (whose configuration could name programs to run): differences are
computed from the two listings, and the diff is made by git in a private repository that never sees a work
tree.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import pathspec

from orchestrator.errors import CellFault
from orchestrator.run.hostile import opened, read
from scorers.evidence import FileChange, FileState

Manifest = dict[str, FileState]

MAX_HASHED_BYTES = 64 << 20
"""Larger files are listed by size alone: hashing them would let an agent buy minutes of the runner's time."""

MAX_HASHED_TOTAL_BYTES = 2 << 30
"""Of one listing. A file past it has no digest, and so differs from any that has one."""

MAX_DIFFED_BYTES = 4 << 20
"""Larger files stand in the list of changes, not in the diff."""

MAX_DIFF_INPUT_BYTES = 16 << 20
"""Of all files in the diff, before and after: an agent's tree may hold far more than the runner's memory."""

MAX_GRADED_DEPTH = 100
"""Directories above a file that is graded: an agent may nest them deeper than a recursion goes."""

GENERATED_GLOBS = (
    "__pycache__/",
    "*.py[cod]",
    ".pytest_cache/",
    ".mypy_cache/",
    ".ruff_cache/",
    "*.egg-info/",
    "/target/",
    "node_modules/",
    ".gradle/",
    "*.class",
    "*.o",
)
"""Build outputs of the supported languages; a task's own .gitignore adds to them. A directory that is named
`target` elsewhere than at the top may as well hold sources."""

WITHOUT_BYTE_CODE = shutil.ignore_patterns("__pycache__")
"""For copies of a task's files: byte-code of a local run, or of whatever installed cab, is none of them."""

GIT_ENV = {
    "PATH": os.defpath,
    "HOME": "/nonexistent",
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_AUTHOR_NAME": "cab",
    "GIT_AUTHOR_EMAIL": "cab@localhost",
    "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z",
    "GIT_COMMITTER_NAME": "cab",
    "GIT_COMMITTER_EMAIL": "cab@localhost",
    "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z",
}


def git(*args: str | bytes, cwd: Path, stdin: bytes | None = None) -> bytes:
    """Run git with no configuration but its own; returns stdout. Raises CellFault("engine") on failure."""
    done = subprocess.run(["git", *args], cwd=cwd, input=stdin, env=GIT_ENV, capture_output=True, check=False)
    if done.returncode != 0:
        text = done.stderr.decode("utf-8", "replace").strip()
        raise CellFault("disk", f"git {os.fsdecode(args[0])} failed: {text}", mend="is git installed?")
    return done.stdout


def shown(path: str) -> str:
    """A path as text that JSON can carry: undecodable bytes are written as escapes."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


class _Digests:
    """Digests of one listing's files. Names of one file are read once, and no more than so much in all."""

    def __init__(self) -> None:
        self._left = MAX_HASHED_TOTAL_BYTES
        self._known: dict[tuple[int, int], str | None] = {}

    def of(self, path: str, info: os.stat_result) -> str | None:
        inode = (info.st_dev, info.st_ino)
        if inode not in self._known:
            fits = info.st_size <= min(MAX_HASHED_BYTES, self._left)
            self._left -= info.st_size if fits else 0
            self._known[inode] = _hash(path) if fits else None
        return self._known[inode]


def _hash(path: str) -> str | None:
    with opened(path) as file:
        return None if file is None else hashlib.file_digest(file, "sha256").hexdigest()


def _state(entry: os.DirEntry[str], digests: _Digests) -> FileState:
    info = entry.stat(follow_symlinks=False)
    mode = stat.S_IMODE(info.st_mode)
    if stat.S_ISLNK(info.st_mode):
        return FileState(kind="symlink", size=info.st_size, mode=mode, target=shown(os.readlink(entry.path)))
    if not stat.S_ISREG(info.st_mode):
        return FileState(kind="other", size=0, mode=mode)
    return FileState(kind="file", size=info.st_size, mode=mode, sha256=digests.of(entry.path, info))


@contextmanager
def _listed(directory: str) -> Iterator[Iterator[os.DirEntry[str]] | None]:
    """A directory's entries; None where the agent nested it too deep to be named, or closed it."""
    try:
        entries = os.scandir(directory)
    except OSError:
        yield None
        return
    with entries:
        yield entries


def _walk(root: str) -> Iterator[tuple[str, FileState]]:
    pending, digests = [(root, "")], _Digests()
    while pending:
        directory, at = pending.pop()
        with _listed(directory) as entries:
            if entries is None:
                yield at.rstrip("/"), FileState(kind="other", size=0, mode=0)
                continue
            for entry in entries:
                path = at + entry.name
                if entry.name == ".git":
                    # The workdir's own repository is the agent's to use; one made elsewhere is listed, not
                    # read.
                    if at:
                        yield path, FileState(kind="other", size=0, mode=0)
                elif entry.is_dir(follow_symlinks=False):
                    pending.append((entry.path, path + "/"))
                else:
                    try:
                        yield path, _state(entry, digests)
                    except OSError:
                        yield path, FileState(kind="other", size=0, mode=0)


def scan(root: Path) -> Manifest:
    """Every file below `root` by its path relative to it; directories are implied, .git is left out."""
    return dict(sorted(_walk(str(root))))


def copy_tree(source: Path, target: Path, owner: tuple[int, int] | None = None) -> None:
    """Copy a trusted tree; `owner` is set where cab runs as root."""
    shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
    give(target, owner)


def give(root: Path, owner: tuple[int, int] | None) -> None:
    """Hand a trusted tree to another user, where cab is allowed to."""
    if owner is None or os.geteuid() != 0:
        return
    os.chown(root, *owner)
    for directory, names, files in os.walk(root):
        for name in (*names, *files):
            os.chown(os.path.join(directory, name), *owner, follow_symlinks=False)  # noqa: PTH118 - hot path


@dataclass(frozen=True)
class Template:
    """A task's workdir as every cell starts from it: one commit of fixed author and date, and its listing."""

    path: Path
    before: Manifest

    @classmethod
    def make(cls, workdir: Path, path: Path, files: Mapping[str, bytes] = MappingProxyType({})) -> Template:
        """Lay the task's workdir out at `path` (which must not exist), with `files` in it, and commit it."""
        shutil.copytree(workdir, path, symlinks=True, ignore=WITHOUT_BYTE_CODE)
        for name, content in files.items():
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).write_bytes(content)
        git("init", "--quiet", "--initial-branch=main", "--template=", ".", cwd=path)
        git("add", "--all", "--force", ".", cwd=path)
        git("-c", "gc.auto=0", "commit", "--quiet", "--message=Initial state", cwd=path)
        return cls(path, scan(path))


class Classifier:
    """Tells the agent's own work from build outputs and from the CLI's own files and lines."""

    def __init__(
        self,
        template: Path,
        state_globs: Iterable[str] = (),
        state_lines: Mapping[str, Iterable[str]] | None = None,
    ) -> None:
        ignored = template / ".gitignore"
        lines = ignored.read_text("utf-8").splitlines() if ignored.is_file() else []
        self._template = template
        self._generated = pathspec.GitIgnoreSpec.from_lines([*GENERATED_GLOBS, *lines])
        self._state = pathspec.GitIgnoreSpec.from_lines(state_globs)
        self._state_lines = {
            path: frozenset(line.encode() for line in lines) for path, lines in (state_lines or {}).items()
        }

    def __call__(self, workdir: Path, path: str) -> str:
        if self._state.match_file(path) or self._gained_state_lines(workdir, path):
            return "cli_state"
        return "generated" if self._generated.match_file(path) else "agent"

    def _same_mode(self, workdir: Path, path: str) -> bool:
        """Whether a file has the mode it had, if it was there."""
        try:
            modes = {(root / path).lstat().st_mode for root in (self._template, workdir)}
        except OSError:
            return True
        return len(modes) == 1

    def _gained_state_lines(self, workdir: Path, path: str) -> bool:
        """Whether all that changed in a file is that it gained lines which the CLI itself adds."""
        if path not in self._state_lines or not self._same_mode(workdir, path):
            return False
        before, after = (read(root / path, MAX_DIFFED_BYTES) for root in (self._template, workdir))
        if after is None:
            return False
        left = iter((before or b"").splitlines())
        expected = next(left, None)
        for line in after.splitlines():
            if line == expected:
                expected = next(left, None)
            elif line not in self._state_lines[path]:
                return False
        return expected is None


@dataclass(frozen=True)
class Difference:
    """What changed between two listings: `changes` for the scorers, `patch` of the agent's own changes.

    `own` holds the agent's own changes by their real path, with what is there now (None: nothing): first the
    template's files, so that no flood of new ones can push them out of a bounded diff or grading. `truncated`
    when a file that a diff could hold was left out of it.
    """

    changes: list[FileChange]
    patch: bytes
    own: dict[str, FileState | None]
    truncated: bool = False


def compare(template: Template, workdir: Path, after: Manifest, classify: Classifier) -> Difference:
    """Compare a workdir with its template."""
    before = template.before
    changed = [path for path in sorted({*before, *after}) if before.get(path) != after.get(path)]
    if not changed:
        return Difference([], b"", {})
    origins = {path: classify(workdir, path) for path in changed}
    own = sorted((path for path in changed if origins[path] == "agent"), key=lambda path: path not in before)
    shown_paths = _fitting(template, after, own)
    patch, lines, renames = _diff(template, workdir, after, shown_paths)
    sources = set(renames.values())
    changes = []
    for path in changed:
        if path in sources:
            continue
        old = renames.get(path)
        was, now = before.get(old or path), after.get(path)
        kind = "renamed" if old else "added" if was is None else "removed" if now is None else "modified"
        same = was is not None and now is not None and _same_content(was, now)
        # Git knows one bit of a mode; a change of the others alone is in no diff.
        added, removed = lines.get(path, (0, 0) if same else (None, None))
        changes.append(
            FileChange.model_validate(
                {
                    "path": shown(path),
                    "change": kind,
                    "old_path": shown(old) if old else None,
                    "origin": origins[path],
                    "before": was,
                    "after": now,
                    "lines_added": added,
                    "lines_removed": removed,
                }
            )
        )
    truncated = len(shown_paths) < len(own)
    return Difference(changes, patch, {path: after.get(path) for path in own}, truncated)


def _same_content(was: FileState, now: FileState) -> bool:
    content = (was.kind, was.sha256, was.target)
    return content == (now.kind, now.sha256, now.target) and content[1:] != (None, None)


def _fitting(template: Template, after: Manifest, paths: list[str]) -> list[str]:
    """Those of `paths`, the first of them first, whose content fits into a bounded diff."""
    left, fitting = MAX_DIFF_INPUT_BYTES, []
    for path in paths:
        states = (template.before.get(path), after.get(path))
        size = sum(state.size for state in states if state and state.size <= MAX_DIFFED_BYTES)
        if size <= left:
            left -= size
            fitting.append(path)
    return fitting


def _quote(path: str) -> bytes:
    """A path in the quoted form of fast-import: any byte is allowed in a name, and the agent chose it."""
    out = bytearray(b'"')
    for byte in os.fsencode(path):
        out += b"\\%03o" % byte if byte < 0x20 or byte in b'"\\' or byte >= 0x7F else bytes([byte])
    return bytes(out + b'"')


def _content(root: Path, path: str, state: FileState) -> tuple[bytes, bytes] | None:
    """Mode and content for the diff, or None for what a diff cannot hold."""
    full = root / path
    if state.kind == "symlink":
        return b"120000", os.fsencode(os.readlink(full))
    if state.kind != "file" or state.size > MAX_DIFFED_BYTES:
        return None
    content = read(full, MAX_DIFFED_BYTES)
    if content is None:
        return None
    return (b"100755" if state.mode & 0o100 else b"100644"), content


def _commit(name: bytes, root: Path, manifest: Manifest, paths: list[str]) -> bytes:
    """One fast-import commit that holds `paths` as they are below `root`."""
    out = [b"commit refs/heads/%s\ncommitter cab <cab@localhost> 0 +0000\ndata 0\n" % name]
    for path in paths:
        state = manifest.get(path)
        item = _content(root, path, state) if state else None
        if item:
            mode, content = item
            out.append(b"M %s inline %s\ndata %d\n%s\n" % (mode, _quote(path), len(content), content))
    return b"".join(out) + b"\n"


def _diff(
    template: Template, workdir: Path, after: Manifest, paths: list[str]
) -> tuple[bytes, dict[str, tuple[int | None, int | None]], dict[str, str]]:
    """The patch, the changed lines per path (None: binary), and new path -> old path of renames."""
    if not paths:
        return b"", {}, {}
    stream = _commit(b"before", template.path, template.before, paths)
    stream += _commit(b"after", workdir, after, paths)
    # Not in the cell's scratch, which the agent may have filled, but beside the templates: what is there goes
    # with this process, however that ends. Its size is bounded by what goes in.
    with tempfile.TemporaryDirectory(prefix="diff-", dir=template.path.parent) as name:
        private = Path(name)
        for directory in ("objects", "refs", "info"):
            (private / directory).mkdir()
        (private / "HEAD").write_text("ref: refs/heads/before\n")
        (private / "config").write_text("[core]\nrepositoryformatversion = 0\nbare = true\n")
        # Attributes in the agent's tree must not hide a file from the diff.
        attributes = "* !diff !text !filter !ident !eol !working-tree-encoding\n"
        (private / "info" / "attributes").write_text(attributes)
        return _diff_in(private, stream)


def _diff_in(
    private: Path, stream: bytes
) -> tuple[bytes, dict[str, tuple[int | None, int | None]], dict[str, str]]:
    """What `_diff` returns, from the two commits of `stream`."""
    where = f"--git-dir={private}"
    git(where, "fast-import", "--quiet", "--date-format=raw", cwd=private, stdin=stream)
    flags = ("diff-tree", "-r", "--find-renames", "--no-ext-diff", "--no-textconv")
    patch = git(where, *flags, "--patch", "--binary", "--full-index", "before", "after", cwd=private)
    counts, renames = _numstat(git(where, *flags, "--numstat", "-z", "before", "after", cwd=private))
    return patch, counts, renames


def _numstat(out: bytes) -> tuple[dict[str, tuple[int | None, int | None]], dict[str, str]]:
    counts: dict[str, tuple[int | None, int | None]] = {}
    renames: dict[str, str] = {}
    fields = iter(out.split(b"\0")[:-1])
    for field in fields:
        added, removed, name = field.split(b"\t", 2)
        path = os.fsdecode(name)
        if not name:
            old, path = os.fsdecode(next(fields)), os.fsdecode(next(fields))
            renames[path] = old
        counts[path] = (None, None) if added == b"-" else (int(added), int(removed))
    return counts, renames


def rebuild(
    template: Template,
    workdir: Path,
    difference: Difference,
    protected: Iterable[str],
    target: Path,
    *,
    max_bytes: int,
    max_files: int,
) -> int:
    """Lay out what is graded: the template with the agent's own changes, protected files as they were.

    Build outputs and ignored files stay behind, so that a poisoned build cache cannot reach the grader.
    Files are copied whole, holes and hard links too, so what the agent changed has to fit into `max_bytes`
    and `max_files`: what does not is left out, as is what lies deeper than MAX_GRADED_DEPTH or than a path
    can be long. Returns how many files that is.
    """
    shutil.copytree(template.path, target, symlinks=True)
    guarded = pathspec.GitIgnoreSpec.from_lines(protected)
    own = {path: now for path, now in difference.own.items() if not guarded.match_file(path)}
    # Everything that changed is removed first, while the tree is still the trusted template: once the agent's
    # symlinks are in place, a path below one of them would lead out of the tree.
    for path in own:
        if path in template.before:
            (target / path).unlink()
    left_out = 0
    for path, now in own.items():
        if now is None:
            continue
        size = now.size if now.kind == "file" else 0
        if size > max_bytes or max_files == 0 or path.count("/") > MAX_GRADED_DEPTH:
            left_out += 1
            continue
        max_bytes, max_files = max_bytes - size, max_files - 1
        try:
            _lay(workdir / path, now, target / path)
        except OSError as error:
            if error.errno != errno.ENAMETOOLONG:
                raise
            left_out += 1
    return left_out


def _lay(source: Path, now: FileState, place: Path) -> None:
    """Lay one file or symlink of the agent's at `place`, unless something protected stands in the way."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
    except (NotADirectoryError, FileExistsError):
        return
    if place.is_dir() and not place.is_symlink():
        # The agent put a file where a directory was: what that held is gone already, unless it is protected.
        if any(files for _, _, files in os.walk(place)):
            return
        shutil.rmtree(place)
    if now.kind == "symlink":
        place.symlink_to(os.readlink(source))
    elif now.kind == "file":
        shutil.copyfile(source, place, follow_symlinks=False)
        place.chmod((now.mode & 0o755) | 0o600)
