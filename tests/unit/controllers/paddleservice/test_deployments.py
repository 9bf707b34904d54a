"""A PaddleService where there is no Knative: Deployments, an autoscaler, Services."""

from __future__ import annotations

from typing import Any

from paddlecloud.controllers.paddleservice import deployment
from paddlecloud.controllers.paddleservice.decide import decide
from paddlecloud.controllers.paddleservice.observe import Observed
from unit.controllers.paddleservice.world import ServiceCluster, endpoint


def without_knative(world: ServiceCluster, **observed: Any) -> Any:
    plan = decide(world.service, Observed(engine="Deployment", **observed), world.now)
    return plan, {(o["kind"], o["metadata"]["name"]): o for o in plan.create}


def test_without_knative_there_are_deployments_an_autoscaler_and_services() -> None:
    world = ServiceCluster(canary=endpoint("new"), canaryTrafficPercent=25, service={"minScale": 3, "maxScale": 6})
    plan, made = without_knative(world)
    assert set(made) == {
        ("Deployment", "m-default"),
        ("Deployment", "m-canary"),
        ("HorizontalPodAutoscaler", "m-default"),
        ("Service", "m"),
        ("Service", "m-default"),
        ("Service", "m-default-private"),
        ("Service", "m-canary-private"),
    }
    default, canary = made["Deployment", "m-default"], made["Deployment", "m-canary"]
    assert (default["spec"]["replicas"], canary["spec"]["replicas"]) == (3, 1)
    assert default["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
    assert "containerConcurrency" not in default["spec"]["template"]["spec"]
    autoscaler = made["HorizontalPodAutoscaler", "m-default"]["spec"]
    assert (autoscaler["minReplicas"], autoscaler["maxReplicas"]) == (3, 6)
    assert autoscaler["metrics"][0]["resource"]["target"] == {"type": "Utilization", "averageUtilization": 70}
    assert plan.status["engine"] == "Deployment"
    assert plan.status["url"] == "http://m.ns.svc.cluster.local"


def test_without_knative_a_change_is_a_rollout_of_kubernetes() -> None:
    world = ServiceCluster()
    _, made = without_knative(world)
    present = made["Deployment", "m-default"]
    present["metadata"] |= {"uid": "d", "generation": 1}
    present["status"] = {"observedGeneration": 1, "updatedReplicas": 1, "availableReplicas": 1, "readyReplicas": 1}
    seen = {
        "deployments": {"m-default": present},
        "revisions": {deployment.revision_of(present): deployment.view(present)},
        "services": {name: made["Service", name] for name in ("m", "m-default", "m-default-private")},
        "autoscalers": {"m-default": made["HorizontalPodAutoscaler", "m-default"]},
    }
    plan, _ = without_knative(world, **seen)
    assert (plan.create, plan.patch) == ([], [])
    ready = {c["type"]: c["status"] for c in plan.status["conditions"]}
    assert ready["Ready"] == "True"
    world.change(default=endpoint("two"))
    plan, _ = without_knative(world, **seen)
    (patch,) = plan.patch
    assert patch.patch[0]["path"] == "/spec/template"
    assert patch.patch[0]["value"]["spec"]["containers"][0]["image"] == "image:two"
