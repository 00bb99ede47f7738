"""How this machine reaches package registries, handed to the stages of a build that install something.

A build runs in a network of its own, with none of the machine's settings. Where the machine has an index, a
mirror, a proxy or a certificate authority of its own (TLS may be re-signed on the way), builds need the same.
Each build context gets a folder `host/` with a certificate bundle and configuration for apt, pip and npm in
their formats, empty where the machine has nothing special. Only stages whose layers are left behind copy it.
"""

from __future__ import annotations

import ast
import configparser
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

PROXY_VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy")
"""Build arguments that the engine knows by itself and keeps out of an image's history."""

_CA_VARIABLES = ("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "CURL_CA_BUNDLE")
_CA_FILES = ("etc/ssl/certs/ca-certificates.crt", "etc/pki/tls/certs/ca-bundle.crt", "etc/ssl/ca-bundle.pem")
_PIP_ADDRESSES = ("index-url", "extra-index-url")
_ARCHIVES = ("/debian", "/debian-security")
"""How a mirror of Debian's own archives ends; other vendors' sources may use the same names of suites."""

_SOURCE_LINE = re.compile(r"^deb\s+(?:\[[^]]*\]\s+)?(\S+)\s+(\S+)\s+(.+)$")


@dataclass(frozen=True)
class HostAccess:
    """The machine's settings. `apt_sources` are one-line sources for the suite that images are made of."""

    ca_bundle: bytes = b""
    apt_sources: tuple[str, ...] = ()
    pip: Mapping[str, str] = field(default_factory=dict)
    npm_registry: str | None = None
    proxies: Mapping[str, str] = field(default_factory=dict)

    def files(self) -> dict[str, bytes]:
        """The content of `host/` in a build context."""
        apt, pip, npm = (
            [],
            ["[global]", "disable-pip-version-check = true", "retries = 5"],
            ["fund=false", "audit=false"],
        )
        npm += ["update-notifier=false", "fetch-retries=5"]
        if self.apt_sources:
            apt += ['Dir::Etc::sourcelist "/host/sources.list";', 'Dir::Etc::sourceparts "-";']
        if self.ca_bundle:
            apt.append('Acquire::https::CAInfo "/host/ca.crt";')
            pip.append("cert = /host/ca.crt")
            npm.append("cafile=/host/ca.crt")
        pip += [f"{key} = {value}" for key, value in self.pip.items()]
        if self.npm_registry:
            npm.append(f"registry={self.npm_registry}")
        return {
            "ca.crt": self.ca_bundle,
            "sources.list": _text(self.apt_sources),
            "apt.conf": _text(apt),
            "pip.conf": _text(pip),
            "npmrc": _text(npm),
        }


def _text(lines: Iterable[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def read_host(
    suite: str, env: Mapping[str, str], *, root: Path = Path("/"), pip_config: str | None = None
) -> HostAccess:
    """Read the machine's settings: environment, files under `root`, and what `pip config list` prints."""
    if pip_config is None:
        pip_config = _pip_config_list()
    home = root / env.get("HOME", "/root").lstrip("/")
    return HostAccess(
        ca_bundle=_ca_bundle(env, root),
        apt_sources=_apt_sources(suite, root),
        pip=_pip_settings(pip_config),
        npm_registry=_npm_registry(env, (home / ".npmrc", root / "etc/npmrc", root / "usr/etc/npmrc")),
        proxies={name: env[name] for name in PROXY_VARIABLES if env.get(name)},
    )


def _ca_bundle(env: Mapping[str, str], root: Path) -> bytes:
    named = [env[name].lstrip("/") for name in _CA_VARIABLES if env.get(name)]
    for path in (*named, *_CA_FILES):
        if (root / path).is_file():
            return (root / path).read_bytes()
    return b""


def _pip_config_list() -> str:
    command = [sys.executable, "-m", "pip", "config", "list"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def _pip_settings(listing: str) -> dict[str, str]:
    """Index addresses, ranked as by pip: environment over install over global. No local folders."""
    found: dict[str, str] = {}
    for section in ("global", "install", ":env:"):
        for key in _PIP_ADDRESSES:
            match = re.search(rf"^{section}\.{key}=('.*'|\".*\")$", listing, re.MULTILINE)
            urls = [url for url in ast.literal_eval(match[1]).split() if _is_web(url)] if match else []
            if urls:
                found[key] = " ".join(urls)
    return found


def _npm_registry(env: Mapping[str, str], files: Iterable[Path]) -> str | None:
    for name in ("NPM_CONFIG_REGISTRY", "npm_config_registry"):
        if env.get(name):
            return env[name]
    for path in files:
        match = re.search(r"^\s*registry\s*=\s*(\S+)", _read(path), re.MULTILINE)
        if match:
            return match[1]
    return None


def _apt_sources(suite: str, root: Path) -> tuple[str, ...]:
    """The machine's Debian mirrors, for `suite` instead of its own release; none on other distributions."""
    release = configparser.ConfigParser()
    release.read_string("[os]\n" + _read(root / "etc/os-release"))
    codename = release.get("os", "VERSION_CODENAME", fallback="").strip('"')
    if release.get("os", "ID", fallback="") != "debian" or not codename:
        return ()
    suites = {f"{codename}{part}": f"{suite}{part}" for part in ("", "-updates", "-security")}
    found: dict[str, str] = {}
    for uri, name in _host_sources(root / "etc/apt"):
        if name in suites and _is_web(uri) and uri.rstrip("/").endswith(_ARCHIVES):
            found.setdefault(suites[name], f"deb {uri} {suites[name]} main")
    return tuple(found.values()) if suite in found else ()


def _host_sources(apt: Path) -> Iterable[tuple[str, str]]:
    parts = sorted((apt / "sources.list.d").glob("*"))
    for path in (apt / "sources.list", *(part for part in parts if part.suffix == ".list")):
        for line in _read(path).splitlines():
            if (match := _SOURCE_LINE.match(line.strip())) and "main" in match[3].split():
                yield match[1], match[2]
    for path in (part for part in parts if part.suffix == ".sources"):
        for stanza in re.split(r"\n\s*\n", _read(path)):
            fields = dict(
                re.findall(r"^(Types|URIs|Suites|Components|Enabled):[ \t]*(.*)$", stanza, re.MULTILINE)
            )
            if "deb" in fields.get("Types", "").split() and fields.get("Enabled", "yes") != "no":
                if "main" not in fields.get("Components", "").split():
                    continue
                for uri in fields.get("URIs", "").split():
                    yield from ((uri, name) for name in fields.get("Suites", "").split())


def _is_web(address: str) -> bool:
    return address.startswith(("http://", "https://"))


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
