"""The nodes of a workflow, wherever its status has them: as a map or, in a large workflow, compressed.

Every writer of a workflow may write its status: what is no node is left out, and what cannot be read is refused.
"""

from __future__ import annotations

from typing import Any

from paddlecloud.api.argo_nodes import BadPacking, unpacked
from paddlecloud.kube.errors import Invalid
from paddlecloud.kube.resource import Object

_TEXTS = ("name", "displayName", "type", "phase", "message", "boundaryID", "templateName", "startedAt", "finishedAt")
_MAPS = ("memoizationStatus", "templateRef")
_LISTS = ("parameters", "artifacts")


def with_nodes(workflow: Object) -> Object:
    """The workflow with its nodes as a map. Raises `Invalid`."""
    try:
        return unpacked(workflow)
    except BadPacking as error:
        raise Invalid(f"workflow {workflow['metadata'].get('name', '')}: {error}") from error


def nodes_of(workflow: Object) -> dict[str, Any]:
    """By their ids. Raises `Invalid`."""
    found = (with_nodes(workflow).get("status") or {}).get("nodes")
    if not isinstance(found, dict):
        return {}
    return {key: _readable(node) for key, node in found.items() if isinstance(node, dict)}


def _readable(node: Object) -> Object:
    """Without values of other types than Argo's."""
    wrong = {name for name in _TEXTS if not isinstance(node.get(name, ""), str)}
    wrong |= {name for name in _MAPS if not isinstance(node.get(name, {}), dict)}
    made = {name: value for name, value in node.items() if name not in wrong}
    if "children" in made:
        children = made["children"]
        made["children"] = [each for each in children if isinstance(each, str)] if isinstance(children, list) else []
    for side in ("inputs", "outputs"):
        if side in made:
            given = made[side] if isinstance(made[side], dict) else {}
            made[side] = {**given, **{field: _maps(given[field]) for field in _LISTS if field in given}}
    return made


def _maps(values: Any) -> list[Object]:
    return [each for each in values if isinstance(each, dict)] if isinstance(values, list) else []
