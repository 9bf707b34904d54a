"""Where in a file the fields stand that a server refuses. The file is read again for it, so only failures pay."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable
from typing import Any

from paddlecloud.cli.objects.manifests import ManifestDocument
from paddlecloud.kube.resource import Object

_STEP = re.compile(r"\[([^]]*)\]|([^.\[\]]+)")
_ITEM = re.compile(r'(\w+)="([^"]*)"')


def lines_of(manifest: ManifestDocument, paths: Iterable[str]) -> dict[str, int]:
    """The line of each field, or of the nearest one around it that is there. Paths are written as servers write them.

    That is `spec.containers[0].name`, and `.spec.containers[name="a"].name` in refusals of server-side apply.
    """
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    documents = yaml.compose_all(manifest.text, Loader=loader)
    root = next((node for node in documents if node and node.start_mark.line + 1 >= manifest.line), None)
    return {path: _line(root, f"{manifest.inside}.{path}") for path in paths} if root else {}


def _line(node: Any, path: str) -> int:
    line = int(node.start_mark.line)
    for bracketed, name in _STEP.findall(path):
        key, node = _member(node, name or bracketed)
        if node is None:
            break
        line = int(key.start_mark.line)
    return line + 1


def _member(node: Any, step: str) -> tuple[Any, Any]:
    """Where a member begins, and its value; None where there is none."""
    if isinstance(node.value, str):
        return None, None
    pairs = node.value if node.id == "mapping" else [(item, item) for item in node.value]
    if node.id == "mapping":
        return next(((key, value) for key, value in pairs if key.value == step.strip('"')), (None, None))
    if step.isdecimal():
        return pairs[int(step)] if int(step) < len(pairs) else (None, None)
    if named := _ITEM.fullmatch(step):
        return next(((item, item) for item, _ in pairs if _text(item, named[1]) == named[2]), (None, None))
    return None, None


def _text(node: Any, field: str) -> str | None:
    pairs = node.value if node.id == "mapping" else ()
    return next((value.value for key, value in pairs if key.value == field), None)


def without(obj: Object, paths: Iterable[str]) -> Object:
    """A copy of the object that lacks these fields; paths as in `lines_of`."""
    copied: Object = copy.deepcopy(obj)
    for path in paths:
        *above, last = [name or bracketed for bracketed, name in _STEP.findall(path)]
        node: Any = copied
        for step in above:
            node = _child(node, step)
        if isinstance(node, dict):
            node.pop(last.strip('"'), None)
    return copied


def _child(value: Any, step: str) -> Any:
    if isinstance(value, dict):
        return value.get(step.strip('"'))
    if not isinstance(value, list):
        return None
    if step.isdecimal():
        return value[int(step)] if int(step) < len(value) else None
    named = _ITEM.fullmatch(step)
    matching = (item for item in value if named and isinstance(item, dict) and item.get(named[1]) == named[2])
    return next(matching, None)
