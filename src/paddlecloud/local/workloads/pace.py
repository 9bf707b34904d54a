"""How often something large is looked at: a thousand pods that become ready one after the other are a few passes.

A pass over an object costs as much as it has pods, and each of them brings a pass: without a pace that is quadratic.
Small objects are looked at at once.
"""

from __future__ import annotations

SMALL = 100
PER_SECOND = 4000.0
"""Pods looked at per second for the sake of one object: one with a thousand of them gets four passes a second."""


def rest(size: int) -> float:
    """Seconds between a pass over so many objects and the next one."""
    return size / PER_SECOND if size > SMALL else 0.0
