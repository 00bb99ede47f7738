"""Of a user's own Codex only settings are taken that hold no secret; its login is not even read."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.errors import InputError
from orchestrator.external.codex_home import read_codex_home, write_plugin
from orchestrator.plan.plugin import load_plugin

SECRET = "sk-very-secret-0123456789"
CONFIG = f"""
model = "gpt-x"
model_provider = "mine"
model_reasoning_effort = "high"
model_verbosity = "see /home/me/{SECRET}"
personality = "{SECRET} and more than a word"
project_doc_max_bytes = 4096
notify = ["/home/me/bin/notify", "{SECRET}"]
sandbox_mode = "danger-full-access"

[features]
web_search = true
unified_exec = false
token = "{SECRET}"

[model_providers.mine]
base_url = "https://me:{SECRET}@example.invalid/v1"
http_headers = {{ Authorization = "{SECRET}" }}

[mcp_servers.mine]
command = "/home/me/server"
env = {{ KEY = "{SECRET}" }}

[projects."/home/me/secret-project"]
trust_level = "trusted"

[shell_environment_policy]
set = {{ KEY = "{SECRET}" }}
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "config.toml").write_text(CONFIG)
    # What cannot be read is not read.
    (tmp_path / "auth.json").mkdir()
    return tmp_path


def test_what_is_taken_is_known_to_hold_no_secret(home: Path) -> None:
    found = read_codex_home(home)
    assert found.taken == {
        "model_reasoning_effort": "high",
        "project_doc_max_bytes": 4096,
        "features": {"web_search": True, "unified_exec": False},
    }


def test_what_is_left_out_is_named_and_not_told(home: Path) -> None:
    left = read_codex_home(home).left_out
    assert {"mcp_servers", "model_providers", "notify", "features.token", "model_verbosity"} <= set(left)
    assert not any(SECRET in name or "/" in name for name in left)


def test_it_becomes_a_plugin_of_the_run(home: Path, tmp_path: Path) -> None:
    assert write_plugin(read_codex_home(home), tmp_path / "plugins")
    plugin = load_plugin(tmp_path / "plugins", "codex-home")
    assert plugin.kind == "settings"
    assert plugin.manifest.settings["codex"]["model_reasoning_effort"] == "high"
    assert SECRET not in (tmp_path / "plugins" / "codex-home" / "plugin.toml").read_text()


def test_a_home_without_such_settings_is_no_plugin(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('model = "x"\n')
    assert not write_plugin(read_codex_home(tmp_path), tmp_path / "plugins")
    assert not (tmp_path / "plugins").exists()


@pytest.mark.parametrize(("text", "said"), [(None, "cannot be read"), ("a = [", "is no TOML")])
def test_a_home_that_is_none_is_told(tmp_path: Path, text: str | None, said: str) -> None:
    if text is not None:
        (tmp_path / "config.toml").write_text(text)
    with pytest.raises(InputError, match=said):
        read_codex_home(tmp_path)
