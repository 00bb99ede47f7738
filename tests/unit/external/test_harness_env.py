"""The harness's environment: which is taken, and what is said where there is none."""

from __future__ import annotations

import json
import stat
import sys
from pathlib import Path

import pytest

from orchestrator.errors import EnvironmentFault, InputError
from orchestrator.external import harness_env
from orchestrator.external.harness import require_docker
from orchestrator.external.harness_env import REQUIREMENT, Harness, at, cache_root, harness_python


def saying(path: Path, **found: object) -> Path:
    """A Python that has a harness which says `found` of itself."""
    path.write_text(f"#!/bin/sh\necho noise\necho '{json.dumps({'parsers': [], 'specs': {}, **found})}'\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_the_line_is_read_from_the_version(tmp_path: Path) -> None:
    five = at(saying(tmp_path / "five", version="5.0.2", parsers=["parse_log_pytest"]))
    four = at(saying(tmp_path / "four", version="4.1.0", specs={"psf/requests": ["2.31"]}))
    assert (five.line, five.parsers) == ("5", {"parse_log_pytest"})
    assert (four.line, four.specs) == ("4", (("psf/requests", ("2.31",)),))


@pytest.mark.parametrize("version", ["3.0.1", "6.0.0"])
def test_a_line_that_nobody_has_tried_is_refused(tmp_path: Path, version: str) -> None:
    with pytest.raises(EnvironmentFault, match="of no line that cab knows"):
        at(saying(tmp_path / "python", version=version))


def test_a_python_without_a_harness_says_so_with_the_mend(tmp_path: Path) -> None:
    for python in (Path(sys.executable), tmp_path / "none"):
        with pytest.raises(EnvironmentFault, match=f"no SWE-bench harness.*pip install {REQUIREMENT}"):
            at(python)


@pytest.mark.parametrize("requirement", ["swebench", "swebench>=5", "swebench==5.0.2; rm", "other==1"])
def test_only_a_pinned_version_is_installed(tmp_path: Path, requirement: str) -> None:
    with pytest.raises(InputError, match="pins no version"):
        harness_python(requirement, root=tmp_path)


def test_the_cache_is_where_the_user_has_theirs() -> None:
    assert cache_root({"XDG_CACHE_HOME": "/c"}) == Path("/c/cab/harness")
    assert cache_root({}) == Path.home() / ".cache/cab/harness"


def test_one_that_is_there_is_taken_and_one_of_other_requirements_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def install(version: str, venv: Path, inputs: str) -> dict[str, object]:
        made.append(version)
        (venv / "bin").mkdir(parents=True, exist_ok=True)
        (venv / "bin" / "python").touch()
        found: dict[str, object] = {"version": version, "parsers": [], "specs": {}}
        (venv / "cab-harness.json").write_text(json.dumps({"inputs": inputs, "found": found}))
        return found

    monkeypatch.setattr(harness_env, "_install", install)
    first = harness_python(root=tmp_path)
    assert harness_python(root=tmp_path) == first
    assert first.python == tmp_path / "5.0.2" / "bin" / "python"
    assert made == ["5.0.2"]
    monkeypatch.setattr(harness_env, "_inputs", lambda _: "another lock")
    harness_python(root=tmp_path)
    (tmp_path / "5.0.2" / "bin" / "python").unlink()
    harness_python(root=tmp_path)
    assert made == ["5.0.2"] * 3


def test_an_install_that_fails_leaves_no_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harness_env.sys, "executable", "/bin/false")
    with pytest.raises(EnvironmentFault, match=r"cannot be installed.*--harness-python"):
        harness_python(root=tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".5.0.2.lock", "5.0.2.log"]


def test_without_the_docker_command_5_is_not_started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Engine:
        def close(self) -> None:
            pass

    monkeypatch.setattr("orchestrator.external.harness.engine.connect", Engine)
    monkeypatch.setenv("PATH", str(tmp_path))
    require_docker(Harness(Path("python"), "4.1.0", "4"))
    with pytest.raises(EnvironmentFault, match="docker command, which is not on PATH"):
        require_docker(Harness(Path("python"), "5.0.2", "5"))
