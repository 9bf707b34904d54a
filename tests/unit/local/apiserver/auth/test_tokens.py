"""Tokens: where they lie, what they say, when they end, and that they show up nowhere."""

from __future__ import annotations

import base64
import json
import stat
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.kube import errors
from paddlecloud.kube.clock import FakeClock, rfc3339
from paddlecloud.local.apiserver.auth.tokens import (
    ISSUER,
    BoundObject,
    InvalidToken,
    TokenIssuer,
    ensure_token,
    token_request,
)

KEY = ec.generate_private_key(ec.SECP256R1())
ACCOUNT: dict[str, Any] = {"metadata": {"namespace": "ns", "name": "robot", "uid": "u-1"}}


def decode(part: str) -> Any:
    return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))


def encode(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def issue(issuer: TokenIssuer, **options: Any) -> str:
    return issuer.issue(namespace="ns", name="robot", uid="u-1", **options)[0]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def issuer(clock: FakeClock) -> TokenIssuer:
    return TokenIssuer(KEY, clock=clock)


# --- the administrator's token ---


def test_the_admin_token_is_made_once_and_private(tmp_path: Path) -> None:
    path = tmp_path / "auth" / "admin.token"
    token = ensure_token(path)
    assert len(token) >= 43
    assert ensure_token(path) == token
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_an_empty_token_file_is_filled(tmp_path: Path) -> None:
    path = tmp_path / "admin.token"
    path.write_text("\n")
    assert len(ensure_token(path)) >= 43


# --- ServiceAccount tokens ---


def test_claims_are_those_of_kubernetes(issuer: TokenIssuer, clock: FakeClock) -> None:
    token = issue(issuer, bound=[BoundObject("Pod", "p", "u-2")], seconds=700)
    header, payload, _ = token.split(".")
    assert decode(header) == {"alg": "ES256", "kid": issuer.key_id}
    claims = decode(payload)
    assert claims["iss"] == ISSUER
    assert claims["sub"] == "system:serviceaccount:ns:robot"
    assert claims["aud"] == [ISSUER]
    assert claims["exp"] - claims["iat"] == 700
    assert claims["kubernetes.io"] == {
        "namespace": "ns",
        "serviceaccount": {"name": "robot", "uid": "u-1"},
        "pod": {"name": "p", "uid": "u-2"},
    }


def test_a_good_token_verifies(issuer: TokenIssuer) -> None:
    claims = issuer.verify(issue(issuer, bound=[BoundObject("Pod", "p", "u-2")]))
    assert (claims.namespace, claims.account, claims.account_uid) == ("ns", "robot", "u-1")
    assert claims.bound == (BoundObject("Pod", "p", "u-2"),)


async def test_a_token_ends_in_time_even_when_it_was_seen_before(issuer: TokenIssuer, clock: FakeClock) -> None:
    token = issue(issuer, seconds=600)
    issuer.verify(token)
    await clock.advance(599)
    issuer.verify(token)
    await clock.advance(1)
    with pytest.raises(InvalidToken, match="expired"):
        issuer.verify(token)


def test_a_clock_set_back_ends_no_token(issuer: TokenIssuer) -> None:
    token = issue(issuer)
    TokenIssuer(KEY, clock=FakeClock(start=1_600_000_000.0)).verify(token)


def test_audiences_must_meet(issuer: TokenIssuer) -> None:
    token = issue(issuer, audiences=["vault"])
    assert issuer.verify(token, ["vault", "other"]).audiences == ("vault",)
    with pytest.raises(InvalidToken, match="audience"):
        issuer.verify(token)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda h, p, s: f"{encode({'alg': 'none'})}.{p}.", "unknown key or with another algorithm"),
        (lambda h, p, s: f"{encode({**decode(h), 'alg': 'HS256'})}.{p}.{s}", "another algorithm"),
        (lambda h, p, s: f"{encode({**decode(h), 'kid': 'x'})}.{p}.{s}", "unknown key"),
        (lambda h, p, s: f"{h}.{encode({**decode(p), 'sub': 'admin'})}.{s}", "signature is wrong"),
        (lambda h, p, s: f"{h}.{p}.{s[:84]}", "wrong length"),
        (lambda h, p, s: f"{h}.{p}.{'A' * 86}", "signature is wrong"),
        (lambda h, p, s: f"{h}.{p}", "not a JSON web token"),
        (lambda h, p, s: f"{h}.{p}.{s}.x", "not a JSON web token"),
        (lambda h, p, s: f"{h}=.{p}.{s}", "not base64url"),
        (lambda h, p, s: f"{encode([1])}.{p}.{s}", "not a JSON object"),
        (lambda h, p, s: f"!!.{p}.{s}", "not base64url"),
        (lambda h, p, s: f"é.{p}.{s}", "not base64url"),
        (lambda h, p, s: "x" * 20000, "too long"),
        (lambda h, p, s: "", "not a JSON web token"),
    ],
)
def test_changed_tokens_are_refused_without_repeating_them(issuer: TokenIssuer, change: Any, message: str) -> None:
    token = change(*issue(issuer).split("."))
    with pytest.raises(InvalidToken, match=message) as caught:
        issuer.verify(token)
    assert not token or token not in str(caught.value)


@given(st.integers(0, 85), st.sampled_from("ABab01-_"))
def test_no_other_spelling_of_a_signature_is_accepted(position: int, char: str) -> None:
    issuer = TokenIssuer(KEY, clock=FakeClock())
    token = issue(issuer)
    head, signature = token.rsplit(".", 1)
    changed = signature[:position] + char + signature[position + 1 :]
    if changed != signature:
        with pytest.raises(InvalidToken):
            issuer.verify(f"{head}.{changed}")


def test_a_token_of_another_platform_is_refused(clock: FakeClock) -> None:
    other = TokenIssuer(ec.generate_private_key(ec.SECP256R1()), clock=clock)
    with pytest.raises(InvalidToken, match="unknown key"):
        TokenIssuer(KEY, clock=clock).verify(issue(other))


def test_the_key_is_kept_so_that_tokens_survive_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "pki" / "sa.key"
    token = issue(TokenIssuer.load(path))
    assert TokenIssuer.load(path).verify(token).account == "robot"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_damaged_key_is_an_error_with_a_way_out(tmp_path: Path) -> None:
    path = tmp_path / "sa.key"
    path.write_text("garbage")
    with pytest.raises(errors.InternalError, match="restore it from a backup, or delete it"):
        TokenIssuer.load(path)


def test_remembered_tokens_are_bounded_and_not_kept_in_clear(issuer: TokenIssuer) -> None:
    tokens = [issue(issuer) for _ in range(3)]
    for token in tokens:
        issuer.verify(token)
    assert all(isinstance(key, bytes) and len(key) == 32 for key in issuer._verified)
    assert not any(token in repr(issuer) + repr(vars(issuer)) for token in tokens)


def test_the_public_key_is_published(issuer: TokenIssuer) -> None:
    (key,) = issuer.jwks()["keys"]
    numbers = KEY.public_key().public_numbers()
    raw = base64.urlsafe_b64decode(key["x"] + "=")
    assert int.from_bytes(raw, "big") == numbers.x
    assert key["kid"] == issuer.key_id
    assert "d" not in key
    assert issuer.openid_configuration(jwks_uri="https://x/openid/v1/jwks")["issuer"] == ISSUER


# --- TokenRequest ---

OBJECTS = {("Pod", "ns", "p"): "u-2", ("Node", "", "n"): "u-3"}


def lookup(kind: str, namespace: str, name: str) -> str | None:
    return OBJECTS.get((kind, namespace, name))


def request(issuer: TokenIssuer, **spec: Any) -> dict[str, Any]:
    return token_request(issuer, ACCOUNT, {"kind": "TokenRequest", "spec": spec}, lookup=lookup)


def test_a_token_can_be_requested(issuer: TokenIssuer, clock: FakeClock) -> None:
    answer = request(issuer, expirationSeconds=7200, audiences=["vault"])
    assert answer["status"]["expirationTimestamp"] == rfc3339(clock.now() + 7200)
    assert issuer.verify(answer["status"]["token"], ["vault"]).account == "robot"
    assert answer["metadata"] == {"name": "robot", "namespace": "ns"}


def test_an_empty_request_gets_an_hour_for_this_api(issuer: TokenIssuer, clock: FakeClock) -> None:
    answer = token_request(issuer, ACCOUNT, {}, lookup=lookup)
    assert answer["spec"] == {"audiences": [ISSUER], "expirationSeconds": 3600}
    assert issuer.verify(answer["status"]["token"]).expires == clock.now() + 3600


@pytest.mark.parametrize(("kind", "name", "uid"), [("Pod", "p", "u-2"), ("Node", "n", "u-3")])
def test_tokens_can_be_bound(issuer: TokenIssuer, kind: str, name: str, uid: str) -> None:
    answer = request(issuer, boundObjectRef={"kind": kind, "apiVersion": "v1", "name": name, "uid": uid})
    assert issuer.verify(answer["status"]["token"]).bound == (BoundObject(kind, name, uid),)


def test_a_token_of_a_pod_names_the_node_and_does_not_end_with_it(issuer: TokenIssuer) -> None:
    spec = {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "p"}}
    answer = token_request(issuer, ACCOUNT, {"spec": spec}, lookup=lookup, node_of_pod="n")
    claims = issuer.verify(answer["status"]["token"])
    assert claims.bound == (BoundObject("Pod", "p", "u-2"), BoundObject("Node", "n", "u-3"))
    assert claims.ends_with == (BoundObject("Pod", "p", "u-2"),)


@pytest.mark.parametrize(
    ("spec", "error", "message"),
    [
        ({"expirationSeconds": 599}, errors.Invalid, "may not specify a duration less than 10 minutes"),
        ({"expirationSeconds": 2**32 + 1}, errors.Invalid, "may not specify a duration larger than 2^32 seconds"),
        ({"expirationSeconds": "1h"}, errors.Invalid, "must be an integer"),
        ({"audiences": "vault"}, errors.Invalid, "must be a list of strings"),
        ({"boundObjectRef": {"kind": "ConfigMap", "name": "c"}}, errors.BadRequest, "cannot bind token to object"),
        ({"boundObjectRef": {"kind": "Pod", "name": "gone"}}, errors.NotFound, 'pods "gone" not found'),
        ({"boundObjectRef": {"kind": "Pod", "name": "p", "uid": "old"}}, errors.Conflict, "does not match the UID"),
    ],
)
def test_bad_requests_are_refused(
    issuer: TokenIssuer, spec: dict[str, Any], error: type[errors.ApiError], message: str
) -> None:
    with pytest.raises(error) as caught:
        request(issuer, **spec)
    assert message in caught.value.message
