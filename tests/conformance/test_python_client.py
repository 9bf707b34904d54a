"""The official Python client: typed, watching, dynamic, electing."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from harness import PATIENCE
from paddlecloud.kube.resource import CONFIGMAPS, LEASES, PODS, Resource

from .world import ScratchNamespace, sleeping_pod

if TYPE_CHECKING:
    from harness import Target

kubernetes = pytest.importorskip("kubernetes")


@pytest.fixture
def client(server: Target) -> Iterator[Any]:
    loaded = kubernetes.config.new_client_from_config(str(server.kubeconfig))
    yield loaded
    loaded.close()


@pytest.fixture
def core(client: Any) -> Any:
    return kubernetes.client.CoreV1Api(client)


def config_map(name: str, **data: str) -> Any:
    return kubernetes.client.V1ConfigMap(metadata=kubernetes.client.V1ObjectMeta(name=name), data=data)


def test_objects_are_created_read_and_listed(here: ScratchNamespace, core: Any) -> None:
    made = core.create_namespaced_config_map(here.namespace, config_map("c", a="1"))
    assert made.metadata.uid
    assert made.metadata.creation_timestamp.tzinfo is not None
    assert core.read_namespaced_config_map("c", here.namespace).data == {"a": "1"}
    listed = core.list_namespaced_config_map(here.namespace, field_selector="metadata.name=c", limit=10)
    assert [item.metadata.name for item in listed.items] == ["c"]


def test_every_built_in_field_survives_the_typed_models(here: ScratchNamespace, core: Any) -> None:
    """Models refuse null where a value is required: what the server leaves out or sends matters."""
    here.create(PODS, sleeping_pod("p"))
    pod = core.read_namespaced_pod("p", here.namespace)
    assert (pod.status.phase, pod.spec.containers[0].name) == ("Pending", "main")
    assert core.list_namespaced_service_account(here.namespace).items
    assert kubernetes.client.RbacAuthorizationV1Api(core.api_client).list_cluster_role(limit=5).items


def test_objects_are_replaced_and_patched(here: ScratchNamespace, core: Any) -> None:
    made = core.create_namespaced_config_map(here.namespace, config_map("c", a="1"))
    made.data = {"b": "2"}
    assert core.replace_namespaced_config_map("c", here.namespace, made).data == {"b": "2"}
    patched = core.patch_namespaced_config_map("c", here.namespace, {"data": {"c": "3"}})
    assert patched.data == {"b": "2", "c": "3"}
    with pytest.raises(kubernetes.client.ApiException) as refused:
        core.replace_namespaced_config_map("c", here.namespace, made)
    assert refused.value.status == 409


def test_a_json_patch_is_recognised_by_being_a_list(here: ScratchNamespace, core: Any) -> None:
    core.create_namespaced_config_map(here.namespace, config_map("c", a="1"))
    patched = core.patch_namespaced_config_map(
        "c", here.namespace, [{"op": "replace", "path": "/data/a", "value": "2"}]
    )
    assert patched.data == {"a": "2"}


def test_what_was_deleted_is_not_found(here: ScratchNamespace, core: Any) -> None:
    core.create_namespaced_config_map(here.namespace, config_map("c"))
    core.delete_namespaced_config_map("c", here.namespace)
    with pytest.raises(kubernetes.client.ApiException) as refused:
        core.read_namespaced_config_map("c", here.namespace)
    assert (refused.value.status, refused.value.reason) == (404, "Not Found")


def test_a_watch_receives_every_change(here: ScratchNamespace, core: Any) -> None:
    since = here.version(CONFIGMAPS)
    here.make(CONFIGMAPS, "a")
    here.patch(CONFIGMAPS, "a", {"data": {"k": "v"}})
    here.delete(CONFIGMAPS, "a")
    watch = kubernetes.watch.Watch()
    events = []
    for event in watch.stream(
        core.list_namespaced_config_map, here.namespace, resource_version=since,
        field_selector="metadata.name=a", timeout_seconds=15,
    ):  # fmt: skip
        events.append((event["type"], event["object"].metadata.name))
        if len(events) == 3:
            watch.stop()
    assert events == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]


def test_custom_objects(here: ScratchNamespace, client: Any, widgets: Resource) -> None:
    api = kubernetes.client.CustomObjectsApi(client)
    place = (widgets.group, "v1", here.namespace, "widgets")
    body = {"apiVersion": widgets.api_version, "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 2}}
    api.create_namespaced_custom_object(*place, body)
    api.patch_namespaced_custom_object_status(*place, "w", {"status": {"phase": "Up"}})
    found = api.get_namespaced_custom_object(*place, "w")
    assert (found["spec"], found["status"]) == ({"size": 2}, {"phase": "Up"})
    assert [item["metadata"]["name"] for item in api.list_namespaced_custom_object(*place)["items"]] == ["w"]


def test_the_dynamic_client_finds_and_applies(
    here: ScratchNamespace, client: Any, widgets: Resource, tmp_path: Any
) -> None:
    dynamic = kubernetes.dynamic.DynamicClient(client, cache_file=str(tmp_path / "cache.json"))
    kinds = dynamic.resources.get(api_version=widgets.api_version, kind="Widget")
    body = {"apiVersion": widgets.api_version, "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 4}}
    kinds.server_side_apply(body=body, namespace=here.namespace, field_manager="dynamic")
    assert kinds.get(name="w", namespace=here.namespace).spec.size == 4
    kinds.patch(
        body={"spec": {"size": 5}}, name="w", namespace=here.namespace, content_type="application/merge-patch+json"
    )
    assert [item.spec.size for item in kinds.get(namespace=here.namespace).items] == [5]
    kinds.delete(name="w", namespace=here.namespace)
    assert not here.exists(widgets, "w")


def test_leaders_follow_one_another(here: ScratchNamespace, client: Any) -> None:
    """Two candidates for one Lease: the first to get it leads; when it resigns the other takes over."""
    electing: Any = importlib.import_module("kubernetes.leaderelection.leaderelection")
    configuring: Any = importlib.import_module("kubernetes.leaderelection.electionconfig")
    locking: Any = importlib.import_module("kubernetes.leaderelection.resourcelock.leaselock")
    led: list[tuple[str, str]] = []

    def run(name: str) -> None:
        def lead() -> None:
            led.append((name, here.get(LEASES, "election")["spec"]["holderIdentity"]))
            raise RuntimeError("resigned")

        lock = locking.LeaseLock("election", here.namespace, name)
        lock.api_instance = kubernetes.client.CoordinationV1Api(client)
        config = configuring.Config(lock, 2, 1.5, 1, onstarted_leading=lead, onstopped_leading=lambda: None)
        electing.LeaderElection(config).run()

    candidates = [threading.Thread(target=run, args=(name,), daemon=True) for name in ("one", "two")]
    for candidate in candidates:
        candidate.start()
    for candidate in candidates:
        candidate.join(timeout=PATIENCE)
    assert sorted(led) == [("one", "one"), ("two", "two")]


def test_tokens_are_requested(here: ScratchNamespace, core: Any) -> None:
    body = kubernetes.client.AuthenticationV1TokenRequest(
        spec=kubernetes.client.V1TokenRequestSpec(audiences=[], expiration_seconds=600)
    )
    answer = core.create_namespaced_service_account_token("default", here.namespace, body)
    assert answer.status.token.count(".") == 2
