"""Fields given twice in one JSON object: JSON keeps the last, the author meant something else.

The fast decoder does not notice them, so this slower look is taken only when a client asks for strict validation, as
kubectl does. Who refuses them names unknown fields as well: a client corrects both at once.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any

MAX_NAMED = 20


class _Object(dict[str, Any]):
    """A JSON object that remembers which of its names came more than once."""

    twice: tuple[str, ...] = ()


def _keep(pairs: list[tuple[str, Any]]) -> _Object:
    made = _Object(pairs)
    if len(made) < len(pairs):
        made.twice = tuple(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
    return made


def duplicate_fields(body: bytes) -> list[str]:
    """The paths of doubled fields, such as `spec.containers[0].image`. A body that is no JSON has none."""
    try:
        value = json.loads(body, object_pairs_hook=_keep)
    except ValueError:
        return []
    return list(islice(_walk(value, ""), MAX_NAMED))


def _walk(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, _Object):
        yield from (f"{path}.{name}".lstrip(".") for name in value.twice)
        for name, inner in value.items():
            yield from _walk(inner, f"{path}.{name}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _walk(inner, f"{path}[{index}]")
