"""Classes of priority that every cluster has."""

from __future__ import annotations

from paddlecloud.kube.client import Client
from paddlecloud.kube.resource import PODS


async def test_a_pod_may_be_critical_without_anybody_defining_what_that_means(client: Client) -> None:
    spec = {"priorityClassName": "system-cluster-critical", "containers": [{"name": "main", "image": "busybox"}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
    made = await client.create(PODS, pod, namespace="default")
    assert made["spec"]["priority"] == 2_000_000_000
