"""Labels as the calls of the SDK take them."""

from __future__ import annotations

from collections.abc import Mapping

Labels = str | Mapping[str, str] | None
"""A label selector as text, or labels that must all be there."""


def selector_of(labels: Labels) -> str | None:
    if labels is None or isinstance(labels, str):
        return labels
    return ",".join(f"{key}={value}" for key, value in labels.items())
