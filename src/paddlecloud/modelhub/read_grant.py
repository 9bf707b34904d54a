"""A read grant: the right to read the content of one version, as a text that pods present instead of a user's token.

The operator signs it for the pods of a service, the hub verifies it; both have the key (`KEY_NAME`, a Secret of the
controllers' namespace, `kube.shared_key`). It names namespace, model, version and digest, and is good for nothing but
reading these files: no other version, no list, no upload. It does not expire, because what it opens never changes: if
the version is deleted and another is pushed under its name, the digest is another and the grant is void. All grants
end when the key is replaced.

The text is `model-read.v1/NAMESPACE/MODEL/VERSION/SHA256/SIGNATURE`: characters that a bearer token may have, and none
of its parts may contain the slash that separates them, so two different claims never have the same text. Pure.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import NamedTuple

from paddlecloud.api.model import reference

KEY_NAME = "paddlecloud-model-read-key"
PREFIX = "model-read.v1"
_ALGORITHM = "sha256:"
_HEX = frozenset("0123456789abcdef")
_LONGEST = 512


class ReadGrant(NamedTuple):
    """What a grant opens: exactly this version with exactly this content."""

    namespace: str
    model: str
    version: str
    digest: str
    """As `Manifest.digest`: `sha256:` and 64 hexadecimal digits."""


def sign(key: bytes, namespace: str, model: str, version: str, digest: str) -> str:
    """The text of the grant. Raises `BadReference` for names and `ValueError` for digests that no version can have."""
    names = reference.namespace_name(namespace), reference.model_name(model), reference.version_name(version)
    claims = "/".join((PREFIX, *names, _hexadecimal(digest)))
    return f"{claims}/{_signature(key, claims)}"


def verify(key: bytes, text: str) -> ReadGrant | None:
    """What the text opens, or None if it was not signed with this key."""
    claims, _, given = text.rpartition("/")
    if len(text) > _LONGEST or not hmac.compare_digest(_signature(key, claims).encode(), _bytes(given)):
        return None
    parts = claims.split("/")
    if len(parts) != 5 or parts[0] != PREFIX:  # signed by a release with another format
        return None
    _, namespace, model, version, digest = parts
    return ReadGrant(namespace, model, version, _ALGORITHM + digest)


def is_grant(text: str) -> bool:
    """Whether it is meant as a grant of this or of another format, rather than as a token of Kubernetes."""
    return text.startswith("model-read.")


def _signature(key: bytes, claims: str) -> str:
    if not key:
        raise ValueError("grants need a key: with an empty one anybody could sign")
    return hmac.new(key, _bytes(claims), hashlib.sha256).hexdigest()


def _hexadecimal(digest: str) -> str:
    found = digest.removeprefix(_ALGORITHM)
    if found == digest or len(found) != 64 or not _HEX.issuperset(found):
        raise ValueError(f"{digest[:80]!r} is no digest of a version: sha256: and 64 hexadecimal digits")
    return found


def _bytes(text: str) -> bytes:
    """Headers may hold any byte; texts that cannot be encoded are compared, never raised."""
    return text.encode("utf-8", "surrogatepass")
