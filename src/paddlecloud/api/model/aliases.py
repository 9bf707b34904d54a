"""Aliases of a model: where they point, the history of their moves, and the way back along it. Pure."""

from __future__ import annotations

import msgspec

from paddlecloud.api.model import reference
from paddlecloud.api.model.reference import LATEST, BadReference
from paddlecloud.api.model.spec import LONGEST_TEXT, MOST_ALIASES, MOST_MOVES, ModelSpec, Move


def moved(
    spec: ModelSpec, alias: str, to: str, *, by: str, at: str, reason: str = "", rollback: bool = False
) -> ModelSpec | None:
    """The spec with the alias at another version; None if it is there already. Raises `BadReference`."""
    reference.alias_name(alias)
    reference.version_name(to)
    known = spec.aliases or {}
    before = known.get(alias)
    if before == to:
        return None
    if before is None and len(known) >= MOST_ALIASES:
        raise BadReference(f"a model has {MOST_ALIASES} aliases at most")
    move = Move(alias=alias, to=to, previous=before, by=by, at=at, reason=_checked(reason), rollback=rollback or None)
    return _with(spec, {**known, alias: to}, move)


def removed(spec: ModelSpec, alias: str, *, by: str, at: str, reason: str = "") -> ModelSpec | None:
    """The spec without the alias; None if there is no such alias. Raises `BadReference`."""
    reference.alias_name(alias)
    known = spec.aliases or {}
    if alias not in known:
        return None
    move = Move(alias=alias, previous=known[alias], by=by, at=at, reason=_checked(reason))
    return _with(spec, {name: to for name, to in known.items() if name != alias}, move)


def history(spec: ModelSpec, alias: str) -> list[Move]:
    """Newest first."""
    return [move for move in reversed(_list_of(spec, alias)) if move.alias == alias]


def moves_about(spec: ModelSpec, version: str) -> list[Move]:
    """Of all aliases to and from a version, newest first."""
    found = [move for move in (*(spec.latest_moves or ()), *(spec.moves or ())) if version in (move.to, move.previous)]
    found.reverse()
    return sorted(found, key=lambda move: move.at, reverse=True)  # of one second, too, the later first


def unrecorded(spec: ModelSpec) -> list[str]:
    """Aliases that do not point where their newest move says. Rules of API servers cannot compare each of them: they
    see that the history grew, not that it grew for every alias that changed."""
    newest = {move.alias: move.to for move in (*(spec.moves or ()), *(spec.latest_moves or ()))}
    return sorted(alias for alias, to in (spec.aliases or {}).items() if newest.get(alias, to) != to)


def earlier(spec: ModelSpec, alias: str) -> list[str]:
    """Where a rollback of an alias goes: the version before first, then the one before that.

    A rollback takes the versions that it leaves off this list, so a second one goes further back and not forth again.
    The removal of an alias begins its history anew.

    >>> back = Move(alias="a", to="2", by="", at="", rollback=True)
    >>> moves = [*(Move(alias="a", to=version, by="", at="") for version in "123"), back]
    >>> earlier(ModelSpec(aliases={"a": "2"}, moves=moves), "a")
    ['1']
    """
    way: list[str] = []
    for move in reversed(history(spec, alias)):
        if move.to is None:
            way = []
            continue
        if not way and move.previous:
            way = [move.previous]  # what came before is no longer in the history
        if move.rollback and move.to in way:
            while way[-1] != move.to:
                way.pop()
        else:
            way.append(move.to)
    now = (spec.aliases or {}).get(alias)
    found: list[str] = []
    for version in reversed(way[:-1]):
        if version != now and version not in found:
            found.append(version)
    return found if now else []


def aliases_of(spec: ModelSpec, version: str) -> list[str]:
    """Which point to a version; `latest` comes last, since it moves by itself."""
    return sorted((name for name, to in (spec.aliases or {}).items() if to == version), key=lambda n: (n == LATEST, n))


def _with(spec: ModelSpec, known: dict[str, str], move: Move) -> ModelSpec:
    moves = [*_list_of(spec, move.alias), move][-MOST_MOVES:]
    if move.alias == LATEST:
        return msgspec.structs.replace(spec, aliases=known, latest_moves=moves)
    return msgspec.structs.replace(spec, aliases=known, moves=moves)


def _list_of(spec: ModelSpec, alias: str) -> list[Move]:
    return (spec.latest_moves if alias == LATEST else spec.moves) or []


def _checked(reason: str) -> str | None:
    if len(reason) > LONGEST_TEXT:
        raise BadReference(f"the reason has {len(reason)} characters; {LONGEST_TEXT} at most")
    return reason or None
