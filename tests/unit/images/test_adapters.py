"""The contract between cab and each CLI under images/: what every adapter owes."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.adapter import GATEWAY_URL, HOME, WORKDIR, Adapter, LaunchContext, load_adapter
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


def test_each_deviation_has_a_reason(adapter: Adapter) -> None:
    assert all(deviation.what and deviation.reason for deviation in adapter.deviations)
    assert bool(adapter.deviations) == adapter.uses_model


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
