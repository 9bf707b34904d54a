"""A read grant opens the version it names; every other text opens nothing."""

from __future__ import annotations

import hashlib
import hmac
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.api.model.reference import BadReference
from paddlecloud.modelhub import read_grant
from paddlecloud.modelhub.read_grant import ReadGrant, sign, verify

KEY = b"k" * 32
DIGEST = "sha256:" + "0123456789abcdef" * 4
CLAIMS = ReadGrant("team-a", "ocr", "v1.2", DIGEST)
TEXT = sign(KEY, *CLAIMS)


def test_a_grant_says_what_it_opens() -> None:
    assert verify(KEY, TEXT) == CLAIMS
    assert read_grant.is_grant(TEXT)


def test_a_grant_may_stand_in_a_header_as_a_bearer_token() -> None:
    assert set(TEXT) <= set(string.ascii_letters + string.digits + "-._~+/")
    longest = sign(KEY, "n" * 63, "m" * 63, "v" * 63, DIGEST)
    assert verify(KEY, longest) is not None


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(CLAIMS._replace(namespace="team-b"), id="another namespace"),
        pytest.param(CLAIMS._replace(model="ocr2"), id="another model"),
        pytest.param(CLAIMS._replace(version="v1.3"), id="another version"),
        pytest.param(CLAIMS._replace(digest=DIGEST.replace("0", "f")), id="other content"),
    ],
)
def test_the_signature_of_one_grant_is_worth_nothing_for_another(other: ReadGrant) -> None:
    signature = TEXT.rpartition("/")[2]
    claims = sign(KEY, *other).rpartition("/")[0]
    assert verify(KEY, f"{claims}/{signature}") is None


@given(st.integers(min_value=0, max_value=len(TEXT) - 1))
def test_a_cut_grant_opens_nothing(length: int) -> None:
    assert verify(KEY, TEXT[:length]) is None


@given(st.text(min_size=1))
def test_an_extended_grant_opens_nothing(more: str) -> None:
    assert verify(KEY, TEXT + more) is None
    assert verify(KEY, more + TEXT) is None


@given(st.integers(min_value=0, max_value=len(TEXT) - 1), st.characters())
def test_a_grant_with_one_other_character_opens_nothing(place: int, character: str) -> None:
    changed = TEXT[:place] + character + TEXT[place + 1 :]
    assert (verify(KEY, changed) is None) == (changed != TEXT)


@given(st.text())
def test_no_text_of_a_stranger_opens_anything(text: str) -> None:
    assert verify(KEY, text) is None


def test_another_key_opens_nothing() -> None:
    assert verify(b"o" * 32, TEXT) is None


def test_an_empty_key_signs_and_verifies_nothing() -> None:
    with pytest.raises(ValueError, match="need a key"):
        sign(b"", *CLAIMS)
    with pytest.raises(ValueError, match="need a key"):
        verify(b"", TEXT)


def test_a_signed_text_of_another_format_opens_nothing() -> None:
    for claims in ("", "model-read.v2/team-a/ocr/v1.2/" + "0" * 64, "model-read.v1/team-a/ocr"):
        text = f"{claims}/{hmac.new(KEY, claims.encode(), hashlib.sha256).hexdigest()}"
        assert verify(KEY, text) is None


@pytest.mark.parametrize(
    "claims",
    [
        CLAIMS._replace(namespace="team-a/ocr"),
        CLAIMS._replace(model="ocr/v1.2"),
        CLAIMS._replace(version="latest"),
        CLAIMS._replace(version=""),
    ],
)
def test_names_that_no_version_can_have_are_not_signed(claims: ReadGrant) -> None:
    with pytest.raises(BadReference):
        sign(KEY, *claims)


@pytest.mark.parametrize(
    "digest", ["", "0" * 64, "sha256:", "sha256:" + "0" * 63, "sha256:" + "A" * 64, "md5:" + "0" * 64]
)
def test_texts_that_are_no_digest_are_not_signed(digest: str) -> None:
    with pytest.raises(ValueError, match="no digest"):
        sign(KEY, "team-a", "ocr", "1", digest)


@pytest.mark.parametrize("token", ["", "eyJhbGciOiJSUzI1NiJ9.e30.AAAA", "sha256~abc"])
def test_tokens_of_kubernetes_are_not_taken_for_grants(token: str) -> None:
    assert not read_grant.is_grant(token)
