"""What jobs report of their progress, over time: a status has the last values alone.

Kept of what the watch brings while the dashboard runs, of every job that reports; a full history gives up every second
point, so that it goes on to the end of the job in the same memory.
"""

from __future__ import annotations

from paddlecloud.kube.resource import Key, Object, key_of
from paddlecloud.ui.curves import Points, Series

MOST_POINTS = 400
MOST_TAGS = 16
MOST_JOBS = 2000
"""That report; of more the ones that reported first are forgotten."""
_X = ("step", "epoch")
_VALUES = {"loss": "loss", "samplesPerSecond": "samples/s"}

_Line = tuple[list[float], list[float]]


class ProgressHistory:
    def __init__(self) -> None:
        self._found: dict[Key, tuple[str, dict[str, _Line]]] = {}

    def change(self, old: Object | None, new: Object | None) -> None:
        if new is None:
            if old is not None:
                self._found.pop(key_of(old), None)
            return
        progress = (new.get("status") or {}).get("progress")
        if isinstance(progress, dict):
            self._report(key_of(new), str(new["metadata"].get("uid")), progress)

    def of(self, job: Object) -> Series:
        uid, lines = self._found.get(key_of(job), ("", {}))
        if uid != job["metadata"].get("uid"):
            return {}
        return {tag: Points([*steps], [*values]) for tag, (steps, values) in lines.items()}

    def _report(self, key: Key, uid: str, progress: Object) -> None:
        x = next((value for name in _X if (value := _number(progress.get(name))) is not None), None)
        values = {tag: progress.get(name) for name, tag in _VALUES.items()}
        metrics = progress.get("metrics")
        values |= {str(name): value for name, value in (metrics if isinstance(metrics, dict) else {}).items()}
        known = {tag: number for tag, value in values.items() if (number := _number(value)) is not None}
        if x is None or not known:
            return
        kept = self._found.get(key)
        if kept is None or kept[0] != uid:
            kept = uid, {}
            self._found[key] = kept
            if len(self._found) > MOST_JOBS:
                del self._found[next(iter(self._found))]
        for tag, value in known.items():
            if tag in kept[1] or len(kept[1]) < MOST_TAGS:
                _add(kept[1].setdefault(tag, ([], [])), x, value)


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def _add(line: _Line, step: float, value: float) -> None:
    """A job that was restarted goes on from its checkpoint: what it computes again counts as it is now."""
    steps, values = line
    while steps and steps[-1] >= step:
        steps.pop()
        values.pop()
    steps.append(step)
    values.append(value)
    if len(steps) > MOST_POINTS:
        del steps[1::2], values[1::2]
