"""Who is asking: from the headers and the TLS certificate of a request to a `User`.

A bearer token is tried first, then a client certificate. A request with credentials that do not hold is refused, never
served as somebody lesser; a request without any is anonymous, which only the health and version paths allow. What a
user may do is not decided here.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import unquote

from paddlecloud.kube import errors
from paddlecloud.kube.resource import Object
from paddlecloud.local.apiserver.auth.tokens import Claims, InvalidToken, Lookup, TokenIssuer, account_user_name

MASTERS = "system:masters"
AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
_OPEN_PATHS = ("/healthz", "/readyz", "/livez", "/version", "/version/")
"""What the role system:public-info-viewer grants to everybody, whatever becomes of that role."""
_TOO_LARGE_A_TOKEN = 16 * 1024


@dataclass(frozen=True, slots=True)
class User:
    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)

    def info(self) -> Object:
        """The `UserInfo` of reviews and audit."""
        body: Object = {"username": self.name}
        if self.uid:
            body["uid"] = self.uid
        if self.groups:
            body["groups"] = list(self.groups)
        if self.extra:
            body["extra"] = {key: list(values) for key, values in self.extra.items()}
        return body


ANONYMOUS = User("system:anonymous", groups=(UNAUTHENTICATED,))
ADMIN = User("kubernetes-admin", groups=(MASTERS, AUTHENTICATED))
SERVER = User("system:apiserver", groups=(MASTERS, AUTHENTICATED))
"""The API server itself, when one of its own controllers writes."""


def open_to_anonymous(path: str) -> bool:
    """Whether a path may be asked without credentials."""
    return path in _OPEN_PATHS


class Headers(Protocol):
    """What is read of headers: a plain dict with lower-case names or a case-insensitive multi-dict will do."""

    def get(self, key: str, /) -> str | None: ...

    def items(self) -> Iterable[tuple[str, str]]: ...


def header(headers: Headers, name: str) -> str | None:
    value = headers.get(name)
    return headers.get(name.lower()) if value is None else value


class StaticTokens:
    """Tokens known beforehand. Only digests are kept; they are compared in constant time."""

    __slots__ = ("_users",)

    def __init__(self, users: Mapping[str, User]) -> None:
        self._users = {_digest(token): user for token, user in users.items() if token}

    def find(self, token: str) -> User | None:
        digest = _digest(token)
        found: User | None = None
        for known, user in self._users.items():  # all of them, so that the time taken reveals nothing
            if hmac.compare_digest(known, digest):
                found = user
        return found

    def __repr__(self) -> str:
        return f"StaticTokens({len(self._users)} tokens)"


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


class Authenticator:
    """Every way in. `lookup` says whether the account behind a signed token still exists."""

    def __init__(self, static: StaticTokens, *, issuer: TokenIssuer, lookup: Lookup) -> None:
        self._static = static
        self._issuer = issuer
        self._lookup = lookup

    def authenticate(self, headers: Headers, peer_cert: Mapping[str, Any] | None = None) -> User | None:
        """The user, None when the request carries no credentials. Raises `Unauthorized` for bad ones.

        `peer_cert` is what `ssl` reports of the client's certificate, which it has verified against our authority.
        """
        authorization = header(headers, "Authorization")
        if authorization:
            scheme, _, token = authorization.strip().partition(" ")
            if scheme.lower() != "bearer" or not token.strip():
                raise errors.Unauthorized("Unauthorized: send a bearer token or a client certificate")
            return self.user_of_token(token.strip())
        return user_of_certificate(peer_cert) if peer_cert else None

    def identify(self, headers: Headers, peer_cert: Mapping[str, Any] | None, path: str) -> User:
        """Like `authenticate`, with anonymity where it is allowed and refused where it is not."""
        user = self.authenticate(headers, peer_cert)
        if user is None:
            if not open_to_anonymous(path):
                raise errors.Unauthorized("Unauthorized")
            return ANONYMOUS
        return user

    def user_of_token(self, token: str, audiences: Iterable[str] | None = None) -> User:
        if len(token) <= _TOO_LARGE_A_TOKEN and (user := self._static.find(token)) is not None:
            return user
        try:
            claims = self._issuer.verify(token, None if audiences is None else tuple(audiences))
        except InvalidToken as error:
            # Only the bearer of a token of ours learns what is wrong with it.
            reason = f"Unauthorized: {error}" if self._issuer.issued_here(token) else "Unauthorized"
            raise errors.Unauthorized(reason) from None
        self._check_alive(claims)
        return user_of_claims(claims)

    def _check_alive(self, claims: Claims) -> None:
        """A token ends with its account and with the object it is bound to."""
        references = [("ServiceAccount", claims.namespace, claims.account, claims.account_uid)]
        references += [
            (bound.kind, "" if bound.kind == "Node" else claims.namespace, bound.name, bound.uid)
            for bound in claims.ends_with
        ]
        for kind, namespace, name, uid in references:
            if self._lookup(kind, namespace, name) != uid:
                raise errors.Unauthorized(f"Unauthorized: the {kind} this token belongs to no longer exists")


def user_of_claims(claims: Claims) -> User:
    extra = {"authentication.kubernetes.io/credential-id": (f"JTI={claims.token_id}",)}
    for bound in claims.bound:
        if bound.kind in ("Pod", "Node"):
            prefix = f"authentication.kubernetes.io/{bound.kind.lower()}"
            extra |= {f"{prefix}-name": (bound.name,), **({f"{prefix}-uid": (bound.uid,)} if bound.uid else {})}
    return service_account(claims.namespace, claims.account, uid=claims.account_uid, extra=extra)


def service_account(
    namespace: str, name: str, *, uid: str = "", extra: Mapping[str, tuple[str, ...]] | None = None
) -> User:
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", AUTHENTICATED)
    return User(account_user_name(namespace, name), uid, groups, extra or {})


def user_of_certificate(peer_cert: Mapping[str, Any]) -> User:
    """CN is the user, every O a group. The certificate has passed verification already."""
    name, groups = "", []
    for part in peer_cert.get("subject", ()):
        for key, value in part:
            if key == "commonName":
                name = value
            elif key == "organizationName":
                groups.append(value)
    if not name:
        raise errors.Unauthorized("Unauthorized: the client certificate names no user (CN)")
    return User(name, groups=(*groups, AUTHENTICATED))


# --- reviews ---


def token_review(authenticator: Authenticator, review: Object, *, audiences: Iterable[str]) -> Object:
    """The answer to a create of a TokenReview: somebody else asks whom a token belongs to."""
    spec = review.get("spec") or {}
    token, wanted = spec.get("token"), spec.get("audiences") or list(audiences)
    if not isinstance(token, str) or not token:
        raise errors.invalid(
            "TokenReview", "", [("spec.token", "FieldValueRequired", "Required value")], group="authentication.k8s.io"
        )
    try:
        user = authenticator.user_of_token(token, [str(audience) for audience in wanted])
        status: Object = {"authenticated": True, "user": user.info(), "audiences": wanted}
    except errors.Unauthorized as error:
        status = {"authenticated": False, "user": {}, "error": error.message}
    return {**review, "status": status}


def self_subject_review(user: User) -> Object:
    """`kubectl auth whoami`."""
    return {
        "kind": "SelfSubjectReview",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {},
        "status": {"userInfo": user.info()},
    }


# --- impersonation ---

_EXTRA_PREFIX = "impersonate-extra-"
_LABEL = r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?"
_ACCOUNT = re.compile(rf"system:serviceaccount:({_LABEL}):({_LABEL}(?:\.{_LABEL})*)")


@dataclass(frozen=True, slots=True)
class Impersonation:
    """Whom a request asks to be taken for. Every part must be allowed by the rules on the verb `impersonate`."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def user(self) -> User:
        groups = self.groups
        account = self.account
        if account and not groups:
            groups = ("system:serviceaccounts", f"system:serviceaccounts:{account[0]}")
        if self.name != ANONYMOUS.name and UNAUTHENTICATED not in groups and AUTHENTICATED not in groups:
            groups = (*groups, AUTHENTICATED)
        elif self.name == ANONYMOUS.name and UNAUTHENTICATED not in groups:
            groups = (*groups, UNAUTHENTICATED)
        return User(self.name, self.uid, groups, self.extra)

    @property
    def account(self) -> tuple[str, str] | None:
        """Namespace and name if the user is a ServiceAccount; a name that none can have is a plain user's."""
        match = _ACCOUNT.fullmatch(self.name)
        return (match[1], match[2]) if match else None


def impersonation_of(headers: Headers) -> Impersonation | None:
    """The impersonation a request asks for, None for the usual case of none."""
    name = header(headers, "Impersonate-User")
    groups: list[str] = []
    extra: dict[str, tuple[str, ...]] = {}
    for key, value in headers.items():
        lowered = key.lower()
        if lowered == "impersonate-group":
            groups.append(value)
        elif lowered.startswith(_EXTRA_PREFIX):
            extra_key = unquote(lowered.removeprefix(_EXTRA_PREFIX))  # a key may hold what a header name may not
            extra[extra_key] = (*extra.get(extra_key, ()), value)
    if name is None and not groups and not extra and header(headers, "Impersonate-Uid") is None:
        return None
    if not name:
        raise errors.BadRequest("groups, uid or extra to impersonate without a user: send Impersonate-User as well")
    return Impersonation(name, header(headers, "Impersonate-Uid") or "", tuple(groups), extra)
