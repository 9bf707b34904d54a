"""How often something large is looked at: a thousand pods that become ready one after the other are a few passes.

A pass over an object costs as much as it has pods, and each of them brings a pass: without a pace that is quadratic.
Small objects are looked at at once.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

from paddlecloud.kube.clock import Clock

SMALL = 100
PER_SECOND = 4000.0
"""Pods looked at per second for the sake of one object: one with a thousand of them gets four passes a second."""

K = TypeVar("K", bound=Hashable)


class Pace(Generic[K]):
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._due: dict[K, float] = {}

    def wait(self, key: K) -> float | None:
        """Seconds until the next pass may be; None for now."""
        left = self._due.get(key, 0.0) - self._clock.monotonic()
        return left if left > 0 else None

    def note(self, key: K, size: int) -> None:
        """A pass over so many is made now."""
        if size > SMALL:
            self._due[key] = self._clock.monotonic() + size / PER_SECOND
        else:
            self._due.pop(key, None)

    def forget(self, key: K) -> None:
        self._due.pop(key, None)
