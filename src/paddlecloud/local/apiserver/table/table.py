"""Objects as a `meta.k8s.io/v1` Table: what `kubectl get` asks for.

Built-in kinds have computed columns (`columns.py`), custom kinds the JSON paths of their CRD. The answer to a list, to
a single get and to each watch event is the same table with more or fewer rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, Literal

from paddlecloud.kube.errors import ApiError
from paddlecloud.kube.resource import Object
from paddlecloud.kube.templates import jsonpath
from paddlecloud.local.apiserver.registry import Column, KindInfo
from paddlecloud.local.apiserver.table.columns import DEFAULT, VIEWS, CellColumn, View
from paddlecloud.local.apiserver.table.humanize import human_duration, since

__all__ = ["IncludeObject", "human_duration", "to_table"]

IncludeObject = Literal["Metadata", "None", "Object"]
INCLUDE: Mapping[str, IncludeObject] = {"Metadata": "Metadata", "None": "None", "Object": "Object"}


def to_table(
    objects: Iterable[Object],
    info: KindInfo,
    *,
    now: float,
    include_object: IncludeObject = "Metadata",
    list_metadata: Mapping[str, Any] | None = None,
    headers: bool = True,
) -> Object:
    """The Table of `objects`. `headers=False` leaves the column definitions out: all but a watch's first event."""
    view = view_of(info)
    table: Object = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": dict(list_metadata or {})}
    table["columnDefinitions"] = [_definition(column) for column in view.columns] if headers else None
    table["rows"] = [_row(obj, view, now=now, include_object=include_object) for obj in objects]
    return table


def view_of(info: KindInfo) -> View:
    if not info.custom:
        resource = info.resource
        return VIEWS.get((resource.group, resource.plural), DEFAULT)
    return _custom_view(info.columns) if info.columns else DEFAULT


@lru_cache(maxsize=512)
def _custom_view(columns: tuple[Column, ...]) -> View:
    try:
        return View((DEFAULT.columns[0], *map(_custom_column, columns)))
    except jsonpath.JsonPathError:  # a bad printer column is no reason to hide the objects
        return DEFAULT


def _custom_column(column: Column) -> CellColumn:
    return CellColumn(
        column.name,
        _custom_cell(column),
        type=column.type,
        format=column.format,
        priority=column.priority,
        description=column.description,
    )


def _custom_cell(column: Column) -> Callable[[Object, float], Any]:
    find = jsonpath.compile(column.json_path)
    convert = _CONVERSIONS.get(column.type, _CONVERSIONS["string"])

    def cell(obj: Object, now: float) -> Any:
        found = find(obj)
        return convert(found[0], now) if found and found[0] is not None else None

    return cell


def _number(value: Any, kind: type) -> Any:
    return kind(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


# A value of another type than its column declares becomes an empty cell, as in Kubernetes.
_CONVERSIONS: dict[str, Callable[[Any, float], Any]] = {
    "string": lambda value, now: jsonpath.to_text(value),
    "integer": lambda value, now: _number(value, int),
    "number": lambda value, now: _number(value, float),
    "boolean": lambda value, now: value if isinstance(value, bool) else None,
    "date": lambda value, now: since(value, now) if isinstance(value, str) else None,
}


def _definition(column: CellColumn) -> Object:
    return {
        "name": column.name,
        "type": column.type,
        "format": column.format,
        "description": column.description or column.name,
        "priority": column.priority,
    }


def _row(obj: Object, view: View, *, now: float, include_object: IncludeObject) -> Object:
    try:
        cells = view.cells(obj, now)
    except (AttributeError, LookupError, TypeError, ValueError, ApiError):
        # An object of a shape its columns did not expect must not hide the rest of the list: name it, leave it empty.
        cells = [obj["metadata"]["name"] if column.name == "Name" else None for column in view.columns]
    row: Object = {"cells": cells}
    if include_object == "Metadata":
        row["object"] = {
            "kind": "PartialObjectMetadata",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": obj["metadata"],
        }
    elif include_object == "Object":
        row["object"] = obj
    return row
