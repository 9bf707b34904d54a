"""How many copies of a template one pass makes: no more than it can write down at once.

A template may have a megabyte, and its author asks for thousands of copies in a few bytes; a quota may refuse the first
of them. What one pass leaves out follows in the next.
"""

from __future__ import annotations

import msgspec

from paddlecloud.kube.resource import Object

ROOM = 2 * 1024 * 1024
"""Bytes of JSON that are copied on the event loop, in a fraction of a second."""

ROOM_IN_A_THREAD = 16 * 1024 * 1024
"""Bytes of JSON that are copied in a thread: there they take memory, of which Python needs about ten times as much."""


def burst(template: Object, most: int, *, room: int = ROOM) -> int:
    """At most `most` copies, fewer of a large template, and always one."""
    if most <= 1:
        return most
    return max(1, min(most, room // max(1, len(msgspec.json.encode(template)))))
