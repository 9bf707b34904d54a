"""Bearer tokens: the static one of the administrator and signed ones of ServiceAccounts.

A ServiceAccount token is a JWT signed with ES256 by a key of this platform, with the claims of Kubernetes' bound
tokens. Verifying says only that the token was issued here, for this audience, and has not expired; whether the account
(or pod) it names still exists is asked by `authentication.py`. No token appears in an error, a repr or a log line.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import secrets
import uuid
from collections import OrderedDict
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

from paddlecloud.kube import errors
from paddlecloud.kube.clock import Clock, SystemClock, rfc3339
from paddlecloud.kube.resource import Object
from paddlecloud.local.privatefiles import private_directory, read_private, write_private

ISSUER = "https://kubernetes.default.svc.cluster.local"
_ECDSA = ec.ECDSA(hashes.SHA256())
_LONGEST_TOKEN = 16 * 1024
_REMEMBERED = 2048

Lookup = Callable[[str, str, str], str | None]
"""The uid of (kind, namespace, name), None when there is no such object. Kinds: ServiceAccount, Pod, Secret, Node."""


class InvalidToken(Exception):
    """Why a token was refused. The message never holds any part of the token."""


def ensure_token(path: Path) -> str:
    """The token in the file, made when there is none. Anyone who can read the file is the administrator."""
    private_directory(path.parent)
    content = (read_private(path) or b"").decode("ascii", "replace").strip()
    if not content:
        content = secrets.token_urlsafe(32)
        write_private(path, content.encode() + b"\n")
    return content


@dataclass(frozen=True, slots=True)
class BoundObject:
    """The object whose end is also the end of the token; the node of a bound pod is only named."""

    kind: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Claims:
    """What a verified token says."""

    namespace: str
    account: str
    account_uid: str
    audiences: tuple[str, ...]
    expires: float
    token_id: str
    bound: tuple[BoundObject, ...] = ()

    @property
    def ends_with(self) -> tuple[BoundObject, ...]:
        """As kube-apiserver has it (pkg/serviceaccount/claims.go): a pod's token outlives the pod's node."""
        of_pod = any(one.kind == "Pod" for one in self.bound)
        return tuple(one for one in self.bound if not (of_pod and one.kind == "Node"))


class TokenIssuer:
    """Signs and verifies ServiceAccount tokens with one key."""

    def __init__(
        self,
        key: ec.EllipticCurvePrivateKey,
        *,
        issuer: str = ISSUER,
        audiences: Collection[str] = (ISSUER,),
        clock: Clock | None = None,
    ) -> None:
        self._key = key
        self._public = key.public_key()
        self._issuer = issuer
        self._clock = clock or SystemClock()
        self.audiences = tuple(audiences)
        public = self._public.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
        self.key_id = _encode(hashlib.sha256(public).digest())
        self._header = _encode(_json({"alg": "ES256", "kid": self.key_id}))
        # Checking a signature costs a hundred times what looking it up does. Digests, so that memory holds no tokens.
        self._verified: OrderedDict[bytes, Claims] = OrderedDict()

    def __repr__(self) -> str:
        return f"TokenIssuer(issuer={self._issuer!r}, key_id={self.key_id!r})"

    @classmethod
    def load(cls, path: Path, *, issuer: str = ISSUER, clock: Clock | None = None) -> TokenIssuer:
        """With the key in the file, made when there is none. Losing it ends every ServiceAccount token."""
        private_directory(path.parent)
        pem = read_private(path)
        if pem is None:
            made = ec.generate_private_key(ec.SECP256R1())
            encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
            write_private(path, made.private_bytes(encoding, form, serialization.NoEncryption()))
            return cls(made, issuer=issuer, audiences=(issuer,), clock=clock)
        try:
            key = serialization.load_pem_private_key(pem, password=None)
        except (ValueError, TypeError) as error:
            raise _bad_key(path) from error
        if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
            raise _bad_key(path)
        return cls(key, issuer=issuer, audiences=(issuer,), clock=clock)

    def issue(
        self,
        *,
        namespace: str,
        name: str,
        uid: str,
        audiences: Collection[str] = (),
        seconds: float = 3600,
        bound: Collection[BoundObject] = (),
    ) -> tuple[str, float]:
        """A new token and when it expires."""
        now = int(self._clock.now())
        expires = now + int(seconds)
        kubernetes: dict[str, Any] = {"namespace": namespace, "serviceaccount": {"name": name, "uid": uid}}
        kubernetes |= {entry.kind.lower(): {"name": entry.name, "uid": entry.uid} for entry in bound}
        payload = {
            "aud": list(audiences or self.audiences),
            "exp": expires,
            "iat": now,
            "iss": self._issuer,
            "jti": str(uuid.uuid4()),
            "kubernetes.io": kubernetes,
            "nbf": now,
            "sub": account_user_name(namespace, name),
        }
        signed = f"{self._header}.{_encode(_json(payload))}"
        r, s = decode_dss_signature(self._key.sign(signed.encode(), _ECDSA))
        return f"{signed}.{_encode(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}", float(expires)

    def verify(self, token: str, audiences: Collection[str] | None = None) -> Claims:
        """What the token says, if it was issued here and is good now for one of `audiences` (default: this API).

        `nbf` is written for verifiers elsewhere and not checked here: every token was issued by this very clock, so
        one from the future only means that the clock was set back.
        """
        if len(token) > _LONGEST_TOKEN:
            raise InvalidToken("the token is too long")
        digest = hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
        claims = self._verified.get(digest)
        if claims is None:
            claims = self._check_signature(token)
            self._verified[digest] = claims
            if len(self._verified) > _REMEMBERED:
                self._verified.popitem(last=False)
        if claims.expires <= self._clock.now():
            raise InvalidToken("the token has expired")
        if not set(claims.audiences) & set(self.audiences if audiences is None else audiences):
            raise InvalidToken("the token is meant for another audience")
        return claims

    def issued_here(self, token: str) -> bool:
        """Whether the token looks like one of ours: distinguishes a bad token from another issuer's."""
        return token.startswith(self._header + ".")

    def _check_signature(self, token: str) -> Claims:
        parts = token.split(".")
        if len(parts) != 3:
            raise InvalidToken("not a JSON web token")
        header = _decode_json(parts[0])
        # The algorithm is fixed: a token must not choose how it is checked.
        if header.get("alg") != "ES256" or header.get("kid") != self.key_id:
            raise InvalidToken("signed by an unknown key or with another algorithm")
        signature = _decode(parts[2])
        if len(signature) != 64:
            raise InvalidToken("the signature has the wrong length")
        der = encode_dss_signature(int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:], "big"))
        try:
            self._public.verify(der, f"{parts[0]}.{parts[1]}".encode(), _ECDSA)
        except InvalidSignature as error:
            raise InvalidToken("the signature is wrong") from error
        payload = _decode_json(parts[1])
        if payload.get("iss") != self._issuer:
            raise InvalidToken("issued by somebody else")
        return _claims(payload)

    # --- for verifiers elsewhere ---

    def openid_configuration(self, *, jwks_uri: str) -> Object:
        """`/.well-known/openid-configuration`."""
        return {
            "issuer": self._issuer,
            "jwks_uri": jwks_uri,
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["ES256"],
        }

    def jwks(self) -> Object:
        """`/openid/v1/jwks`: the public key."""
        numbers = self._public.public_numbers()
        point = {axis: _encode(value.to_bytes(32, "big")) for axis, value in (("x", numbers.x), ("y", numbers.y))}
        key = {"use": "sig", "kty": "EC", "kid": self.key_id, "crv": "P-256", "alg": "ES256", **point}
        return {"keys": [key]}


def account_user_name(namespace: str, name: str) -> str:
    return f"system:serviceaccount:{namespace}:{name}"


def _bad_key(path: Path) -> errors.InternalError:
    return errors.InternalError(
        f"{path} holds no P-256 key: restore it from a backup, or delete it to get a new one; "
        "every ServiceAccount token issued so far then ends"
    )


_BINDABLE = ("Pod", "Secret", "Node")


def _claims(payload: dict[str, Any]) -> Claims:
    """From a payload whose signature was good: it has the shape `issue` gave it."""
    kubernetes = payload["kubernetes.io"]
    account = kubernetes["serviceaccount"]
    bound = tuple(
        BoundObject(kind, kubernetes[kind.lower()]["name"], kubernetes[kind.lower()]["uid"])
        for kind in _BINDABLE
        if kind.lower() in kubernetes
    )
    return Claims(
        namespace=kubernetes["namespace"],
        account=account["name"],
        account_uid=account["uid"],
        audiences=tuple(payload["aud"]),
        expires=float(payload["exp"]),
        token_id=payload["jti"],
        bound=bound,
    )


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), sort_keys=True).encode()


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    try:
        raw = text.encode("ascii")
        data = base64.b64decode(raw + b"=" * (-len(raw) % 4), altchars=b"-_", validate=True)
    except (UnicodeEncodeError, binascii.Error) as error:
        raise InvalidToken("not base64url") from error
    if _encode(data) != text:  # one token, one spelling: unused bits and padding must be as encoded
        raise InvalidToken("not base64url")
    return data


def _decode_json(text: str) -> dict[str, Any]:
    try:
        value = json.loads(_decode(text))
    except (ValueError, RecursionError) as error:
        raise InvalidToken("not JSON") from error
    if not isinstance(value, dict):
        raise InvalidToken("not a JSON object")
    return value


# --- TokenRequest ---

_SHORTEST_REQUEST, _LONGEST_REQUEST, _DEFAULT_REQUEST = 600, 1 << 32, 3600
EXTENDED_REQUEST, _EXTENSION = 3607, 365 * 24 * 3600
"""Tokens in pods are asked for with just this length and last a year: programs that read theirs once keep working.
Kubernetes does the same, by the same number. Such a token still ends with its pod."""


def token_request(
    issuer: TokenIssuer, account: Object, request: Object, *, lookup: Lookup, node_of_pod: str = ""
) -> Object:
    """The answer to a create of `serviceaccounts/NAME/token`: the request with its status filled in.

    `node_of_pod` is where the pod runs that the token is bound to; the token names that node for those who verify it.
    """
    spec = request.get("spec") or {}
    seconds = spec.get("expirationSeconds")
    seconds = _DEFAULT_REQUEST if seconds is None else seconds
    meta = account["metadata"]
    causes = _request_causes(spec, seconds)
    if causes:
        raise errors.invalid("TokenRequest", meta["name"], causes, group="authentication.k8s.io")
    bound = _bound_objects(spec.get("boundObjectRef"), meta["namespace"], lookup)
    if node_of_pod and bound and bound[0].kind == "Pod":
        bound = (*bound, BoundObject("Node", node_of_pod, lookup("Node", "", node_of_pod) or ""))
    audiences = spec.get("audiences") or list(issuer.audiences)
    token, expires = issuer.issue(
        namespace=meta["namespace"],
        name=meta["name"],
        uid=meta["uid"],
        audiences=audiences,
        seconds=_EXTENSION if _extended(spec, seconds, bound) else seconds,
        bound=bound,
    )
    if _extended(spec, seconds, bound):
        expires -= _EXTENSION - seconds  # the holder sees the time at which to renew it
    return {
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {"name": meta["name"], "namespace": meta["namespace"]},
        "spec": {**spec, "audiences": audiences, "expirationSeconds": seconds},
        "status": {"token": token, "expirationTimestamp": rfc3339(expires)},
    }


def _extended(spec: Object, seconds: int, bound: Collection[BoundObject]) -> bool:
    return seconds == EXTENDED_REQUEST and not spec.get("audiences") and any(one.kind == "Pod" for one in bound)


def _request_causes(spec: Object, seconds: Any) -> list[tuple[str, str, str]]:
    field = "spec.expirationSeconds"
    if not isinstance(seconds, int) or isinstance(seconds, bool):
        return [(field, "FieldValueTypeInvalid", "Invalid value: must be an integer")]
    if seconds < _SHORTEST_REQUEST:
        message = f"Invalid value: {seconds}: may not specify a duration less than 10 minutes"
        return [(field, "FieldValueInvalid", message)]
    if seconds > _LONGEST_REQUEST:
        message = f"Invalid value: {seconds}: may not specify a duration larger than 2^32 seconds"
        return [(field, "FieldValueInvalid", message)]
    audiences = spec.get("audiences") or []
    if not isinstance(audiences, list) or not all(isinstance(audience, str) for audience in audiences):
        return [("spec.audiences", "FieldValueTypeInvalid", "Invalid value: must be a list of strings")]
    return []


def _bound_objects(reference: Any, namespace: str, lookup: Lookup) -> tuple[BoundObject, ...]:
    if not isinstance(reference, dict):
        return ()
    kind, name = str(reference.get("kind") or ""), str(reference.get("name") or "")
    if kind not in _BINDABLE or reference.get("apiVersion", "v1") != "v1":
        shown = f"{reference.get('apiVersion', 'v1')}, Kind={kind}"
        raise errors.BadRequest(f"cannot bind token to object of type {shown}")
    uid = lookup(kind, "" if kind == "Node" else namespace, name)
    if uid is None:
        raise errors.not_found(f"{kind.lower()}s", name)
    wanted = reference.get("uid")
    if wanted and wanted != uid:
        why = f"the UID in the bound object reference ({wanted}) does not match the UID in record. "
        raise errors.conflict(f"{kind.lower()}s", name, why + "The object might have been deleted and then recreated")
    return (BoundObject(kind, name, uid),)
