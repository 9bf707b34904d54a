"""Names, labels and ids: everything by which a SampleSet finds its own objects, nodes and jobs again.

All of them are derived, never random, so that a repeated pass finds what an interrupted one has made. The first group
is what users and older controllers know; none of it may change.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

from paddlecloud.api.names import SAMPLESET_LABEL

SAMPLE_SET = SAMPLESET_LABEL

TEMPLATE = "paddlepaddle.org/template"
"""Annotation of the StatefulSet: a digest of the pod template it was given, so that only a new one is written."""

CREATED_BY = {"CreatedBy": "paddle-operator"}
STORAGE_CLASS = "paddle-operator"
PORT = 7716
CONTAINER = "runtime"
DATA_ROOT = "/mnt"
CACHE_ROOT = "/cache"
KEYS_ROOT = "/var/run/paddlecloud/keys"
"""Where cache servers find their token and certificate."""
SET_ROOT = "/var/lib/paddlecloud/set"
"""Where the cache servers of a set that is a folder keep what they share; pods that mount the set do not see it."""
JUICEFS_DRIVER = "csi.juicefs.com"
LOCAL_DRIVER = "local.paddlecloud.org"
_ALIAS = 63 - len("juicefs-")
"""Longest name of a volume that fits into the node label of its set."""


def finalizer(name: str) -> str:
    return f"paddlepaddle.org/sampleset-{name}"


def job_finalizer(name: str) -> str:
    """Shortened to what Kubernetes accepts: names of SampleJobs may be longer."""
    return f"paddlepaddle.org/samplejob-{shortened(name, 63 - len('samplejob-'))}"


def shortened(text: str, longest: int = 63) -> str:
    """As much of it as a label may have, or as a finalizer has room for."""
    return text[:longest].rstrip("-.")


def ownership(driver: str, alias: str) -> str:
    """The label that marks what belongs to a set; on a node its value is the name of the cache server there.

    Nodes belong to no namespace, so the name of the set's volume (`alias`), which is unique, stands for the set.
    """
    return f"paddlepaddle.org/{driver}-{alias}"


def unique(namespace: str, name: str) -> str:
    """A name that no other set of the cluster has: the handle of its volume, and the volume's own name where the plain
    one is taken. It must fit into a label.

    Neither part may contain a dot. What is too long ends in `.0` and a digest, and no set's name begins with a digit.
    """
    whole = f"{namespace}.{name}"
    if len(whole) <= _ALIAS:
        return whole
    digest = hashlib.sha256(whole.encode()).hexdigest()[:16]
    return f"{namespace}-{name}"[: _ALIAS - len(digest) - 2].rstrip("-") + f".0{digest}"


def former_alias(namespace: str, name: str) -> str:
    """What earlier releases called a volume whose plain name was taken. `team/x-data` and `team-x/data` share it."""
    whole = f"{namespace}-{name}"
    return whole if len(whole) <= _ALIAS else f"{whole[: _ALIAS - 9]}-{_digest(whole)}"


def runtime(name: str) -> str:
    """The StatefulSet of cache servers."""
    return f"{name}-runtime"


def runtime_keys(name: str) -> str:
    """The Secret with the token and the certificate of the cache servers."""
    return f"{name}-runtime-keys"


def runtime_pod(name: str, ordinal: int) -> str:
    return f"{runtime(name)}-{ordinal}"


def service(name: str) -> str:
    return f"{name}-runtime-service"


def data_dir(name: str) -> str:
    """Where cache servers see the data."""
    return f"{DATA_ROOT}/{name}"


def volume_name(path: str) -> str:
    """The pod volume of a cache directory: `/dev/shm/imagenet` is `dev-shm-imagenet`.

    What a volume name may not contain is replaced; a digest then keeps two such directories apart.
    """
    plain = path.strip("/").replace("/", "-")
    clean = re.sub(r"[^a-z0-9-]+", "-", plain.lower()).strip("-")
    if clean == plain and 0 < len(clean) <= 63:
        return clean
    return f"{clean[:54].strip('-') or 'cache'}-{_digest(path)}"


def cache_dir(path: str) -> str:
    """Where cache servers see a cache directory of their node."""
    return f"{CACHE_ROOT}/{volume_name(path)}"


def job_id(uid: str, *asked: Any) -> str:
    """The id of work on the cache servers: the same for the same request of the same object, another for another."""
    return f"{uid}-{digest_of(asked)}"


def digest_of(value: Any) -> str:
    """A short digest of a JSON value."""
    return _digest(json.dumps(value, sort_keys=True, separators=(",", ":")))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]
