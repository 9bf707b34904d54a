"""Ratcheting: a value that a write does not touch is not judged again.

A schema may become stricter while objects of the old kind are stored. If their old mistakes were held against every
later write, nobody could label, scale or finalize them any more, so Kubernetes forgives a mistake in a part that stays
as it was. Only custom kinds are treated so; the rules of built-in kinds do not change under their objects.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from paddlecloud.kube.resource import Object
from paddlecloud.local.apiserver.objects.patch import json_equal
from paddlecloud.local.apiserver.schema.causes import Cause

_STEP = re.compile(r"\.?([^.\[\]]+)|\[([^\]]*)\]")
_MISSING: Any = object()


def forgive(causes: list[Cause], new: Object, old: Object) -> list[Cause]:
    """The causes that this write is answerable for."""
    compared: dict[tuple[int, int], bool] = {}
    return [cause for cause in causes if not _untouched(cause[0], new, old, compared)]


def _untouched(field: str, new: Any, old: Any, compared: dict[tuple[int, int], bool]) -> bool:
    """Whether the place, or anything around it, is the same in both objects.

    A field that is missing in both does not count: it is what is around it that should have it. `compared` keeps the
    answer for each pair of parts, so that a hundred causes in one large part cost one comparison.
    """
    for step in _steps(field):
        new, old = _inside(new, step), _inside(old, step)
        if new is _MISSING or old is _MISSING:
            return False
        pair = id(new), id(old)
        if pair not in compared:
            compared[pair] = new == old and json_equal(new, old)  # the second comparison distinguishes true from 1
        if compared[pair]:
            return True
    return False


def _steps(field: str) -> Iterator[str]:
    return (name or index for name, index in _STEP.findall(field))


def _inside(value: Any, step: str) -> Any:
    if isinstance(value, dict):
        return value.get(step, _MISSING)
    if isinstance(value, list) and step.isdigit() and int(step) < len(value):
        return value[int(step)]
    return _MISSING
