"""Names of models, versions and aliases: what is meant, what is refused and what is suggested instead."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.api.model import reference
from paddlecloud.api.model.reference import BadReference, Reference


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("ocr", Reference("ocr", alias="latest")),
        ("ocr:latest", Reference("ocr", alias="latest")),
        ("ocr@production", Reference("ocr", alias="production")),
        ("ocr:7", Reference("ocr", "7")),
        ("pp-ocr:v1.2-rc.1", Reference("pp-ocr", "v1.2-rc.1")),
        ("ocr:2026-11-18", Reference("ocr", "2026-11-18")),
    ],
)
def test_what_is_meant(text: str, meant: Reference) -> None:
    assert reference.parse(text) == meant


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "the name of a model is missing"),
        (":7", "the name of a model is missing"),
        ("ocr:", "a version is missing"),
        ("ocr@", "an alias is missing"),
        ("OCR:7", "did you mean 'ocr'?"),
        ("ocr:V1.0_beta", "did you mean 'v1.0-beta'?"),
        ("ocr:1/../2", "cannot be a version"),
        ("../ocr:1", "cannot be the name of a model"),
        ("ocr.v5:1", "did you mean 'ocr-v5'?"),
        ("ocr:7@production", "cannot be the name of a model"),
        ("ocr@7", "beginning with a letter"),
        ("ocr:1..2", "cannot be a version"),
        ("ocr:-1", "did you mean '1'?"),
        ("o" * 64, "too long"),
        ("ocr:7\n", "did you mean '7'?"),
        ("模型:1", "cannot be the name of a model"),
    ],
)
def test_what_is_refused_and_why(text: str, why: str) -> None:
    with pytest.raises(BadReference, match=re.escape(why)):
        reference.parse(text)


def test_no_version_is_called_latest() -> None:
    with pytest.raises(BadReference, match="'latest' is an alias, which moves"):
        reference.version_name("latest")


@given(st.text(max_size=80))
def test_what_is_accepted_can_be_part_of_a_key_and_of_an_object_s_name(text: str) -> None:
    try:
        found = reference.parse(text)
    except BadReference:
        return
    name = reference.object_name(found.model, found.version or "1")
    assert re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", name)
    assert name.partition(".")[0] == found.model
    assert len(name) <= 127
    assert reference.parse(str(found)) == found
