"""Quantities: what Kubernetes reads, exactly; and how it writes them."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.kube import quantity
from paddlecloud.kube.quantity import MILLI, ONE, QuantityError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("1", 1),
        ("+1", 1),
        ("-1.5", Fraction(-3, 2)),
        ("100m", Fraction(1, 10)),
        ("0.5", Fraction(1, 2)),
        (".5", Fraction(1, 2)),
        ("5.", 5),
        ("1e3", 1000),
        ("1E3", 1000),
        ("12E", 12 * 10**18),
        ("1e-3", Fraction(1, 1000)),
        ("1Ki", 1024),
        ("1.5Gi", 3 * 2**29),
        ("2k", 2000),
        ("3n", Fraction(3, 10**9)),
        ("0.1n", Fraction(1, 10**9)),  # finer than Kubernetes keeps: rounded away from zero
        ("-0.1n", Fraction(-1, 10**9)),
        ("100Ei", 2**63 - 1),  # capped
        (2, 2),
        (0.5, Fraction(1, 2)),
    ],
)
def test_a_quantity_is_read_exactly(text: str | int | float, value: int | Fraction) -> None:
    assert quantity.parse(text) == value * ONE


@pytest.mark.parametrize(
    "text", ["", " ", "1 ", "m", ".", "1K", "1gi", "1Mi5", "1.2.3", "--1", "1e", "1e99999999", "0x10", "1" * 65, True]
)
def test_what_is_not_a_quantity_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(QuantityError, match="500m"):
        quantity.parse(text)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("0", "0"),
        ("0Gi", "0"),
        ("1000", "1k"),
        ("1.5", "1500m"),
        ("0.001", "1m"),
        ("1000m", "1"),
        ("0.5Gi", "512Mi"),
        ("1024Mi", "1Gi"),
        ("1025Mi", "1025Mi"),
        ("0.5Ki", "512"),
        ("1e3", "1e3"),
        ("1.5e3", "1500"),
        ("100e-3", "100e-3"),
        ("-1.5Gi", "-1536Mi"),
        ("1.0001Ki", "1025"),
        ("5E", "5E"),
    ],
)
def test_there_is_one_way_to_write_an_amount(text: str, canonical: str) -> None:
    assert quantity.canonical(text) == canonical


@given(st.integers(-(10**30), 10**30), st.sampled_from(["decimal", "exponent"]))
def test_writing_and_reading_round_trip(amount: int, family: quantity.Family) -> None:
    assert quantity.parse(quantity.format(amount, family)) == amount


@given(st.integers(0, 2**62))
def test_binary_amounts_round_trip_in_whole_bytes(units: int) -> None:
    assert quantity.parse(quantity.format(units * ONE, "binary")) == units * ONE


def test_units_are_rounded_up() -> None:
    assert quantity.whole("1.1") == 2
    assert quantity.whole("1Ki") == 1024
    assert quantity.millis("1u") == 1
    assert quantity.millis("1.5") == 1500
    assert quantity.millis("-1u") == -1


def test_amounts_compare_and_add_whatever_they_are_written_in() -> None:
    assert quantity.compare("0.5Gi", "512Mi") == 0
    assert quantity.compare("1G", "1Gi") == -1
    assert quantity.compare("1", "999m") == 1
    assert quantity.add("0", "512Mi", "512Mi") == "1Gi"
    assert quantity.add("500m", "1") == "1500m"
    assert quantity.add() == "0"


def test_resource_lists_sum_compare_and_say_what_is_missing() -> None:
    pod = quantity.total(
        [
            quantity.amounts({"cpu": "500m", "memory": "1Gi"}),
            quantity.amounts({"cpu": 1, "nvidia.com/gpu": 2}),
        ]
    )
    assert quantity.written(pod) == {"cpu": "1500m", "memory": "1Gi", "nvidia.com/gpu": "2"}
    init = quantity.amounts({"cpu": "2", "memory": "100Mi"})
    assert quantity.written(quantity.largest([pod, init])) == {"cpu": "2", "memory": "1Gi", "nvidia.com/gpu": "2"}
    node = quantity.amounts({"cpu": "4", "memory": "8Gi", "nvidia.com/gpu": "1"})
    assert quantity.shortages(pod, node) == {"nvidia.com/gpu": ONE}
    assert not quantity.fits(pod, node)
    assert quantity.fits({"cpu": MILLI, "example.com/none": 0}, node)
    assert quantity.minus(node, pod)["cpu"] == 2500 * MILLI
    assert quantity.amounts(None) == {}


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("memory", "binary"),
        ("hugepages-2Mi", "binary"),
        ("ephemeral-storage", "binary"),
        ("requests.memory", "binary"),
        ("cpu", "decimal"),
        ("nvidia.com/gpu", "decimal"),
    ],
)
def test_bytes_are_written_in_binary(name: str, family: str) -> None:
    assert quantity.family_of(name) == family
