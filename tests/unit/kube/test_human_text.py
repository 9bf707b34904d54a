"""Sizes and durations as people read them."""

from __future__ import annotations

import pytest

from paddlecloud.kube.sizes import binary_quantity, binary_size, size
from paddlecloud.kube.times import moment_of, precise_duration

GIB = 1024**3


@pytest.mark.parametrize(
    ("count", "quantity", "binary", "decimal"),
    [
        (0, "0", "0 B", "0 B"),
        (1000, "1000", "1000 B", "1.0 kB"),
        (1024, "1Ki", "1.0 KiB", "1.0 kB"),
        (1536, "1.5Ki", "1.5 KiB", "1.5 kB"),
        (60817408, "58Mi", "58 MiB", "60.8 MB"),
        (25275973632, "23.54Gi", "24 GiB", "25.3 GB"),
        (1024**2 * GIB, "1Pi", "1.0 PiB", "1126 TB"),
    ],
)
def test_a_number_of_bytes(count: int, quantity: str, binary: str, decimal: str) -> None:
    assert (binary_quantity(count), binary_size(count), size(count)) == (quantity, binary, decimal)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0.0s"),
        (4.24, "4.2s"),
        (45.4, "45s"),
        (60.0, "1m"),
        (333.0, "5m33s"),
        (4830.0, "1h20m"),
        (270000.0, "3d3h"),
    ],
)
def test_a_duration(seconds: float, text: str) -> None:
    assert precise_duration(seconds) == text


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1970-01-01T00:01:00Z", 60.0), ("1970-01-01T01:00:00.5+01:00", 0.5)],
)
def test_a_moment_of_an_object(text: str, seconds: float) -> None:
    assert moment_of(text) == seconds


@pytest.mark.parametrize("text", [None, "", "yesterday", 60, "1970-02-30T00:00:00Z", "9999-12-31T23:59:59-23:59", {}])
def test_what_is_no_moment_has_none(text: object) -> None:
    assert moment_of(text) is None
