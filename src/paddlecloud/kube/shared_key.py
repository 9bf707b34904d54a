"""A random key that several programs of the project share: in a Secret, made by the first of them that starts.

All replicas, and those after a restart, have the same key, and what it signed stays valid. An account that may read
Secrets of that namespace can sign: it is the namespace of the controllers, where users have no rights.
"""

from __future__ import annotations

import base64
import binascii
import secrets

from paddlecloud.kube.client import Client
from paddlecloud.kube.errors import AlreadyExists, NotFound
from paddlecloud.kube.resource import SECRETS, Object

FIELD = "key"
SHORTEST = 32


async def ensure_key(client: Client, name: str, namespace: str) -> bytes:
    """The key; the first that asks makes it. Raises `ValueError` if somebody wrote another content."""
    if (found := await read_key(client, name, namespace)) is not None:
        return found
    body = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace},
        "type": "Opaque",
        "data": {FIELD: base64.b64encode(secrets.token_bytes(SHORTEST)).decode()},
    }
    try:
        return _key_of(await client.create(SECRETS, body))
    except AlreadyExists:
        return _key_of(await client.get(SECRETS, name, namespace))


async def read_key(client: Client, name: str, namespace: str) -> bytes | None:
    """The key, or None if nobody has made it yet."""
    try:
        return _key_of(await client.get(SECRETS, name, namespace))
    except NotFound:
        return None


def _key_of(secret: Object) -> bytes:
    """An empty or short key would let anybody sign: it is refused."""
    meta = secret["metadata"]
    try:
        key = base64.b64decode((secret.get("data") or {}).get(FIELD) or "", validate=True)
    except (binascii.Error, TypeError):
        key = b""
    if len(key) < SHORTEST:
        shown = f"{meta['namespace']}/{meta['name']}"
        raise ValueError(
            f"the Secret {shown} has no key of {SHORTEST} bytes in its field {FIELD!r}; delete it and restart the "
            "controllers, which make another"
        )
    return key
