"""Aliases of a model: where they point, and the history of their moves. Pure."""

from __future__ import annotations

from paddlecloud.api.model import reference
from paddlecloud.api.model.reference import LATEST, BadReference
from paddlecloud.api.model.spec import LONGEST_TEXT, MOST_ALIASES, MOST_MOVES, ModelSpec, Move


def moved(spec: ModelSpec, alias: str, to: str, *, by: str, at: str, reason: str = "") -> ModelSpec | None:
    """The spec with the alias at another version; None if it is there already. Raises `BadReference`."""
    reference.alias_name(alias)
    reference.version_name(to)
    if len(reason) > LONGEST_TEXT:
        raise BadReference(f"the reason has {len(reason)} characters; {LONGEST_TEXT} at most")
    before = (spec.aliases or {}).get(alias)
    if before == to:
        return None
    if before is None and len(spec.aliases or {}) >= MOST_ALIASES:
        raise BadReference(f"a model has {MOST_ALIASES} aliases at most")
    move = Move(alias=alias, to=to, previous=before, by=by, at=at, reason=reason or None)
    return ModelSpec(
        description=spec.description,
        aliases={**(spec.aliases or {}), alias: to},
        moves=[*(spec.moves or ()), move][-MOST_MOVES:],
    )


def history(spec: ModelSpec, alias: str) -> list[Move]:
    """Newest first."""
    return [move for move in reversed(spec.moves or ()) if move.alias == alias]


def unrecorded(spec: ModelSpec) -> list[str]:
    """Aliases that do not point where their newest move says. Rules of API servers cannot compare each of them: they
    see that the history grew, not that it grew for every alias that changed."""
    newest = {move.alias: move.to for move in spec.moves or ()}
    return sorted(alias for alias, to in (spec.aliases or {}).items() if newest.get(alias, to) != to)


def aliases_of(spec: ModelSpec, version: str) -> list[str]:
    """Which point to a version; `latest` comes last, since it moves by itself."""
    return sorted((name for name, to in (spec.aliases or {}).items() if to == version), key=lambda n: (n == LATEST, n))
