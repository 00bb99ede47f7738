"""What else differs between nights: models, images, CLIs, tasks, cab itself. A difference explains no result,
but no result is read without it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from orchestrator.analysis.nights import Night
from orchestrator.store.record import Cab


@dataclass(frozen=True)
class Difference:
    """One thing that is not what it was: the distinct values of the nights before, in their order, and of the
    last.

    `what` is `model build`, `image`, `CLI version`, `adapter`, `task`, `plugin`, `local model`, `cab`, `sweep
    file`, `machine` or `concurrency`; `name` says which of several it is, "" where there is one. Either side
    is empty where there was none.
    """

    what: str
    name: str
    before: tuple[str, ...]
    now: tuple[str, ...]


def differences(before: Sequence[Night], now: Night) -> list[Difference]:
    """How the last night differs from those before. What one side lacks altogether is no difference, but of
    builds.
    """
    facts = [_facts(night) for night in before]
    last = _facts(now)
    found = []
    for (what, name), values in sorted(last.items()):
        earlier = tuple(dict.fromkeys(value for of in facts for value in of.get((what, name), ())))
        if what == "model build":
            if earlier and _distinct((*earlier, *values)) != _distinct(values):
                found.append(Difference(what, name, _distinct(earlier), _distinct(values)))
        elif earlier and set(earlier) != set(values):
            found.append(Difference(what, name, earlier, values))
    return found


def _distinct(builds: Iterable[str]) -> tuple[str, ...]:
    """Builds, sorted; an answer that names a model without a fingerprint tells no other build than one that
    names both.
    """
    named = set(builds)
    return tuple(sorted(name for name in named if not any(other.startswith(f"{name} ") for other in named)))


def builds_of(night: Night) -> dict[str, tuple[str, ...]]:
    """By model: the distinct builds that answered on a night, sorted."""
    found: dict[str, set[str]] = defaultdict(set)
    for model, builds in night.frame.select("model", "model_builds").iter_rows():
        found[model].update(builds or ())
    return {model: _distinct(builds) for model, builds in sorted(found.items()) if builds}


def _facts(night: Night) -> dict[tuple[str, str], tuple[str, ...]]:
    """What a night ran: by what and name its values."""
    sweep = night.sweep
    found: dict[tuple[str, str], tuple[str, ...]] = {}
    several: Mapping[str, Mapping[str, str]] = {
        "image": sweep.pins,
        "adapter": sweep.adapters,
        "task": sweep.tasks,
        "plugin": sweep.plugins,
        "local model": sweep.models,
    }
    for what, named in several.items():
        found |= {(what, name): (value,) for name, value in named.items()}
    clis: dict[str, set[str]] = defaultdict(set)
    for cli, version in night.frame.select("cli", "cli_version").unique().iter_rows():
        if version is not None:
            clis[cli].add(version)
    found |= {("CLI version", cli): tuple(sorted(names)) for cli, names in clis.items()}
    found |= {("model build", model): builds for model, builds in builds_of(night).items()}
    found["cab", ""] = (_cab(sweep.cab),)
    if sweep.spec_digest is not None:
        found["sweep file", ""] = (sweep.spec_digest,)
    if sweep.machine is not None:
        machine = sweep.machine
        memory = f"{machine.memory_bytes / 2**30:.0f} GiB"
        found["machine", ""] = (f"{machine.cores} cores, {memory}, {machine.platform}, {machine.kernel}",)
    if sweep.concurrency is not None:
        found["concurrency", ""] = (str(sweep.concurrency),)
    return found


def _cab(cab: Cab) -> str:
    if cab.commit is None:
        return cab.version
    return f"{cab.version} at {cab.commit[:12]}{', changed' if cab.dirty else ''}"
