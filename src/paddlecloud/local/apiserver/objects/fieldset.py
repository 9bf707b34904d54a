"""Sets of field paths in the form of FieldsV1: their algebra, their text, and reading what a client wrote.

A set is kept in the very shape it is stored in, nested dicts keyed by path elements: `f:NAME` (a field or the key of a
map), `k:{"name":"x"}` (an element of a list keyed by those fields), `v:VALUE` (an element of a list used as a set) and
`i:INDEX`. Below the root a path is a member of the set when its dict is empty or holds the key `.`; the root itself is
never a member, so an empty dict there is the empty set. Sets are values: no function here mutates one, and what an
operation did not touch is returned as the same object, which callers use to see that nothing changed. Leaves are not
shared: YAML would print one dict met twice as an anchor and its alias.

Which paths an object has, and which changed, depends on its schema: `ownership.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from paddlecloud.kube.errors import BadRequest

Fields = dict[str, Any]

EMPTY: Fields = {}
MAX_DEPTH = 128
_ABSENT: Any = object()


def union(a: Fields, b: Fields) -> Fields:
    """Paths in either; `a` itself when `b` adds nothing."""
    if not b:
        return a
    return _union(a, b) if a else b


def difference(a: Fields, b: Fields) -> Fields:
    """Paths in `a` and not in `b`, which takes exactly its members and not what is below them; `a` itself if none."""
    if not a or not b:
        return a
    return _difference(a, b) or EMPTY


def intersection(a: Fields, b: Fields) -> Fields:
    """Paths in both."""
    if not a or not b:
        return EMPTY
    return _intersection(a, b) or EMPTY


def is_member(subtree: Fields) -> bool:
    """Whether the path this dict stands at is in the set."""
    return not subtree or "." in subtree


def _union(a: Fields, b: Fields) -> Fields:
    if not b:
        return a if is_member(a) else {".": {}, **a}
    if not a:
        return b if is_member(b) else {".": {}, **b}
    result = a
    for key, value in b.items():
        mine = a.get(key)
        merged = value if mine is None else _union(mine, value)
        if merged is not mine:
            if result is a:
                result = dict(a)
            result[key] = merged
    return result


def _difference(a: Fields, b: Fields) -> Fields | None:
    if not a:
        return None if is_member(b) else a
    if not b:
        if "." not in a:
            return a
        rest = {key: value for key, value in a.items() if key != "."}
        return rest or None
    result = a
    for key, value in b.items():
        mine = a.get(key)
        if mine is None:
            continue
        kept = _difference(mine, value)
        if kept is mine:
            continue
        if result is a:
            result = dict(a)
        if kept is None:
            del result[key]
        else:
            result[key] = kept
    if result is not a and len(result) <= 1:
        if not result:
            return None
        if "." in result:
            return {}
    return result


def _intersection(a: Fields, b: Fields) -> Fields | None:
    if not a:
        return {} if is_member(b) else None
    if not b:
        return {} if "." in a else None
    small, large = (a, b) if len(a) <= len(b) else (b, a)
    result = {}
    for key, value in small.items():
        other = large.get(key)
        common = None if other is None else _intersection(value, other)
        if common is not None:
            result[key] = common
    if len(result) == 1 and "." in result:
        return {}
    return result or None


# --- text -------------------------------------------------------------------------------------------------------------


def paths(fields: Fields) -> Iterator[tuple[str, ...]]:
    """The members of a set as tuples of path elements, in a stable order: those of a level before what is below."""
    for key in sorted(fields):
        if key != "." and is_member(fields[key]):
            yield (key,)
    for key in sorted(fields):
        for path in paths(fields[key]):
            yield (key, *path)


def path_text(path: tuple[str, ...]) -> str:
    """`.spec.containers[name="x"].image`"""
    return "".join(map(step_text, path))


def step_text(step: str) -> str:
    kind, text = step[:2], step[2:]
    if kind == "k:":
        return "[" + ",".join(f"{k}={json_text(v)}" for k, v in msgspec.json.decode(text).items()) + "]"
    return {"f:": f".{text}", "v:": f"[={text}]", "i:": f"[{text}]"}[kind]


def parse(raw: Any) -> Fields:
    """A set as a client wrote it, checked and with its path elements in the one spelling used here."""
    if not isinstance(raw, dict):
        raise BadRequest("fieldsV1 must be an object")
    return {key: value for key, value in _parse(raw, MAX_DEPTH).items() if key != "."}


def _parse(raw: Any, depth: int) -> Fields:
    if not isinstance(raw, dict):
        raise BadRequest("every path element of fieldsV1 must hold an object")
    if depth == 0:
        raise BadRequest("fieldsV1 nests too deeply")
    fields: Fields = {}
    for key, value in raw.items():
        below = _parse(value, depth - 1)
        step = "." if key == "." else _parse_step(key)
        fields[step] = _union(fields[step], below) if step in fields else below
    return {} if len(fields) == 1 and "." in fields else fields


def _parse_step(key: str) -> str:
    kind, text = key[:2], key[2:]
    if kind == "f:":
        return key
    try:
        value = msgspec.json.decode(text) if kind in ("k:", "v:", "i:") else _ABSENT
    except (msgspec.DecodeError, RecursionError):
        value = _ABSENT
    if kind == "k:" and isinstance(value, dict) and value and all(map(_is_scalar, value.values())):
        return "k:{" + ",".join(f"{json_text(name)}:{json_text(value[name])}" for name in sorted(value)) + "}"
    if (kind == "v:" and _is_scalar(value)) or (kind == "i:" and type(value) is int):
        return f"{kind}{json_text(value)}"
    raise BadRequest(f"fieldsV1: {key[:100]!r} is not a path element")


def _is_scalar(value: Any) -> bool:
    return isinstance(value, (str, int, float))


def json_text(value: Any) -> str:
    return msgspec.json.encode(value).decode()
