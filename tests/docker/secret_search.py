"""Searches everything for a secret: in any usual form, and inside archives and compressed files."""

from __future__ import annotations

import base64
import bz2
import errno
import io
import lzma
import os
import tarfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

MAX_DEPTH = 4
BLOCK = 4 << 20


def forms_of(secret: str) -> dict[str, bytes]:
    """How a secret may be written, by the name of the form."""
    plain = secret.encode()
    forms = {"plain": plain, "hex": plain.hex().encode(), "url": quote(secret, safe="").encode()}
    forms["url, lower case"] = b"".join(
        f"%{byte:02x}".encode()
        if b"%%%02X" % byte in forms["url"] and not chr(byte).isalnum()
        else bytes([byte])
        for byte in plain
    )
    for shift in range(3):
        # Of base64 at any alignment, the characters that hold nothing but bits of the secret.
        encoded = base64.b64encode(b"\0" * shift + plain)
        core = encoded[(0, 2, 3)[shift] : (shift + len(plain)) * 8 // 6]
        forms[f"base64 at {shift}"] = core
        forms[f"base64url at {shift}"] = core.translate(bytes.maketrans(b"+/", b"-_"))
    return forms


@dataclass
class Search:
    """Looks for `secrets`; `found` says where which form was. `looked` counts bytes, by kind of place."""

    secrets: Iterable[str]
    found: list[str] = field(default_factory=list)
    looked: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # A form may be the same as another, such as a URL-encoded key that needs no escapes.
        by_bytes = {
            form: name for secret in self.secrets for name, form in reversed(forms_of(secret).items())
        }
        self._forms = {name: [f for f, n in by_bytes.items() if n == name] for name in by_bytes.values()}
        self._longest = max(map(len, by_bytes))

    def data(self, data: bytes, place: str, kind: str = "data", depth: int = 0) -> None:
        """Look in bytes, and in what they hold compressed."""
        self.looked[kind] = self.looked.get(kind, 0) + len(data)
        self._raw(data, place)
        if depth < MAX_DEPTH:
            for name, inner in _inside(data):
                self.data(inner, f"{place} > {name}", kind, depth + 1)

    def tree(self, root: Path, kind: str) -> None:
        """Look in every file below `root`, and in all names; sockets and the like are not read."""
        for directory, names, files in os.walk(root):
            for name in names:
                self._raw(os.fsencode(name), f"name of {directory}/{name}")
            for name in files:
                self.file(Path(directory) / name, kind)

    def file(self, path: Path, kind: str) -> None:
        self._raw(os.fsencode(path.name), f"name of {path}")
        if path.is_symlink():
            self._raw(os.fsencode(path.readlink()), f"target of {path}")
        elif path.is_file():
            try:
                content = written(path)
            except FileNotFoundError:
                return
            self.data(content, str(path), kind)

    def stream(self, blocks: Iterable[bytes], place: str, kind: str) -> None:
        """Look in a stream that is too large to be held, so not inside of what it compresses."""
        tail = b""
        for block in blocks:
            self.looked[kind] = self.looked.get(kind, 0) + len(block)
            self._raw(tail + block, place)
            tail = block[-self._longest :]

    def process(self, pid: int) -> None:
        """Look at environment and command line of a process, where it still runs."""
        for part in ("environ", "cmdline"):
            try:
                content = Path(f"/proc/{pid}/{part}").read_bytes()
            except OSError:  # it has ended
                continue
            self.data(content, f"/proc/{pid}/{part}", part)

    def _raw(self, data: bytes, place: str) -> None:
        for name, forms in self._forms.items():
            if any(form in data for form in forms):
                self.found.append(f"{name}: {place}")


def written(path: Path) -> bytes:
    """What a file holds, without the holes of a sparse one: of scratch, gigabytes, next to nothing is."""
    parts, at = [], 0
    with path.open("rb") as file:
        while True:
            try:
                start = os.lseek(file.fileno(), at, os.SEEK_DATA)
            except OSError as error:
                if error.errno != errno.ENXIO:  # the rest is a hole, or there is none
                    raise
                return b"\0".join(parts)
            at = os.lseek(file.fileno(), start, os.SEEK_HOLE)
            parts.append(os.pread(file.fileno(), at - start, start))


def _inside(data: bytes) -> Iterator[tuple[str, bytes]]:
    """What compressed or archived data holds, as far as it can be read."""
    if data[:2] == b"\x1f\x8b":
        yield "gzip", b"".join(_members(data))
    elif data[:3] == b"BZh":
        yield "bzip2", bz2.decompress(data)
    elif data[:6] == b"\xfd7zXZ\0":
        yield "xz", lzma.decompress(data)
    elif data[:4] == b"PK\x03\x04":
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            yield from ((name, archive.read(name)) for name in archive.namelist())
    elif data[257:262] == b"ustar":
        with tarfile.open(fileobj=io.BytesIO(data)) as tar:
            for member in tar:
                if (file := tar.extractfile(member)) is not None:
                    yield member.name, file.read()


def _members(data: bytes) -> Iterator[bytes]:
    """The content of each gzip member; of a torn one what can be read."""
    while data[:2] == b"\x1f\x8b":
        decompressor = zlib.decompressobj(wbits=31)
        yield decompressor.decompress(data)
        data = decompressor.unused_data
