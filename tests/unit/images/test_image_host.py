"""How the machine's registry settings reach a build."""

from collections.abc import Mapping
from pathlib import Path

from orchestrator.sandbox.images.host import HostAccess, read_host

DEBIAN = 'ID=debian\nVERSION_CODENAME=bookworm\nPRETTY_NAME="Debian"\n'
MIRROR = "http://mirror.example/debian"


def host(root: Path, env: Mapping[str, str] | None = None, pip_config: str = "") -> HostAccess:
    return read_host("trixie", env or {}, root=root, pip_config=pip_config)


def lay(root: Path, name: str, content: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


def test_a_machine_without_settings_hands_over_none(tmp_path: Path) -> None:
    access = host(tmp_path)
    assert access == HostAccess()
    files = {name: content.decode() for name, content in access.files().items()}
    assert files["ca.crt"] == files["sources.list"] == files["apt.conf"] == ""
    assert "/host/" not in "".join(files.values())


def test_the_bundle_that_the_environment_names_goes_before_the_distributions(tmp_path: Path) -> None:
    lay(tmp_path, "etc/ssl/certs/ca-certificates.crt", "usual")
    lay(tmp_path, "opt/corporate.pem", "corporate")
    assert host(tmp_path).ca_bundle == b"usual"
    assert host(tmp_path, {"SSL_CERT_FILE": "/opt/corporate.pem"}).ca_bundle == b"corporate"
    assert host(tmp_path, {"SSL_CERT_FILE": "/gone.pem"}).ca_bundle == b"usual"


def test_the_bundle_is_named_to_every_client(tmp_path: Path) -> None:
    files = HostAccess(ca_bundle=b"x").files()
    assert all(b"/host/ca.crt" in files[name] for name in ("apt.conf", "pip.conf", "npmrc"))


def test_pip_environment_goes_before_files_and_local_folders_are_left_out(tmp_path: Path) -> None:
    listing = (
        ":env:.index-url='https://env.example/simple'\n"
        "global.extra-index-url='file:///opt/simple https://extra.example/simple'\n"
        "global.find-links='/opt/wheels'\n"
        "global.index-url='https://file.example/simple'\n"
    )
    access = host(tmp_path, pip_config=listing)
    assert access.pip == {
        "index-url": "https://env.example/simple",
        "extra-index-url": "https://extra.example/simple",
    }
    assert b"index-url = https://env.example/simple" in access.files()["pip.conf"]


def test_npm_registry_of_the_environment_goes_before_npmrc(tmp_path: Path) -> None:
    lay(
        tmp_path,
        "home/me/.npmrc",
        "fund=false\nregistry = https://file.example/npm\n//file.example/:_authToken=t\n",
    )
    env = {"HOME": "/home/me"}
    access = host(tmp_path, env)
    assert access.npm_registry == "https://file.example/npm"
    assert b"_authToken" not in access.files()["npmrc"]
    assert (
        host(tmp_path, {**env, "NPM_CONFIG_REGISTRY": "https://env.example"}).npm_registry
        == "https://env.example"
    )


def test_debian_mirrors_are_taken_for_the_suite_of_the_images(tmp_path: Path) -> None:
    lay(tmp_path, "etc/os-release", DEBIAN)
    sources = (
        f"Types: deb deb-src\nURIs: {MIRROR}\nSuites: bookworm bookworm-updates\nComponents: main contrib\n"
    )
    lay(tmp_path, "etc/apt/sources.list.d/debian.sources", sources)
    lay(tmp_path, "etc/apt/sources.list", f"deb [arch=amd64] {MIRROR}-security bookworm-security main\n")
    lay(tmp_path, "etc/apt/sources.list.d/vendor.list", "deb https://vendor.example/prod bookworm main\n")
    access = host(tmp_path)
    assert set(access.apt_sources) == {
        f"deb {MIRROR} trixie main",
        f"deb {MIRROR} trixie-updates main",
        f"deb {MIRROR}-security trixie-security main",
    }
    assert b'Dir::Etc::sourcelist "/host/sources.list";' in access.files()["apt.conf"]


def test_sources_that_are_off_or_lack_the_main_suite_are_not_taken(tmp_path: Path) -> None:
    lay(tmp_path, "etc/os-release", DEBIAN)
    stanza = f"Types: deb\nURIs: {MIRROR}\nSuites: bookworm\nComponents: main\nEnabled: no\n"
    lay(tmp_path, "etc/apt/sources.list.d/off.sources", stanza)
    lay(tmp_path, "etc/apt/sources.list", f"deb {MIRROR}-security bookworm-security main\n")
    assert host(tmp_path).apt_sources == ()


def test_mirrors_of_another_distribution_are_not_taken(tmp_path: Path) -> None:
    lay(tmp_path, "etc/os-release", "ID=ubuntu\nVERSION_CODENAME=noble\n")
    lay(tmp_path, "etc/apt/sources.list", f"deb {MIRROR} noble main\n")
    assert host(tmp_path).apt_sources == ()


def test_proxies_go_as_arguments_that_the_engine_keeps_out_of_history(tmp_path: Path) -> None:
    access = host(tmp_path, {"HTTPS_PROXY": "http://proxy.example:3128", "OTHER": "x"})
    assert access.proxies == {"HTTPS_PROXY": "http://proxy.example:3128"}
