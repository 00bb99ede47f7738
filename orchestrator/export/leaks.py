"""What a publication must not tell: paths, users and hosts of a machine, addresses, keys.

Every file of a dataset is read again, as it was written, before it is put in place. What is found names its
place; a text that is meant to be there has to be allowed by name.
"""

from __future__ import annotations

import getpass
import ipaddress
import json
import os
import platform
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from orchestrator.adapter import HOME
from orchestrator.gateway.scrub import Scrubber
from orchestrator.key_shapes import KEYS
from orchestrator.paths import ROOT

SHORTEST = 4
"""Characters of a host's or user's name that is looked for; shorter ones are parts of words."""

NOBODY = frozenset(
    (
        *("root", "user", "users", "admin", "administrator", "agent", "runner", "build", "builder"),
        *("ubuntu", "debian", "fedora", "vagrant", "docker", "podman", "jenkins", "gitlab", "github"),
        *("localhost", "localdomain", "local", "host", "hostname", "home", "linux", "none", "nobody"),
        *("server", "desktop", "laptop", "workstation", "machine", "computer"),
    )
)
"""Names of users and hosts that tell nobody who it is."""

_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL", re.IGNORECASE)
_HOMES = rf"(?:/home|/Users|[A-Za-z]:[\\/]+Users)[\\/]+(?!{re.escape(HOME.rpartition('/')[2])}\b)[\w.-]+"
_IPV4 = r"(?<![\w.-])(?:\d{1,3}\.){3}\d{1,3}(?![\w-]|\.\d)"
_IPV6 = r"(?<![\w:.])(?:[0-9A-Fa-f]{0,4}:){2,7}[0-9A-Fa-f]{0,4}(?![\w:]|\.\d)"
_IN_WORD = r"[^\W_]"
"""A letter or digit: next to a name it makes another word, which `_` and `-` only join to it."""
_SHOWN_OF_KEY = 6
_REMEMBERED = 200_000
"""Texts that are not looked at twice: most rows hold the same ones."""


@dataclass(frozen=True)
class Leak:
    """`what` was found, as `text` (of a key its beginning alone), in `place`: file:line, and the column."""

    what: str
    text: str
    place: str


class Check:
    """Looks for what must not be told. `paths` are directories of this machine, `names` its users and hosts,
    `secrets` values that must stand nowhere, in no form; a text of `allowed` is let pass.
    """

    def __init__(
        self, paths: Iterable[str], names: Iterable[str], secrets: Iterable[str], allowed: Iterable[str] = ()
    ) -> None:
        # A directory at the top, such as /app, may be one inside a container, and tells nobody.
        deep = {path.rstrip("/") for path in paths if len(Path(path).parts) > 2}
        known = sorted(map(re.escape, deep), key=len, reverse=True)
        people = sorted({re.escape(name) for name in names if _tells(name)}, key=len, reverse=True)
        rules = {
            "a_key": "|".join(KEYS),
            "a_path_of_this_machine": rf"(?<![\w.-])(?:{'|'.join(known)})(?![\w.-])" if known else "",
            "a_home_directory": _HOMES,
            "a_host_or_user_name": rf"(?<!{_IN_WORD})(?i:{'|'.join(people)})(?!{_IN_WORD})" if people else "",
            "an_address": f"{_IPV4}|{_IPV6}",
        }
        self._rules = re.compile("|".join(f"(?P<{name}>{rule})" for name, rule in rules.items() if rule))
        self._secrets = Scrubber(secrets)
        self._allowed = frozenset(allowed)
        self._clean: set[str] = set()

    @classmethod
    def of_this_machine(cls, results: Iterable[Path], allowed: Sequence[str] = ()) -> Check:
        """What this machine, its user and its environment are called."""
        places = [Path.home(), Path.cwd(), ROOT, *results]
        host = platform.node()
        return cls(
            paths=[text for place in places for text in (str(place.absolute()), str(place.resolve()))],
            names=[host, host.partition(".")[0], _user()],
            secrets=_secrets_of(os.environ),
            allowed=allowed,
        )

    def text(self, text: str) -> list[tuple[str, str]]:
        """What is found in a text: what it is, and the text itself."""
        if text in self._clean:
            return []
        found = []
        # An address may hold a path with its separators written as `%2F`.
        plain = unquote(text) if "%2f" in text.lower() else text
        for match in self._rules.finditer(plain):
            what, told = str(match.lastgroup), match[0]
            if told in self._allowed or (what == "an_address" and not _tells_address(told)):
                continue
            found.append((what.replace("_", " "), f"{told[:_SHOWN_OF_KEY]}…" if what == "a_key" else told))
        if not found and len(self._clean) < _REMEMBERED:
            self._clean.add(text)
        return found

    def file(self, path: Path, name: str, each: Callable[[], None] | None = None) -> Iterator[Leak]:
        """What is found in a file, called `name` in the publication. Of Parquet every value is read.

        `each` is called after every line or row.
        """
        lines = _parquet_lines(path) if path.suffix == ".parquet" else _lines(path)
        for number, line in enumerate(lines, 1):
            place = f"{name}:{number}"
            if self._secrets.longest and self._secrets.stands_in(line.encode("utf-8", "replace")):
                yield Leak("a value that the environment names as a secret", "…", place)
            for column, text in _texts(_parsed(line)):
                where = f"{place}, column {column}" if column else place
                yield from (Leak(what, told, where) for what, told in self.text(text))
            if each is not None:
                each()


def _parsed(text: str) -> Any:
    """The value of a text that is a JSON object or array, so that its escapes are read; else the text."""
    if text.startswith(("{", "[")):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text
    return text


def _texts(value: Any, column: str = "") -> Iterator[tuple[str, str]]:
    """Every text in a value, with the name of the outermost member that holds it."""
    if isinstance(value, str):
        inner = _parsed(value)
        if isinstance(inner, str):
            yield column, inner
        else:
            yield from _texts(inner, column)
    elif isinstance(value, dict):
        for name, one in value.items():
            yield column, name
            yield from _texts(one, column or name)
    elif isinstance(value, list):
        for one in value:
            yield from _texts(one, column)


def _lines(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8", errors="replace", newline="\n") as file:
        yield from file


def _parquet_lines(path: Path) -> Iterator[str]:
    """The rows of a Parquet file as lines of JSON, then its metadata."""
    import polars as pl

    frame = pl.read_parquet(path)
    for part in frame.iter_slices(1000):
        yield from part.write_ndjson().splitlines()
    yield json.dumps(pl.read_parquet_metadata(path))


def _tells(name: str) -> bool:
    return len(name) >= SHORTEST and name.lower() not in NOBODY


def _tells_address(text: str) -> bool:
    """Whether a text is an address of some machine other than the one that reads it."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    # Paths of modules, as in `dead::beef`, look like short addresses.
    short = address.version == 6 and sum(bool(group) for group in text.split(":")) < 3
    if short and not address.is_link_local and not address.is_private:
        return False
    return not (address.is_loopback or address.is_unspecified)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        # A container's user that has no name.
        return ""


def _secrets_of(environment: Mapping[str, str]) -> list[str]:
    return [value for name, value in environment.items() if _SECRET_NAME.search(name)]
