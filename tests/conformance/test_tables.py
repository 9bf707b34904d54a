"""Tables: what `kubectl get` shows is computed by the server."""

from __future__ import annotations

from paddlecloud.kube.resource import CONFIGMAPS, PODS, SECRETS, Object, Resource

from .world import PARTIAL, TABLE, ScratchNamespace, a, sleeping_pod


def table(here: ScratchNamespace, resource: Resource, name: str | None = None, **query: str) -> Object:
    found: Object = here.api.fetch(here.path(resource, name), accept=TABLE, **query)
    assert (found["kind"], found["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    return found


def headings(found: Object, *, wide: bool = False) -> list[str]:
    return [column["name"] for column in found["columnDefinitions"] if wide or column["priority"] == 0]


def test_a_list_of_pods_has_the_columns_that_users_know(here: ScratchNamespace) -> None:
    here.create(PODS, sleeping_pod("p"))
    found = table(here, PODS)
    assert headings(found) == ["Name", "Ready", "Status", "Restarts", "Age"]
    assert headings(found, wide=True)[5:] == ["IP", "Node", "Nominated Node", "Readiness Gates"]
    (row,) = found["rows"]
    assert row["cells"][:3] == ["p", "0/1", "Pending"]


def test_rows_carry_metadata_so_that_clients_can_show_labels(here: ScratchNamespace) -> None:
    here.make(SECRETS, "s", labels={"app": "x"})
    (row,) = table(here, SECRETS)["rows"]
    assert row["object"]["kind"] == "PartialObjectMetadata"
    assert row["object"]["metadata"]["labels"] == {"app": "x"}
    assert "data" not in row["object"]


def test_the_whole_object_or_none_can_be_asked_for(here: ScratchNamespace) -> None:
    here.make(SECRETS, "s", stringData={"k": "v"})
    (whole,) = table(here, SECRETS, includeObject="Object")["rows"]
    (none,) = table(here, SECRETS, includeObject="None")["rows"]
    assert whole["object"]["data"] == {"k": "dg=="}
    assert none.get("object") is None


def test_one_object_is_a_table_of_one_row(here: ScratchNamespace) -> None:
    here.make(CONFIGMAPS, "c", data={"a": "1", "b": "2"})
    (row,) = table(here, CONFIGMAPS, "c")["rows"]
    assert row["cells"][:2] == ["c", 2]


def test_pages_of_a_table_continue_like_pages_of_a_list(here: ScratchNamespace) -> None:
    for name in ("a", "b", "c"):
        here.make(SECRETS, name)
    first = table(here, SECRETS, limit="2")
    assert [row["cells"][0] for row in first["rows"]] == ["a", "b"]
    second = table(here, SECRETS, limit="2", **{"continue": first["metadata"]["continue"]})
    assert [row["cells"][0] for row in second["rows"]] == ["c"]
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


def test_custom_kinds_show_their_printer_columns(here: ScratchNamespace, widgets: Resource) -> None:
    here.make(widgets, "w", spec={"colour": "red"})
    here.patch(widgets, "w", {"status": {"phase": "Running"}}, subresource="status")
    found = table(here, widgets)
    assert headings(found) == ["Name", "Size", "Phase", "Age"]
    assert headings(found, wide=True) == ["Name", "Size", "Phase", "Colour", "Age"]
    (row,) = found["rows"]
    assert row["cells"][:4] == ["w", 3, "Running", "red"]


def test_a_column_without_a_value_is_empty(here: ScratchNamespace, widgets: Resource) -> None:
    here.make(widgets, "w")
    (row,) = table(here, widgets)["rows"]
    assert row["cells"][2] is None


def test_watched_tables_name_their_columns_once(here: ScratchNamespace) -> None:
    from paddlecloud.kube.stdlib import drive_iter
    from paddlecloud.kube.transport import split_lines

    here.make(SECRETS, "a")
    here.make(SECRETS, "b")
    query = {"watch": "true", "timeoutSeconds": "1"}
    lines = drive_iter(split_lines(here.api.client.stream(here.path(SECRETS), query=query, accept=TABLE)))
    import msgspec

    events = [msgspec.json.decode(line) for line in lines]
    assert [event["object"]["rows"][0]["cells"][0] for event in events] == ["a", "b"]
    assert events[0]["object"]["columnDefinitions"]
    assert not events[1]["object"]["columnDefinitions"]


def test_metadata_alone_can_be_asked_for(here: ScratchNamespace) -> None:
    here.create(SECRETS, a(SECRETS, "s", labels={"k": "v"}, stringData={"x": "y"}))
    one = here.api.fetch(here.path(SECRETS, "s"), accept=PARTIAL)
    assert (one["kind"], one["metadata"]["labels"]) == ("PartialObjectMetadata", {"k": "v"})
    assert "data" not in one
    many = here.api.fetch(here.path(SECRETS), accept="application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io")
    assert many["kind"] == "PartialObjectMetadataList"
    assert "data" not in many["items"][0]


def test_an_unknown_shape_is_not_acceptable(here: ScratchNamespace) -> None:
    refused = here.api.send("GET", here.path(SECRETS), accept="application/json;as=Nonsense;v=v1;g=meta.k8s.io")
    assert refused.status == 406


def test_what_is_answered_and_not_stored_has_no_table(here: ScratchNamespace) -> None:
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    body = {"spec": {"nonResourceAttributes": {"path": "/", "verb": "get"}}}
    assert here.api.refuse("POST", path, body, accept=TABLE)["code"] == 406
    assert here.api.send("POST", path, body, accept=f"{TABLE},application/json").status == 201
    partial = here.api.send("POST", path, body, accept=PARTIAL)
    assert (partial.status, b"PartialObjectMetadata" in partial.body) == (201, True)
