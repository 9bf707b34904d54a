"""Who may report for a job: a token per job, derived from the job's uid and a key that only controllers have.

Deriving needs no store and no look-up, and a job of the same name made later has another token. Pods get it from a
Secret owned by the job, so that it stands neither in the pod nor in the ConfigMap for everybody to read. The key lies
in a Secret too, in the controllers' own namespace: all replicas, and those after a restart, share it.
"""

from __future__ import annotations

import base64
import hashlib
import hmac

from paddlecloud.kube.resource import Object

KEY_NAME = "paddlecloud-report-key"
SUFFIX = "-report"
TOKEN = "token"  # noqa: S105 - the name of a field


def secret_name(job: str, uid: str) -> str:
    """Another for a later job of the same name: the Secret of the earlier one goes with its owner."""
    return f"{job}{SUFFIX}-{hashlib.sha256(uid.encode()).hexdigest()[:8]}"


def derive(key: bytes, uid: str) -> str:
    return hmac.new(key, f"paddlejob report {uid}".encode(), hashlib.sha256).hexdigest()


def proves(authorization: str, token: str, path: str, body: bytes) -> bool:
    """Whether a request is of somebody who has the token. Programs sign (`paddlecloud.data.report.sign`).

    Compares in constant time: how long a refusal takes shows nothing about the token.
    """
    scheme, _, given = authorization.partition(" ")
    signed = hmac.new(token.encode(), path.encode() + b"\n" + body, hashlib.sha256).hexdigest()
    expected = {"Signed": signed, "Bearer": token}.get(scheme, "")
    return bool(token and expected) and hmac.compare_digest(expected.encode(), given.encode(errors="replace"))


def build_secret(metadata: Object, token: str) -> Object:
    data = {TOKEN: base64.b64encode(token.encode()).decode()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "data": data}
