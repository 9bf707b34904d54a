"""People who may sign in on one machine, as the Secret `notebook-users` keeps them: digests and ends. Pure.

Somebody new has a one-time token, and with it chooses a password. A token is used up by that, ends by itself, and is
replaced by the next one. Nobody has a password that somebody else chose.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import re
from collections.abc import Mapping

import msgspec

from paddlecloud.kube.resource import Object
from paddlecloud.notebooks import passwords
from paddlecloud.notebooks.names import NAMESPACE, USERS, USERS_KEY

LASTS = 24 * 3600.0
"""Seconds until a one-time token ends."""
MOST = 2000
"""People; the Secret stays below half of what an object may hold."""
_NAME = re.compile(r"[a-z0-9]([a-z0-9.@_-]{0,61}[a-z0-9])?")


class UsersError(ValueError):
    """What was asked for cannot be done; the text says why."""


class LocalUser(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    password: str = ""
    """Its digest; empty until the one-time token was used."""
    token: str = ""
    """The digest of the one-time token; empty once it was used."""
    token_ends: float = 0.0


Users = dict[str, LocalUser]


def name_problem(name: str) -> str:
    """Why nobody can be called so here; empty if it is a name."""
    if _NAME.fullmatch(name):
        return ""
    return f"{name!r} is no name of a user: small letters, digits and . _ - @ inside, at most 63"


def read(secret: Object | None) -> Users:
    """Raises `UsersError` for a Secret that somebody changed into something else."""
    encoded = ((secret or {}).get("data") or {}).get(USERS_KEY)
    if not encoded:
        return {}
    try:
        return msgspec.json.decode(base64.b64decode(encoded, validate=True), type=Users)
    except (binascii.Error, msgspec.MsgspecError, TypeError) as error:
        raise UsersError(f"Secret {USERS} cannot be read: {error}") from error


def written(users: Mapping[str, LocalUser], secret: Object | None, *, namespace: str = NAMESPACE) -> Object:
    """The Secret with these people; its version is that of the one read, so that no change of others is lost."""
    data = {USERS_KEY: base64.b64encode(msgspec.json.encode(users)).decode()}
    if secret is not None:
        return {**secret, "data": data}
    meta = {"name": USERS, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "type": "Opaque", "data": data}


def invited(users: Users, name: str, token: str, now: float, *, lasts: float = LASTS) -> Users:
    """With a new token for this name; a password it has goes on until another is chosen."""
    if problem := name_problem(name):
        raise UsersError(problem)
    if name not in users and len(users) >= MOST:
        raise UsersError(f"there are {MOST} users already; for more than that use a cluster with OIDC")
    known = users.get(name, LocalUser())
    return {**users, name: msgspec.structs.replace(known, token=passwords.digest(token), token_ends=now + lasts)}


def without(users: Users, name: str) -> Users:
    if name not in users:
        raise UsersError(f"there is no user {name}")
    return {other: user for other, user in users.items() if other != name}


def accepts(users: Users, name: str, password: str) -> bool:
    """Whether this is the password of this name; takes as long for names that do not exist."""
    kept = users.get(name, LocalUser()).password
    return passwords.matches(password, kept or passwords.NOBODYS) and bool(kept)


@dataclasses.dataclass(frozen=True, slots=True)
class Redeemed:
    """What came of a token: the people with the new password, or why not."""

    users: Users | None = None
    refusal: str = ""
    wrong: bool = False
    """The token is not that of this name: a try that counts."""


def redeemed(users: Users, name: str, token: str, password: str, now: float) -> Redeemed:
    known = users.get(name, LocalUser())
    if not passwords.matches(token.strip().lower(), known.token or passwords.NOBODYS) or not known.token:
        return Redeemed(refusal="This is not the one-time token of this name, or it was used already.", wrong=True)
    if now >= known.token_ends:
        return Redeemed(refusal="This one-time token has ended. Ask for a new one: pdc notebooks user NAME")
    if problem := passwords.problem(password, name):
        return Redeemed(refusal=f"Choose another password: {problem}.")
    return Redeemed({**users, name: LocalUser(password=passwords.digest(password))})
