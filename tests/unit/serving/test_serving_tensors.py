"""Every tensor that goes in fits the model, or its sender learns why not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.serving.errors import BadInput
from paddlecloud.serving.processing import Processor, prepare
from paddlecloud.serving.tensors import DATATYPES, TensorSpec, as_lists, datatype_of, from_bytes, from_json, to_bytes

FLOATS = TensorSpec("x", "FP32", (-1, 2))


@pytest.mark.parametrize(
    ("spec", "data", "options", "expected"),
    [
        (FLOATS, [[1, 2]], {}, [[1.0, 2.0]]),
        (FLOATS, [1, 2, 3, 4], {"shape": [2, 2]}, [[1, 2], [3, 4]]),
        (FLOATS, [[1.5, 2]], {"datatype": "FP64"}, [[1.5, 2]]),
        (TensorSpec("x", "INT64", None), [[[7]]], {}, [[[7]]]),
        (TensorSpec("x", "INT64", (-1,)), [1.0, 2.0], {"datatype": "FP32"}, [1, 2]),
        (TensorSpec("x", "BOOL", (-1,)), [True, False], {}, [True, False]),
        (TensorSpec("x", "BYTES", (-1,)), ["飞桨", "b"], {}, ["飞桨", "b"]),
    ],
)
def test_data_becomes_what_the_model_takes(spec: TensorSpec, data: Any, options: Any, expected: Any) -> None:
    array = from_json(spec, data, **options)
    assert str(array.dtype) == spec.dtype
    assert array.tolist() == expected


@pytest.mark.parametrize(
    ("spec", "data", "options", "message"),
    [
        (
            FLOATS,
            [[1, 2, 3]],
            {},
            r"shape \[1, 3\]; expected are FP32 values of shape \[N, 2\], N any number: dimension 2 is 3, not 2$",
        ),
        (FLOATS, [1, 2], {}, r"expected are FP32 .*: 1 dimension, not 2; one row is sent as shape \[1, 2\]$"),
        (FLOATS, [[[1, 2]]], {}, r"expected are FP32 .*: 3 dimensions, not 2$"),
        (
            FLOATS,
            [[1, 2], [3]],
            {},
            r"input 'x': its rows differ in length; expected are FP32 values of shape \[N, 2\]",
        ),
        (FLOATS, [["a", "b"]], {}, "input 'x': 'a' is a text, not a number; expected are FP32"),
        (TensorSpec("x", "INT8", None), [["a"]], {}, "expected are INT8 values$"),
        (TensorSpec("x", "INT8", (2,)), [1], {}, r"expected are INT8 values of shape \[2\]: dimension 1 is 1, not 2$"),
        (FLOATS, [1, 2, 3], {"shape": [2, 2]}, r"3 values do not fill shape \[2, 2\], which has 4$"),
        (FLOATS, [1, 2, 3], {"shape": [10**90, 2]}, r"3 values do not fill shape \[1(0){90}, 2\]$"),
        (FLOATS, [1, 2], {"shape": [-1, 2]}, "shape must be a list of sizes"),
        (FLOATS, [1, 2], {"shape": [True, 2]}, "shape must be a list of sizes"),
        (FLOATS, [1, 2], {"shape": "1x2"}, "shape must be a list of sizes"),
        (FLOATS, [[1, 2]], {"datatype": "FLOAT"}, "unknown datatype 'FLOAT'; known are BOOL"),
        (FLOATS, [[1e300, 2]], {"datatype": "FP64"}, "FP64 values do not fit FP32"),
        (FLOATS, [], {"shape": [0, 2]}, "is empty"),
        (TensorSpec("x", "INT8", (-1,)), [300], {"datatype": "INT64"}, "INT64 values do not fit INT8"),
        (TensorSpec("x", "INT64", (-1,)), [1.5], {"datatype": "FP32"}, "FP32 values do not fit INT64"),
        (FLOATS, [["a", "b"]], {"datatype": "BYTES"}, "BYTES values do not fit FP32"),
        (TensorSpec("x", "BYTES", (-1,)), [1], {"datatype": "INT64"}, "INT64 values do not fit BYTES"),
        (FLOATS, {"a": 1}, {}, "is an object, not a number"),
        (FLOATS, None, {}, "null is no value, not a number"),
    ],
)
def test_data_that_does_not_fit_is_refused(spec: TensorSpec, data: Any, options: Any, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        from_json(spec, data, **options)


INTEGERS = [name for name in DATATYPES if "INT" in name]
LARGEST = {name: int(np.iinfo(DATATYPES[name]).max) for name in INTEGERS}


@pytest.mark.parametrize("datatype", INTEGERS)
@pytest.mark.parametrize(
    "wrong", [1.5, "1", True, None, {}, float("nan"), float("inf"), 1e30, -(10**30), "beyond", "huge"]
)
def test_what_is_no_integer_of_the_type_is_refused_and_not_cut_to_one(datatype: str, wrong: Any) -> None:
    """Through either protocol: `prepare` is the way of /NAME/prediction."""
    value = {"beyond": LARGEST[datatype] + 1, "huge": 10**5000}.get(wrong, wrong) if isinstance(wrong, str) else wrong
    spec = TensorSpec("x", datatype, (-1, 2))
    with pytest.raises(BadInput, match=f"^input 'x': .*; expected are {datatype} values of shape"):
        from_json(spec, [[value, 1]])
    with pytest.raises(BadInput, match=f"^input 'x': .*; expected are {datatype} values of shape"):
        prepare(Processor(), [{"x": [value, 1]}], (spec,))


@pytest.mark.parametrize("datatype", INTEGERS)
def test_integers_to_the_last_of_their_type_are_exact(datatype: str) -> None:
    spec, least = TensorSpec("x", datatype, (-1, 3)), int(np.iinfo(DATATYPES[datatype]).min)
    assert from_json(spec, [[LARGEST[datatype], least, 3.0]]).tolist() == [[LARGEST[datatype], least, 3]]


@pytest.mark.parametrize("sent", ["FP32", "FP64"])
@pytest.mark.parametrize("value", [2.0**63, 2.0**64, -(2.0**65), float("nan"), 0.5])
@pytest.mark.parametrize("datatype", ["INT64", "UINT64", "INT32", "BOOL"])
def test_floating_point_that_is_no_such_integer_is_refused_as_bytes_too(datatype: str, value: float, sent: str) -> None:
    if (datatype, value) == ("UINT64", 2.0**63):
        return
    raw = np.array([value], dtype=DATATYPES[sent]).tobytes()
    with pytest.raises(BadInput, match=f"{sent} values do not fit {datatype}"):
        from_bytes(TensorSpec("x", datatype, (-1,)), raw, shape=[1], datatype=sent)


@pytest.mark.parametrize(
    ("datatype", "wrong"),
    [
        ("FP16", 70000),
        ("FP32", 1e39),
        ("FP32", 10**39),
        ("FP64", 10**400),
        *((name, value) for name in ("FP16", "FP32", "FP64") for value in (True, "1", None, {})),
        *(("BOOL", value) for value in (2, 0.5, "true", None, float("nan"))),
        *(("BYTES", value) for value in (1, 1.5, True, None, {}, "\ud800")),
    ],
)
def test_what_a_type_cannot_hold_is_refused(datatype: str, wrong: Any) -> None:
    fine = "a" if datatype == "BYTES" else 1
    with pytest.raises(BadInput, match=f"^input 'x': .*; expected are {datatype} values of shape"):
        from_json(TensorSpec("x", datatype, (-1, 2)), [[fine, wrong]])


@pytest.mark.parametrize(
    ("datatype", "sent", "expected"),
    [
        ("FP32", [0.1, 16777217, float("inf")], [np.float32(0.1), 16777216, float("inf")]),
        ("BOOL", [0, True, 1.0], [False, True, True]),
    ],
)
def test_floating_point_is_rounded_and_0_and_1_are_truth_values(datatype: str, sent: Any, expected: Any) -> None:
    assert from_json(TensorSpec("x", datatype, (-1,)), sent).tolist() == expected


@given(st.sampled_from(sorted(DATATYPES)), st.lists(st.integers(0, 1), min_size=1, max_size=9))
def test_bytes_and_back(datatype: str, values: list[int]) -> None:
    wanted = [str(value) for value in values] if datatype == "BYTES" else values
    array = np.array(wanted, dtype=DATATYPES[datatype])
    back = from_bytes(TensorSpec("x", datatype, (-1,)), to_bytes(array), shape=[len(values)], datatype=datatype)
    assert as_lists(back) == as_lists(array)
    assert datatype_of(back) == datatype


@pytest.mark.parametrize(
    ("datatype", "raw", "message"),
    [
        ("FP32", b"123", "no whole number of FP32"),
        ("BYTES", b"\x05\x00\x00\x00ab", "cut off"),
        ("BYTES", b"\x05", "cut off"),
        ("FP33", b"", "unknown datatype"),
    ],
)
def test_bytes_that_are_no_tensor(datatype: str, raw: bytes, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        from_bytes(TensorSpec("x", "FP32", None), raw, shape=[1], datatype=datatype)


def test_what_json_has_no_word_for_becomes_null() -> None:
    assert as_lists(np.array([1.0, float("nan"), float("inf")], dtype="float32")) == [1.0, None, None]
