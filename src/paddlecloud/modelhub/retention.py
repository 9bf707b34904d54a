"""Which versions of a model retention removes, when, and why the others stay. Pure.

`count` and `age` each say what is kept; a version that neither keeps is removed. Never removed are the newest version,
those that an alias names, the one that a rollback of an alias would go back to, and those that a service uses.

The order of versions is that of their pushes; a client whose clock is ahead does not make its version the newest for
ever. Ages are counted from the registration, by the clock of the API server: a client whose clock is behind does not
lose what it has just pushed.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from paddlecloud.api.durations import SECONDS
from paddlecloud.api.model import aliases
from paddlecloud.api.model.reference import LATEST
from paddlecloud.api.model.spec import AGE_PATTERN, ModelSpec, Retention
from paddlecloud.kube.times import moment_of
from paddlecloud.modelhub.users import named, users_by_version

Version = Mapping[str, Any]
"""A ModelVersion."""


class RetentionVerdict(NamedTuple):
    """What retention does with a version."""

    version: str
    kept: str = ""
    """Why it stays, whatever its age."""
    removed_at: float | None = None
    """The time from which nothing keeps it; None while something other than its age keeps it."""
    reason: str = ""
    """Why it is removed."""


def verdicts(
    model: str, spec: ModelSpec, versions: Sequence[Version], services: Iterable[Any]
) -> list[RetentionVerdict]:
    """Of all versions, newest first; without retention none is removed."""
    rule = spec.retention
    if rule is None or (rule.count is None and rule.age is None):
        return [RetentionVerdict(_name(each), kept="there is no retention") for each in newest_first(versions)]
    used = users_by_version(model, spec, services)
    fallback = _rollback_targets(spec)
    found = []
    for place, each in enumerate(newest_first(versions)):
        name = _name(each)
        if place == 0:
            found.append(RetentionVerdict(name, kept="it is the newest"))
        elif name in used:
            found.append(RetentionVerdict(name, kept=named(used[name])))
        elif name in fallback:
            found.append(RetentionVerdict(name, kept=f"rollback of {fallback[name]}"))
        elif rule.count is not None and place < rule.count:
            found.append(RetentionVerdict(name, kept=f"one of the newest {rule.count}"))
        else:
            found.append(_by_age(name, each, rule))
    return found


def due(found: Iterable[RetentionVerdict], now: float) -> list[RetentionVerdict]:
    """Those to be removed now."""
    return [each for each in found if each.removed_at is not None and each.removed_at <= now]


def next_removal(found: Iterable[RetentionVerdict]) -> RetentionVerdict | None:
    """The one that is removed first if nothing changes until then."""
    timed = [each for each in found if each.removed_at is not None]
    return min(timed, key=lambda each: (each.removed_at or 0.0, each.version), default=None)


def newest_first(versions: Iterable[Version]) -> list[Version]:
    return sorted(versions, key=lambda each: (_pushed(each), _name(each)), reverse=True)


def seconds_of(age: str) -> float:
    """Raises ValueError for what the schema does not allow either."""
    if not re.fullmatch(AGE_PATTERN, age):
        raise ValueError(f"{age!r} is not an age such as 30d")
    return int(age[:-1]) * SECONDS[age[-1]]


def _by_age(name: str, version: Version, rule: Retention) -> RetentionVerdict:
    reasons = [f"not one of the newest {rule.count}"] if rule.count is not None else []
    if rule.age is None:
        return RetentionVerdict(name, removed_at=0.0, reason=reasons[0])
    try:
        at = _registered(version) + seconds_of(rule.age)
    except ValueError as error:  # stored under a looser schema
        return RetentionVerdict(name, kept=str(error))
    return RetentionVerdict(name, removed_at=at, reason=" and ".join([f"older than {rule.age}", *reasons]))


def _rollback_targets(spec: ModelSpec) -> dict[str, str]:
    """Version → alias. That of latest is not kept: it moves with every push."""
    found: dict[str, str] = {}
    for alias in sorted(spec.aliases or {}):
        before = aliases.earlier(spec, alias) if alias != LATEST else []
        if before:
            found.setdefault(before[0], alias)
    return found


def _name(version: Version) -> str:
    return str(version["spec"]["version"])


def _registered(version: Version) -> float:
    return _time(version["metadata"].get("creationTimestamp")) or 0.0


def _pushed(version: Version) -> float:
    registered = _registered(version)
    pushed = _time((version.get("spec") or {}).get("createdAt"))
    return registered if pushed is None else min(pushed, registered)


_time = functools.lru_cache(maxsize=32768)(moment_of)  # of every version, each time that one of them changes
