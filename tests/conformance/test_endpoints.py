"""Endpoints of Services as other programs find them: both kinds, under the labels of Kubernetes' controllers."""

from __future__ import annotations

from paddlecloud.kube.resource import ENDPOINTS, ENDPOINTSLICES, SERVICES

from .world import Api, ScratchNamespace, eventually


def test_the_server_is_listed_as_endpoints_and_as_a_slice(api: Api) -> None:
    slices = api.fetch(ENDPOINTSLICES.path(namespace="default"), labelSelector="kubernetes.io/service-name=kubernetes")
    addresses = {address for piece in slices["items"] for end in piece["endpoints"] for address in end["addresses"]}
    found = api.fetch(ENDPOINTS.path(namespace="default", name="kubernetes"))
    assert {entry["ip"] for subset in found["subsets"] for entry in subset["addresses"]} == addresses != set()


def test_slices_and_endpoints_are_selected_by_who_manages_them(here: ScratchNamespace) -> None:
    here.make(SERVICES, "s", spec={"selector": {"app": "none"}, "ports": [{"port": 80}]})
    managed = {
        ENDPOINTSLICES: "endpointslice.kubernetes.io/managed-by=endpointslice-controller.k8s.io",
        ENDPOINTS: "endpoints.kubernetes.io/managed-by=endpoint-controller",
    }
    for resource, label in managed.items():
        eventually(lambda r=resource, label=label: len(here.names(r, labels=label)), 1)  # type: ignore[misc]


def test_a_service_gives_up_its_address_to_become_an_external_name_and_gets_one_to_come_back(
    here: ScratchNamespace,
) -> None:
    made = here.make(SERVICES, "s", spec={"ports": [{"port": 80}]})
    made["spec"] |= {"type": "ExternalName", "externalName": "example.com"}
    outside = here.update(SERVICES, made)
    assert {"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"} & outside["spec"].keys() == set()
    outside["spec"] |= {"type": "ClusterIP"}
    del outside["spec"]["externalName"]
    assert here.update(SERVICES, outside)["spec"]["clusterIP"]


def test_an_address_that_is_changed_on_the_way_to_an_external_name_is_refused(here: ScratchNamespace) -> None:
    made = here.make(SERVICES, "s", spec={"ports": [{"port": 80}], "clusterIP": "None"})
    made["spec"] |= {"type": "ExternalName", "externalName": "example.com", "clusterIP": "10.0.0.99"}
    made["spec"]["clusterIPs"] = ["10.0.0.99"]
    status = here.api.refuse("PUT", here.path(SERVICES, "s"), made)
    assert status["code"] == 422


def addresses(here: ScratchNamespace, service: str) -> list[tuple[str, bool]]:
    found = here.list(ENDPOINTSLICES, label_selector=f"kubernetes.io/service-name={service}").items
    ends = [end for piece in found for end in piece.get("endpoints") or ()]
    return sorted((address, end["conditions"]["ready"]) for end in ends for address in end["addresses"])


def test_endpoints_that_people_write_become_slices_that_follow_them(here: ScratchNamespace) -> None:
    here.make(SERVICES, "s", spec={"ports": [{"name": "web", "port": 80}]})
    ports = [{"name": "web", "port": 8080}]
    here.make(ENDPOINTS, "s", subsets=[{"addresses": [{"ip": "10.1.2.3"}], "ports": ports}])
    eventually(lambda: addresses(here, "s"), [("10.1.2.3", True)])
    here.patch(ENDPOINTS, "s", {"subsets": [{"notReadyAddresses": [{"ip": "10.2.3.4"}], "ports": ports}]})
    eventually(lambda: addresses(here, "s"), [("10.2.3.4", False)])
    here.delete(ENDPOINTS, "s")
    eventually(lambda: addresses(here, "s"), [])


def test_endpoints_that_are_not_to_be_mirrored_are_left_alone(here: ScratchNamespace) -> None:
    here.make(SERVICES, "s", spec={"ports": [{"port": 80}]})
    subsets = [{"addresses": [{"ip": "10.1.2.3"}], "ports": [{"port": 80}]}]
    here.make(ENDPOINTS, "s", labels={"endpointslice.kubernetes.io/skip-mirror": "true"}, subsets=subsets)
    here.make(SERVICES, "t", spec={"ports": [{"port": 80}]})
    here.make(ENDPOINTS, "t", subsets=subsets)
    eventually(lambda: addresses(here, "t"), [("10.1.2.3", True)])
    assert addresses(here, "s") == []
