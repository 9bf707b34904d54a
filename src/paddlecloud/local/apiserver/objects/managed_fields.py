"""Who owns which field: `metadata.managedFields` after a create, an update or a patch.

A write that is no apply gives its manager every field it changed and takes those fields from everybody else; fields
that went away are forgotten by all. Server-side apply has its own rules (`apply.py`) on the same entries.

Every write pays for this, so the work follows what changed: sets are computed for changed parts alone, and entries that
keep their fields stay the same objects.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from paddlecloud.kube.clock import parse_rfc3339, rfc3339
from paddlecloud.kube.errors import ApiError, BadRequest, invalid
from paddlecloud.kube.resource import Object
from paddlecloud.local.apiserver.objects.changed_fields import changes
from paddlecloud.local.apiserver.objects.fieldset import EMPTY, Fields, difference, parse, union
from paddlecloud.local.apiserver.schema.structural import Node

Entry = dict[str, Any]
"""One element of managedFields."""

APPLY = "Apply"
UPDATE = "Update"
MAX_UPDATE_MANAGERS = 10
ANCIENT = "ancient-changes"
"""The manager that inherits the fields of the oldest updaters when there are too many of them."""

MAX_ENTRIES = 250
"""How many entries a client may write at once; real objects have a handful."""
_MAX_MANAGER_LENGTH = 128
_MAX_SUBRESOURCE_LENGTH = 256


class Identity(NamedTuple):
    """What makes two writes come from the same manager. An applier stays the same across versions of the API."""

    manager: str
    operation: str
    api_version: str
    subresource: str

    @staticmethod
    def of(entry: Entry) -> Identity:
        applies = entry["operation"] == APPLY
        version = "" if applies else entry["apiVersion"]
        return Identity(entry.get("manager", ""), entry["operation"], version, entry.get("subresource", ""))


def record_update(
    old: Object | None,
    new: Object,
    *,
    manager: str,
    now: float,
    node: Node | None,
    api_version: str,
    subresource: str = "",
) -> Object:
    """`new` with the managedFields it is to be stored with; `old` is None for a create.

    Managed fields in `new` stand for those of `old` when they were changed on purpose: that is how clients edit them
    and, by sending none or one empty entry, stop the tracking until the next apply. Through a subresource they cannot.
    """
    metadata = new.get("metadata") or {}
    entries = _entries_to_start_from(old, new, metadata, subresource)
    if entries is None:
        return _with_entries(new, metadata, [])
    try:
        changed, removed = changes(old or EMPTY, new, node)
    except RecursionError:
        raise BadRequest("the object nests too deeply") from None
    if changed or removed:
        who = Identity(manager or "unknown", UPDATE, api_version, subresource)
        entries = cap_updaters(_transfer(entries, changed, removed, who, now))
    return _with_entries(new, metadata, entries)


def _entries_to_start_from(old: Object | None, new: Object, metadata: Any, subresource: str) -> list[Entry] | None:
    """The entries before this write, or None when ownership is not tracked."""
    live = old["metadata"].get("managedFields") if old is not None else None
    given = metadata.get("managedFields") if isinstance(metadata, dict) else None
    if given is None or subresource or given == live:
        entries = live or []
    elif given in ([], [{}]):
        return None
    else:
        entries = decode(given, new)
    # An object that lost its entries is not tracked again before the first apply
    # (apimachinery/pkg/util/managedfields/internal/skipnonapplied.go).
    return None if old is not None and not entries else entries


def _transfer(entries: list[Entry], changed: Fields, removed: Fields, who: Identity, now: float) -> list[Entry]:
    """Give `changed` to `who` and take it from the others; forget `removed`."""
    result, mine, lost = [], None, union(changed, removed)
    for entry in entries:
        if mine is None and Identity.of(entry) == who:
            mine = entry
            continue
        kept = take(entry, lost)
        if kept is not None:
            result.append(kept)
    fields = difference(mine["fieldsV1"], removed) if mine is not None else EMPTY
    if changed:
        result.append(make_entry(who, union(fields, changed), now=now, api_version=who.api_version))
    elif mine is not None and fields:
        result.append(mine if fields is mine["fieldsV1"] else {**mine, "fieldsV1": fields})
    return ordered(result)


def take(entry: Entry, fields: Fields) -> Entry | None:
    """`entry` without `fields`, the same object if it had none of them, None if it has nothing left."""
    mine = entry.get("fieldsV1") or EMPTY
    kept = difference(mine, fields)
    if not kept:
        return None
    return entry if kept is mine else {**entry, "fieldsV1": kept}


def make_entry(who: Identity, fields: Fields, *, now: float, api_version: str) -> Entry:
    entry = {
        "manager": who.manager,
        "operation": who.operation,
        "apiVersion": api_version,
        "time": rfc3339(now),
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }
    if who.subresource:
        entry["subresource"] = who.subresource
    return entry


def ordered(entries: list[Entry]) -> list[Entry]:
    """Appliers first, then by age: the order in which Kubernetes keeps them."""
    if len(entries) > 1:
        entries.sort(key=_order)
    return entries


def _order(entry: Entry) -> tuple[str, str, str, str, str]:
    manager, _, _, subresource = Identity.of(entry)
    return entry["operation"], entry.get("time") or "", manager, entry["apiVersion"], subresource


def cap_updaters(entries: list[Entry]) -> list[Entry]:
    """Pour the oldest updaters of one API version into `ANCIENT` until no more than `MAX_UPDATE_MANAGERS` are left."""
    while True:
        updaters = [entry for entry in entries if entry["operation"] == UPDATE]
        if len(updaters) <= MAX_UPDATE_MANAGERS:
            return entries
        doomed = _two_oldest_of_a_version(updaters)
        if not doomed:
            return entries  # as many versions as updaters: there is nothing to pour together
        newest = doomed[-1]
        bucket = Identity(ANCIENT, UPDATE, newest["apiVersion"], "")
        doomed += [entry for entry in updaters if Identity.of(entry) == bucket and entry not in doomed]
        poured = {**newest, "manager": ANCIENT, "fieldsV1": _union_of(doomed)}
        poured.pop("subresource", None)
        entries = ordered([*(entry for entry in entries if entry not in doomed), poured])


def _two_oldest_of_a_version(updaters: list[Entry]) -> list[Entry]:
    seen: dict[str, Entry] = {}
    for entry in sorted(updaters, key=_order):
        older = seen.setdefault(entry["apiVersion"], entry)
        if older is not entry:
            return [older, entry]
    return []


def _union_of(entries: Iterable[Entry]) -> Fields:
    fields = EMPTY
    for entry in entries:
        fields = union(fields, entry["fieldsV1"])
    return fields


def _with_entries(obj: Object, metadata: Any, entries: list[Entry]) -> Object:
    if not isinstance(metadata, dict):
        return dict(obj)  # refused by validation; not ours to say
    stamped = {**metadata, "managedFields": entries}
    if not entries:
        del stamped["managedFields"]
    return {**obj, "metadata": stamped}


# --- entries that a client wrote --------------------------------------------------------------------------------------


def decode(given: Any, obj: Object) -> list[Entry]:
    """Entries a client sent, checked, in order, and merged where they have the same identity."""
    if not isinstance(given, list) or not all(isinstance(entry, dict) for entry in given):
        raise BadRequest("metadata.managedFields must be a list of objects")
    if len(given) > MAX_ENTRIES:
        raise _refuse(obj, "metadata.managedFields", f"Too many: {len(given)}: must have at most {MAX_ENTRIES} items")
    merged: dict[Identity, Entry] = {}
    for index, raw in enumerate(given):
        entry = _decode_entry(raw, obj, f"metadata.managedFields[{index}]")
        if not entry["fieldsV1"]:
            continue
        earlier = merged.setdefault(Identity.of(entry), entry)
        if earlier is not entry:
            merged[Identity.of(entry)] = {**entry, "fieldsV1": _union_of([earlier, entry])}
    return ordered(list(merged.values()))


def _decode_entry(raw: Entry, obj: Object, where: str) -> Entry:
    for field, problem in _problems(raw):
        raise _refuse(obj, f"{where}.{field}", problem)
    try:
        fields = parse(raw.get("fieldsV1") or EMPTY)
    except BadRequest as error:
        raise _refuse(obj, f"{where}.fieldsV1", f"Invalid value: {error.message}") from None
    entry = {key: raw[key] for key in _ENTRY_KEYS if raw.get(key)}
    return {**entry, "fieldsV1": fields}


_ENTRY_KEYS = ("manager", "operation", "apiVersion", "time", "fieldsType", "subresource")


def _problems(raw: Entry) -> Iterable[tuple[str, str]]:
    for field in _ENTRY_KEYS:
        if not isinstance(raw.get(field, ""), (str, type(None))):
            yield field, "Invalid value: must be a string"
    if raw.get("operation") not in (APPLY, UPDATE):
        yield "operation", f"Invalid value: {raw.get('operation')!r}: must be `Apply` or `Update`"
    if not raw.get("apiVersion"):
        yield "apiVersion", "Invalid value: must not be empty"
    if raw.get("fieldsType") != "FieldsV1":
        yield "fieldsType", f"Invalid value: {raw.get('fieldsType')!r}: must be `FieldsV1`"
    manager = raw.get("manager") or ""
    if len(manager) > _MAX_MANAGER_LENGTH or not manager.isprintable():
        yield "manager", f"Invalid value: must be printable and no longer than {_MAX_MANAGER_LENGTH} characters"
    if len(raw.get("subresource") or "") > _MAX_SUBRESOURCE_LENGTH:
        yield "subresource", f"Too long: may not be longer than {_MAX_SUBRESOURCE_LENGTH}"
    if raw.get("time") and not _is_time(raw["time"]):
        yield "time", f"Invalid value: {raw['time']!r}: must be an RFC 3339 time"


def _is_time(text: str) -> bool:
    try:
        parse_rfc3339(text)
    except ValueError:
        return False
    return True


def _refuse(obj: Object, field: str, message: str) -> ApiError:
    metadata = obj.get("metadata") or {}
    group, _, _ = str(obj.get("apiVersion") or "").rpartition("/")
    causes = [(field, "FieldValueInvalid", message)]
    return invalid(str(obj.get("kind") or ""), str(metadata.get("name") or ""), causes, group=group)
