"""Fields of workloads that nothing here acts on are refused when they are written: better than being ignored."""

from __future__ import annotations

from paddlecloud.kube import errors
from paddlecloud.kube.resource import Object
from paddlecloud.local.apiserver.objects.admission import WriteOptions
from paddlecloud.local.apiserver.registry import KindInfo

_REFUSED = {
    ("apps", "StatefulSet"): (
        ("updateStrategy", "rollingUpdate", "maxUnavailable"),
        "pods are replaced one at a time",
    ),
}
"""By group and kind: the path of a field below `spec`, and what happens instead."""


def refuse_unserved(info: KindInfo, new: Object, old: Object | None, options: WriteOptions) -> None:
    """An admission policy."""
    refused = _REFUSED.get((info.resource.group, info.kind))
    if refused is None:
        return
    path, instead = refused
    value = new.get("spec")
    for name in path:
        value = (value or {}).get(name)
    if value is None:
        return
    field = ".".join(("spec", *path))
    cause = (field, "FieldValueForbidden", f"Forbidden: this platform does not serve it: {instead}")
    raise errors.invalid(info.kind, str(new["metadata"].get("name", "")), [cause], group=info.resource.group)
