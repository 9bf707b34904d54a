"""Tables made by the server: the columns a kind declares, fetched in pages and shown as kubectl shows them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, NamedTuple

from paddlecloud.cli.objects.api import Api
from paddlecloud.kube.resource import Object, Resource

ACCEPT = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
PAGE = 500


class Column(NamedTuple):
    name: str
    priority: int = 0


class Row(NamedTuple):
    cells: list[Any]
    object: Object
    """Metadata alone, or all of the object when the request asked for it."""

    @property
    def metadata(self) -> Object:
        meta: Object = self.object.get("metadata") or {}
        return meta


class Table(NamedTuple):
    columns: list[Column]
    rows: list[Row]
    resource_version: str = ""


class Shape(NamedTuple):
    """Which columns to show beside the declared ones."""

    wide: bool = False
    namespace: bool = False
    labels: bool = False
    label_columns: tuple[str, ...] = ()
    prefix: str = ""
    """Put before every name when several kinds are listed: `pod/`."""
    also: frozenset[str] = frozenset()
    """Columns that are shown although they belong to the wide output."""

    def headers(self, columns: list[Column]) -> list[str]:
        names = [column.name for column in columns if self._shown(column)]
        names = ["Namespace", *names] if self.namespace else names
        names += [label.rpartition("/")[2] for label in self.label_columns]
        return [*names, "Labels"] if self.labels else names

    def cells(self, columns: list[Column], row: Row) -> list[Any]:
        cells = zip(columns, row.cells, strict=False)
        values = [_phase(column, row, value) for column, value in cells if self._shown(column)]
        if self.prefix and values:
            values[0] = f"{self.prefix}{values[0]}"
        if self.namespace:
            values.insert(0, row.metadata.get("namespace", ""))
        labels = row.metadata.get("labels") or {}
        values += [labels.get(label, "") for label in self.label_columns]
        if self.labels:
            values.append(",".join(f"{key}={value}" for key, value in sorted(labels.items())) or None)
        return values

    def _shown(self, column: Column) -> bool:
        return self.wide or column.priority == 0 or column.name in self.also


def _phase(column: Column, row: Row, value: Any) -> Any:
    """An object that is being deleted keeps its last phase, which is no news; servers show this of pods themselves."""
    return "Terminating" if column.name.lower() == "phase" and row.metadata.get("deletionTimestamp") else value


def filled(table: Table, names: Collection[str], *, with_text: str = "") -> frozenset[str]:
    """Those of the columns in which any row says something, or `with_text` where it is given."""
    places = {column.name: number for number, column in enumerate(table.columns) if column.name in names}

    def says(cell: Any) -> bool:
        return cell == with_text if with_text else bool(cell)

    return frozenset(name for name, at in places.items() if any(says(row.cells[at]) for row in table.rows))


def fetch(
    api: Api,
    resource: Resource,
    namespace: str | None,
    *,
    name: str | None = None,
    query: Mapping[str, str] | None = None,
    whole_objects: bool = False,
) -> Table:
    """One object by name, or every one that matches the selectors in `query`."""
    parameters = {**(query or {}), "includeObject": "Object" if whole_objects else "Metadata"}
    path = resource.path(namespace, name)
    if name is not None:
        return parse(api.json(path, query=parameters, accept=ACCEPT))
    table = Table([], [])
    parameters["limit"] = str(PAGE)
    while True:
        answer = api.json(path, query=parameters, accept=ACCEPT)
        page = parse(answer)
        table = Table(table.columns or page.columns, table.rows + page.rows, page.resource_version)
        token = (answer.get("metadata") or {}).get("continue")
        if not token:
            return table
        parameters["continue"] = token


def watch(
    api: Api, resource: Resource, namespace: str | None, *, query: Mapping[str, str], resource_version: str
) -> Iterator[tuple[str, Table]]:
    """(event type, table of the rows that changed) until the server ends the stream."""
    from paddlecloud.kube.errors import ApiError
    from paddlecloud.kube.transport import split_lines

    import msgspec  # isort: skip - after the transport, which needs it too

    parameters = {**query, "watch": "true", "resourceVersion": resource_version, "includeObject": "Object"}
    stream = api.client.stream(resource.path(namespace), query=parameters, accept=ACCEPT)
    for line in api.each(split_lines(stream)):
        event = msgspec.json.decode(line)
        obj = event["object"]
        if event["type"] == "ERROR":
            raise ApiError.from_status(int(obj.get("code") or 500), obj)
        if event["type"] != "BOOKMARK":
            yield event["type"], parse(obj)


def parse(answer: Object) -> Table:
    """A Table, or whatever a server that makes none sent in its place: a list or one object, shown as NAME and AGE."""
    version = str((answer.get("metadata") or {}).get("resourceVersion") or "")
    if answer.get("kind") == "Table":
        columns = [
            Column(str(column["name"]), int(column.get("priority") or 0))
            for column in answer.get("columnDefinitions") or ()
        ]
        rows = [Row(row.get("cells") or [], row.get("object") or {}) for row in answer.get("rows") or ()]
        return Table(columns, rows, version)
    items = answer["items"] if isinstance(answer.get("items"), list) else [answer]
    return Table([Column("Name"), Column("Age")], [_plain_row(item) for item in items], version)


def _plain_row(obj: Object) -> Row:
    import time

    from paddlecloud.cli import times

    meta = obj.get("metadata") or {}
    return Row([meta.get("name"), times.age(meta.get("creationTimestamp"), time.time())], obj)


def sort(table: Table, key: Callable[[Object], Any]) -> Table:
    return table._replace(rows=sorted(table.rows, key=lambda row: key(row.object)))
