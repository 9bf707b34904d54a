"""Aliases of models on an API server: moved, moved back and removed, each with an entry in the history.

Coroutines that await only the client, for the SDK and `pdc`. An alias never points to a version that does not exist, is
being deleted or was lost: that is checked before the move, and once more after it. The controller that removes versions
looks the other way round (first the deletion, then the aliases), so a move and a deletion never miss each other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from paddlecloud.api.model import aliases
from paddlecloud.api.model.reference import LATEST, object_name
from paddlecloud.api.model.spec import ModelSpec
from paddlecloud.api.problems import encode
from paddlecloud.kube.client import Client
from paddlecloud.kube.errors import Conflict
from paddlecloud.kube.resource import MODELS, MODELVERSIONS, Object
from paddlecloud.modelhub.errors import HubError, UnknownVersion
from paddlecloud.modelhub.manifest import Manifest
from paddlecloud.sdk import model_objects

ATTEMPTS = 20
"""Writers of one Model that meet; each loses at most once to every other."""

Change = Callable[[ModelSpec], ModelSpec | None]


class Busy(HubError):
    """Others change the model all the time."""

    reason = "Conflict"


class AliasMove(NamedTuple):
    model: Object
    before: str
    """Where the alias pointed; empty for a new one."""
    to: str
    """Where it points; empty for one that was removed."""
    skipped: tuple[str, ...] = ()
    """Versions that a rollback would have gone to, and that no longer exist."""


async def move_alias(
    client: Client, namespace: str, model: str, alias: str, version: str, *, by: str, at: str, reason: str = "",
    rollback: bool = False,
) -> AliasMove:  # fmt: skip
    """Point an alias to a version. Raises `UnknownVersion`."""
    await check_version(client, namespace, model, version)

    def change(spec: ModelSpec) -> ModelSpec | None:
        return aliases.moved(spec, alias, version, by=by, at=at, reason=reason, rollback=rollback)

    found, before = await _write(client, namespace, model, alias, change)
    if before != version:
        await _undo_if_gone(client, namespace, model, alias, version, before, by=by, at=at)
    return AliasMove(found, before, version)


async def move_latest(client: Client, manifest: Manifest, registered: Object) -> None:
    """Point latest to a version that was pushed, unless a later one was pushed meanwhile: later by the clock of the API
    server, since that of a client may be wrong. `registered` is its ModelVersion."""
    namespace, model = manifest.namespace, manifest.model
    current = (model_objects.spec_of(await model_objects.find_model(client, namespace, model)).aliases or {}).get(
        LATEST
    )
    if current and current != manifest.version:
        obj = await client.find(MODELVERSIONS, object_name(model, current), namespace)
        if obj is not None and _is_later(obj, registered):
            return
    by, at = manifest.created_by, manifest.created_at
    await move_alias(client, namespace, model, LATEST, manifest.version, by=by, at=at, reason="pushed")


def _is_later(one: Object, other: Object) -> bool:
    """Of two pushes of one second the one with the higher number, where both have numbers."""
    times = [version["metadata"]["creationTimestamp"] for version in (one, other)]
    if times[0] != times[1]:
        return bool(times[0] > times[1])
    numbers = [str(version["spec"]["version"]) for version in (one, other)]
    return all(map(str.isdecimal, numbers)) and int(numbers[0][:18]) > int(numbers[1][:18])


async def remove_alias(
    client: Client, namespace: str, model: str, alias: str, *, by: str, at: str, reason: str = ""
) -> AliasMove:
    """Raises `UnknownVersion` if there is no such alias."""

    def change(spec: ModelSpec) -> ModelSpec | None:
        return aliases.removed(spec, alias, by=by, at=at, reason=reason)

    found, before = await _write(client, namespace, model, alias, change)
    if not before:
        raise model_objects.unknown_alias(model, alias, model_objects.spec_of(found))
    return AliasMove(found, before, "")


async def roll_back(
    client: Client, namespace: str, model: str, alias: str, *, by: str, at: str, reason: str = ""
) -> AliasMove:
    """Point an alias to the version before, by its history; the second time to the one before that."""
    spec = model_objects.spec_of(await model_objects.find_model(client, namespace, model))
    if alias not in (spec.aliases or {}):
        raise model_objects.unknown_alias(model, alias, spec)
    skipped: list[str] = []
    for version in aliases.earlier(spec, alias):
        try:
            done = await move_alias(
                client, namespace, model, alias, version, by=by, at=at, reason=reason or "rollback", rollback=True
            )
        except UnknownVersion:
            skipped.append(version)
            continue
        return done._replace(skipped=tuple(skipped))
    gone = f"; {', '.join(skipped)} no longer exist{'s' if len(skipped) == 1 else ''}" if skipped else ""
    raise UnknownVersion(f"the history of {model}@{alias} has no version before this one to go back to{gone}")


async def check_version(client: Client, namespace: str, model: str, version: str) -> None:
    """Raises `UnknownVersion` for a version that an alias cannot point to."""
    obj = await model_objects.get_version(client, namespace, model, version)
    if obj["metadata"].get("deletionTimestamp"):
        raise UnknownVersion(f"{model}:{version} is being deleted")
    if (obj.get("status") or {}).get("phase") == "Lost":
        raise UnknownVersion(f"{model}:{version} was lost: the store has no manifest of it; push the same files again")


async def _undo_if_gone(
    client: Client, namespace: str, model: str, alias: str, version: str, before: str, *, by: str, at: str
) -> None:
    """Somebody deleted the version between the check and the move."""
    obj = await client.find(MODELVERSIONS, object_name(model, version), namespace)
    if obj is not None and not obj["metadata"].get("deletionTimestamp"):
        return

    def back(spec: ModelSpec) -> ModelSpec | None:
        if (spec.aliases or {}).get(alias) != version:
            return None  # somebody else has moved it on
        text = f"{version} was deleted"
        if before:
            return aliases.moved(spec, alias, before, by=by, at=at, reason=text, rollback=True)
        return aliases.removed(spec, alias, by=by, at=at, reason=text)

    await _write(client, namespace, model, alias, back)
    raise UnknownVersion(f"{model}:{version} was deleted meanwhile; {alias} is {before or 'removed'} again")


async def _write(client: Client, namespace: str, model: str, alias: str, change: Change) -> tuple[Object, str]:
    """The Model, and where the alias pointed before."""
    for _ in range(ATTEMPTS):
        found = await model_objects.find_model(client, namespace, model)
        spec = model_objects.spec_of(found)
        before = (spec.aliases or {}).get(alias, "")
        wanted = change(spec)
        if wanted is None:
            return found, before
        try:
            return await client.update(MODELS, {**found, "spec": encode(wanted)}), before
        except Conflict:
            continue  # somebody else changed the model: decide again on what it is now
    raise Busy(f"model {model} is changed by others again and again; try again")
