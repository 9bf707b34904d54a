"""What the API server itself does for Ingresses: their default class, and a word about how classes were named before.

Nothing here sends a request anywhere. As on a cluster that is the task of a controller, which is no part of Kubernetes.
"""

from __future__ import annotations

from paddlecloud.kube.resource import Object
from paddlecloud.local.apiserver.builtin.classes import default_of
from paddlecloud.local.apiserver.builtin.validation.networking import CLASS_ANNOTATION
from paddlecloud.local.apiserver.objects.admission import WriteOptions
from paddlecloud.local.apiserver.registry import KindInfo
from paddlecloud.local.store.store import Store

CLASSES = "networking.k8s.io/ingressclasses"
DEFAULT_MARK = "ingressclass.kubernetes.io/is-default-class"


def assign_class(store: Store, info: KindInfo, obj: Object, old: Object | None) -> None:
    """A mutator: a new Ingress that names no class gets the one marked as default."""
    if not _is_new_ingress(info, old) or _names_class(obj):
        return
    spec = obj.get("spec")
    if isinstance(spec, dict) and (chosen := default_of(store, CLASSES, DEFAULT_MARK)):
        spec["ingressClassName"] = chosen


def warn(info: KindInfo, obj: Object, old: Object | None, options: WriteOptions) -> None:
    """A policy that refuses nothing."""
    if _is_new_ingress(info, old) and _annotated(obj) and (obj.get("spec") or {}).get("ingressClassName") is None:
        options.warnings.append(
            f"annotation \"{CLASS_ANNOTATION}\" is deprecated, please use 'spec.ingressClassName' instead"
        )


def _is_new_ingress(info: KindInfo, old: Object | None) -> bool:
    return old is None and info.kind == "Ingress" and info.resource.group == "networking.k8s.io"


def _names_class(obj: Object) -> bool:
    return _annotated(obj) or (obj.get("spec") or {}).get("ingressClassName") is not None


def _annotated(obj: Object) -> bool:
    return CLASS_ANNOTATION in (obj["metadata"].get("annotations") or {})
