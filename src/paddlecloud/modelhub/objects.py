"""Model and ModelVersion as they are created for a stored version. Pure; clients and the controller create the same."""

from __future__ import annotations

from paddlecloud.api.model.reference import object_name
from paddlecloud.api.model.spec import ModelVersionSpec
from paddlecloud.api.names import MODEL_LABEL
from paddlecloud.api.problems import encode
from paddlecloud.kube.resource import MODELS, MODELVERSIONS, Object, owner_reference
from paddlecloud.modelhub.manifest import Manifest


def model_object(namespace: str, name: str) -> Object:
    """Without versions and aliases."""
    meta = {"name": name, "namespace": namespace}
    return {"apiVersion": MODELS.api_version, "kind": MODELS.kind, "metadata": meta, "spec": {}}


def version_object(manifest: Manifest, model: Object, *, store: str = "") -> Object:
    """What a manifest says besides its files. `model` is the Model, whose deletion takes it along; `store` is the
    address of the store, empty for that of the platform."""
    return {
        "apiVersion": MODELVERSIONS.api_version,
        "kind": MODELVERSIONS.kind,
        "metadata": {
            "name": object_name(manifest.model, manifest.version),
            "namespace": manifest.namespace,
            "labels": {MODEL_LABEL: manifest.model},
            "ownerReferences": [{**owner_reference(model), "controller": False, "blockOwnerDeletion": False}],
        },
        "spec": encode(_spec(manifest, store)),
    }


def _spec(manifest: Manifest, store: str) -> ModelVersionSpec:
    return ModelVersionSpec(
        model=manifest.model,
        version=manifest.version,
        digest=manifest.digest,
        size=manifest.size,
        files=len(manifest.files),
        store=store or None,
        framework=manifest.framework or None,
        signature=manifest.signature,
        description=manifest.description or None,
        metrics=manifest.metrics or None,
        origin=manifest.origin or None,
        created_by=manifest.created_by or None,
        created_at=manifest.created_at or None,
    )
