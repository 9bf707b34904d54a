"""What a CustomResourceDefinition means to the server: is it acceptable, which kinds does it add, what is its status.

Pure functions of the definition. Schemas are judged in `crd/schema.py`; serving the kinds is the registry's business,
and conversion between versions changes the version alone: all versions of a kind store and show the same fields.
"""

from __future__ import annotations

import re
from functools import partial

from paddlecloud.kube.conditions import dated
from paddlecloud.kube.name_rules import subdomain_problems
from paddlecloud.kube.resource import Object, Resource
from paddlecloud.local.apiserver.builtin.types import COMMON, DEFINITIONS
from paddlecloud.local.apiserver.builtin.validation.rules import immutable, problems
from paddlecloud.local.apiserver.crd.schema import structural_causes
from paddlecloud.local.apiserver.objects.conversion import Conversion, between_versions
from paddlecloud.local.apiserver.objects.metadata import dns1035_problems
from paddlecloud.local.apiserver.registry import Column, KindInfo, ScalePaths, Schema
from paddlecloud.local.apiserver.schema.causes import Cause, forbidden, invalid, not_supported, required
from paddlecloud.local.apiserver.schema.node import OBJECT_META
from paddlecloud.local.apiserver.schema.rules import unevaluated
from paddlecloud.local.apiserver.schema.structural import apply_defaults, prune

_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = ("int32", "int64", "float", "double", "byte", "date", "date-time", "password")
_SIMPLE_PATH = re.compile(r"(\.[A-Za-z0-9_-]+)+")
_AGE = Column("Age", "date", ".metadata.creationTimestamp")


def validate_crd(crd: Object, old: Object | None = None) -> list[Cause]:
    """Causes to refuse the definition; `old` is what it replaces."""
    spec = crd.get("spec") or {}
    found = _names(crd, spec) + _versions(spec)
    if spec.get("preserveUnknownFields"):
        detail = (
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        )
        found.append(invalid("spec.preserveUnknownFields", True, detail))
    if (spec.get("conversion") or {}).get("strategy") == "Webhook":
        detail = "webhook conversion is not supported by this server; use None"
        found.append(forbidden("spec.conversion.strategy", detail))
    names = {version.get("name") for version in spec.get("versions") or ()}
    for index, version in enumerate((crd.get("status") or {}).get("storedVersions") or ()):
        if version not in names:
            detail = (
                f"missing from spec.versions; {version} was previously a storage version, and must remain in "
                "spec.versions until a storage migration ensures no data remains persisted in it"
            )
            found.append(invalid(f"status.storedVersions[{index}]", version, detail))
    if old is not None:
        before = old.get("spec") or {}
        found += immutable(spec, before, "spec", "group", "scope")
        found += immutable(spec.get("names") or {}, before.get("names") or {}, "spec.names", "kind", "plural")
    return found


def warnings_of(crd: Object) -> list[str]:
    """What the server stores but will not do, to be answered as warnings."""
    places = [
        place
        for index, version in enumerate((crd.get("spec") or {}).get("versions") or ())
        for place in unevaluated(_schema_path(index), _schema_of(version) or {})
    ]
    return [f"{place}: CEL rules that this server does not evaluate are only stored" for place in places]


def kinds_of(crd: Object) -> list[KindInfo]:
    """One kind per served version."""
    return [_kind(crd["spec"], version) for version in crd["spec"]["versions"] if version.get("served")]


def accepted_status(crd: Object, now: float) -> Object:
    """The status of a definition that has been accepted and is served from now on."""
    spec, status = crd["spec"], crd.get("status") or {}
    storage = next(version["name"] for version in spec["versions"] if version.get("storage"))
    stored = list(status.get("storedVersions") or ())
    conditions = [
        ("NamesAccepted", "NoConflicts", "no conflicts found"),
        ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
    ]
    before = {condition["type"]: condition for condition in status.get("conditions") or () if "type" in condition}
    decided = [_condition(before.pop(kind, {}), kind, reason, message, now) for kind, reason, message in conditions]
    return {
        "acceptedNames": _full_names(spec["names"]),
        "conditions": [*decided, *before.values()],
        "storedVersions": stored if storage in stored else [*stored, storage],
    }


def _condition(before: Object, kind: str, reason: str, message: str, now: float) -> Object:
    return dated({"type": kind, "status": "True", "reason": reason, "message": message}, before, now)


def _full_names(names: Object) -> Object:
    kind = names["kind"]
    return {"singular": kind.lower(), "listKind": f"{kind}List", **names}


# --- kinds ----------------------------------------------------------------------------------------------------------


def _kind(spec: Object, version: Object) -> KindInfo:
    names = _full_names(spec["names"])
    subresources = version.get("subresources") or {}
    resource = Resource(
        spec["group"], version["name"], names["plural"], names["kind"], namespaced=spec["scope"] == "Namespaced"
    )
    schema = _whole_schema(_schema_of(version))
    return KindInfo(
        resource=resource,
        singular=names["singular"],
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        subresources=frozenset(name for name in ("status", "scale") if name in subresources),
        schema=schema,
        definitions=DEFINITIONS,
        columns=tuple(_column(given) for given in version.get("additionalPrinterColumns") or ()) or (_AGE,),
        scale=_scale(subresources.get("scale")),
        custom=True,
        conversion=_conversion(spec, version["name"]),
        complete=partial(_complete, schema) if schema is not None else None,
    )


def _complete(schema: Schema, stored: Object) -> None:
    """As kube-apiserver reads custom objects from etcd: pruned and defaulted by the schema of today."""
    prune(stored, schema, DEFINITIONS)
    apply_defaults(stored, schema, DEFINITIONS)


def _conversion(spec: Object, shown: str) -> Conversion | None:
    """Objects are stored in one version; with a single version there is nothing to translate."""
    if len(spec["versions"]) == 1:
        return None
    stored = next(version["name"] for version in spec["versions"] if version.get("storage"))
    return between_versions(
        f"{spec['group']}/{spec['names']['plural']}", group=spec["group"], stored=stored, shown=shown
    )


def _column(given: Object) -> Column:
    return Column(
        name=given["name"],
        type=given["type"],
        json_path=given["jsonPath"],
        priority=given.get("priority", 0),
        format=given.get("format", ""),
        description=given.get("description", ""),
    )


def _scale(given: Object | None) -> ScalePaths | None:
    if given is None:
        return None
    paths = (
        given.get(name, "").lstrip(".") for name in ("specReplicasPath", "statusReplicasPath", "labelSelectorPath")
    )
    return ScalePaths(*paths)


def _whole_schema(schema: Schema | None) -> Schema:
    """The schema of the object as stored: what every object has is not written in a CRD, or only restricted there."""
    schema = schema or {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    fields = dict(schema.get("properties") or {})
    restricted = (fields.get("metadata") or {}).get("properties")
    meta = COMMON["metadata"]
    if restricted:
        base = DEFINITIONS[OBJECT_META]
        meta = {**base, "properties": {**base["properties"], **restricted}}
    return {
        **schema,
        "properties": {
            **fields,
            "apiVersion": {**COMMON["apiVersion"], **fields.get("apiVersion", {})},
            "kind": {**COMMON["kind"], **fields.get("kind", {})},
            "metadata": meta,
        },
    }


def _schema_of(version: Object) -> Schema | None:
    found: Schema | None = (version.get("schema") or {}).get("openAPIV3Schema")
    return found


def _schema_path(index: int) -> str:
    return f"spec.versions[{index}].schema.openAPIV3Schema"


# --- validation -----------------------------------------------------------------------------------------------------


def _names(crd: Object, spec: Object) -> list[Cause]:
    group, names = spec.get("group", ""), spec.get("names") or {}
    found = [required(f"spec.names.{name}") for name in ("plural", "kind") if not names.get(name)]
    if not group:
        found.append(required("spec.group"))
    elif problem := subdomain_problems(group):
        found += problems("spec.group", group, problem)
    elif "." not in group:
        found.append(invalid("spec.group", group, "should be a domain with at least one dot"))
    if spec.get("scope") not in ("Cluster", "Namespaced"):
        found.append(
            not_supported("spec.scope", spec["scope"], ("Cluster", "Namespaced"))
            if spec.get("scope")
            else required("spec.scope")
        )
    for field in ("plural", "singular", "kind", "listKind"):
        given = names.get(field, "")
        mixed = "may have mixed case, but should otherwise match: " if field in ("kind", "listKind") else ""
        judged = given.lower() if mixed else given
        found += problems(f"spec.names.{field}", given, [mixed + it for it in dns1035_problems(judged) if given])
    for field in ("shortNames", "categories"):
        for index, given in enumerate(names.get(field) or ()):
            found += problems(f"spec.names.{field}[{index}]", given, dns1035_problems(given))
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        found.append(invalid("spec.names.listKind", names["listKind"], "kind and listKind may not be the same"))
    name, wanted = (crd.get("metadata") or {}).get("name", ""), f"{names.get('plural', '')}.{group}"
    if not found and name != wanted:
        found.append(invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group'))
    return found


def _versions(spec: Object) -> list[Cause]:
    versions = spec.get("versions") or []
    if not versions:
        return [required("spec.versions")]
    found: list[Cause] = []
    names = [version.get("name", "") for version in versions]
    if len(set(names)) < len(names):
        found.append(invalid("spec.versions", names, "must contain unique version names"))
    if sum(bool(version.get("storage")) for version in versions) != 1:
        detail = "must have exactly one version marked as storage version"
        found.append(invalid("spec.versions", names, detail))
    for index, version in enumerate(versions):
        path, name = f"spec.versions[{index}]", version.get("name", "")
        found += problems(f"{path}.name", name, dns1035_problems(name)) if name else [required(f"{path}.name")]
        schema = _schema_of(version)
        if schema is None:
            found.append(required(_schema_path(index), "schemas are required"))
        else:
            found += structural_causes(_schema_path(index), schema)
        found += _subresources(f"{path}.subresources", version.get("subresources") or {})
        for at, column in enumerate(version.get("additionalPrinterColumns") or ()):
            found += _column_causes(f"{path}.additionalPrinterColumns[{at}]", column)
        if version.get("deprecationWarning") is not None and not version.get("deprecated"):
            detail = "can only be set for deprecated versions"
            found.append(invalid(f"{path}.deprecationWarning", version["deprecationWarning"], detail))
    return found


def _subresources(path: str, given: Object) -> list[Cause]:
    scale = given.get("scale")
    if scale is None:
        return []
    found: list[Cause] = []
    rules = (
        ("specReplicasPath", (".spec.",), "should be a json path under .spec"),
        ("statusReplicasPath", (".status.",), "should be a json path under .status"),
        ("labelSelectorPath", (".spec.", ".status."), "should be a json path under either .spec or .status"),
    )
    for name, prefixes, detail in rules:
        value = scale.get(name)
        if not value:
            found += [] if name == "labelSelectorPath" else [required(f"{path}.scale.{name}")]
        elif not _SIMPLE_PATH.fullmatch(value):
            found.append(invalid(f"{path}.scale.{name}", value, "must be a simple json path starting with ."))
        elif not value.startswith(prefixes):
            found.append(invalid(f"{path}.scale.{name}", value, detail))
    return found


def _column_causes(path: str, column: Object) -> list[Cause]:
    found = [required(f"{path}.{name}") for name in ("name", "jsonPath") if not column.get(name)]
    kind, form = column.get("type", ""), column.get("format", "")
    if kind not in _COLUMN_TYPES:
        detail = f"must be one of {','.join(_COLUMN_TYPES)}"
        found.append(invalid(f"{path}.type", kind, detail) if kind else required(f"{path}.type", detail))
    if form and form not in _COLUMN_FORMATS:
        found.append(invalid(f"{path}.format", form, f"must be one of {','.join(sorted(_COLUMN_FORMATS))}"))
    return found
