"""From the query and headers of a request to the options of a write, a patch or a deletion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from paddlecloud.kube import errors
from paddlecloud.kube.resource import Object
from paddlecloud.local.apiserver.http import negotiation
from paddlecloud.local.apiserver.http.request import Request
from paddlecloud.local.apiserver.objects.admission import FIELD_VALIDATION, WriteOptions, node_of
from paddlecloud.local.apiserver.objects.patch import json_patch, merge_patch
from paddlecloud.local.apiserver.objects.strategic_merge import strategic_merge
from paddlecloud.local.apiserver.objects.verbs import DeleteOptions, check_dry_run
from paddlecloud.local.apiserver.registry import KindInfo


def write_options(request: Request) -> WriteOptions:
    query = request.query
    dry_run = query.get("dryRun", "")
    check_dry_run([dry_run] if dry_run else [])
    if request.method == "PATCH" and "force" in query:
        _check_force(request)
    validation = query.get("fieldValidation") or "Warn"
    if validation not in FIELD_VALIDATION:
        raise errors.invalid(
            "CreateOptions", "", [("fieldValidation", "FieldValueNotSupported",
            f'Unsupported value: "{validation}": supported values: "Ignore", "Strict", "Warn"')], group="meta.k8s.io",
        )  # fmt: skip
    # Without a field manager Kubernetes takes the first word of the user agent.
    manager = query.get("fieldManager") or request.header("user-agent").partition("/")[0] or "unknown"
    if len(manager) > 128 or not manager.isprintable():
        raise errors.invalid(
            "PatchOptions", "", [("fieldManager", "FieldValueInvalid",
            "Invalid value: must be printable and no longer than 128 characters")], group="meta.k8s.io",
        )  # fmt: skip
    by_name = request.method in ("PUT", "PATCH")
    return WriteOptions(
        manager, request.user, dry_run=bool(dry_run), by_name=by_name, field_validation=validation,
        sent=len(request.body),
    )  # fmt: skip


def _check_force(request: Request) -> None:
    if negotiation.media_type(request.header("content-type")) != negotiation.APPLY_PATCH:
        why = "Forbidden: may not be specified for non-apply patch"
        raise errors.invalid("PatchOptions", "", [("force", "FieldValueForbidden", why)], group="meta.k8s.io")


def patcher(media: str, patch: Any, kind: KindInfo) -> Callable[[Object], Object]:
    """The function that applies one kind of patch."""
    if media == negotiation.JSON_PATCH:
        return lambda obj: json_patch(obj, patch)
    if media not in (negotiation.MERGE_PATCH, negotiation.STRATEGIC_PATCH):
        raise errors.UnsupportedMediaType(
            "the body of the request was in an unknown format - accepted media types include: "
            + ", ".join(negotiation.PATCH_TYPES)
        )
    if not isinstance(patch, dict):
        raise errors.BadRequest("the patch is not an object")
    if media == negotiation.MERGE_PATCH:
        return lambda obj: _object(merge_patch(obj, patch))
    if kind.custom:
        raise errors.UnsupportedMediaType(
            "the body of the request was in an unknown format - accepted media types include: "
            "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
        )
    return lambda obj: strategic_merge(obj, patch, node_of(kind))


def _object(value: Any) -> Object:
    if not isinstance(value, dict):
        raise errors.BadRequest("the patch leaves no object")
    return value


def delete_options(request: Request) -> DeleteOptions:
    body = negotiation.read_object(request.body, request.header("content-type")) if request.body else None
    names = ("gracePeriodSeconds", "propagationPolicy", "orphanDependents", "dryRun")
    return DeleteOptions.parse(body, {name: request.query[name] for name in names if name in request.query})
