"""Amounts of memory in messages are quantities, as people write limits."""

from __future__ import annotations

import pytest

from paddlecloud.local.kubelet.shim.cgroups import memory_text

KI, MI, GI = 1 << 10, 1 << 20, 1 << 30


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (512, "512"),
        (64 * MI, "64Mi"),
        (64 * MI + 1, "64.1Mi"),
        (3 * GI // 2, "1.5Gi"),
        (1000 * MI, "1000Mi"),
        (9 * KI, "9Ki"),
        (5000 * GI, "4.9Ti"),
    ],
)
def test_bytes_are_shown_as_a_quantity_that_is_never_too_small(size: int, text: str) -> None:
    assert memory_text(size) == text
