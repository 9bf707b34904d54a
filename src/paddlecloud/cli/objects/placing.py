"""Where an object of a file goes: its collection, its namespace, its name."""

from __future__ import annotations

from paddlecloud.cli.failures import InputError
from paddlecloud.cli.objects.manifests import ManifestDocument
from paddlecloud.cli.session import Session
from paddlecloud.kube.resource import Resource
from paddlecloud.sdk.object_ref import ObjectRef as ObjectRef
from paddlecloud.sdk.object_ref import of_object as of_object


def place(session: Session, manifest: ManifestDocument) -> ObjectRef:
    """Asks the server for the kind. The namespace is the object's own, else `-n`, else the context's."""
    return place_of(session, manifest, session.api.resource_of(manifest.object))


def place_of(session: Session, manifest: ManifestDocument, resource: Resource) -> ObjectRef:
    meta = manifest.object["metadata"]
    if not meta.get("name"):
        raise InputError(
            f"{manifest.source}: {manifest.object['kind']} has only a generateName",
            why="apply must know the name of what it changes",
            next=f"kubectl create -f {manifest.source.rpartition(':')[0]}",
        )
    own, asked = meta.get("namespace"), session.args.namespace
    if resource.namespaced and own and asked and own != asked:
        raise InputError(
            f'{manifest.source}: {manifest.label} belongs to namespace "{own}"',
            why=f'-n asks for "{asked}"',
            next=f"leave -n out, or use -n {own}",
        )
    return ObjectRef(resource, str(meta["name"]), str(own or session.namespace) if resource.namespaced else None)
