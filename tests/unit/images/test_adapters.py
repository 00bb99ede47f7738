"""The contract between cab and each CLI under images/: what every adapter owes."""

import json
import os
import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

from orchestrator.adapter import GATEWAY_URL, HOME, WORKDIR, Adapter, LaunchContext, PluginKind, load_adapter
from orchestrator.plan.plugin import Manifest, Plugin
from orchestrator.plan.stack import apply
from orchestrator.sandbox.images.recipe import load_recipes

IMAGES = Path(__file__).resolve().parents[3] / "images"
NAMES = sorted(path.parent.name for path in IMAGES.glob("*/adapter.py"))
CONTEXT = LaunchContext(
    prompt='--mend "it"\nwith care', model="vendor/model:free", credential="cab-credential-0123456789"
)


@pytest.fixture(params=NAMES)
def adapter(request: pytest.FixtureRequest) -> Adapter:
    name: str = request.param
    return load_adapter(IMAGES, name)


def test_each_adapter_has_an_image(adapter: Adapter) -> None:
    assert load_recipes(IMAGES)[adapter.name].version == adapter.version


def test_a_launch_can_be_stored_and_run(adapter: Adapter) -> None:
    launch = adapter.launch(CONTEXT)
    assert launch.argv
    for text in (*launch.argv, *launch.env, *launch.env.values()):
        assert "\0" not in text
    for path in launch.files:
        assert not Path(path).is_absolute()
        assert ".." not in Path(path).parts


def test_the_credential_is_not_on_the_command_line(adapter: Adapter) -> None:
    assert CONTEXT.credential not in " ".join(adapter.launch(CONTEXT).argv)


def test_a_cli_with_a_model_is_told_prompt_model_endpoint_and_credential(adapter: Adapter) -> None:
    launch = adapter.launch(CONTEXT)
    everything = json.dumps([launch.argv, launch.env, launch.files], ensure_ascii=False)
    told = [CONTEXT.prompt in " ".join(launch.argv), CONTEXT.model in everything]
    told += [GATEWAY_URL in everything, CONTEXT.credential in everything]
    assert told == [adapter.uses_model] * 4


def test_a_cli_is_told_where_things_are_and_not_where_they_usually_are(adapter: Adapter) -> None:
    context = replace(
        CONTEXT, base_url="http://127.0.0.1:45999", home="/elsewhere/home", workdir="/elsewhere"
    )
    launch = adapter.launch(context)
    everything = json.dumps([launch.argv, launch.env, launch.files], ensure_ascii=False)
    assert (context.base_url in everything) == adapter.uses_model
    assert not [usual for usual in (GATEWAY_URL, HOME, WORKDIR) if usual in everything]


@pytest.mark.parametrize(
    ("cli", "prompt"),
    [
        ("aider", "/etc/motd is wrong"),
        ("aider", "!important is spelt wrong"),
        ("claude-code", "/etc/motd is wrong"),
        ("gemini-cli", "/etc/motd is wrong"),
        ("nanocoder", "/etc/motd is wrong"),
        ("pi", "@main.py is wrong"),
        ("qwen-code", "/etc/motd is wrong"),
    ],
)
def test_what_a_cli_would_take_for_more_than_text_begins_on_a_line_of_its_own(cli: str, prompt: str) -> None:
    launch = load_adapter(IMAGES, cli).launch
    assert launch(replace(CONTEXT, prompt=prompt)).argv[-1].endswith(f"\n{prompt}")
    assert launch(replace(CONTEXT, prompt=f"See {prompt}")).argv[-1].endswith(f"See {prompt}")
    assert "\n" not in launch(replace(CONTEXT, prompt=f"See {prompt}")).argv[-1]


def test_opencode_reads_its_prompt_as_it_is_which_on_its_command_line_it_would_not(tmp_path: Path) -> None:
    prompt = '--mend "it",  with\n 8 care '
    (tmp_path / "opencode").write_text('#!/bin/sh\necho "$@"; exec cat\n')
    (tmp_path / "opencode").chmod(0o755)
    argv = load_adapter(IMAGES, "opencode").launch(replace(CONTEXT, prompt=prompt)).argv
    env = {"PATH": f"{tmp_path}:{os.defpath}"}
    told = subprocess.run(argv, env=env, capture_output=True, text=True, check=True, timeout=60).stdout
    assert told == f"run -m cab/{CONTEXT.model}\n{prompt}"


def test_each_deviation_has_a_reason(adapter: Adapter) -> None:
    assert all(deviation.what and deviation.reason for deviation in adapter.deviations)
    assert bool(adapter.deviations) == adapter.uses_model


def test_a_cli_says_how_it_takes_each_kind_of_plugin_or_why_not(adapter: Adapter) -> None:
    if adapter.uses_model:
        assert adapter.takes | set(adapter.not_taken) == set(get_args(PluginKind))


def test_the_tasks_rules_reach_every_cli(adapter: Adapter) -> None:
    assert (adapter.rules_file is not None) == adapter.uses_model


def test_a_cli_that_is_given_the_rules_declares_it(adapter: Adapter) -> None:
    """One that is told of them beside the file; where a CLI finds the file by itself, nothing deviates."""
    told = replace(CONTEXT, rules=adapter.rules_file, rules_text="the rules")
    given = adapter.launch(told) != adapter.launch(CONTEXT)
    assert given == any("AGENTS.md" in deviation.what for deviation in adapter.deviations)


@pytest.mark.parametrize("kind", ["mcp", "settings"])
def test_what_plugins_add_to_is_what_the_launch_lays(adapter: Adapter, kind: PluginKind) -> None:
    if kind in adapter.takes:
        table = {adapter.name: {"cab-probe": {"a": 1}}}
        manifest = {"mcp": {"command": ("true",)}, "settings": {"settings": table}}[kind]
        plugin = Plugin("probe", Manifest.model_validate({"kind": kind, **manifest}), {}, "")
        before, applied = adapter.launch(CONTEXT), apply(adapter, adapter.launch(CONTEXT), [plugin])
        assert applied.skipped == ()
        assert applied.launch.argv == before.argv
        everything = json.dumps([applied.launch.env, applied.launch.files], ensure_ascii=False)
        assert CONTEXT.credential in everything
        assert "probe" in everything


def test_a_stacks_arguments_stand_before_the_prompt(adapter: Adapter) -> None:
    if adapter.args_at is not None:
        manifest = Manifest(kind="args", args={adapter.name: ("--probe", "1")})
        launch = adapter.launch(CONTEXT)
        argv = apply(adapter, launch, [Plugin("probe", manifest, {}, "")]).launch.argv
        at = argv.index("--probe")
        assert at == adapter.args_at
        assert not any(CONTEXT.prompt in word or word == "--" for word in argv[:at])
        assert (*argv[:at], *argv[at + 2 :]) == launch.argv


def test_a_cli_without_a_model_says_its_last_word_on_stdout(adapter: Adapter) -> None:
    assert (adapter.final_message == "wire") == adapter.uses_model


def test_npm_pins_are_exact_whole_and_name_no_registry() -> None:
    for path in IMAGES.glob("*/package-lock.json"):
        lock = json.loads(path.read_text())
        packages = {name: package for name, package in lock["packages"].items() if name}
        assert all(package["integrity"].startswith("sha512-") for package in packages.values())
        assert all("resolved" not in package for package in packages.values())
        wanted = json.loads((path.parent / "package.json").read_text())["dependencies"]
        for name, version in wanted.items():
            assert packages[f"node_modules/{name}"]["version"] == version


def test_opencode_is_the_version_that_its_lock_pins() -> None:
    wanted = json.loads((IMAGES / "opencode" / "package.json").read_text())["dependencies"]
    assert wanted == {"opencode-ai": load_adapter(IMAGES, "opencode").version}


def test_python_pins_are_exact_whole_and_name_no_registry() -> None:
    for path in IMAGES.glob("*/requirements.txt"):
        pins = [line for line in path.read_text().splitlines() if not line.startswith((" ", "#"))]
        assert pins
        assert all(re.fullmatch(r"[a-z0-9-]+==[0-9a-z.]+ \\", pin) for pin in pins)
        assert "://" not in path.read_text()


def test_aider_is_the_version_that_its_lock_pins() -> None:
    pins = (IMAGES / "aider" / "requirements.txt").read_text()
    assert f"\naider-chat=={load_adapter(IMAGES, 'aider').version} " in pins
