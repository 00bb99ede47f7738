"""What becomes of a CLI's launch under a stack: which plugins it takes, and why not the others.

A plugin adds, and never overrules what is set already: what cab sets is what a measured run needs, and two
plugins that set one thing would leave it to their order.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from orchestrator.adapter import CONTAINER_ENV, Adapter, Launch, LaunchContext, PluginKind, SettingsPlace
from orchestrator.plan.plugin import Plugin
from orchestrator.plan.toml_text import dump_toml

ASKS_NO_MODEL = "the CLI asks no model, so a stack would change nothing"

_TAKES_NO: dict[PluginKind, str] = {
    "rules": "reads no file of rules",
    "mcp": "takes no MCP server",
    "settings": "takes no settings",
    "args": "takes no arguments",
}

_ANYTHING = LaunchContext(prompt="prompt", model="model", credential="credential")


class _NotTaken(Exception):
    """Why a CLI does not take a plugin."""


@dataclass(frozen=True)
class Applied:
    """A launch with a stack. `plugins` are those that it takes, `skipped` (name, reason) the others."""

    launch: Launch
    plugins: tuple[Plugin, ...] = ()
    skipped: tuple[tuple[str, str], ...] = ()
    env_keys: tuple[str, ...] = ()
    extra_args: tuple[str, ...] = ()

    @property
    def reason_to_skip(self) -> str | None:
        """Why a cell of the whole stack would be one without."""
        if self.plugins or not self.skipped:
            return None
        reasons = dict.fromkeys(reason for _, reason in self.skipped)
        if len(reasons) == 1:
            return next(iter(reasons))
        return "; ".join(f"plugin {name}: {reason}" for name, reason in self.skipped)


def apply(adapter: Adapter, launch: Launch, plugins: Sequence[Plugin]) -> Applied:
    """Add each plugin that the CLI takes to its launch, in their order."""
    applied = Applied(launch)
    for plugin in plugins:
        try:
            taken = _with(adapter, applied, plugin)
        except _NotTaken as reason:
            applied = replace(applied, skipped=(*applied.skipped, (plugin.name, str(reason))))
        else:
            applied = replace(taken, plugins=(*taken.plugins, plugin))
    return applied


def would_apply(adapter: Adapter, plugins: Sequence[Plugin]) -> Applied:
    """What `apply` would come to, for planning: it depends neither on the prompt nor on the model."""
    if adapter.uses_model:
        return apply(adapter, adapter.launch(_ANYTHING), plugins)
    skipped = tuple((plugin.name, ASKS_NO_MODEL) for plugin in plugins)
    return Applied(Launch(()), skipped=skipped)


def rules_of(adapter: Adapter, plugins: Sequence[Plugin]) -> str:
    """The rules that a CLI gets from plugins, one after the other."""
    if adapter.rules_file is None:
        return ""
    return "\n".join(plugin.rules for plugin in plugins if plugin.kind == "rules")


def _with(adapter: Adapter, applied: Applied, plugin: Plugin) -> Applied:
    """With one more plugin. Raises _NotTaken."""
    manifest, launch, cli = plugin.manifest, applied.launch, adapter.name
    if plugin.kind == "rules":
        if adapter.rules_file is None:
            raise _NotTaken(_no_place(adapter, plugin.kind))
        return applied
    if plugin.kind == "mcp":
        if adapter.mcp is None:
            raise _NotTaken(_no_place(adapter, plugin.kind))
        settings = adapter.mcp.entry(plugin.name, plugin.command)
        return replace(applied, launch=_settings(launch, adapter.mcp.place, settings))
    if plugin.kind == "args":
        args = manifest.args.get(cli)
        if args is None or adapter.args_at is None:
            raise _NotTaken(_no_place(adapter, plugin.kind) if args else f"it has no arguments for {cli}")
        # After those of earlier plugins.
        at = adapter.args_at + len(applied.extra_args)
        argv = (*launch.argv[:at], *args, *launch.argv[at:])
        return replace(applied, launch=replace(launch, argv=argv), extra_args=(*applied.extra_args, *args))
    return _with_settings(adapter, applied, plugin)


def _no_place(adapter: Adapter, kind: PluginKind) -> str:
    """Why a CLI takes no plugin of a kind."""
    why = adapter.not_taken.get(kind)
    return f"{adapter.name} {_TAKES_NO[kind]}" + (f": {why}" if why else "")


def _with_settings(adapter: Adapter, applied: Applied, plugin: Plugin) -> Applied:
    cli, launch = adapter.name, applied.launch
    settings, env = plugin.manifest.settings.get(cli), plugin.manifest.env.get(cli, {})
    if not settings and not env:
        raise _NotTaken(f"it has no settings for {cli}")
    if taken := sorted((CONTAINER_ENV.keys() | launch.env.keys()) & env.keys()):
        raise _NotTaken(f"it sets the variable {taken[0]}, which is set already")
    if settings:
        if adapter.settings is None:
            raise _NotTaken(_no_place(adapter, plugin.kind))
        launch = _settings(launch, adapter.settings, settings)
    launch = replace(launch, env={**launch.env, **env})
    return replace(applied, launch=launch, env_keys=(*applied.env_keys, *sorted(env)))


def _settings(launch: Launch, place: SettingsPlace, added: Mapping[str, Any]) -> Launch:
    """A launch with settings added to those that it has at `place`. Raises _NotTaken."""
    if place.env is not None:
        whole = _merged(json.loads(launch.env.get(place.env, "{}")), added)
        text = json.dumps(whole, separators=(",", ":"))
        return replace(launch, env={**launch.env, place.env: text})
    assert place.file is not None
    has, is_toml = launch.files.get(place.file), place.file.endswith(".toml")
    before = {} if has is None else tomllib.loads(has) if is_toml else json.loads(has)
    whole = _merged(before, added)
    text = dump_toml(whole) if is_toml else json.dumps(whole, indent=1)
    return replace(launch, files={**launch.files, place.file: text})


def _merged(before: Mapping[str, Any], added: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    whole = dict(before)
    for key, value in added.items():
        if key not in whole:
            whole[key] = value
        elif isinstance(value, Mapping) and isinstance(whole[key], Mapping):
            whole[key] = _merged(whole[key], value, f"{above}{key}.")
        elif _is_table_list(value) and _is_table_list(whole[key]):
            whole[key] = [*whole[key], *value]
        else:
            raise _NotTaken(f"it sets {above}{key}, which is set already")
    return whole


def _is_table_list(value: object) -> bool:
    """Whether one more entry leaves the others as they are: a provider, a server. One more word need not."""
    return isinstance(value, list) and all(isinstance(entry, Mapping) for entry in value)
