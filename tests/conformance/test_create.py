"""Create: what the server adds, what it refuses."""

from __future__ import annotations

import re

import pytest

from paddlecloud.kube import errors
from paddlecloud.kube.resource import CONFIGMAPS, PODS, SECRETS, SERVICES, Object, Resource

from .world import DEPLOYMENTS, Api, ScratchNamespace, a, sleeping_pod


def test_the_server_stamps_identity_time_and_version(here: ScratchNamespace) -> None:
    meta = here.make(CONFIGMAPS, "c")["metadata"]
    assert meta["namespace"] == here.namespace
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", meta["uid"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", meta["creationTimestamp"])
    assert meta["resourceVersion"].isdigit()


def test_what_was_created_can_be_read(here: ScratchNamespace) -> None:
    made = here.make(CONFIGMAPS, "c", data={"k": "v"})
    assert here.get(CONFIGMAPS, "c") == made


def test_a_name_is_taken_once(here: ScratchNamespace) -> None:
    here.make(CONFIGMAPS, "c")
    with pytest.raises(errors.AlreadyExists, match='configmaps "c" already exists') as refused:
        here.make(CONFIGMAPS, "c")
    assert refused.value.details == {"name": "c", "kind": "configmaps"}


def test_a_recreated_object_is_another_one(here: ScratchNamespace) -> None:
    first = here.make(CONFIGMAPS, "c")
    here.delete(CONFIGMAPS, "c")
    second = here.make(CONFIGMAPS, "c")
    assert first["metadata"]["uid"] != second["metadata"]["uid"]


def test_generated_names_start_as_asked_and_differ(here: ScratchNamespace) -> None:
    names = {here.make(CONFIGMAPS, "", generateName="batch-")["metadata"]["name"] for _ in range(5)}
    assert len(names) == 5
    assert all(re.fullmatch(r"batch-[a-z0-9]{5}", name) for name in names)


def test_a_long_prefix_is_cut_so_that_the_name_fits(here: ScratchNamespace) -> None:
    name = here.make(CONFIGMAPS, "", generateName="x" * 100)["metadata"]["name"]
    assert len(name) == 63


def test_a_name_wins_over_generate_name(here: ScratchNamespace) -> None:
    assert here.make(CONFIGMAPS, "given", generateName="x-")["metadata"]["name"] == "given"


def test_no_name_at_all_is_refused(here: ScratchNamespace) -> None:
    with pytest.raises(errors.Invalid, match="name or generateName is required"):
        here.make(CONFIGMAPS, "")


def test_what_only_the_server_may_set_is_ignored(here: ScratchNamespace) -> None:
    obj = a(CONFIGMAPS, "c")
    obj["metadata"] |= {
        "uid": "11111111-1111-1111-1111-111111111111",
        "creationTimestamp": "2001-01-01T00:00:00Z",
        "deletionTimestamp": "2001-01-01T00:00:00Z",
        "deletionGracePeriodSeconds": 5,
    }
    meta = here.create(CONFIGMAPS, obj)["metadata"]
    assert meta["uid"] != "11111111-1111-1111-1111-111111111111"
    assert meta["creationTimestamp"] > "2020"
    assert "deletionTimestamp" not in meta


def test_a_resource_version_is_refused_at_creation(here: ScratchNamespace) -> None:
    obj = a(CONFIGMAPS, "c")
    obj["metadata"]["resourceVersion"] = "1"
    with pytest.raises(errors.ApiError, match="resourceVersion should not be set on objects to be created"):
        here.create(CONFIGMAPS, obj)


def test_the_namespace_of_body_and_url_must_agree(here: ScratchNamespace) -> None:
    obj = a(CONFIGMAPS, "c")
    obj["metadata"]["namespace"] = "elsewhere"
    with pytest.raises(errors.BadRequest, match="does not match the namespace"):
        here.create(CONFIGMAPS, obj)


def test_a_namespace_must_exist(api: Api) -> None:
    status = api.refuse("POST", "/api/v1/namespaces/there-is-no-such/configmaps", a(CONFIGMAPS, "c"))
    assert (status["code"], status["reason"]) == (404, "NotFound")
    assert status["message"] == 'namespaces "there-is-no-such" not found'


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "c"}}, "Secret"),
        ({"apiVersion": "apps/v1", "kind": "ConfigMap", "metadata": {"name": "c"}}, "apps/v1"),
    ],
)
def test_kind_and_version_must_be_those_of_the_url(here: ScratchNamespace, body: Object, why: str) -> None:
    status = here.api.refuse("POST", here.path(CONFIGMAPS), body)
    assert (status["code"], status["reason"]) == (400, "BadRequest")
    assert why in status["message"]


def test_built_in_kinds_get_their_defaults(here: ScratchNamespace) -> None:
    pod = here.create(PODS, sleeping_pod("p"))
    assert pod["spec"]["restartPolicy"] == "Always"
    assert pod["spec"]["terminationGracePeriodSeconds"] == 30
    assert pod["spec"]["dnsPolicy"] == "ClusterFirst"
    assert pod["spec"]["serviceAccountName"] == "default"
    (container,) = pod["spec"]["containers"]
    assert container["imagePullPolicy"] == "IfNotPresent"
    assert container["terminationMessagePath"] == "/dev/termination-log"
    assert pod["status"] == {"phase": "Pending", "qosClass": "BestEffort"}


def test_pods_get_their_tolerations_and_token(here: ScratchNamespace) -> None:
    spec = here.create(PODS, sleeping_pod("p"))["spec"]
    assert {t["key"] for t in spec["tolerations"]} == {
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    }
    (mount,) = spec["containers"][0]["volumeMounts"]
    assert mount["mountPath"] == "/var/run/secrets/kubernetes.io/serviceaccount"
    (volume,) = spec["volumes"]
    assert {next(iter(source)) for source in volume["projected"]["sources"]} == {
        "serviceAccountToken",
        "configMap",
        "downwardAPI",
    }


def test_services_get_an_address_and_defaults(here: ScratchNamespace) -> None:
    service = here.make(SERVICES, "s", spec={"selector": {"a": "b"}, "ports": [{"port": 80}]})["spec"]
    assert service["type"] == "ClusterIP"
    assert service["clusterIP"].count(".") == 3
    assert service["clusterIPs"] == [service["clusterIP"]]
    assert service["sessionAffinity"] == "None"
    assert service["ports"] == [{"port": 80, "protocol": "TCP", "targetPort": 80}]
    headless = here.make(SERVICES, "h", spec={"clusterIP": "None", "ports": [{"port": 80}]})
    assert headless["spec"]["clusterIP"] == "None"


def test_deployments_get_their_strategy(here: ScratchNamespace) -> None:
    labels = {"app": "x"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    made = here.make(DEPLOYMENTS, "d", spec=spec)
    assert made["metadata"]["generation"] == 1
    assert made["spec"]["strategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"},
    }
    assert made["spec"]["revisionHistoryLimit"] == 10
    assert made["spec"]["progressDeadlineSeconds"] == 600


def test_the_status_in_a_new_object_is_dropped(here: ScratchNamespace, widgets: Resource) -> None:
    made = here.make(widgets, "w", spec={}, status={"phase": "Boasting"})
    assert "status" not in made


def test_secrets_take_text_and_keep_base64(here: ScratchNamespace) -> None:
    made = here.make(SECRETS, "s", stringData={"k": "v"}, data={"k": "b2xk", "l": "bA=="})
    assert made["data"] == {"k": "dg==", "l": "bA=="}
    assert "stringData" not in made
    assert made["type"] == "Opaque"


def test_empty_lists_and_maps_are_as_good_as_absent(here: ScratchNamespace, widgets: Resource) -> None:
    pod = sleeping_pod(
        "p", labels={}, annotations={}, spec={"nodeSelector": {}, "volumes": [{"name": "v", "emptyDir": {}}]}
    )
    pod["spec"]["containers"][0] |= {"env": [], "args": []}
    made = here.create(PODS, pod)
    assert "labels" not in made["metadata"]
    assert "nodeSelector" not in made["spec"]
    assert not {"env", "args"} & made["spec"]["containers"][0].keys()
    assert made["spec"]["volumes"][0] == {"name": "v", "emptyDir": {}}
    custom = here.make(widgets, "w", labels={}, finalizers=[], spec={"tags": [], "settings": {}})
    assert not {"labels", "finalizers"} & custom["metadata"].keys()
    assert custom["spec"] == {"size": 3, "tags": [], "settings": {}}
