"""The age of a moment written in an object, in kubectl's short form. No clock of its own: `now` is passed in."""

from __future__ import annotations

from paddlecloud.kube.times import human_duration, parse_rfc3339


def age(text: str | None, now: float) -> str:
    if not text:
        return "<unknown>"
    try:
        return human_duration(now - parse_rfc3339(text))
    except ValueError:
        return "<invalid>"
