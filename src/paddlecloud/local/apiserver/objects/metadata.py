"""What `metadata` may hold: the rules every object obeys whatever its kind.

Pure functions from metadata to causes, `(field, reason, message)` as `errors.invalid` takes them, in the words of
Kubernetes. Rules of single kinds and of schemas live elsewhere; so does deciding what happens to a refused object.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Literal, NamedTuple

from paddlecloud.kube.errors import BadRequest
from paddlecloud.kube.generated_names import ALPHABET, SUFFIX_LENGTH
from paddlecloud.kube.name_rules import label_value_problems, qualified_name_problems, subdomain_problems
from paddlecloud.kube.resource import Resource
from paddlecloud.local.apiserver.schema.causes import MAX_CAUSES, Cause, forbidden, invalid, required, too_long

Meta = Mapping[str, Any]
NameRule = Literal["subdomain", "label", "dns1035", "path-segment"]

MAX_ANNOTATION_BYTES = 256 * 1024

# --- names ---

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_DNS1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end "
    "with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_DNS1035_RULE = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)


def _short_name_problems(value: str, pattern: re.Pattern[str], rule: str) -> list[str]:
    problems = ["must be no more than 63 characters"] if len(value) > 63 else []
    if not pattern.fullmatch(value):
        problems.append(rule)
    return problems


def label_name_problems(value: str) -> list[str]:
    return _short_name_problems(value, _LABEL, _LABEL_RULE)


def dns1035_problems(value: str) -> list[str]:
    return _short_name_problems(value, _DNS1035, _DNS1035_RULE)


def path_segment_problems(value: str) -> list[str]:
    """Names that only have to fit into a URL, such as `system:node` of RBAC."""
    if value in (".", ".."):
        return [f"may not be '{value}'"]
    return [f"may not contain '{char}'" for char in "/%" if char in value]


_NAME_RULES: dict[NameRule, Callable[[str], list[str]]] = {
    "subdomain": subdomain_problems,
    "label": label_name_problems,
    "dns1035": dns1035_problems,
    "path-segment": path_segment_problems,
}
_RULE_OF_RESOURCE: dict[tuple[str, str], NameRule] = {
    ("", "namespaces"): "label",
    ("", "services"): "dns1035",
    ("", "events"): "path-segment",  # named after what they are about, whatever that may be called
    ("events.k8s.io", "events"): "path-segment",
}
_RULE_OF_GROUP: dict[str, NameRule] = {
    "rbac.authorization.k8s.io": "path-segment",
    "apiregistration.k8s.io": "path-segment",
}


def name_rule_of(resource: Resource) -> NameRule:
    by_group = _RULE_OF_GROUP.get(resource.group, "subdomain")
    return _RULE_OF_RESOURCE.get((resource.group, resource.plural), by_group)


_LONGEST_GENERATED = 63


def generate_name(prefix: str, rng: random.Random) -> str:
    """`prefix` and five random characters, cut so that the whole fits into a DNS label."""
    return prefix[: _LONGEST_GENERATED - SUFFIX_LENGTH] + "".join(rng.choices(ALPHABET, k=SUFFIX_LENGTH))


# --- types ---


class _Shape(NamedTuple):
    """The type of a field, and of its parts if it has some; beside each the name that Go has for it."""

    kind: type
    name: str
    of: type | None = None
    part_name: str = ""


_STRING = _Shape(str, "string")
_STRINGS = _Shape(dict, "map[string]string", str, "string")
_INTEGER = _Shape(int, "int64")
_SHAPES = {
    "name": _STRING,
    "generateName": _STRING,
    "namespace": _STRING,
    "uid": _STRING,
    "resourceVersion": _STRING,
    "creationTimestamp": _STRING,
    "deletionTimestamp": _STRING,
    "selfLink": _STRING,
    "generation": _INTEGER,
    "deletionGracePeriodSeconds": _INTEGER,
    "labels": _STRINGS,
    "annotations": _STRINGS,
    "finalizers": _Shape(list, "[]string", str, "string"),
    "ownerReferences": _Shape(list, "[]v1.OwnerReference", dict, "v1.OwnerReference"),
    "managedFields": _Shape(list, "[]v1.ManagedFieldsEntry", dict, "v1.ManagedFieldsEntry"),
}
_REFERENCE = (
    ("apiVersion", str, "string"),
    ("kind", str, "string"),
    ("name", str, "string"),
    ("uid", str, "string"),
    ("controller", bool, "bool"),
    ("blockOwnerDeletion", bool, "bool"),
)
_JSON_NAMES = {bool: "bool", int: "number", float: "number", str: "string", list: "array", dict: "object"}


def check_types(meta: Any) -> None:
    """Refuse metadata of the wrong shape, as decoding it would. Null stands for absent, but not inside a list."""
    _expect(meta, dict, "metadata", "v1.ObjectMeta")
    for field, value in meta.items():
        shape = _SHAPES.get(field)
        if shape is None or value is None:
            continue
        if type(value) is not shape.kind:
            _expect(value, shape.kind, f"ObjectMeta.metadata.{field}", shape.name)
        if shape.of is not None and value:
            _check_parts(field, value.values() if shape.kind is dict else value, shape)


def _check_parts(field: str, parts: Iterable[Any], shape: _Shape) -> None:
    assert shape.of is not None
    for part in parts:
        if part is None and shape.kind is list:
            raise BadRequest(f"json: cannot unmarshal null into Go struct field ObjectMeta.metadata.{field}")
        _expect(part, shape.of, f"ObjectMeta.metadata.{field}", shape.part_name)
        if field == "ownerReferences":
            for inner, expected, name in _REFERENCE:
                _expect(part.get(inner), expected, f"OwnerReference.metadata.ownerReferences.{inner}", name)


def _expect(value: Any, expected: type, field: str, go_type: str) -> None:
    # `type(...) is` because JSON's true is no number although Python's True is an int
    if value is not None and type(value) is not expected:
        found = _JSON_NAMES.get(type(value), "value")
        raise BadRequest(f"json: cannot unmarshal {found} into Go struct field {field} of type {go_type}")


# --- creation ---


def validate_metadata(
    meta: Meta, *, namespaced: bool, name_rule: NameRule = "subdomain", short_finalizers: bool = False
) -> list[Cause]:
    """Everything wrong with the metadata of an object about to be stored. Raises only when its types are wrong.

    A name is expected to have been generated already if `generateName` asks for one. Finalizers must have a domain and
    a path, but for the few that Kubernetes knows; custom kinds and their definitions may have `short_finalizers`.
    """
    check_types(meta)
    causes: list[Cause] = []
    problems_of = _NAME_RULES[name_rule]
    if prefix := meta.get("generateName"):
        causes += _invalids("metadata.generateName", prefix, problems_of(_as_whole_name(prefix)))
    if name := meta.get("name"):
        causes += _invalids("metadata.name", name, problems_of(name))
    else:
        causes.append(required("metadata.name", "name or generateName is required"))
    namespace = meta.get("namespace")
    if namespaced and not namespace:
        causes.append(required("metadata.namespace"))
    elif namespaced and namespace:
        causes += _invalids("metadata.namespace", namespace, label_name_problems(namespace))
    elif namespace:
        causes.append(forbidden("metadata.namespace", "not allowed on this type"))
    if (meta.get("generation") or 0) < 0:
        causes += _invalids("metadata.generation", meta["generation"], ["must be greater than or equal to 0"])
    for found in (_label_causes(meta), _annotation_causes(meta), _owner_causes(meta)):
        causes += islice(found, MAX_CAUSES)
    finalizers = meta.get("finalizers") or []
    return [*causes, *islice(finalizer_causes("metadata.finalizers", finalizers, short=short_finalizers), MAX_CAUSES)]


def _as_whole_name(prefix: str) -> str:
    """A prefix usually ends in a dash, which a whole name must not; judge it as if something followed."""
    return prefix[:-1] + "a" if len(prefix) > 1 and prefix.endswith("-") else prefix


def _invalids(field: str, value: Any, problems: list[str]) -> list[Cause]:
    return [invalid(field, value, problem) for problem in problems]


def _label_causes(meta: Meta) -> Iterator[Cause]:
    for key, value in (meta.get("labels") or {}).items():
        if problems := qualified_name_problems(key):
            yield from _invalids("metadata.labels", key, problems)
        if problems := label_value_problems(value or ""):
            yield from _invalids("metadata.labels", value, problems)


def _annotation_causes(meta: Meta) -> Iterator[Cause]:
    size = 0
    for key, value in (meta.get("annotations") or {}).items():
        size += len(key.encode()) + len((value or "").encode())
        if problems := qualified_name_problems(key.lower()):  # annotation prefixes may have capitals
            yield from _invalids("metadata.annotations", key, problems)
    if size > MAX_ANNOTATION_BYTES:
        yield too_long("metadata.annotations", MAX_ANNOTATION_BYTES)


def _owner_causes(meta: Meta) -> Iterator[Cause]:
    controllers: list[str] = []
    field = "metadata.ownerReferences"
    for reference in meta.get("ownerReferences") or ():
        api_version = reference.get("apiVersion") or ""
        if not api_version.rpartition("/")[2]:
            yield from _invalids(f"{field}.apiVersion", api_version, ["version must not be empty"])
        for part in ("kind", "name", "uid"):
            if not reference.get(part):
                yield from _invalids(f"{field}.{part}", "", ["must not be empty"])
        if (api_version, reference.get("kind")) == ("v1", "Event"):
            yield from _invalids(field, reference, ["/v1, Kind=Event is disallowed from being an owner"])
        if reference.get("controller"):
            controllers.append(reference.get("name") or "")
    if len(controllers) > 1:
        problem = (
            'Only one reference can have Controller set to true. Found "true" in references for '
            f"{controllers[0]} and {controllers[1]}"
        )
        yield from _invalids(field, list(meta["ownerReferences"]), [problem])


def finalizer_causes(field: str, finalizers: list[Any], *, short: bool = False) -> Iterator[Cause]:
    for index, finalizer in enumerate(finalizers):
        if problems := qualified_name_problems(finalizer or ""):
            yield from _invalids(field, finalizer, problems)
        elif not short and "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
            problem = "name is neither a standard finalizer name nor is it fully qualified"
            yield from _invalids(f"{field}[{index}]", finalizer, [problem])
    if "orphan" in finalizers and "foregroundDeletion" in finalizers:
        problem = "finalizer orphan and foregroundDeletion cannot be both set"
        yield from _invalids(field, finalizers, [problem])


_STANDARD_FINALIZERS = frozenset(("kubernetes", "orphan", "foregroundDeletion"))


def finalizer_warnings(meta: Meta) -> list[str]:
    """Finalizers of a custom object that work but could collide with another writer's."""
    return [
        f'metadata.finalizers: "{finalizer}": prefer a domain-qualified finalizer name including a path (/) to avoid '
        "accidental conflicts with other finalizer writers"
        for finalizer in meta.get("finalizers") or ()
        if "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS
    ]


# --- update ---

_IMMUTABLE = ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")


def validate_metadata_update(new: Meta, old: Meta) -> list[Cause]:
    """What an update must not change. The server fills absent immutable fields from the stored object beforehand."""
    causes: list[Cause] = []
    if old.get("deletionTimestamp"):
        added = sorted(set(new.get("finalizers") or ()) - set(old.get("finalizers") or ()))
        if added:
            listed = ", ".join(f'"{finalizer}"' for finalizer in added)
            why = "no new finalizers can be added if the object is being deleted, found new finalizers"
            causes.append(forbidden("metadata.finalizers", f"{why} []string{{{listed}}}"))
    if (new.get("generation") or 0) < (old.get("generation") or 0):
        causes += _invalids("metadata.generation", new.get("generation"), ["must not be decremented"])
    for field in _IMMUTABLE:
        if new.get(field) != old.get(field):
            causes += _invalids(f"metadata.{field}", new.get(field), ["field is immutable"])
    return causes
