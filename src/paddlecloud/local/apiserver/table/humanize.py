"""Times, labels and long lists as kubectl's users are used to reading them in a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paddlecloud.kube import times
from paddlecloud.kube.times import moment_of

NONE, UNKNOWN, INVALID, UNSET = "<none>", "<unknown>", "<invalid>", "<unset>"


def human_duration(seconds: float) -> str:
    """One second below zero is forgiven as clock skew; more than that is `<invalid>`."""
    return INVALID if int(seconds) < -1 else times.human_duration(seconds)


def since(text: Any, now: float) -> str:
    """The age of a moment: `<unknown>` when it was never set, `<invalid>` when it cannot be read."""
    if not text:
        return UNKNOWN
    began = moment_of(text)
    return INVALID if began is None else human_duration(now - began)


def labels_text(labels: Mapping[str, str] | None) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items())) if labels else NONE


def first_of_many(items: Sequence[str], *, most: int = 3, empty: str = NONE, separator: str = ",") -> str:
    """The first few items and how many more there are."""
    if not items:
        return empty
    text = separator.join(items[:most])
    return f"{text} + {len(items) - most} more..." if len(items) > most else text
