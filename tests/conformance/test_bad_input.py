"""Bad input: whatever comes in, a clear Status goes out, and nothing half-written stays."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.kube import errors
from paddlecloud.kube.resource import CONFIGMAPS, PODS, SECRETS, SERVICES, Object, Resource

from .world import Api, ScratchNamespace, a, sleeping_pod

# What is not served --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/namespaces/default/unicorns",
        "/api/v2/namespaces/default/pods",
        "/apis/example.invalid/v1/widgets",
        "/apis/apps/v1/namespaces/default/pods",
        "/nonsense",
        "/api/v1/namespaces/default/pods/p/unknown-subresource",
        "/api/v1/namespaces/default/nodes",
    ],
)
def test_an_unknown_path_or_kind_is_not_found(api: Api, path: str) -> None:
    response = api.send("GET", path)
    assert response.status == 404


@pytest.mark.parametrize("namespace", ["nowhere", "No_Where"])
def test_nothing_is_created_in_a_namespace_that_is_not_there(api: Api, namespace: str) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "Not A Name"}}
    assert api.send("POST", f"/api/v1/namespaces/{namespace}/configmaps", body).status == 404


@pytest.mark.parametrize("path", ["/api/v1/nodes", "/api/v1/namespaces"])
def test_what_has_no_namespace_is_not_selected_by_one(api: Api, path: str) -> None:
    assert api.send("GET", path, query={"fieldSelector": "metadata.namespace=default"}).status == 400


def test_a_kind_that_is_not_served_cannot_be_created(api: Api) -> None:
    body = {"apiVersion": "example.invalid/v1", "kind": "Unicorn", "metadata": {"name": "u"}}
    assert api.send("POST", "/apis/example.invalid/v1/namespaces/default/unicorns", body).status == 404


@pytest.mark.parametrize(
    ("method", "name"), [("POST", "c"), ("PUT", None), ("PATCH", None)], ids=["POST name", "PUT list", "PATCH list"]
)
def test_a_verb_that_does_not_fit_the_path_is_not_allowed(
    here: ScratchNamespace, method: str, name: str | None
) -> None:
    here.make(CONFIGMAPS, "c")
    media = "application/merge-patch+json" if method == "PATCH" else "application/json"
    status = here.api.refuse(method, here.path(CONFIGMAPS, name), a(CONFIGMAPS, "c"), content_type=media)
    assert (status["code"], status["reason"]) == (405, "MethodNotAllowed")


# Bodies --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"nonsense",
        b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"}',
        b"[]",
        b'"text"',
        b"\xff\xfe\x00",
        b'{"apiVersion":"v1","kind":"ConfigMap","metadata":[]}',
        b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":1}}',
        b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","labels":["a"]}}',
        b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","labels":{"a":1}}}',
        b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":[]}',
        b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":"text"}',
        b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":{"k":{}}}',
        b'{"apiVersion":1,"kind":"ConfigMap","metadata":{"name":"c"}}',
    ],
)
def test_a_body_that_is_no_object_is_refused(here: ScratchNamespace, body: bytes) -> None:
    status = here.api.refuse("POST", here.path(CONFIGMAPS), body)
    assert (status["code"], status["reason"]) == (400, "BadRequest")
    assert here.names(CONFIGMAPS) == []


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"containers": "none"}, "containers"),
        ({"containers": [{"name": "c", "image": 1}]}, "image"),
        ({"containers": [{"name": "c", "image": "i", "env": {}}]}, "env"),
        ({"terminationGracePeriodSeconds": "soon"}, "terminationGracePeriodSeconds"),
        ({"hostNetwork": "yes"}, "hostNetwork"),
        ({"nodeSelector": ["a"]}, "nodeSelector"),
        ({"priority": 1 << 40}, "priority"),
    ],
)
def test_a_field_of_the_wrong_type_is_named(here: ScratchNamespace, change: Object, field: str) -> None:
    pod = sleeping_pod("p")
    pod["spec"] |= change
    status = here.api.refuse("POST", here.path(PODS), pod)
    assert (status["code"], status["reason"]) == (400, "BadRequest")
    assert field in status["message"]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"containers": []}, "spec.containers"),
        ({"containers": [{"name": "UPPER", "image": "i"}]}, "spec.containers[0].name"),
        ({"containers": [{"name": "c"}]}, "spec.containers[0].image"),
        ({"containers": [{"name": "c", "image": "i"}, {"name": "c", "image": "i"}]}, "spec.containers[1].name"),
        ({"restartPolicy": "Sometimes"}, "spec.restartPolicy"),
        ({"volumes": [{"name": "v"}, {"name": "v"}]}, "spec.volumes[1].name"),
        (
            {"containers": [{"name": "c", "image": "i", "volumeMounts": [{"name": "ghost", "mountPath": "/x"}]}]},
            "spec.containers[0].volumeMounts[0].name",
        ),
        (
            {"containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 70000}]}]},
            "spec.containers[0].ports[0].containerPort",
        ),
        (
            {
                "containers": [
                    {"name": "c", "image": "i", "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}}
                ]
            },
            "spec.containers[0].resources.requests",
        ),
        (
            {"containers": [{"name": "c", "image": "i", "env": [{"name": ""}]}]},
            "spec.containers[0].env[0].name",
        ),
    ],
)
def test_a_pod_that_makes_no_sense_is_invalid(here: ScratchNamespace, change: Object, field: str) -> None:
    pod = sleeping_pod("p")
    pod["spec"] |= change
    with pytest.raises(errors.Invalid) as refused:
        here.create(PODS, pod)
    assert refused.value.details is not None
    assert field in [cause["field"] for cause in refused.value.details["causes"]]


def test_a_negative_grace_period_means_the_shortest(here: ScratchNamespace) -> None:
    made = here.create(PODS, sleeping_pod("p", spec={"terminationGracePeriodSeconds": -1}))
    assert made["spec"]["terminationGracePeriodSeconds"] == 1


def test_kind_and_version_may_be_left_to_the_path(here: ScratchNamespace) -> None:
    assert here.api.post(here.path(CONFIGMAPS), {"metadata": {"name": "c"}})["kind"] == "ConfigMap"
    assert here.api.post(here.path(CONFIGMAPS), {"kind": "ConfigMap", "metadata": {"name": "d"}})["apiVersion"] == "v1"


def test_custom_objects_say_what_they_are(here: ScratchNamespace, widgets: Resource) -> None:
    for body in ({"metadata": {"name": "w"}}, {"kind": "Widget", "metadata": {"name": "w"}}):
        assert here.api.refuse("POST", here.path(widgets), body)["code"] == 400


@pytest.mark.parametrize("amount", ["lots", "1.2.3", "1GiB", ""])
def test_a_quantity_must_be_one(here: ScratchNamespace, amount: str) -> None:
    pod = sleeping_pod("p")
    pod["spec"]["containers"][0]["resources"] = {"requests": {"memory": amount}}
    status = here.api.refuse("POST", here.path(PODS), pod)
    assert status["code"] == 400
    assert "quantit" in status["message"]


def test_an_unknown_media_type_is_refused(here: ScratchNamespace) -> None:
    status = here.api.refuse("POST", here.path(CONFIGMAPS), a(CONFIGMAPS, "c"), content_type="text/html")
    assert (status["code"], status["reason"]) == (415, "UnsupportedMediaType")


def test_yaml_is_understood(here: ScratchNamespace) -> None:
    body = b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\ndata:\n  a: '1'\n"
    assert here.api.send("POST", here.path(CONFIGMAPS), body, content_type="application/yaml").status == 201
    assert here.get(CONFIGMAPS, "c")["data"] == {"a": "1"}


@pytest.mark.parametrize("body", [b"a: [", b"a: b: c", b"\ttab: x", b"- 1\n- 2"])
def test_bad_yaml_is_refused(here: ScratchNamespace, body: bytes) -> None:
    assert here.api.refuse("POST", here.path(CONFIGMAPS), body, content_type="application/yaml")["code"] == 400


# Names ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["Upper", "under_score", "-dash", "dash-", "a..b", "sp ace", "x" * 254, "ü", "a/b", "%2e", ".", "new\nline"]
)
@pytest.mark.parametrize("resource", [CONFIGMAPS, "widgets"], ids=["configmaps", "widgets"])
def test_an_illegal_name_is_refused(here: ScratchNamespace, widgets: Resource, resource: Any, name: str) -> None:
    kind = widgets if resource == "widgets" else resource
    with pytest.raises(errors.Invalid, match=r"metadata\.name"):
        here.make(kind, name)


@pytest.mark.parametrize("name", ["a", "0", "a.b-c.9", "x" * 253])
def test_a_legal_name_is_accepted(here: ScratchNamespace, name: str) -> None:
    assert here.make(CONFIGMAPS, name)["metadata"]["name"] == name


def test_services_are_named_like_hosts(here: ScratchNamespace) -> None:
    for name in ("1st", "a.b", "x" * 64):
        with pytest.raises(errors.Invalid, match=r"metadata\.name"):
            here.make(SERVICES, name, spec={"ports": [{"port": 80}]})


@pytest.mark.parametrize(
    ("labels", "ok"),
    [
        ({"example.org/a-b_c.d": "v-1_2.3"}, True),
        ({"a": ""}, True),
        ({"": "x"}, False),
        ({"a b": "x"}, False),
        ({"a": "x y"}, False),
        ({"a": "-x"}, False),
        ({"a": "x" * 64}, False),
        ({"a" * 64: "x"}, False),
        ({"a/b/c": "x"}, False),
        ({"UPPER.org/a": "x"}, False),
    ],
)
def test_labels_follow_their_rules(here: ScratchNamespace, labels: dict[str, str], ok: bool) -> None:
    if ok:
        assert here.make(CONFIGMAPS, "c", labels=labels)["metadata"]["labels"] == labels
        return
    with pytest.raises(errors.Invalid, match=r"metadata\.labels"):
        here.make(CONFIGMAPS, "c", labels=labels)


def test_annotations_may_be_long_but_not_endless(here: ScratchNamespace) -> None:
    here.make(CONFIGMAPS, "c", annotations={"a": "x" * 200_000})
    with pytest.raises(errors.Invalid, match=r"metadata\.annotations: Too long"):
        here.patch(CONFIGMAPS, "c", {"metadata": {"annotations": {"b": "y" * 100_000}}})


# Options -------------------------------------------------------------------------------------------------------------


def test_a_field_manager_must_be_printable_and_short(here: ScratchNamespace) -> None:
    for manager in ("x" * 129, "tab\there"):
        status = here.api.refuse("POST", here.path(CONFIGMAPS), a(CONFIGMAPS, "c"), query={"fieldManager": manager})
        assert status["code"] == 422
        assert "fieldManager" in status["message"]


@pytest.mark.parametrize(
    "options",
    [
        {"gracePeriodSeconds": "soon"},
        {"preconditions": "x"},
        {"propagationPolicy": 1},
    ],
)
def test_delete_options_must_make_sense(here: ScratchNamespace, options: Object) -> None:
    here.make(SECRETS, "s")
    body = {"kind": "DeleteOptions", "apiVersion": "v1", **options}
    assert here.api.refuse("DELETE", here.path(SECRETS, "s"), body)["code"] in (400, 422, 500)
    assert here.exists(SECRETS, "s")
