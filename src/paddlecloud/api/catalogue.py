"""All declared kinds, and which module understands which object."""

from __future__ import annotations

from paddlecloud.api import (
    argo,
    knative,
    kubeflow,
    paddlejob,
    paddleservice,
    podgroup,
    profile,
    samplejob,
    sampleset,
)
from paddlecloud.api.kind import KindDeclaration
from paddlecloud.api.model.declaration import MODEL, MODEL_VERSION

KINDS: tuple[KindDeclaration, ...] = (
    paddlejob.DECLARATION,
    sampleset.DECLARATION,
    samplejob.DECLARATION,
    paddleservice.DECLARATION,
    paddleservice.ELASTICSERVING,
    MODEL,
    MODEL_VERSION,
)
"""The kinds of this project: what is installed on a cluster."""

FOREIGN_KINDS: tuple[KindDeclaration, ...] = (
    kubeflow.DECLARATION,
    profile.DECLARATION,
    podgroup.POD_GROUP,
    podgroup.QUEUE,
    *knative.KINDS,
    *argo.KINDS,
)
"""Kinds of other projects that the embedded platform serves in their place."""

EMBEDDED_KINDS = KINDS + FOREIGN_KINDS


def find(api_version: str, kind: str) -> KindDeclaration | None:
    """The declaration of what an object calls itself."""
    for declaration in EMBEDDED_KINDS:
        versions = {f"{declaration.group}/{version}" for version in declaration.versions}
        if declaration.kind == kind and api_version in versions:
            return declaration
    return None
