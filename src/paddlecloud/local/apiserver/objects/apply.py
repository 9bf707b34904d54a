"""Server-side apply: merge what a manager wants into what is there, by ownership of fields.

A manager applies only the fields it cares about. It comes to own them; a field that another manager owns with another
value is a conflict unless forced; a field it applied before and leaves out now is removed unless somebody else owns it.
The result is what Kubernetes' structured merge gives, for built-in and custom kinds alike.

Defaulting, validation and the fields an endpoint may not set (status through the main resource) are the caller's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from paddlecloud.kube.errors import BadRequest, Conflict
from paddlecloud.kube.resource import Object
from paddlecloud.local.apiserver.objects import changed_fields
from paddlecloud.local.apiserver.objects.fieldset import (
    EMPTY,
    Fields,
    difference,
    intersection,
    is_member,
    path_text,
    paths,
    union,
)
from paddlecloud.local.apiserver.objects.managed_fields import APPLY, UPDATE, Entry, Identity, make_entry, ordered, take
from paddlecloud.local.apiserver.registry import Schema
from paddlecloud.local.apiserver.schema.causes import MAX_CAUSES
from paddlecloud.local.apiserver.schema.structural import Node, item, map_keys, unknown_fields

KUBECTL = "kubectl"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
BEFORE_FIRST_APPLY = "before-first-apply"
"""The manager that owns what was there when an object without managed fields is first applied to."""
_MAX_ANNOTATIONS = 256 * 1024
_METADATA_STAYS: Fields = {"f:metadata": {}}


def apply(
    live: Object | None,
    applied: Object,
    *,
    manager: str,
    force: bool,
    now: float,
    node: Node | None,
    api_version: str,
    subresource: str = "",
) -> Object:
    """The object after `manager` applied `applied` to `live` (None: there is none yet), managedFields included.

    Applying what is there already gives back what is there, to the timestamp.
    """
    try:
        who = Identity(manager, APPLY, "", subresource)
        return _apply(live, applied, who=who, force=force, now=now, node=node, api_version=api_version)
    except changed_fields.Malformed as error:
        raise BadRequest(f"failed to create typed patch object ({_describe(applied)}): {error}") from None
    except RecursionError:
        raise BadRequest("the applied object nests too deeply") from None


def check_declared(applied: Object, schema: Schema, definitions: Mapping[str, Schema]) -> None:
    """Refuse fields that the schema of the kind does not have, whatever `fieldValidation` says, as kube-apiserver does.

    It cannot give an owner to a field that its schema does not know. Its answer is 500; the mistake is the client's.
    """
    unknown = [f".{path}: field not declared in schema" for path in unknown_fields(applied, schema, definitions)]
    if unknown:
        listed = (
            unknown[0] if len(unknown) == 1 else "errors:" + "".join(f"\n  {each}" for each in unknown[:MAX_CAUSES])
        )
        raise BadRequest(f"failed to create typed patch object ({_describe(applied)}): {listed}")


def _apply(
    live: Object | None,
    applied: Object,
    *,
    who: Identity,
    force: bool,
    now: float,
    node: Node | None,
    api_version: str,
) -> Object:
    applied = _checked(applied, api_version)
    before = live if live is not None else {"metadata": {}}
    entries = _entries(live, node, now=now, api_version=api_version)
    mine = next((entry for entry in entries if Identity.of(entry) == who), None)
    others = [entry for entry in entries if entry is not mine]

    wanted = changed_fields.of_object(applied, node)
    merged = _merge_map(before, applied, node, changed_fields.top_level)
    if mine is not None:
        managed = union(wanted, _METADATA_STAYS)
        for entry in others:
            managed = union(managed, entry["fieldsV1"])
        merged = _prune_map(merged, mine["fieldsV1"], managed, node, changed_fields.top_level)
    changed, removed = changed_fields.changes(before, merged, node)

    conflicts = [(entry, found) for entry in others if (found := intersection(entry["fieldsV1"], changed))]
    if conflicts and not force:
        _refuse(conflicts, _taken_over_from_kubectl(before, node, api_version) if who.manager == KUBECTL else EMPTY)
    lost = union(changed, removed)
    kept = [left for entry in others if (left := take(entry, lost)) is not None]

    if who.manager == KUBECTL:
        merged = _sync_last_applied(merged, applied)
    if mine is None or mine["fieldsV1"] != wanted or mine["apiVersion"] != api_version or merged != before:
        mine = make_entry(who, wanted, now=now, api_version=api_version)
    result = ordered([*kept, mine] if mine["fieldsV1"] else kept)
    if not wanted and merged == before and not before["metadata"].get("managedFields"):
        result = []  # nothing was asked of an object that nobody tracks: it stays as it is
    metadata = {**merged["metadata"], "managedFields": result}
    if not result:
        del metadata["managedFields"]
    return {**merged, "metadata": metadata}


def _checked(applied: Object, api_version: str) -> Object:
    version = applied.get("apiVersion", api_version)
    if version != api_version:
        raise BadRequest(
            f"Incorrect version specified in apply patch. Specified patch version: {version}, expected: {api_version}"
        )
    metadata = applied.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise BadRequest("metadata must be an object")
    if metadata.get("managedFields") is not None:
        raise BadRequest("metadata.managedFields must be nil")
    # Generators print `creationTimestamp: null`: that is nobody's wish to have it removed.
    said = {k: v for k, v in metadata.items() if v is not None or k not in changed_fields.UNOWNED_METADATA}
    return {**applied, "metadata": said}


def _entries(live: Object | None, node: Node | None, *, now: float, api_version: str) -> list[Entry]:
    if live is None:
        return []
    entries = live["metadata"].get("managedFields")
    if entries:
        return list(entries)
    everything, _ = changed_fields.changes({}, live, node)
    who = Identity(BEFORE_FIRST_APPLY, UPDATE, api_version, "")
    return [make_entry(who, everything, now=now, api_version=api_version)] if everything else []


# --- merging ----------------------------------------------------------------------------------------------------------


def _merge(live: Any, applied: Any, node: Node | None) -> Any:
    """What was applied, over what was there (None: nothing, or nothing to merge with)."""
    if isinstance(applied, dict) and not changed_fields.is_atomic_map(node):
        return _merge_map(live if isinstance(live, dict) else {}, applied, node, changed_fields.field_node)
    if isinstance(applied, list) and node is not None:
        there = live if isinstance(live, list) else []
        live_keys, applied_keys = changed_fields.element_keys(there, node), changed_fields.element_keys(applied, node)
        if live_keys is not None and applied_keys is not None:
            return _merge_list(there, live_keys, dict(zip(applied_keys, applied, strict=True)), item(node))
    return applied


def _merge_map(live: Object, applied: Object, node: Node | None, lookup: changed_fields.Lookup) -> Object:
    result = dict(live)
    for key, value in applied.items():
        sub = lookup(node, key)
        if value is None and sub is not None and sub.type and not sub.nullable:
            result.pop(key, None)  # null is how YAML says "unset" where it is not a value
        else:
            result[key] = _merge(result.get(key), value, sub)
    return result


def _merge_list(live: list[Any], live_keys: list[str], applied: dict[str, Any], node: Node | None) -> list[Any]:
    """What is applied in the order applied; what only `live` has stays between the neighbours it had."""
    found: dict[str, Any] = {}
    for key, value in zip(live_keys, live, strict=True):
        found[key] = None if key in found else value  # of twins none can be merged with
    result = []
    pending = iter(applied)
    shared = iter([key for key in applied if key in found])
    upcoming = next(shared, None)
    for key, value in zip(live_keys, live, strict=True):
        if key not in applied:
            result.append(value)
        elif key == upcoming:
            for step in pending:
                result.append(_merge(found.get(step), applied[step], node))
                if step == key:
                    break
            upcoming = next(shared, None)
    result.extend(_merge(found.get(step), applied[step], node) for step in pending)
    return result


# --- removing what is no longer applied -------------------------------------------------------------------------------


def _prune_map(
    value: Object, last: Fields, managed: Fields, node: Node | None, lookup: changed_fields.Lookup
) -> Object:
    """`value` without what was applied `last` and is now managed by nobody."""
    declared = node.children if node is not None else {}
    result = dict(value)
    for key in value:
        step = "f:" + key
        before = last.get(step)
        if before is None:
            continue
        now = managed.get(step)
        named = key in declared
        if (named or is_member(before)) and (now is None or not (named or is_member(now))):
            del result[key]
            continue
        pruned = _prune(value[key], before, now or EMPTY, lookup(node, key))
        if pruned or not value[key] or (now is not None and is_member(now)):
            result[key] = pruned
        else:
            del result[key]  # emptied, and nobody asked for it to be there empty
    return result


def _prune(value: Any, last: Fields, managed: Fields, node: Node | None) -> Any:
    if isinstance(value, dict) and not changed_fields.is_atomic_map(node):
        return _prune_map(value, last, managed, node, changed_fields.field_node)
    keys = changed_fields.element_keys(value, node) if isinstance(value, list) else None
    if keys is None or node is None:
        return value
    sub, identifying = item(node), map_keys(node)
    result = []
    for step, element in zip(keys, value, strict=True):
        before, now = last.get(step), managed.get(step)
        if before is None:
            result.append(element)
        elif (now is not None and is_member(now)) or not is_member(before):
            pruned = _prune(element, before, now or EMPTY, sub)
            if isinstance(pruned, dict):
                # An element that stays keeps its key fields, whichever manager owned them.
                pruned = {**pruned, **{key: element[key] for key in identifying if key in element}}
            result.append(pruned)
    return result


# --- conflicts --------------------------------------------------------------------------------------------------------


def _refuse(conflicts: list[tuple[Entry, Fields]], allowed: Fields) -> None:
    """Raise for the conflicts that are not allowed, in the words kubectl's users know."""
    causes, lines = [], []
    for entry, fields in conflicts:
        texts = [path_text(path) for path in paths(difference(fields, allowed))]
        name = _manager_text(entry)
        causes += [
            {"reason": "FieldManagerConflict", "message": f"conflict with {name}", "field": text} for text in texts
        ]
        lines += [f"conflicts with {name}:", *(f"- {text}" for text in texts)] if texts else []
    if not causes:
        return
    if len(causes) == 1:
        message = f"Apply failed with 1 conflict: {causes[0]['message']}: {causes[0]['field']}"
    else:
        message = f"Apply failed with {len(causes)} conflicts: " + "\n".join(lines)
    raise Conflict(message, details={"causes": causes})


def _manager_text(entry: Entry) -> str:
    text = f'"{entry.get("manager", "")}"'
    if entry.get("subresource"):
        text += f' with subresource "{entry["subresource"]}"'
    return f"{text} using {entry['apiVersion']}" if entry["operation"] == UPDATE else text


# --- kubectl's own record of what was applied client-side -------------------------------------------------------------


def _taken_over_from_kubectl(live: Object, node: Node | None, api_version: str) -> Fields:
    """What client-side `kubectl apply` set and nobody changed since: its server-side successor may change it."""
    try:
        last = msgspec.json.decode(_annotations(live).get(LAST_APPLIED) or "null")
        if not isinstance(last, dict) or last.get("apiVersion") != api_version:
            return EMPTY
        changed, removed = changed_fields.changes(last, live, node)
        return difference(changed_fields.of_object(last, node), union(changed, removed))
    except (msgspec.DecodeError, RecursionError, changed_fields.Malformed):
        return EMPTY  # an annotation that nobody can read allows nothing


def _sync_last_applied(obj: Object, applied: Object) -> Object:
    """Keep the annotation true where it exists, so that going back to client-side apply removes the right fields."""
    annotations = _annotations(obj)
    if not annotations.get(LAST_APPLIED):
        return obj
    own = {key: value for key, value in _annotations(applied).items() if key != LAST_APPLIED}
    config = {**applied, "metadata": {**applied["metadata"], "annotations": own}}
    if not own:
        del config["metadata"]["annotations"]
    text = msgspec.json.encode(config, order="sorted").decode() + "\n"
    rest = {key: value for key, value in annotations.items() if key != LAST_APPLIED}
    fits = len(text) + sum(len(k) + len(str(v)) for k, v in rest.items()) <= _MAX_ANNOTATIONS
    merged = {**rest, LAST_APPLIED: text} if fits else rest
    return {**obj, "metadata": {**obj["metadata"], "annotations": merged}}


def _annotations(obj: Object) -> dict[str, Any]:
    found = obj["metadata"].get("annotations") if isinstance(obj.get("metadata"), dict) else None
    return found if isinstance(found, dict) else {}


def _describe(applied: Object) -> str:
    metadata = applied.get("metadata") or {}
    version, kind = applied.get("apiVersion", ""), applied.get("kind", "")
    return f"{metadata.get('namespace', '')}/{metadata.get('name', '')}; {version}, Kind={kind}"
