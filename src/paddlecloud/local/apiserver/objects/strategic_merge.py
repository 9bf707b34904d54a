"""Strategic merge patch: a merge patch that knows, from the schema, which lists are merged by key.

The directives are those of Kubernetes: `$patch` (replace, delete, merge), `$deleteFromPrimitiveList/LIST`,
`$setElementOrder/LIST` and `$retainKeys`. What the schema does not know merges as maps and replaces as lists. Custom
kinds have no strategic merge at all; the caller refuses it for them before coming here.

As in `patch.py`, inputs are never mutated and the result shares what did not change.
"""

from __future__ import annotations

from typing import Any

from paddlecloud.kube.errors import ApiError, BadRequest, Invalid
from paddlecloud.kube.resource import Object
from paddlecloud.local.apiserver.objects.patch import own
from paddlecloud.local.apiserver.schema.structural import Node, child, item, patch_merge_key, patch_strategy

PATCH = "$patch"
RETAIN_KEYS = "$retainKeys"
DELETE_FROM = "$deleteFromPrimitiveList/"
ELEMENT_ORDER = "$setElementOrder/"

_ABSENT: Any = object()


def strategic_merge(obj: Object, patch: Any, node: Node | None) -> Object:
    """`obj` with `patch` merged in by the rules of `node`, the schema of the whole object."""
    if not isinstance(patch, dict):
        raise BadRequest("error decoding patch: a strategic merge patch is a JSON object")
    try:
        return own(_merge_map(obj, patch, node), obj)
    except RecursionError:
        raise BadRequest("the patch nests too deeply") from None


def _merge_map(live: dict[str, Any], patch: dict[str, Any], node: Node | None) -> dict[str, Any]:
    directive = patch.get(PATCH, "merge")
    if directive == "replace":
        return dict(_clean(patch))
    if directive == "delete":
        return {}
    if directive != "merge":
        raise BadRequest(f"unknown patch type: {directive!r}")
    result = _retain(live, patch)
    for key, value in patch.items():
        if key.startswith(DELETE_FROM):
            _delete_primitives(result, key[len(DELETE_FROM) :], value)
        elif key.startswith(ELEMENT_ORDER):
            _reorder(result, key[len(ELEMENT_ORDER) :], patch, node)
        elif key in (PATCH, RETAIN_KEYS):
            continue
        elif value is None:
            result.pop(key, None)
        else:
            order = patch.get(ELEMENT_ORDER + key)
            _put(result, key, value, order=order, node=_child(node, key))
    return result


def _put(result: dict[str, Any], key: str, value: Any, *, order: Any, node: Node | None) -> None:
    """Merge one field of a patch into `result`, or take it as it comes where there is nothing to merge with."""
    live = result.get(key, _ABSENT)
    if isinstance(value, list) and order is not None:
        _check_order(value, order, node)
    if isinstance(value, dict) and isinstance(live, dict):
        replaces = node is not None and "replace" in patch_strategy(node)
        merged: Any = _clean(value) if replaces else _merge_map(live, value, node)
    elif isinstance(value, list) and isinstance(live, list) and node is not None and "merge" in patch_strategy(node):
        merged = _merge_list(live, value, order=order, node=node)
    else:
        merged = _clean(value)
    if merged is _ABSENT:
        result.pop(key, None)
    else:
        result[key] = merged


def _reorder(result: dict[str, Any], field: str, patch: dict[str, Any], node: Node | None) -> None:
    """Obey `$setElementOrder` for a list the patch does not carry; one that it carries is ordered as it is merged."""
    order, live, sub = patch[ELEMENT_ORDER + field], result.get(field), _child(node, field)
    if field in patch or order is None or not isinstance(live, list):
        return
    merge_key = patch_merge_key(sub) if sub is not None else None
    _order_keys(order, merge_key)
    result[field] = _arrange(live, live=live, wanted=order, merge_key=merge_key)


def _retain(live: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """A copy of `live`, without the keys a `$retainKeys` list leaves out (how a union switches its member)."""
    if RETAIN_KEYS not in patch:
        return dict(live)
    keys = patch[RETAIN_KEYS]
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
        raise BadRequest("invalid patch format of retainKeys")
    retained = set(keys)
    for key, value in patch.items():
        if value is not None and not _is_directive(key) and key not in retained:
            raise BadRequest(f"patch content doesn't match retainKeys list: {key} is missing there")
    return {key: value for key, value in live.items() if key in retained}


def _delete_primitives(result: dict[str, Any], field: str, doomed: Any) -> None:
    if not isinstance(doomed, list) or any(isinstance(value, (dict, list)) for value in doomed):
        raise BadRequest("invalid patch format of primitive list")
    live, gone = result.get(field), set(doomed)
    if isinstance(live, list):
        result[field] = [value for value in live if isinstance(value, (dict, list)) or value not in gone]


# --- lists ------------------------------------------------------------------------------------------------------------


def _merge_list(live: list[Any], patch: list[Any], *, order: Any, node: Node) -> list[Any]:
    everything = [*live, *patch]
    if any(isinstance(value, list) for value in everything):
        raise Invalid("lists of lists are not supported")
    maps = sum(isinstance(value, dict) for value in everything)
    if maps == 0:
        merged = list(dict.fromkeys(everything))
        return _arrange(merged, live=live, wanted=patch if order is None else order, merge_key=None)
    if maps != len(everything):
        raise Invalid("list element types are not identical")
    merge_key = patch_merge_key(node)
    if merge_key is None:
        raise Invalid("cannot merge lists without merge key")
    live, additions, replaced = _list_directives(live, patch, merge_key)
    if replaced:
        return additions
    merged = _merge_by_key(live, additions, merge_key, item(node))
    return _arrange(merged, live=live, wanted=additions if order is None else order, merge_key=merge_key)


def _list_directives(live: list[Any], patch: list[Any], merge_key: str) -> tuple[list[Any], list[Any], bool]:
    """What is left of `live` after `$patch: delete`, the plain elements of `patch`, whether these are all there is."""
    additions, doomed, replace = [], set(), False
    for element in patch:
        directive = element.get(PATCH, "merge")
        if directive == "delete":
            doomed.add(_key_value(element, merge_key))
        elif directive == "replace":
            replace = True
            if len(element) > 1:
                additions.append(element)
        elif directive == "merge":
            additions.append(element)
        else:
            raise BadRequest(f"unknown patch type: {directive!r}")
    if doomed:
        live = [element for element in live if _key_value(element, merge_key) not in doomed]
    return live, _clean(additions) if replace else additions, replace


def _merge_by_key(live: list[Any], additions: list[Any], merge_key: str, node: Node | None) -> list[Any]:
    merged = list(live)
    places: dict[Any, int] = {}
    for index, element in enumerate(live):
        value = element.get(merge_key)
        if not isinstance(value, (dict, list)):
            places.setdefault(value, index)
    for element in additions:
        value = _key_value(element, merge_key)
        if value in places:
            merged[places[value]] = _merge_map(merged[places[value]], element, node)
        else:
            places[value] = len(merged)
            merged.append(_clean(element))
    return merged


def _arrange(merged: list[Any], *, live: list[Any], wanted: list[Any], merge_key: str | None) -> list[Any]:
    """Order a merged list: first as `wanted` says, the rest as in `live`, interleaved as `live` had them.

    An element that is in neither order stays behind those it came with; one that `live` does not know (it is new)
    goes before whatever follows it, which is why `kubectl patch` puts a new container first.
    """

    def key_of(element: Any) -> Any:
        return element if merge_key is None else _key_value(element, merge_key)

    wish = _positions(map(key_of, wanted))
    was = _positions(element if merge_key is None else element.get(merge_key) for element in live)
    ours = sorted((e for e in merged if key_of(e) in wish), key=lambda e: wish[key_of(e)])
    rest = sorted((e for e in merged if key_of(e) not in wish), key=lambda e: was.get(key_of(e), len(was)))
    result: list[Any] = []
    remaining = iter(ours)
    upcoming = next(remaining, _ABSENT)
    for element in rest:
        place = was.get(key_of(element))
        while upcoming is not _ABSENT and not (
            place is not None and key_of(upcoming) in was and place < was[key_of(upcoming)]
        ):
            result.append(upcoming)
            upcoming = next(remaining, _ABSENT)
        result.append(element)
    if upcoming is not _ABSENT:
        result.append(upcoming)
    result.extend(remaining)
    return result


def _positions(keys: Any) -> dict[Any, int]:
    places: dict[Any, int] = {}
    for index, key in enumerate(keys):
        if not isinstance(key, (dict, list)):
            places.setdefault(key, index)
    return places


def _check_order(patch: list[Any], order: Any, node: Node | None) -> None:
    """Elements of the patch must appear in `$setElementOrder`, in the same relative order."""
    merge_key = patch_merge_key(node) if node is not None else None
    wish = iter(_order_keys(order, merge_key))
    for element in patch:
        if isinstance(element, dict):
            if PATCH in element:
                continue
            key = _key_value(element, merge_key) if merge_key is not None else element
        else:
            key = element
        if not any(candidate == key for candidate in wish):
            raise Invalid(f"The order in patch list doesn't match {ELEMENT_ORDER[:-1]} list: {key!r}")


def _order_keys(order: Any, merge_key: str | None) -> list[Any]:
    if not isinstance(order, list):
        raise BadRequest("invalid patch format of setElementOrder list")
    if merge_key is None:
        return order
    return [_key_value(element, merge_key) for element in order]


def _key_value(element: Any, merge_key: str) -> Any:
    value = element.get(merge_key, _ABSENT) if isinstance(element, dict) else _ABSENT
    if value is _ABSENT or isinstance(value, (dict, list)):
        raise _no_merge_key(element, merge_key)
    return value


def _no_merge_key(element: Any, merge_key: str) -> ApiError:
    fields = sorted(element) if isinstance(element, dict) else element
    return Invalid(f"map: {fields} does not contain declared merge key: {merge_key}")


def _clean(value: Any) -> Any:
    """A patch value taken as data: nulls and directives gone. `_ABSENT` for what a directive deletes."""
    if isinstance(value, dict):
        if value.get(PATCH) == "delete":
            return _ABSENT
        kept = ((key, _clean(v)) for key, v in value.items() if v is not None and not _is_directive(key))
        return {key: v for key, v in kept if v is not _ABSENT}
    if isinstance(value, list):
        # A bare {"$patch": "replace"} among the elements is a mark, not an element.
        marked = [v for v in value if not (isinstance(v, dict) and len(v) == 1 and PATCH in v)]
        return [kept for kept in map(_clean, marked) if kept is not _ABSENT]
    return value


def _is_directive(key: str) -> bool:
    return key in (PATCH, RETAIN_KEYS) or key.startswith((DELETE_FROM, ELEMENT_ORDER))


def _child(node: Node | None, field: str) -> Node | None:
    return child(node, field) if node is not None else None
