"""Values as text: ages, durations, numbers, and the colour of a state. Pure; every page uses these and no others."""

from __future__ import annotations

import math

from paddlecloud.kube.sizes import binary_size
from paddlecloud.kube.times import human_duration, moment_of

OK, WAITING, FAILED, DONE, QUIET = "ok", "waiting", "failed", "done", "quiet"
"""Tones: classes of the style sheet. A tone is never the only thing that says something: its word stands beside it."""

TONES = {
    **dict.fromkeys(("Running", "Ready", "Active", "Bound", "Available", "True", "ok", "Open", "PartialReady"), OK),
    **dict.fromkeys(("Completed", "Succeeded", "Succeed", "Complete"), DONE),
    **dict.fromkeys(
        ("Pending", "Starting", "Scaling", "Restarting", "Inqueue", "Unknown", "Terminating", "waiting", "deleting"),
        WAITING,
    ),
    **dict.fromkeys(("Failed", "Error", "SyncFailed", "Lost", "NotReady", "failed", "Terminated", "Aborted"), FAILED),
    **dict.fromkeys(("Progressing", "Paused", "Syncing", "Mount"), WAITING),
    "WentBack": FAILED,
}
"""By phase, state of a verdict or word of a condition; all others are quiet."""


def tone(word: object) -> str:
    return TONES.get(str(word), QUIET)


def age(text: object, now: float) -> str:
    """kubectl's short form: 3m, 2h5m, 4d."""
    began = moment_of(text)
    return "" if began is None else human_duration(max(0.0, now - began))


def duration(seconds: object) -> str:
    if not isinstance(seconds, (int, float)) or not math.isfinite(seconds):
        return ""
    return human_duration(max(0.0, float(seconds)))


def number(value: object) -> str:
    """With separators of thousands, and no more digits than are read."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return "" if value is None else str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, int) or value.is_integer():
        return f"{int(value):,}"
    return f"{value:,.1f}" if abs(value) >= 1000 else f"{value:.4g}"


def bytes_of(value: object) -> str:
    """`4.2 GiB`; nothing where it is not known."""
    return binary_size(value) if isinstance(value, (int, float)) and value >= 0 and math.isfinite(value) else ""


def share(part: object, whole: object) -> float | None:
    """Between 0 and 1; None where there is no whole."""
    if not isinstance(part, (int, float)) or not isinstance(whole, (int, float)) or whole <= 0:
        return None
    return max(0.0, min(1.0, part / whole))


def percent(value: object) -> str:
    return f"{value * 100:.0f} %" if isinstance(value, (int, float)) and math.isfinite(value) else ""
