"""What is in an image is read as its package managers wrote it, kept as CycloneDX, and compared."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, Literal

import pytest
from docker.errors import APIError

from orchestrator.errors import EnvironmentFault
from orchestrator.sandbox.images import LockedImage
from orchestrator.sandbox.images.sbom import Component, components, differences, document, read

FILES = {
    "./usr/share/doc/git/copyright": (
        "Format: x\n\nFiles: *\nCopyright: y\nLicense: GPL-2\n\nFiles: a\nLicense: MIT\n"
    ),
    "./usr/share/doc/tar/copyright": "No machine reads this.\nLicense: none\n",
    "./var/lib/dpkg/status": (
        "Package: git\nStatus: install ok installed\nVersion: 1:2.47.3-0\nDescription: a\n b\n\n"
        "Package: tar\nStatus: install ok installed\nVersion: 1.35\n\n"
        "Package: gone\nStatus: deinstall ok config-files\nVersion: 1\n"
    ),
    "./opt/x/lib/python3.13/site-packages/Some_Dist-2.0.dist-info/METADATA": (
        "Name: Some_Dist\nVersion: 2.0\nLicense-Expression: MIT OR Apache-2.0\n\nText\n"
    ),
    "./opt/x/lib/python3.13/site-packages/old-1.dist-info/METADATA": (
        "Name: old\nVersion: 1\nLicense: Copyright (c)\n        All of it\n"
        "Classifier: License :: OSI Approved :: BSD License\n"
    ),
    "./opt/node_modules/@scope/part/package.json": json.dumps(
        {"name": "@scope/part", "version": "3.1.0", "license": {"type": "ISC"}}
    ),
    "./opt/node_modules/a/package.json": json.dumps({"name": "a", "version": "1.0.0", "license": "MIT"}),
    "./opt/node_modules/b/node_modules/a/package.json": json.dumps({"name": "a", "version": "2.0.0"}),
    "./opt/node_modules/a/test/fixture/package.json": json.dumps({"name": "no", "version": "1"}),
    "./opt/node_modules/broken/package.json": "{",
    "./opt/node_modules/list/package.json": "[]",
}
FOUND = [
    Component("deb", "git", "1:2.47.3-0", "GPL-2"),
    Component("deb", "tar", "1.35"),
    Component("npm", "@scope/part", "3.1.0", "ISC"),
    Component("npm", "a", "1.0.0", "MIT"),
    Component("npm", "a", "2.0.0"),
    Component("pypi", "old", "1", "BSD License"),
    Component("pypi", "some-dist", "2.0", "MIT OR Apache-2.0"),
    Component("tool", "agent", "1.2.3"),
]


def tar_of(files: Mapping[str, bytes], mode: Literal["w", "w:gz"]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def engine(*, shell: bool = True, status: int = 0) -> Any:
    """An engine whose containers make the archive of FILES, where their image has a shell."""

    def start() -> None:
        if not shell:
            raise APIError('exec: "sh": executable file not found in $PATH')

    made = tar_of({name: text.encode() for name, text in FILES.items()}, "w:gz")
    container = SimpleNamespace(
        start=start,
        wait=lambda: {"StatusCode": status},
        get_archive=lambda path: (iter([tar_of({path: made}, "w")]), {}),
        remove=lambda **_: None,
    )
    return SimpleNamespace(containers=SimpleNamespace(create=lambda *_, **__: container))


def locked() -> LockedImage:
    return LockedImage(
        id="sha256:" + "a" * 64,
        tag="cab/agent:1",
        inputs_hash="",
        parent=None,
        versions={},
        built_at="",
        size=1,
    )


def test_packages_are_read_by_name_version_and_licence() -> None:
    assert read(engine(), "sha256:a", {"agent": "agent v1.2.3 (x)"}) == FOUND


def test_tools_of_the_image_below_are_in_it_too_unless_it_has_its_own() -> None:
    found = read(engine(), "sha256:a", {"agent": "1.2.3"}, {"go": "1.24", "agent": "1"})
    assert found == [*FOUND, Component("tool", "go", "1.24")]


def test_an_image_without_a_shell_has_its_tools_alone() -> None:
    found = read(engine(shell=False), "sha256:a", {"sha256": "b4d5"}, {"go": "1.24"})
    assert found == [Component("tool", "sha256", "b4d5")]


def test_an_image_that_cannot_be_read_is_a_fault() -> None:
    with pytest.raises(EnvironmentFault, match=r"sha256:a: `sh` ends with 2"):
        read(engine(status=2), "sha256:a", {})


def test_a_document_says_which_image_it_is_of_and_is_read_as_it_was_written() -> None:
    told = json.loads(json.dumps(document(locked(), FOUND)))
    assert (told["bomFormat"], told["specVersion"]) == ("CycloneDX", "1.5")
    assert told["metadata"]["component"]["hashes"] == [{"alg": "SHA-256", "content": "a" * 64}]
    assert components(told) == FOUND
    purls = [it.get("purl") for it in told["components"]]
    assert purls[0] == "pkg:deb/debian/git@1%3A2.47.3-0"
    assert purls[2] == "pkg:npm/%40scope/part@3.1.0"


@pytest.mark.parametrize(
    ("now", "lines"),
    [
        (FOUND, []),
        ([*FOUND[1:], Component("deb", "git", "2")], ["deb git 1:2.47.3-0 → 2"]),
        (FOUND[:3] + FOUND[4:], ["npm a 1.0.0, 2.0.0 → 2.0.0"]),
        (FOUND[1:], ["deb git 1:2.47.3-0 removed"]),
        ([*FOUND, Component("npm", "new", "1")], ["npm new 1 added"]),
    ],
)
def test_differences_are_told_by_name(now: list[Component], lines: list[str]) -> None:
    assert differences(FOUND, now) == lines
