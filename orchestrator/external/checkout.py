"""The files that an agent begins with: a repository at a task's base commit, without any of its history.

cab fetches nothing. The files come from the tree that cab carries, from a clone that the user has, or out of
the instance's image, whose commands are not run.
"""

from __future__ import annotations

import io
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from orchestrator.errors import EnvironmentFault, InputError
from orchestrator.external.patches import NotApplied, Scratch, added, scratch
from orchestrator.external.tasks import ExternalTask
from orchestrator.run.workdir import WITHOUT_BYTE_CODE

TESTBED = "/testbed"
"""Where an instance's image has the repository."""


def base_tree(task: ExternalTask, into: Path, *, repos: Path | None) -> None:
    """Lay the task's files out in the directory `into`, made here: those of the base commit, with the work
    that an earlier session left.

    Raises InputError where they are nowhere, with the `git clone` that would bring them, and EnvironmentFault
    where git or the engine fails.
    """
    if task.source is not None:
        shutil.copytree(task.source, into, symlinks=True, ignore=WITHOUT_BYTE_CODE)
        with scratch(into) as repo:
            added(repo)
            _apply_prior(repo, task)
        return
    into.mkdir(parents=True)
    with _objects(task, repos) as (objects, place), scratch(into, objects) as repo:
        try:
            repo.load(f"{task.base_commit}^{{tree}}")
        except EnvironmentFault:
            raise InputError(
                f"has no commit {task.base_commit}, or not all of it",
                place=place,
                mend=f"fetch it there: git fetch origin {task.base_commit}",
            ) from None
        repo.lay_out()
        _apply_prior(repo, task)


def _apply_prior(repo: Scratch, task: ExternalTask) -> None:
    if not task.prior_patch:
        return
    before = repo.written()
    try:
        repo.apply(task.prior_patch.encode())
    except NotApplied as error:
        mend = "make it anew: git diff against the base commit"
        thing = f"prior_patch does not apply to the base commit: {error}"
        raise InputError(thing, place=task.instance_id, mend=mend) from None
    for path, letter in repo.changed(before, repo.written()).items():
        if letter == "D":
            (repo.tree / path).unlink()
    repo.lay_out()


@contextmanager
def _objects(task: ExternalTask, repos: Path | None) -> Iterator[tuple[Path, str]]:
    """The object directory of some clone of the task's repository, and its name for errors."""
    owner, _, name = task.repo.rpartition("/")
    folder = f"{owner}__{name}" if owner else name
    if repos is not None:
        for clone in (repos / folder, repos / task.repo, repos / name):
            if objects := _objects_of(clone):
                yield objects, str(clone)
                return
    if task.image is not None:
        with tempfile.TemporaryDirectory(prefix="cab-testbed-") as found:
            if _out_of_image(task.image, Path(found)):
                if objects := _objects_of(Path(found)):
                    yield objects, f"image {task.image}"
                    return
                raise InputError(f"holds no repository in {TESTBED}", place=f"image {task.image}")
    where = repos or Path("REPOS")
    raise InputError(
        f"no clone of {task.repo}, and no image {task.image or 'in its row'} on this machine",
        place=task.instance_id,
        mend=f"git clone https://github.com/{task.repo} {where / folder}, and give --repos-dir {where}",
    )


def _objects_of(clone: Path) -> Path | None:
    """The objects of a clone, bare or not; None where it is none."""
    return next((it for it in (clone / ".git" / "objects", clone / "objects") if it.is_dir()), None)


def _out_of_image(image: str, into: Path) -> bool:
    """Copy the repository's `.git` out of an image; False where there is no engine, or no such image."""
    # Imported here: the carried suites need no engine to be laid out.
    import docker
    import docker.errors
    import docker.utils
    import requests

    try:
        client: Any = docker.APIClient(version="auto", **docker.utils.kwargs_from_env())
    except (docker.errors.DockerException, requests.RequestException):
        return False
    with closing(client):
        try:
            container = client.create_container(image, command=["true"], labels={"cab": "1"})["Id"]
        except docker.errors.ImageNotFound:
            return False
        except docker.errors.APIError as error:
            said = str(error.explanation or error)
            raise EnvironmentFault(f"the engine refuses it: {said}", place=f"image {image}") from None
        try:
            chunks, _ = client.get_archive(container, f"{TESTBED}/.git")
            with tempfile.TemporaryFile() as spooled:
                for chunk in chunks:
                    spooled.write(chunk)
                spooled.seek(0)
                _unpack(spooled, into)
        except docker.errors.NotFound:
            return True
        except docker.errors.APIError as error:
            raise EnvironmentFault(str(error), place=f"image {image}") from error
        finally:
            client.remove_container(container, force=True)
    return True


def _unpack(archive: io.IOBase | Any, into: Path) -> None:
    """An image is not trusted: nothing of it lands elsewhere."""
    with tarfile.open(fileobj=archive) as tar:
        tar.extractall(into, filter="data")
