"""Passwords and one-time tokens as digests: scrypt with a salt of its own for each, as text.

The cost of one is some 50 ms and 16 MiB, for those who sign in as for those who guess.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets

_COST, _BLOCK, _LANES = 2**14, 8, 1
_LENGTH, _SALT = 32, 16
_SCHEME = f"scrypt:{_COST}:{_BLOCK}:{_LANES}"
LEAST, MOST = 10, 256
"""Characters of a password."""


def make_token() -> str:
    """Random, and easy to copy: 20 characters of an alphabet of 32."""
    return base64.b32encode(secrets.token_bytes(13)).decode().rstrip("=")[:20].lower()


def digest(secret: str) -> str:
    salt = secrets.token_bytes(_SALT)
    return f"{_SCHEME}${_text(salt)}${_text(_derived(secret, salt))}"


def matches(secret: str, kept: str) -> bool:
    """Whether this is the secret. A digest that cannot be read matches nothing."""
    scheme, _, rest = kept.partition("$")
    salt, _, wanted = rest.partition("$")
    try:
        known, expected = base64.b64decode(salt, validate=True), base64.b64decode(wanted, validate=True)
    except binascii.Error:
        return False
    if scheme != _SCHEME or len(expected) != _LENGTH or len(secret) > MOST:
        return False
    return hmac.compare_digest(_derived(secret, known), expected)


def problem(password: str, user: str) -> str:
    """Why this is no password to have; empty if it is one."""
    if len(password) < LEAST:
        return f"a password has at least {LEAST} characters"
    if len(password) > MOST:
        return f"a password has at most {MOST} characters"
    if password.casefold() in (user.casefold(), user.casefold() * 2) or len(set(password)) < 4:
        return "that password is easy to guess"
    return ""


def _derived(secret: str, salt: bytes) -> bytes:
    return hashlib.scrypt(
        secret.encode("utf-8", "surrogatepass"), salt=salt, n=_COST, r=_BLOCK, p=_LANES, dklen=_LENGTH
    )


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


NOBODYS = digest(secrets.token_hex(16))
"""What names that do not exist are compared with: an answer then takes as long as for others."""
