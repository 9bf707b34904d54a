"""Records as VisualDL's LogWriter writes them."""

from __future__ import annotations

import struct

from unit.budgets.inputs import field, varint


def number(field_number: int, value: int) -> bytes:
    return varint(field_number << 3) + varint(value & (1 << 64) - 1)


def single(field_number: int, value: float) -> bytes:
    return varint(field_number << 3 | 5) + struct.pack("<f", value)


def scalar(tag: str, step: int, value: float, time: int = 1000) -> bytes:
    return framed(field(1, number(1, step) + field(2, tag.encode()) + number(3, time) + single(4, value)))


def framed(message: bytes) -> bytes:
    return struct.pack("<Q", len(message)) + message
