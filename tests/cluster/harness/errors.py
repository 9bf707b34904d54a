"""What can go wrong on the way to a cluster, each with the next step."""

from __future__ import annotations

from pathlib import Path


class HarnessError(Exception):
    """`reason` is for programs; the message says what failed, why, and what to do about it."""

    def __init__(self, message: str, *, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


def with_log(message: str, log: Path, *, lines: int = 8) -> str:
    """The message followed by the end of a log, because the cause usually stands there."""
    try:
        tail = log.read_text(errors="replace").splitlines()[-lines:]
    except OSError:
        return f"{message} (no log at {log})"
    return "\n".join([f"{message}; the end of {log}:", *(f"    {line[:400]}" for line in tail)])
