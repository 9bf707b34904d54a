"""JSON patch (RFC 6902) and JSON merge patch (RFC 7386) as pure functions.

Inputs are never mutated. A result shares the subtrees a patch did not touch with the object it came from, so a later
comparison finds them equal by identity; only its top level and its `metadata` are always new. Callers that write deeper
into a result copy first. Strategic merge, which needs the schema of the kind, lives in `strategic_merge.py`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from paddlecloud.kube.errors import ApiError, BadRequest, Invalid, RequestEntityTooLarge
from paddlecloud.kube.resource import Object

MAX_OPERATIONS = 10_000
MAX_COPIED_BYTES = 3 * 1024 * 1024
"""What all `copy` operations of one patch may add: a handful of them doubling a document would exhaust the memory."""
MAX_DEPTH = 250
"""How deep a patched document may nest: moves can stack what no single request body could carry."""

_MISSING: Any = object()


def json_patch(obj: Object, ops: Any) -> Object:
    """`obj` after all operations of `ops`, or an error and no effect at all.

    A patch that is not a patch raises `BadRequest`; one that does not fit the object raises `Invalid`; one that is too
    big raises `RequestEntityTooLarge`. Negative array indices are refused as RFC 6901 demands.
    """
    if not isinstance(ops, list):
        raise BadRequest("error decoding patch: a JSON patch is a list of operations")
    if len(ops) > MAX_OPERATIONS:
        raise RequestEntityTooLarge(
            f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(ops)}"
        )
    document = _Document(obj)
    try:
        for index, op in enumerate(ops):
            document.apply(op, index)
    except RecursionError:
        raise _too_deep() from None
    if not isinstance(document.root, dict):
        raise _does_not_apply("the patched document is not an object")
    _check_depth(document.root)
    return own(document.root, obj)


def merge_patch(obj: Object, patch: Any) -> Object:
    """`obj` with `patch` merged in: objects merge, null deletes, everything else (lists too) replaces."""
    if not isinstance(patch, dict):
        raise BadRequest("error decoding patch: a merge patch is a JSON object")
    try:
        merged = _merge(obj, patch)
    except RecursionError:
        raise _too_deep() from None
    assert isinstance(merged, dict)
    return own(merged, obj)


def own(result: Object, source: Object) -> Object:
    """`result` whose top level and metadata are not those of `source`, so that the server may stamp them in place."""
    if result is source:
        result = dict(result)
    metadata = result.get("metadata")
    if metadata is source.get("metadata") and isinstance(metadata, dict):
        result["metadata"] = dict(metadata)
    return result


def json_equal(a: Any, b: Any) -> bool:
    """Equality of JSON values: unlike Python's, `true` is not 1; 1 and 1.0 are the same number."""
    if isinstance(a, dict):
        if not isinstance(b, dict) or a.keys() != b.keys():
            return False
        return all(json_equal(value, b[key]) for key, value in a.items())
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(json_equal, a, b))
    return isinstance(a, bool) == isinstance(b, bool) and bool(a == b)


def _merge(target: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = _merge(result.get(key), value)
    return result


# --- RFC 6902 ---------------------------------------------------------------------------------------------------------

_NEEDS = {"add": "value", "replace": "value", "test": "value", "move": "from", "copy": "from", "remove": ""}


class _Document:
    """The object while a patch runs over it.

    A container is copied when first written to and from then on changed in place (`_owned`), so that ten thousand
    operations on one large map cost one copy of it. An owned container therefore must appear only once in the
    document: `copy` duplicates what it copies.
    """

    def __init__(self, root: Any) -> None:
        self.root = root
        self._owned: dict[int, Any] = {}  # the values keep the containers alive, and with them their ids unique
        self._copy_budget = MAX_COPIED_BYTES

    def apply(self, op: Any, index: int) -> None:
        where = f"error decoding patch: operation {index}"
        if not isinstance(op, dict):
            raise BadRequest(f"{where} is not an object")
        name = op.get("op")
        if not isinstance(name, str) or name not in _NEEDS:
            raise BadRequest(f"{where}: Unexpected kind: {name!r}")
        path = _pointer(op.get("path"), f"{where}: path")
        if _NEEDS[name] == "value" and "value" not in op:
            raise BadRequest(f"{where}: {name} needs a value")
        argument = _pointer(op.get("from"), f"{where}: from") if _NEEDS[name] == "from" else op.get("value")
        getattr(self, f"_{name}")(path, argument)

    def _add(self, path: list[str], value: Any) -> None:
        if not path:
            self.root = value
            return
        parent, step = self._parent(path, "add"), path[-1]
        if isinstance(parent, list):
            parent.insert(len(parent) if step == "-" else _index(step, len(parent), path), value)
        else:
            parent[step] = value

    def _remove(self, path: list[str], _: Any) -> None:
        if not path:
            raise _does_not_apply("unable to remove the whole document")
        parent, step = self._parent(path, "remove"), path[-1]
        if isinstance(parent, list):
            del parent[_index(step, len(parent) - 1, path)]
        elif step in parent:
            del parent[step]
        else:
            raise _does_not_apply(f"unable to remove nonexistent key: {_text(path)}: missing value")

    def _replace(self, path: list[str], value: Any) -> None:
        if not path:
            self.root = value
            return
        parent, step = self._parent(path, "replace"), path[-1]
        if isinstance(parent, list):
            parent[_index(step, len(parent) - 1, path)] = value
        elif step in parent:
            parent[step] = value
        else:
            raise _missing("replace", path)

    def _test(self, path: list[str], value: Any) -> None:
        if not json_equal(self._get(path, "test"), value):
            raise _does_not_apply(f"testing value {_text(path)} failed: test failed")

    def _move(self, path: list[str], source: list[str]) -> None:
        value = self._get(source, "move")
        if path == source:
            return
        if path[: len(source)] == source:
            raise _does_not_apply(f"cannot move {_text(source)} into itself")
        self._remove(source, None)
        self._add(path, value)

    def _copy(self, path: list[str], source: list[str]) -> None:
        encoded = msgspec.json.encode(self._get(source, "copy"))
        self._copy_budget -= len(encoded)
        if self._copy_budget < 0:
            raise RequestEntityTooLarge(
                "Unable to complete the copy, the accumulated size increase of copy exceeds "
                f"the limit of {MAX_COPIED_BYTES} bytes"
            )
        self._add(path, msgspec.json.decode(encoded))

    def _get(self, path: list[str], verb: str) -> Any:
        node = self.root
        for step in path:
            node = _child(node, step, path, verb)
        return node

    def _parent(self, path: list[str], verb: str) -> Any:
        """The container that holds the last step of `path`, owned, as is every container on the way to it."""
        node = self.root = self._own(self.root, path, verb)
        for step in path[:-1]:
            child = self._own(_child(node, step, path, verb), path, verb)
            node[int(step) if isinstance(node, list) else step] = child
            node = child
        return node

    def _own(self, node: Any, path: list[str], verb: str) -> Any:
        if id(node) in self._owned:
            return node
        if not isinstance(node, (dict, list)):
            raise _missing(verb, path)
        copied = node.copy()
        self._owned[id(copied)] = copied
        return copied


def _pointer(text: Any, where: str) -> list[str]:
    if not isinstance(text, str) or (text and text[0] != "/"):
        raise BadRequest(f"{where} must be a JSON pointer that starts with '/', got {text!r}")
    steps = text[1:].split("/") if text else []
    if "~" not in text:
        return steps
    return [step.replace("~1", "/").replace("~0", "~") for step in steps]


def _child(parent: Any, step: str, path: list[str], verb: str) -> Any:
    if isinstance(parent, list):
        return parent[_index(step, len(parent) - 1, path)]
    found = parent.get(step, _MISSING) if isinstance(parent, dict) else _MISSING
    if found is _MISSING:
        raise _missing(verb, path)
    return found


def _index(step: str, last: int, path: list[str]) -> int:
    if not (step.isascii() and step.isdigit()) or (step[0] == "0" and step != "0"):
        raise _does_not_apply(f"{_text(path)}: {step!r} is not an array index")
    # A number of more digits than any list is long is not worth converting.
    if len(step) > 9 or int(step) > last:
        raise _does_not_apply(f"{_text(path)}: Unable to access invalid index: {step[:20]}: invalid index referenced")
    return int(step)


def _check_depth(doc: Any) -> None:
    level, depth = [doc], 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            raise _too_deep()
        level = [
            child
            for parent in level
            for child in (parent.values() if isinstance(parent, dict) else parent)
            if isinstance(child, (dict, list)) and child
        ]


def _text(path: list[str]) -> str:
    return "".join("/" + step.replace("~", "~0").replace("/", "~1") for step in path)


def _missing(verb: str, path: list[str]) -> ApiError:
    return _does_not_apply(f"{verb} operation does not apply: doc is missing path: {_text(path)}: missing value")


def _does_not_apply(why: str) -> ApiError:
    return Invalid(f"the server rejected our request due to an error in our request: {why}")


def _too_deep() -> ApiError:
    return BadRequest("the patched object nests too deeply")
