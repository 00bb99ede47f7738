"""What is in an image: packages by name, version and, where they tell it, licence.

Read out of the finished image: dpkg's database, the metadata of Python distributions, the `package.json` of
npm packages, and the tools that the image's own labels ask for their versions. Files that no package manager
put there, and what was compiled into a binary, are in no list. Kept as CycloneDX 1.5.
"""

from __future__ import annotations

import io
import json
import re
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from email.parser import HeaderParser
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

import docker

from orchestrator.errors import EnvironmentFault
from orchestrator.sandbox.images import engine
from orchestrator.sandbox.images.layout import Layout
from orchestrator.sandbox.images.lock import LockedImage, version_number
from orchestrator.sandbox.images.recipe import ROOT, buildable

FIND = r"""cd / && find . -xdev \( -path ./proc -o -path ./sys -o -path ./dev \) -prune -o -type f \( \
-path ./var/lib/dpkg/status -o -path './usr/share/doc/*/copyright' -o -path '*.dist-info/METADATA' \
-o -path '*/node_modules/*/package.json' \) -print0 | tar -czf /cab.tar.gz --null -T -"""
"""What is run in an image, as root without a network: what its packages say of themselves, as a tar file."""

TOOL = "tool"
_PURLS = {"deb": "pkg:deb/debian/", "pypi": "pkg:pypi/", "npm": "pkg:npm/"}
_NPM = re.compile(r"/node_modules/((?:@[^/]+/)?[^/@][^/]*)/package\.json$")
_COPYRIGHT = re.compile(r"^\./usr/share/doc/([^/]+)/copyright$")


@dataclass(frozen=True)
class Component:
    """One thing in an image. `kind` is `deb`, `pypi`, `npm`, or `tool` for what a command told of itself."""

    kind: str
    name: str
    version: str
    licence: str | None = None


def store(layout: Layout, client: docker.DockerClient, name: str, locked: LockedImage) -> list[Component]:
    """What is in an image, as it was stored here; else read and stored.

    Raises EnvironmentFault where neither the list is stored nor the image in the engine.
    """
    path = layout.sboms / f"{name}-{_end_of_name(locked.id)}"
    if path.is_file():
        return components(json.loads(path.read_bytes()))
    if engine.find_image(client, locked.id) is None:
        raise EnvironmentFault(
            f"no list of {locked.id} is stored, and the engine has it no more",
            place=f"image {name}",
            mend=f"run `cab images build {buildable(name)}`, or `cab images pull` where it was pushed",
        )
    below = stored(layout, locked.parent) if locked.parent else None
    tools = {it.name: it.version for it in below or () if it.kind == TOOL}
    found = read(client, locked.id, {} if name == ROOT else locked.versions, tools)
    path.parent.mkdir(parents=True, exist_ok=True)
    staged = path.with_suffix(".new")
    staged.write_text(json.dumps(document(locked, found), indent=1) + "\n", "utf-8")
    staged.replace(path)
    return found


def stored(layout: Layout, image_id: str) -> list[Component] | None:
    """What is in an image, where that was stored here."""
    for path in layout.sboms.glob(f"*-{_end_of_name(image_id)}"):
        return components(json.loads(path.read_bytes()))
    return None


def _end_of_name(image_id: str) -> str:
    return f"{image_id.removeprefix('sha256:')[:12]}.cdx.json"


def read(
    client: docker.DockerClient,
    image_id: str,
    versions: Mapping[str, str],
    below: Mapping[str, str] = MappingProxyType({}),
) -> list[Component]:
    """What is in an image, in order: its packages, and the tools that told `versions`. One without a shell
    has no packages, and nothing of the tools of the image `below` it either: it took single files.
    """
    packed = engine.run_and_copy_out(client, image_id, ["sh", "-c", FIND], "/cab.tar.gz")
    found = set(_tools(versions))
    if packed is not None:
        found |= set(_tools({**below, **versions}))
        with tarfile.open(fileobj=io.BytesIO(packed), mode="r:gz") as tar:
            found |= set(_packages(tar))
    return sorted(found, key=lambda it: (it.kind, it.name, it.version, it.licence or ""))


def _tools(versions: Mapping[str, str]) -> Iterator[Component]:
    for tool, told in versions.items():
        yield Component(TOOL, tool, version_number(told) or told)


def _packages(tar: tarfile.TarFile) -> Iterator[Component]:
    licences: dict[str, str] = {}
    status = ""
    for member in tar:
        file = tar.extractfile(member)
        if file is None:
            continue
        text = file.read().decode(errors="replace")
        if found := _COPYRIGHT.match(member.name):
            if licence := _debian_licence(text):
                licences[found[1]] = licence
        elif member.name == "./var/lib/dpkg/status":
            status = text
        elif member.name.endswith("/METADATA"):
            yield from _python(text)
        elif found := _NPM.search(member.name):
            yield from _npm(text)
    yield from _debian(status, licences)


def _debian(status: str, licences: Mapping[str, str]) -> Iterator[Component]:
    for stanza in status.split("\n\n"):
        fields = HeaderParser().parsestr(stanza)
        name, version = fields["Package"], fields["Version"]
        if name and version and fields["Status"] == "install ok installed":
            yield Component("deb", name, version, licences.get(name))


def _debian_licence(text: str) -> str | None:
    """What a copyright file in Debian's machine-readable form says of most files: of `Files: *`."""
    if not text.startswith("Format:"):
        return None
    for stanza in text.split("\n\n"):
        if re.search(r"^Files:\s*\*\s*$", stanza, re.MULTILINE) and (
            found := re.search(r"^License:[ \t]*(\S.*)$", stanza, re.MULTILINE)
        ):
            return found[1].strip()
    return None


def _python(text: str) -> Iterator[Component]:
    fields = HeaderParser().parsestr(text)
    if not (fields["Name"] and fields["Version"]):
        return
    licence = fields["License-Expression"] or fields["License"] or ""
    if not licence or "\n" in licence.strip():  # a whole licence's text
        told = [line for line in fields.get_all("Classifier", []) if line.startswith("License ::")]
        licence = " AND ".join(line.rpartition(" :: ")[2] for line in told)
    name = re.sub(r"[-_.]+", "-", fields["Name"]).lower()
    yield Component("pypi", name, fields["Version"], licence.strip() or None)


def _npm(text: str) -> Iterator[Component]:
    try:
        told = json.loads(text)
    except ValueError:  # some packages hold broken ones, as data of their tests
        return
    if not (isinstance(told, dict) and isinstance(told.get("name"), str)):
        return
    version, licence = told.get("version"), told.get("license")
    if isinstance(licence, dict):
        licence = licence.get("type")
    if isinstance(version, str):
        yield Component("npm", told["name"], version, licence if isinstance(licence, str) else None)


def document(locked: LockedImage, found: Iterable[Component]) -> dict[str, Any]:
    """The list as a CycloneDX document. Without a time and a serial number: the same image has the same."""
    name, _, version = locked.tag.partition(":")
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": {
                "type": "container",
                "name": name,
                "version": version,
                "hashes": [{"alg": "SHA-256", "content": locked.id.removeprefix("sha256:")}],
            }
        },
        "components": [_entry(it) for it in found],
    }


def _entry(it: Component) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "type": "application" if it.kind == TOOL else "library",
        "name": it.name,
        "version": it.version,
    }
    if it.licence:
        entry["licenses"] = [{"license": {"name": it.licence}}]
    if it.kind in _PURLS:
        entry["purl"] = f"{_PURLS[it.kind]}{quote(it.name, safe='/')}@{quote(it.version, safe='')}"
    return entry


def components(told: Mapping[str, Any]) -> list[Component]:
    """The components of a document that `document` made."""
    kinds = {purl: kind for kind, purl in _PURLS.items()}
    return [
        Component(
            next((kind for purl, kind in kinds.items() if it.get("purl", "").startswith(purl)), TOOL),
            it["name"],
            it["version"],
            it["licenses"][0]["license"]["name"] if "licenses" in it else None,
        )
        for it in told["components"]
    ]


def differences(was: Iterable[Component], now: Iterable[Component]) -> list[str]:
    """What differs between two images, a line for each name: `deb git 1:2.47.2-1 → 1:2.47.3-0`."""
    before, after = _versions(was), _versions(now)
    lines = []
    for kind, name in sorted(before.keys() | after.keys()):
        old, new = before.get((kind, name)), after.get((kind, name))
        if old == new:
            continue
        if old and new:
            lines.append(f"{kind} {name} {old} → {new}")
        else:
            lines.append(f"{kind} {name} {old} removed" if old else f"{kind} {name} {new} added")
    return lines


def _versions(found: Iterable[Component]) -> dict[tuple[str, str], str]:
    versions: dict[tuple[str, str], set[str]] = {}
    for it in found:
        versions.setdefault((it.kind, it.name), set()).add(it.version)
    return {key: ", ".join(sorted(told)) for key, told in versions.items()}
