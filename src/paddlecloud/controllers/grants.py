"""References into another namespace: only what the owner of the object has granted.

Controllers may read Secrets of every namespace, the authors of SampleSets and SampleJobs may not. A Secret of another
namespace is therefore used only when an annotation on the Secret itself lists the namespace that wants it: a user who
may write the annotation may also read the Secret. A Secret that is not granted and one that does not exist are reported
in the same words, so that nobody learns the names of foreign Secrets by asking.

A grant that is withdrawn ends what comes next: see `docs/sampleset.md`, *Secrets of another namespace*.
"""

from __future__ import annotations

from paddlecloud.api.sampleset import Secret
from paddlecloud.kube.resource import Object

GRANTED = "batch.paddlepaddle.org/granted-namespaces"
"""Annotation of a Secret: the other namespaces whose sets and jobs may use it, separated by commas."""


def is_usable(secret: Object, namespace: str) -> bool:
    """Whether objects of a namespace may use the Secret: it is their own, or granted to them."""
    meta = secret["metadata"]
    listed = str((meta.get("annotations") or {}).get(GRANTED) or "").split(",")
    return meta["namespace"] == namespace or (bool(namespace) and namespace in (name.strip() for name in listed))


def is_foreign(secret: Secret, namespace: str) -> bool:
    return secret.namespace != namespace


def refusal(secret: Secret, namespace: str) -> tuple[str, str]:
    """Why a Secret cannot be used: a reason for programs and what to do, for people."""
    if not is_foreign(secret, namespace):
        return "SecretNotExist", f"Secret {secret.namespace}/{secret.name} does not exist"
    return "SecretNotGranted", (
        f"Secret {secret.namespace}/{secret.name} is not granted to namespace {namespace}: use a Secret of "
        f"{namespace}, or ask the owner of {secret.namespace} to annotate theirs with {GRANTED}: {namespace}"
    )
