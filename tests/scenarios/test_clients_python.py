"""Kubernetes clients of others, as their users use them: kr8s, lightkube, pykube-ng, kubernetes_asyncio, and kopf.

Each makes and changes objects, follows what happens, and handles PaddleJobs, which none of them knows.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import kr8s
import kubernetes_asyncio
import lightkube
import pykube
import pytest
from kr8s.objects import ConfigMap, Pod, new_class
from lightkube.core.exceptions import ApiError
from lightkube.generic_resource import create_namespaced_resource
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import ConfigMap as LightConfigMap
from lightkube.types import PatchType

from harness import PATIENCE, Kubectl, Target, until

from .hands import job

pytestmark = pytest.mark.filterwarnings("default")  # theirs are not ours to mend
GROUP, VERSION, KIND, PLURAL = "batch.paddlepaddle.org", "v1", "PaddleJob", "paddlejobs"
GREETS = ["sh", "-c", "echo hello; exec sleep 600"]


def pod(name: str, namespace: str) -> dict[str, Any]:
    spec = {"containers": [{"name": "main", "image": "busybox", "command": GREETS}], "terminationGracePeriodSeconds": 0}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace}, "spec": spec}


def waiting_job(name: str, namespace: str = "") -> dict[str, Any]:
    """A PaddleJob that runs nothing."""
    made: dict[str, Any] = json.loads(job(name, "true", suspend=True))
    if namespace:
        made["metadata"]["namespace"] = namespace
    return made


def test_kr8s_waits_reads_logs_and_runs_commands(server: Target, namespace: str, operators: None) -> None:
    api = kr8s.api(kubeconfig=str(server.kubeconfig), namespace=namespace)
    made = Pod(pod("p", namespace), api=api)
    made.create()
    made.wait("condition=Ready", timeout=PATIENCE)
    made.label(team="a")
    assert [found.name for found in api.get("pods", label_selector={"team": "a"})] == ["p"]
    assert list(made.logs()) == ["hello"]
    assert made.exec(["echo", "inside"]).stdout.decode().strip() == "inside"
    settings = ConfigMap({"metadata": {"name": "c", "namespace": namespace}, "data": {"a": "1"}}, api=api)
    settings.create()
    settings.patch({"data": {"a": "2"}})
    assert ConfigMap.get("c", api=api, namespace=namespace).data.a == "2"
    jobs = new_class(kind=KIND, version=f"{GROUP}/{VERSION}", namespaced=True, plural=PLURAL)
    jobs(waiting_job("j", namespace), api=api).create()
    assert [found.name for found in api.get(f"{PLURAL}.{GROUP}")] == ["j"]
    made.delete()
    until(made.exists, False)


def test_lightkube_applies_and_watches(server: Target, namespace: str, operators: None) -> None:
    config = lightkube.KubeConfig.from_file(str(server.kubeconfig))
    client = lightkube.Client(config=config, namespace=namespace, field_manager="lightkube")
    wanted = LightConfigMap(metadata=ObjectMeta(name="c", namespace=namespace), data={"a": "1"})
    client.apply(wanted)
    wanted.data = {"b": "2"}
    assert client.apply(wanted).data == {"b": "2"}
    with pytest.raises(ApiError) as conflict:
        client.apply(LightConfigMap(metadata=wanted.metadata, data={"b": "3"}), field_manager="another")
    assert conflict.value.status.code == 409
    jobs = create_namespaced_resource(GROUP, VERSION, KIND, PLURAL)
    client.create(jobs(waiting_job("j", namespace)))
    client.patch(jobs, "j", {"metadata": {"labels": {"team": "a"}}}, patch_type=PatchType.MERGE)
    assert [found.metadata.name for found in client.list(jobs, labels={"team": "a"})] == ["j"]
    with closing(client.watch(jobs, server_timeout=int(PATIENCE))) as watch:
        kind, seen = next(watch)
    assert (kind, seen.metadata.name, seen.spec["suspend"]) == ("ADDED", "j", True)
    client.delete(jobs, "j")
    client.delete(LightConfigMap, "c")
    with pytest.raises(ApiError):
        client.get(LightConfigMap, "c")


def test_pykube_updates_and_watches(server: Target, namespace: str, operators: None) -> None:
    api = pykube.HTTPClient(pykube.KubeConfig.from_file(str(server.kubeconfig)))
    metadata = {"name": "c", "namespace": namespace, "labels": {"team": "a"}}
    settings = pykube.ConfigMap(
        api, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "1"}}
    )
    settings.create()
    settings.obj["data"]["a"] = "2"
    settings.update()
    query = pykube.ConfigMap.objects(api, namespace=namespace).filter(selector={"team": "a"})
    assert [found.obj["data"] for found in query] == [{"a": "2"}]
    settings.patch({"data": {"b": "3"}})
    assert settings.obj["data"] == {"a": "2", "b": "3"}
    jobs = pykube.object_factory(api, f"{GROUP}/{VERSION}", KIND)
    jobs(api, waiting_job("j", namespace)).create()
    with closing(iter(jobs.objects(api, namespace=namespace).watch())) as watch:
        event = next(watch)
    assert (event.type, event.object.name) == ("ADDED", "j")
    settings.delete()
    assert not settings.exists()
    api.session.close()


async def test_kubernetes_asyncio_watches_and_creates(server: Target, namespace: str, operators: None) -> None:
    configuration = kubernetes_asyncio.client.Configuration()
    await kubernetes_asyncio.config.load_kube_config(str(server.kubeconfig), client_configuration=configuration)
    async with kubernetes_asyncio.client.ApiClient(configuration) as client:
        core = kubernetes_asyncio.client.CoreV1Api(client)
        custom = kubernetes_asyncio.client.CustomObjectsApi(client)
        names = kubernetes_asyncio.client.V1ObjectMeta(name="c")
        body = kubernetes_asyncio.client.V1ConfigMap(metadata=names, data={"a": "1"})
        made = await core.create_namespaced_config_map(namespace, body)
        await core.patch_namespaced_config_map("c", namespace, {"data": {"a": "2"}})
        seen: list[tuple[str, Any]] = []
        async with kubernetes_asyncio.watch.Watch() as watch:
            options = {"field_selector": "metadata.name=c", "resource_version": made.metadata.resource_version}
            async for event in watch.stream(core.list_namespaced_config_map, namespace, **options):
                seen.append((event["type"], event["object"].data))
                if event["type"] == "DELETED":
                    break
                await core.delete_namespaced_config_map("c", namespace)
        assert seen == [("MODIFIED", {"a": "2"}), ("DELETED", {"a": "2"})]
        await custom.create_namespaced_custom_object(GROUP, VERSION, namespace, PLURAL, waiting_job("j"))
        found = await custom.list_namespaced_custom_object(GROUP, VERSION, namespace, PLURAL)
        assert [item["metadata"]["name"] for item in found["items"]] == ["j"]


@pytest.fixture
def operator(server: Target, namespace: str, tmp_path: Path) -> Iterator[Callable[[], str]]:
    """A kopf operator beside the platform; gives what it logged."""
    log = tmp_path / "operator.log"
    program = Path(__file__).parent / "clients" / "operator.py"
    command = [sys.executable, "-m", "kopf", "run", "--standalone", "--namespace", namespace, str(program)]
    with log.open("wb") as output:
        env = {**server.env, "OPERATOR_NAMESPACE": namespace}
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=env)
        try:
            yield log.read_text
        finally:
            process.terminate()
            process.wait(timeout=PATIENCE)


def test_a_kopf_operator_handles_paddlejobs(kubectl: Kubectl, operators: None, operator: Callable[[], str]) -> None:
    def reads(expected: str, *what: str, of: str) -> None:
        try:
            until(lambda: kubectl("get", *what, "-o", f"jsonpath={of}", "--ignore-not-found").stdout, expected)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{operator()}") from None

    kubectl("apply", "-f", "-", input=json.dumps(waiting_job("j")))
    reads("2", "configmap", "note-j", of="{.data.replicas}")
    uid = kubectl("get", "pdj", "j", "-o", "jsonpath={.metadata.uid}").stdout
    reads(uid, "configmap", "note-j", of="{.metadata.ownerReferences[0].uid}")
    kubectl("patch", "pdj", "j", "--type=merge", "-p", '{"spec":{"suspend":false}}')
    reads("yes", "pdj", "j", of=r"{.metadata.annotations.example\.org/resumed}")
    kubectl("delete", "pdj", "j", "--wait=false")
    reads("ended-j", "configmap", "ended-j", of="{.metadata.name}")
    reads("", "pdj", "j", of="{.metadata.name}")
