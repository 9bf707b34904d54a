"""Numbers in bodies: those that no client in Go could read back are refused."""

from __future__ import annotations

import json

import pytest

from paddlecloud.kube.errors import BadRequest
from paddlecloud.local.apiserver.http.negotiation import read_json, read_yaml

LONGEST = "1" + "0" * 308
DIGITS_IN_A_TEXT = {"digest": "7" * 400, "size": 1}


@pytest.mark.parametrize("number", [LONGEST, f"-{LONGEST}", "0", "9223372036854775808", "1e308"])
def test_what_fits_a_double_is_read(number: str) -> None:
    assert read_json(f'{{"a": [{number}]}}'.encode()) == {"a": [json.loads(number)]}
    assert read_yaml(f"a: {number}".encode()) == {"a": json.loads(number)}


@pytest.mark.parametrize("number", [f"{LONGEST}0", f"-{LONGEST}0", "9" * 309, "1e999"])
def test_what_does_not_is_refused_wherever_it_stands(number: str) -> None:
    for body in (f'{{"a": {number}}}', f'[{{"b": [1, {number}]}}]', number, f'{{"a": "{"7" * 400}", "b": {number}}}'):
        with pytest.raises(BadRequest):
            read_json(body.encode())


@pytest.mark.parametrize("number", [f"{LONGEST}0", ".inf", "-.inf", ".nan"])
def test_numbers_of_yaml_are_judged_alike(number: str) -> None:
    with pytest.raises(BadRequest):
        read_yaml(f"a:\n- b: {number}\n".encode())


def test_digits_in_a_text_are_no_number() -> None:
    assert read_json(json.dumps(DIGITS_IN_A_TEXT).encode()) == DIGITS_IN_A_TEXT
