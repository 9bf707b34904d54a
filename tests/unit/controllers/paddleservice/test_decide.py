"""A PaddleService's life on Knative, judged step by step: revisions, traffic, canary, roll-outs, bad input, status."""

from __future__ import annotations

import json
from typing import Any

import pytest

from paddlecloud.api.names import SOURCE
from paddlecloud.controllers.paddleservice.decide import decide
from paddlecloud.controllers.paddleservice.observe import Measure, Observed
from paddlecloud.controllers.paddleservice.template import Site
from unit.controllers.paddleservice.world import ServiceCluster, endpoint


def test_a_service_becomes_one_knative_service_with_the_names_of_old() -> None:
    world = ServiceCluster()
    world.settle()
    assert world.kservice is not None
    template = world.kservice["spec"]["template"]
    (container,) = template["spec"]["containers"]
    assert container["name"] == "paddleserving"
    assert container["image"] == "image:one"
    assert (container["command"], container["args"]) == (["/bin/bash", "-c"], ["serve"])
    assert container["ports"] == [{"containerPort": 9292, "name": "http1"}]
    assert template["metadata"]["labels"]["PaddleService"] == "m"
    assert template["metadata"]["annotations"]["autoscaling.knative.dev/target"] == "100"
    assert world.kservice["metadata"]["labels"] == {"team": "a"}
    assert world.kservice["metadata"]["ownerReferences"][0]["uid"] == "u"
    assert set(world.services) == {"m-default", "m-default-private"}
    assert world.services["m-default"]["spec"]["ports"][0] == {
        "name": "http", "port": 80, "targetPort": 9292, "protocol": "TCP",
    }  # fmt: skip


def test_the_status_is_true_from_the_first_moment() -> None:
    world = ServiceCluster()
    world.step()
    assert world.condition("Ready")["status"] == "Unknown"
    world.settle()
    (name,) = world.names("default")
    status = world.status
    assert status["url"] == "http://m.ns.example.com"
    assert status["address"] == {"url": "http://m.ns.svc.cluster.local"}
    assert status["default"] == {"name": name, "percent": 100, "replicas": 1}
    assert (status["replicas"], status["traffic"], status["engine"]) == (1, "100", "Knative")
    assert status["observedGeneration"] == 1
    assert [(c["type"], c["status"]) for c in status["conditions"]] == [
        ("DefaultEndpointReady", "True"),
        ("RoutesReady", "True"),
        ("Ready", "True"),
    ]
    assert world.events[-1] == "Ready: answers at http://m.ns.example.com"


def test_the_same_content_has_the_same_name_and_another_another() -> None:
    one, same, other = ServiceCluster(), ServiceCluster(), ServiceCluster(containerConcurrency=3)
    for world in (one, same, other):
        world.settle()
    assert one.names("default") == same.names("default")
    assert one.names("default") != other.names("default")


def test_a_change_waits_for_the_new_revision_before_anything_moves() -> None:
    world = ServiceCluster()
    world.settle()
    (old,) = world.names("default")
    world.change(default=endpoint("two"))
    world.settle(start=False)
    assert world.shares == {old: 100}
    new = world.names("default")[1]
    assert world.condition("DefaultEndpointReady")["reason"] == "Starting"
    assert world.services["m-default"]["spec"]["selector"] == {"serving.knative.dev/revision": old}
    world.ready(new)
    world.settle()
    assert world.shares == {new: 100}
    assert world.services["m-default"]["spec"]["selector"] == {"serving.knative.dev/revision": new}
    assert old in world.revisions, "it sleeps, to be gone back to"


def test_a_revision_that_never_becomes_ready_leaves_traffic_where_it_was_and_says_why() -> None:
    world = ServiceCluster()
    world.settle()
    (old,) = world.names("default")
    world.change(default=endpoint("bad"))
    world.settle(start=False)
    world.ready(world.names("default")[1], "False", reason="ErrImagePull", message="there is no such image")
    world.settle(start=False)
    assert world.shares == {old: 100}
    ready = world.condition("Ready")
    assert (ready["status"], ready["reason"]) == ("False", "ErrImagePull")
    assert "there is no such image" in ready["message"]
    assert any("there is no such image" in event for event in world.events)
    world.change(default=endpoint("one"))
    world.settle()
    assert world.condition("Ready")["status"] == "True"
    world.change(default=endpoint("two"))
    world.settle()
    assert len(world.revisions) == 2, "the one that failed is not kept"


def test_only_the_last_defaults_are_kept_to_go_back_to() -> None:
    world = ServiceCluster()
    for tag in ("one", "two", "three", "four", "five"):
        world.change(default=endpoint(tag))
        world.settle()
    sources = [json.loads(r["metadata"]["annotations"][SOURCE])["tag"] for r in world.revisions.values()]
    assert sources == ["three", "four", "five"]


# Canary


def test_a_canary_gets_its_share_once_it_is_ready() -> None:
    world = ServiceCluster(canary=endpoint("new"), canaryTrafficPercent=30)
    world.settle(start=False)
    (default,) = world.names("default")
    world.ready(default)
    world.settle(start=False)
    (canary,) = world.names("canary")
    assert world.shares == {default: 100}
    assert world.condition("Ready")["status"] == "True", "the canary is informative"
    world.ready(canary)
    world.settle()
    assert world.shares == {default: 70, canary: 30}
    assert world.status["traffic"] == "70/30"
    assert set(world.services) == {"m-default", "m-default-private", "m-canary-private"}


def test_a_canary_without_a_share_gets_half_and_goes_when_it_is_removed() -> None:
    world = ServiceCluster(canary=endpoint("new"))
    world.settle()
    (default,), (canary,) = world.names("default"), world.names("canary")
    assert world.shares == {default: 50, canary: 50}
    world.change(canary=None)
    world.settle()
    assert world.shares == {default: 100}
    assert set(world.services) == {"m-default", "m-default-private"}


def test_the_revision_of_a_canary_goes_with_it_and_a_new_one_may_follow() -> None:
    world = ServiceCluster(canary=endpoint("new"))
    world.settle()
    (canary,) = world.names("canary")
    world.change(canary=None)
    world.settle()
    assert canary not in world.revisions, "and Knative's template names the default again, with its very spec"
    world.change(canary=endpoint("new"))
    world.settle()
    assert world.names("canary") == [canary]
    assert world.shares[canary] == 50


def test_a_default_that_never_started_goes_when_it_is_taken_back() -> None:
    world = ServiceCluster()
    world.settle()
    world.change(default=endpoint("broken"))
    world.settle(start=False)
    world.ready(world.names("default")[-1], "False", reason="ErrImagePull")
    world.change(default=endpoint("one"))
    world.settle()
    assert len(world.revisions) == 1
    assert world.condition("Ready")["status"] == "True"


def test_an_earlier_content_is_gone_back_to_without_a_new_revision() -> None:
    world = ServiceCluster()
    for tag in ("one", "two", "one"):
        world.change(default=endpoint(tag))
        world.settle()
    assert len(world.revisions) == 2
    assert world.shares == {world.names("default")[0]: 100}
    assert world.condition("Ready")["status"] == "True"


def test_a_promoted_canary_becomes_the_default_without_a_moment_alone() -> None:
    world = ServiceCluster(canary=endpoint("new"))
    world.settle()
    world.change(default=endpoint("new"), canary=None)
    world.settle()
    (serving,) = world.shares
    assert json.loads(world.revisions[serving]["metadata"]["annotations"][SOURCE])["tag"] == "new"
    assert all(sum(shares.values()) == 100 for shares in world.history)


@pytest.mark.parametrize("state", ["False", "Unknown"])
def test_a_canary_that_is_not_ready_takes_nothing_and_is_reported(state: str) -> None:
    world = ServiceCluster(canary=endpoint("new"))
    world.settle(start=False)
    world.ready(world.names("default")[0])
    world.settle(start=False)
    world.ready(world.names("canary")[0], state, message="no luck")
    world.settle(start=False)
    assert world.shares == {world.names("default")[0]: 100}
    assert world.condition("CanaryEndpointReady")["status"] == state
    assert world.condition("Ready")["status"] == "True"


# Roll-outs

STEPS = {"steps": [10, 50], "pauseSeconds": 60, "maxErrorPercent": 5, "maxLatencyMilliseconds": 200}


def rolling(**rollout: Any) -> tuple[ServiceCluster, str, str]:
    world = ServiceCluster(rollout={**STEPS, **rollout})
    world.settle()
    world.change(default=endpoint("two"))
    world.settle()
    old, new = world.names("default")
    return world, old, new


def test_a_roll_out_goes_step_by_step_with_pauses() -> None:
    world, old, new = rolling()
    assert world.shares == {new: 10, old: 90}
    assert world.status["rollout"]["step"] == 1
    world.advance(59)
    assert world.shares == {new: 10, old: 90}
    world.advance(2)
    assert world.shares == {new: 50, old: 50}
    world.advance(61)
    assert world.shares == {new: 100}
    assert "rollout" not in world.status


def test_a_roll_out_whose_answers_nobody_measures_says_so() -> None:
    world, _, new = rolling()
    assert world.status["rollout"]["message"] == "not judged: this platform reports no error rate or latency"
    world.measures[new] = Measure(requests=1, error_percent=0, latency_milliseconds=1)
    world.settle()
    assert "message" not in world.status["rollout"]


def test_a_paused_roll_out_stays_at_its_step() -> None:
    world, old, new = rolling()
    world.change(rollout={**STEPS, "paused": True})
    world.settle()
    world.advance(1000)
    assert world.shares == {new: 10, old: 90}
    assert world.status["rollout"]["message"] == "paused"
    world.change(rollout=STEPS)
    world.settle()
    assert world.shares == {new: 50, old: 50}


@pytest.mark.parametrize(
    ("measure", "word"), [(Measure(100, 6.0, 10.0), "errors"), (Measure(100, 0.0, 300.0), "percentile")]
)
def test_a_roll_out_that_makes_things_worse_goes_back_and_stays_back(measure: Measure, word: str) -> None:
    world, old, new = rolling()
    world.measures[new] = measure
    world.settle()
    assert world.shares == {old: 100}
    assert word in world.events[-1]
    world.measures.clear()
    world.advance(10_000)
    assert world.shares == {old: 100}, "until the spec changes"
    world.change(default=endpoint("three"))
    world.settle()
    assert world.shares[world.names("default")[-1]] == 10


ERRORS = Measure(100, 6.0, 10.0)
WENT_BACK = "went back: 6.0 % of 100 answers were errors, more than 5 %"


def gone_back() -> tuple[ServiceCluster, str, str]:
    world, old, new = rolling()
    world.measures[new] = ERRORS
    world.settle()
    world.measures.clear()
    return world, old, new


def test_a_status_names_the_revision_that_serves_and_the_share_of_the_one_that_is_rolled_out() -> None:
    world, old, new = rolling()
    assert world.status["default"] == {"name": old, "percent": 90, "replicas": 1, "latest": new}
    assert world.status["traffic"] == "90/10"
    assert world.status["rollout"]["phase"] == "Progressing"
    world.advance(61)
    assert world.status["traffic"] == "50/50"
    world.advance(61)
    assert world.status["default"] == {"name": new, "percent": 100, "replicas": 1}
    assert world.status["traffic"] == "100"
    assert [event for event in world.events if "NewRevision" in event] == [f"NewRevision: {new} follows {old}"]


def test_a_status_says_who_serves_and_why_after_a_roll_out_went_back() -> None:
    world, old, new = gone_back()
    world.advance(10_000)
    status = world.status
    assert status["default"] == {"name": old, "percent": 100, "replicas": 1, "latest": new}
    assert (status["traffic"], status["rollout"]["phase"]) == ("100", "WentBack")
    assert status["rollout"]["message"] == WENT_BACK
    ready = world.condition("Ready")
    assert (ready["status"], ready["reason"]) == ("True", "WentBack")
    assert ready["message"] == status["message"] == f"the roll-out of {new} {WENT_BACK}; {old} is served"
    assert [event for event in world.events if "WentBack" in event] == [f"WentBack: {new} {WENT_BACK}"]


def test_another_roll_out_is_tried_once_answers_of_the_last_one_do_not_count() -> None:
    world, old, new = gone_back()
    world.change(rollout={**STEPS, "maxErrorPercent": 10})
    world.settle()
    assert (world.shares, world.status["rollout"]["phase"]) == ({old: 100}, "Waiting")
    world.advance(30)
    assert world.shares == {old: 100}
    world.advance(31)
    assert (world.shares, world.status["rollout"]["phase"]) == ({new: 10, old: 90}, "Progressing")


def test_a_roll_out_that_went_back_long_ago_is_tried_at_once_when_its_rules_change() -> None:
    world, old, new = gone_back()
    world.advance(61)
    world.change(rollout={**STEPS, "pauseSeconds": 30})
    world.settle()
    assert world.shares == {new: 10, old: 90}
    world.measures[new] = ERRORS
    world.settle()
    assert world.shares == {old: 100}, "judged anew"


def test_without_its_rules_the_revision_that_went_back_gets_all_traffic() -> None:
    world, _, new = gone_back()
    world.change(rollout=None)
    world.settle()
    assert world.shares == {new: 100}


def test_a_revision_that_sleeps_and_does_not_wake_stays_back() -> None:
    world, old, new = gone_back()
    for state in ("Unknown", "True"):
        world.ready(new, state)
        world.settle()
    assert world.shares == {old: 100}


def retry(world: ServiceCluster, when: str) -> None:
    world.service["metadata"]["annotations"] = {"paddlepaddle.org/retry-at": when}
    world.settle()


def test_a_retry_rolls_out_a_new_revision_of_the_same_content() -> None:
    world, old, new = gone_back()
    retry(world, "2026-01-01T00:00:00.000000Z")
    again = world.names("default")[-1]
    assert world.shares == {again: 10, old: 90}
    assert world.revisions[again]["spec"] == world.revisions[new]["spec"]
    assert world.status["retriedAt"] == "2026-01-01T00:00:00.000000Z"
    world.settle()
    assert world.names("default")[-1] == again, "once for each request"


def test_a_retry_of_what_never_started_makes_another_pod_at_once() -> None:
    world = ServiceCluster(rollout=STEPS)
    world.settle(start=False)
    (failed,) = world.names("default")
    world.ready(failed, "False", reason="CrashLoopBackOff", message="no model")
    world.settle(start=False)
    retry(world, "now")
    (again,) = (name for name in world.shares)
    assert (again != failed, world.shares[again]) == (True, 100), "nothing to compare it with: no steps"
    assert world.condition("Ready")["status"] == "True"
    assert failed not in world.revisions


def test_a_retry_of_a_spec_that_is_refused_is_followed_too() -> None:
    world = ServiceCluster()
    world.settle()
    world.change(default={"containerImage": "image"})
    retry(world, "now")
    assert (world.condition("Ready")["reason"], world.status["retriedAt"]) == ("InvalidSpec", "now")


def test_a_few_errors_among_few_requests_prove_nothing() -> None:
    world, old, new = rolling()
    world.measures[new] = Measure(5, 100.0, 999.0)
    world.settle()
    assert world.shares == {new: 10, old: 90}


def test_the_first_revision_of_a_service_needs_no_steps() -> None:
    world = ServiceCluster(rollout=STEPS)
    world.settle()
    assert list(world.shares.values()) == [100]


def test_a_roll_out_beside_a_canary_shares_what_the_canary_leaves() -> None:
    world = ServiceCluster(rollout=STEPS, canary=endpoint("new"), canaryTrafficPercent=20)
    world.settle()
    world.change(default=endpoint("two"))
    world.settle()
    old, new = world.names("default")
    (canary,) = world.names("canary")
    assert world.shares == {new: 8, old: 72, canary: 20}


# Settings


def test_replicas_pin_the_number_of_pods() -> None:
    world = ServiceCluster(replicas=3, service={"minScale": 0, "maxScale": 9})
    world.settle()
    assert world.kservice is not None
    annotations = world.kservice["spec"]["template"]["metadata"]["annotations"]
    assert annotations["autoscaling.knative.dev/min-scale"] == annotations["autoscaling.knative.dev/max-scale"] == "3"


def test_a_model_needs_no_image() -> None:
    world = ServiceCluster(default=None, model="digits:3")
    world.service["spec"].pop("default")
    world.site = Site(model_endpoint="http://models:9000")
    world.settle()
    (found,) = world.revisions.values()
    (container,) = found["spec"]["containers"]
    assert container["image"].startswith("paddlecloud/serving:")
    assert container["args"] == ["--model", "digits:3", "--name", "m", "--port", "8080"]
    assert "command" not in container


def test_what_is_written_for_the_pod_is_passed_on() -> None:
    extra: dict[str, Any] = {
        "env": [{"name": "A", "value": "b"}],
        "envFrom": [{"configMapRef": {"name": "c"}}],
        "volumes": [{"name": "v", "emptyDir": {}}],
        "volumeMounts": [{"name": "v", "mountPath": "/v"}],
        "serviceAccountName": "robot",
        "imagePullSecrets": [{"name": "s"}],
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "gpu"}],
        "workingDir": "/w",
        "readinessProbe": {"httpGet": {"path": "/ready", "port": 9292}},
        "livenessProbe": {"httpGet": {"path": "/live", "port": 9292}},
        "resources": {"limits": {"nvidia.com/gpu": 1}},
        "containerConcurrency": 4,
        "timeoutSeconds": 30,
    }
    world = ServiceCluster(**extra)
    world.settle()
    (found,) = world.revisions.values()
    spec = found["spec"]
    (container,) = spec["containers"]
    for name in ("volumes", "serviceAccountName", "imagePullSecrets", "nodeSelector", "tolerations",
                 "containerConcurrency", "timeoutSeconds"):  # fmt: skip
        assert spec[name] == extra[name]
    for name in ("env", "envFrom", "volumeMounts", "workingDir", "readinessProbe", "livenessProbe"):
        assert container[name] == extra[name]
    assert container["resources"]["limits"]["nvidia.com/gpu"] == 1


# Bad input

BAD: dict[str, dict[str, Any]] = {
    "spec.default": {"default": None},
    "spec.canaryTrafficPercent": {"canary": endpoint("c"), "canaryTrafficPercent": 101},
    "spec.service.metric": {"service": {"metric": "weather"}},
    "spec.service.window": {"service": {"window": "5s"}},
    "spec.default.containerImage": {"default": {"tag": "x", "port": 1}},
    "spec.rollout.steps[1]": {"rollout": {"steps": [50, 20]}},
}


@pytest.mark.parametrize("field", BAD)
def test_a_spec_that_cannot_be_carried_out_is_reported_and_what_serves_goes_on(field: str) -> None:
    world = ServiceCluster()
    world.settle()
    before = (dict(world.shares), list(world.revisions))
    world.change(**BAD[field])
    if BAD[field].get("default", "") is None:
        world.service["spec"].pop("default", None)
    world.settle()
    assert (dict(world.shares), list(world.revisions)) == before
    ready = world.condition("Ready")
    assert (ready["status"], ready["reason"]) == ("False", "InvalidSpec")
    assert field in ready["message"]
    assert field in world.events[-1]
    assert world.condition("RoutesReady")["status"] == "True", "clients are still answered"
    assert world.status["url"] == "http://m.ns.example.com"
    assert len([event for event in world.events if field in event]) == 1, "said once"


def test_a_name_in_both_groups_belongs_to_the_first() -> None:
    world = ServiceCluster()
    plan = decide(world.service, Observed(rival="elasticserving.paddlepaddle.org/v1"), world.now)
    assert plan.create == []
    assert plan.status is not None
    conditions = {c["type"]: c for c in plan.status["conditions"]}
    assert conditions["Conflict"]["status"] == "True"
    assert conditions["Ready"]["status"] == "False"
    assert "elasticserving" in conditions["Ready"]["message"]


# HTTP/2


def test_a_platform_that_does_not_route_http2_is_quoted_once() -> None:
    world = ServiceCluster(protocol="grpc")
    world.settle()
    assert "message" not in world.status
    assert world.kservice is not None
    said = {"type": "HTTP2Ready", "status": "False", "message": "no Envoy here"}
    for _ in range(2):
        world.knative()
        world.kservice["status"]["conditions"].append(said)
        world.step()
    assert world.status["message"] == "no Envoy here"
    assert world.condition("Ready")["status"] == "True"
    assert world.events.count("Note: no Envoy here") == 1
