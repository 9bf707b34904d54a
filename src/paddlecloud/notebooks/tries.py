"""Wrong tries to sign in, slowed down for each name: after three the wait doubles from a second up to a minute.

Nobody is kept waiting: who is early is refused, with the seconds left. What is remembered is bounded: of very many
names the one tried least recently is forgotten.
"""

from __future__ import annotations

from collections import OrderedDict

FREE, FIRST, LONGEST = 3, 1.0, 60.0
MOST_NAMES = 4096


class Tries:
    """Time is an argument, so that tests have their own."""

    def __init__(self) -> None:
        self._wrong: OrderedDict[str, tuple[int, float]] = OrderedDict()

    def wait(self, name: str, now: float) -> float:
        """Seconds until the next try counts; 0 for at once."""
        count, last = self._wrong.get(name, (0, now))
        pause = min(FIRST * 2 ** min(count - FREE, 10), LONGEST) if count >= FREE else 0.0
        return max(0.0, last + pause - now)

    def wrong(self, name: str, now: float) -> None:
        count, _ = self._wrong.pop(name, (0, now))
        self._wrong[name] = count + 1, now
        while len(self._wrong) > MOST_NAMES:
            self._wrong.popitem(last=False)

    def right(self, name: str) -> None:
        self._wrong.pop(name, None)
