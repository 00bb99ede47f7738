"""Local models: what a file's head says, and what the registry takes, keeps and refuses."""

from __future__ import annotations

import hashlib
import socket
import struct
from pathlib import Path

import pytest
from gguf_files import CHAT, gguf, head, text, typed
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrator.errors import CabError, EnvironmentFault, InputError, StoreError
from orchestrator.gateway.local import registry as registry_module
from orchestrator.gateway.local.gguf import read_header
from orchestrator.gateway.local.registry import Registry
from orchestrator.gateway.local.server import LocalServer


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    return Registry(tmp_path / "models")


def test_a_head_is_read_past_its_vocabulary(tmp_path: Path) -> None:
    header = read_header(gguf(tmp_path / "m.gguf"))
    assert (header.name, header.architecture, header.context_length) == ("Tiny Coder 0.5B", "qwen2", 32768)
    assert (header.chat, header.parts) == (True, 1)


def test_what_a_head_leaves_out_is_unknown(tmp_path: Path) -> None:
    bare = {"general__name": None, "qwen2__context_length": None, "tokenizer__chat_template": None}
    header = read_header(gguf(tmp_path / "m.gguf", **bare))
    assert (header.name, header.context_length, header.chat) == (None, None, False)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is not a GGUF file"),
        (b"PK\x03\x04 something else", "is not a GGUF file"),
        (head(CHAT, version=1), "is of GGUF version 1"),
        (head(CHAT)[:40], "ends within its metadata"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1 << 40), "metadata pairs"),
        (b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 1 << 60), "a text of"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("k") + struct.pack("<I", 99), "unknown type 99"),
        (
            b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("k") + struct.pack("<IIQ", 9, 9, 1),
            "array of arrays",
        ),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("k") + typed(1), "names no architecture"),
    ],
)
def test_what_is_no_model_is_one_line(tmp_path: Path, data: bytes, said: str) -> None:
    (tmp_path / "m.gguf").write_bytes(data)
    with pytest.raises(InputError, match=said) as caught:
        read_header(tmp_path / "m.gguf")
    assert "m.gguf" in str(caught.value)
    assert "\n" not in str(caught.value)


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, len(head(CHAT)) - 1), st.binary(min_size=1, max_size=9))
def test_no_damage_is_a_traceback(tmp_path: Path, at: int, noise: bytes) -> None:
    whole = head(CHAT)
    (tmp_path / "m.gguf").write_bytes(whole[:at] + noise + whole[at + len(noise) :])
    try:
        read_header(tmp_path / "m.gguf")
    except InputError:
        return


def test_a_file_is_added_where_it_is(registry: Registry, tmp_path: Path) -> None:
    file = gguf(tmp_path / "m.gguf")
    added = registry.add(file)
    assert added.id == "local/tiny-coder-0.5b"
    assert added.build_id == f"sha256:{hashlib.sha256(file.read_bytes()).hexdigest()}"
    assert (added.path, added.size, added.context_length) == (str(file), file.stat().st_size, 32768)
    assert registry.models() == [added] == [registry.get("tiny-coder-0.5b")]
    assert [path.name for path in registry.root.iterdir()] == ["tiny-coder-0.5b.json"]


def test_a_name_belongs_to_one_file(registry: Registry, tmp_path: Path) -> None:
    registry.add(gguf(tmp_path / "a.gguf"), name="m")
    again = registry.add(gguf(tmp_path / "moved.gguf"), name="m")
    assert again.path.endswith("moved.gguf")
    with pytest.raises(InputError, match=r"'m' belongs to another file.*cab model rm m"):
        registry.add(gguf(tmp_path / "b.gguf", weights=b"others"), name="m")


@pytest.mark.parametrize(
    ("changes", "options", "said"),
    [
        ({"split__count": 3}, {}, "is one of 3 parts"),
        ({"tokenizer__chat_template": None}, {}, "has no chat template"),
        ({}, {"sha256": "0" * 64}, r"has sha256 [0-9a-f]{64}, not 0{64}"),
        ({}, {"name": "a/b"}, "'a/b' is no name of a local model"),
        ({}, {"name": "../m"}, "is no name of a local model"),
        ({}, {"name": ""}, "is no name of a local model"),
    ],
)
def test_what_cannot_be_served_is_not_added(
    registry: Registry, tmp_path: Path, changes: dict[str, object], options: dict[str, str], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        registry.add(gguf(tmp_path / "m.gguf", **changes), **options)
    assert registry.models() == []


def test_a_checksum_may_be_given_in_capitals_and_with_its_kind(registry: Registry, tmp_path: Path) -> None:
    file = gguf(tmp_path / "m.gguf")
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    assert registry.add(file, sha256=f"sha256:{digest.upper()}").sha256 == digest


def test_a_removed_model_is_unknown_and_its_file_stays(registry: Registry, tmp_path: Path) -> None:
    file = gguf(tmp_path / "m.gguf")
    registry.add(file, name="tiny")
    with pytest.raises(InputError, match=r"no local model is named 'tiney'.*'tiny'"):
        registry.get("tiney")
    registry.remove("tiny")
    assert file.is_file()
    with pytest.raises(InputError, match=r"named 'tiny' \(add one: cab model add FILE\)"):
        registry.remove("tiny")


def test_a_file_that_cab_did_not_write_is_told(registry: Registry) -> None:
    registry.root.mkdir()
    (registry.root / "odd.json").write_text("{}")
    with pytest.raises(StoreError, match=r"odd\.json: holds no local model"):
        registry.models()


def test_what_was_checked_is_what_is_opened(registry: Registry, tmp_path: Path) -> None:
    file = gguf(tmp_path / "m.gguf")
    added = registry.add(file, name="m")
    with added.open() as opened:
        assert opened.name == str(file)
    gguf(file, weights=b"swapped")
    assert added.fault() is None
    with pytest.raises(EnvironmentFault, match=r"has sha256 .* but local/m was added with"):
        added.open()
    file.unlink()
    with pytest.raises(EnvironmentFault, match="No such file"):
        added.open()


def test_a_reason_to_skip_has_its_mend(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert registry.reason_to_skip("local/m") == ("the model has not been added: cab model add FILE --name m")
    file = gguf(tmp_path / "m.gguf")
    added = registry.add(file, name="m")
    monkeypatch.setattr(registry_module, "installed", lambda: True)
    assert registry.reason_to_skip("local/m") is None
    monkeypatch.setattr(registry_module, "installed", lambda: False)
    assert registry.reason_to_skip("local/m") == "llama.cpp is not installed: pip install 'cab[local]'"
    file.write_bytes(b"shorter")
    assert "its file has changed" in (registry.reason_to_skip("local/m") or "")
    file.unlink()
    assert "its file is gone" in (registry.reason_to_skip("local/m") or "")
    assert added.fault() == "its file is gone"


def test_the_registry_is_outside_the_repository(tmp_path: Path) -> None:
    chosen, data = str(tmp_path / "mine"), str(tmp_path / "data")
    assert Registry.default({"CAB_MODELS": chosen, "XDG_DATA_HOME": data}).root == Path(chosen)
    assert Registry.default({"XDG_DATA_HOME": data}).root == Path(data) / "cab" / "models"
    assert Registry.default({}).root == Path.home() / ".local" / "share" / "cab" / "models"
    assert Registry.default({"XDG_DATA_HOME": "relative"}) == Registry.default({})


def test_a_file_of_other_weights_is_not_served(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    added = registry.add(gguf(tmp_path / "m.gguf"), name="m")
    gguf(tmp_path / "m.gguf", weights=b"swapped")
    with pytest.raises(CabError, match=r"not installed|was added with"):
        LocalServer.start(added)
    monkeypatch.setattr("orchestrator.gateway.local.server.installed", lambda: True)
    with pytest.raises(EnvironmentFault, match="was added with"):
        LocalServer.start(added)


def test_a_server_that_does_not_start_is_one_line(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    added = registry.add(gguf(tmp_path / "m.gguf"), name="m")
    monkeypatch.setattr("orchestrator.gateway.local.server.installed", lambda: True)
    with pytest.raises(
        EnvironmentFault, match=r"local/m: llama\.cpp does not serve it \(.*local\.log tells more"
    ):
        LocalServer.start(added, log=tmp_path / "local.log")
    assert (tmp_path / "local.log").stat().st_size > 0


def test_a_port_that_is_taken_is_told_as_such(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    added = registry.add(gguf(tmp_path / "m.gguf"), name="m")
    monkeypatch.setattr("orchestrator.gateway.local.server.installed", lambda: True)
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(
            EnvironmentFault, match=rf"local/m: port {port} of loopback is taken \(give another"
        ):
            LocalServer.start(added, port=port)
    with pytest.raises(EnvironmentFault, match=r"does not serve it \(--log FILE tells more"):
        LocalServer.start(added, port=port)
