"""The four kinds' judgement: what each makes, what it says, and when traffic moves."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from paddlecloud.api.names import NAME_URL
from paddlecloud.kube.conditions import ConditionState
from paddlecloud.kube.errors import BadRequest
from paddlecloud.kube.resource import Object
from paddlecloud.local.apiserver.objects.admission import WriteOptions
from paddlecloud.local.apiserver.registry import KindInfo
from paddlecloud.local.knative import configuration, names, revision, route, service
from paddlecloud.local.knative.routing import (
    MOST_PORTS,
    is_split,
    labels_of,
    named_in,
    revision_entry,
    revisions_of,
    route_entries,
)
from paddlecloud.local.knative.settings import Defaults
from paddlecloud.local.knative.validation import judge
from unit.local.workloads.cluster import START as NOW


def obj(
    kind: str, name: str, spec: Object, *, generation: int = 1, status: Object | None = None, **meta: Any
) -> Object:
    made: Object = {
        "apiVersion": "serving.knative.dev/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "ns", "uid": f"uid-{name}", "generation": generation, **meta},
        "spec": spec,
    }
    if status is not None:
        made["status"] = status
    return made


def template(word: str = "one", **spec: Any) -> Object:
    return {"spec": {"containers": [{"image": word}], **spec}}


def ready(state: str = "True", **more: str) -> Object:
    return {"observedGeneration": 1, "conditions": [{"type": "Ready", "status": state, **more}]}


def condition(status: Object, kind: str = "Ready") -> Object:
    return next(c for c in status["conditions"] if c["type"] == kind)


# HTTP/2


def test_a_port_of_http2_is_known_by_its_name() -> None:
    http2 = revision.uses_h2c
    assert not http2(obj("Revision", "r", template()["spec"]))
    assert http2(obj("Revision", "r", {"containers": [{"ports": [{"containerPort": 1, "name": "h2c"}]}]}))


def test_a_route_without_envoy_says_what_to_install_and_is_ready_all_the_same() -> None:
    found = {"r": obj("Revision", "r", {}, status=ready())}
    missing = ConditionState("False", "EnvoyMissing", route.NO_ENVOY)
    traffic = [{"revisionName": "r", "percent": 100}]
    made = obj("Route", "s", {"traffic": traffic}, status={"traffic": traffic})
    plan = route.decide(made, route.Observed(found, {}, port=80, http2=missing, published=True), NOW)
    assert plan.status is not None
    assert condition(plan.status)["status"] == "True"
    assert "pip install 'paddlecloud[h2c]'" in condition(plan.status, "HTTP2Ready")["message"]
    assert [event.reason for event in plan.events] == ["EnvoyMissing"]
    made["status"] = plan.status
    assert route.decide(made, route.Observed(found, {}, port=80, http2=missing), NOW).events == [], "said once"
    seen = service.decide(obj("Service", "s", {"template": template()}), service.Observed(route=made), NOW).status
    assert seen is not None
    assert condition(seen, "HTTP2Ready")["status"] == "False"
    after = route.decide(made, route.Observed(found, {}, port=80), NOW).status
    assert after is not None
    assert "HTTP2Ready" not in {c["type"] for c in after["conditions"]}, "of a revision that uses HTTP/1.1"


# Services


def test_a_service_makes_a_configuration_and_a_route_to_its_newest_revision() -> None:
    plan = service.decide(obj("Service", "s", {"template": template()}), service.Observed(), NOW)
    made = {o["kind"]: o for o in plan.create}
    assert made["Configuration"]["spec"] == {"template": template()}
    assert made["Route"]["spec"]["traffic"] == [{"latestRevision": True, "percent": 100, "configurationName": "s"}]
    assert plan.status is not None
    assert condition(plan.status)["status"] == "Unknown"


def test_a_change_of_the_service_changes_what_it_made() -> None:
    spec = {"template": template("two"), "traffic": [{"revisionName": "s-1", "percent": 100}]}
    seen = service.Observed(
        obj("Configuration", "s", {"template": template("one")}),
        obj("Route", "s", {"traffic": [{"latestRevision": True, "percent": 100, "configurationName": "s"}]}),
    )
    plan = service.decide(obj("Service", "s", spec), seen, NOW)
    assert [(p.resource.kind, p.patch[0]["value"]) for p in plan.patch] == [
        ("Configuration", {"template": template("two")}),
        ("Route", {"traffic": [{"revisionName": "s-1", "percent": 100, "latestRevision": False}]}),
    ]


# Configurations


def test_every_generation_of_a_template_is_a_revision_named_after_it() -> None:
    plan = configuration.decide(
        obj("Configuration", "c", {"template": template()}, generation=7), configuration.Observed(), NOW
    )
    (made,) = plan.create
    assert made["metadata"]["name"] == "c-00007"
    assert made["metadata"]["labels"][names.GENERATION] == "7"
    assert made["spec"] == template()["spec"]


def revisions(*states: str) -> tuple[Object, ...]:
    return tuple(
        obj("Revision", f"c-{n:05d}", template()["spec"], labels={names.GENERATION: str(n)}, status=ready(state))
        for n, state in enumerate(states, 1)
    )


def test_the_name_of_an_earlier_revision_is_taken_and_moves_no_traffic() -> None:
    spec = {"template": {"metadata": {"name": "c-00001"}, "spec": {"containers": [{"image": "another"}]}}}
    made = obj("Configuration", "c", spec, generation=3)
    made["status"] = configuration.decide(made, configuration.Observed(revisions("True")), NOW).status
    assert condition(made["status"])["reason"] == "RevisionNameTaken"
    before = obj("Route", "c", {"traffic": [{"revisionName": "c-00002", "percent": 100}]}, status=ready())
    wanted = {**spec, "traffic": [{"revisionName": "c-00001", "percent": 100}]}
    plan = service.decide(obj("Service", "c", wanted), service.Observed(made, before), NOW)
    assert [patch.resource.kind for patch in plan.patch] == []
    assert plan.status is not None
    assert condition(plan.status, "RoutesReady")["reason"] == "RevisionNameTaken"


def test_the_name_of_an_earlier_revision_may_be_used_again_for_the_same_spec() -> None:
    made = obj("Configuration", "c", {"template": {"metadata": {"name": "c-00001"}, **template()}}, generation=3)
    plan = configuration.decide(made, configuration.Observed(revisions("True", "True")), NOW)
    assert plan.create == []
    assert plan.status is not None
    assert plan.status["latestReadyRevisionName"] == "c-00001"
    assert condition(plan.status)["status"] == "True"


@pytest.mark.parametrize(
    ("states", "latest", "verdict"),
    [
        (("True",), "c-00001", "True"),
        (("True", "Unknown"), "c-00001", "Unknown"),
        (("True", "False"), "c-00001", "False"),
        (("True", "True"), "c-00002", "True"),
        (("False",), None, "False"),
    ],
)
def test_the_newest_ready_revision(states: tuple[str, ...], latest: str | None, verdict: str) -> None:
    made = obj("Configuration", "c", {"template": template()}, generation=len(states))
    plan = configuration.decide(made, configuration.Observed(revisions(*states)), NOW)
    assert plan.create == []
    assert plan.status is not None
    assert plan.status.get("latestReadyRevisionName") == latest
    assert condition(plan.status)["status"] == verdict


def test_of_many_idle_revisions_the_oldest_go_and_routed_ones_stay() -> None:
    many = revisions(*["True"] * 25)
    made = obj("Configuration", "c", {"template": template()}, generation=25)
    plan = configuration.decide(made, configuration.Observed(many, {"c-00001"}), NOW)
    assert [d.name for d in plan.delete] == ["c-00002", "c-00003", "c-00004"]


# Revisions


def pod(*, phase: str = "Running", is_ready: bool = True, waiting: Object | None = None, **meta: Any) -> Object:
    state = {"waiting": waiting} if waiting else {"running": {}}
    return {
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "ns", "uid": "p1", **meta},
        "status": {
            "phase": phase,
            "podIP": "127.9.9.9",
            "conditions": [{"type": "Ready", "status": str(is_ready)}],
            "containerStatuses": [{"name": "user-container", "ready": is_ready, "state": state}],
        },
    }


def test_a_revision_is_a_deployment_that_probes_its_port_and_knows_its_names() -> None:
    made = obj(
        "Revision", "r", {"containers": [{"image": "i", "ports": [{"containerPort": 9292}]}], "timeoutSeconds": 60}
    )
    plan = revision.decide(made, revision.Observed(), NOW)
    deployment, *services = plan.create
    spec = deployment["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    assert container["name"] == "user-container"
    assert container["readinessProbe"]["tcpSocket"] == {"port": 9292}
    assert {e["name"]: e["value"] for e in container["env"]}["PORT"] == "9292"
    assert "timeoutSeconds" not in spec
    assert [s["metadata"]["name"] for s in services] == ["r", "r-private"]
    assert services[0]["spec"]["ports"][0]["targetPort"] == 9292


@pytest.mark.parametrize(
    ("annotations", "first"),
    [({}, 1), ({"min-scale": "3"}, 3), ({"initial-scale": "5"}, 5), ({"initial-scale": "5", "max-scale": "2"}, 2)],
)
def test_how_many_pods_a_revision_begins_with(annotations: dict[str, str], first: int) -> None:
    marks = {f"autoscaling.knative.dev/{name}": value for name, value in annotations.items()}
    made = obj("Revision", "r", template()["spec"], annotations=marks)
    assert revision.deployment_for(made, Defaults())["spec"]["replicas"] == first


def judged(made: Object, *pods: Object, replicas: int = 1) -> Object:
    deployment = {"metadata": {"name": "r-deployment"}, "spec": {"replicas": replicas}}
    plan = revision.decide(made, revision.Observed(deployment, pods), NOW)
    assert plan.status is not None
    return plan.status


def test_a_revision_is_ready_with_its_first_pod_and_stays_so_asleep() -> None:
    made = obj("Revision", "r", template()["spec"])
    assert condition(judged(made, pod(is_ready=False)))["status"] == "Unknown"
    made["status"] = judged(made, pod())
    assert condition(made["status"])["status"] == "True"
    asleep = judged(made, replicas=0)
    assert condition(asleep)["status"] == "True"
    assert condition(asleep, "Active")["reason"] == "NoTraffic"
    assert (asleep["actualReplicas"], asleep["desiredReplicas"]) == (0, 0)


@pytest.mark.parametrize("reason", ["ErrImagePull", "CrashLoopBackOff", "CreateContainerConfigError"])
def test_a_container_that_cannot_start_fails_its_revision_with_its_own_words(reason: str) -> None:
    broken = pod(is_ready=False, waiting={"reason": reason, "message": "why it is so"})
    status = judged(obj("Revision", "r", template()["spec"]), broken)
    assert condition(status)["status"] == "False"
    assert condition(status)["reason"] == reason
    assert "why it is so" in condition(status)["message"]


NO_FOLDER = 'MountVolume.SetUp failed for volume "model" : hostPath type check failed: /models/x is not a directory'


def test_a_volume_that_cannot_be_mounted_fails_its_revision_and_the_requests_that_wait() -> None:
    broken = pod(is_ready=False, waiting={"reason": "ContainerCreating", "message": NO_FOLDER})
    status = judged(obj("Revision", "r", template()["spec"]), broken)
    assert (condition(status)["status"], condition(status)["reason"]) == ("False", "FailedMount")
    assert condition(status)["message"] == NO_FOLDER
    failure = revision.lasting_failure([broken])
    assert failure is not None
    assert failure.reason == "FailedMount"


@pytest.mark.parametrize("message", ["", 'persistentvolumeclaim "c" is not bound to a volume yet', 'image "i": 3 MB'])
def test_what_may_come_by_itself_is_waited_for(message: str) -> None:
    starting = pod(is_ready=False, waiting={"reason": "ContainerCreating", "message": message})
    assert condition(judged(obj("Revision", "r", template()["spec"]), starting))["status"] == "Unknown"
    assert revision.lasting_failure([starting]) is None


def test_a_revision_that_could_not_wake_says_so_until_a_pod_is_ready_again() -> None:
    made = obj("Revision", "r", template()["spec"])
    made["status"] = judged(made, pod())
    broken = pod(is_ready=False, waiting={"reason": "ContainerCreating", "message": NO_FOLDER})
    made["status"] = judged(made, broken)
    assert condition(made["status"])["reason"] == "FailedMount"
    made["status"] = judged(made, replicas=0)
    assert condition(made["status"])["reason"] == "FailedMount", "asleep"
    made["status"] = judged(made, pod())
    assert condition(made["status"])["status"] == "True"


def test_a_program_that_does_not_listen_is_waited_for_in_words() -> None:
    status = judged(obj("Revision", "r", template()["spec"]), pod(is_ready=False))
    assert condition(status)["status"] == "Unknown"
    assert "port 8080 of its program does not answer yet" in condition(status)["message"]


def test_a_program_that_outgrew_its_memory_is_reported_as_such() -> None:
    broken = pod(is_ready=False, waiting={"reason": "CrashLoopBackOff", "message": "back-off"})
    ended = {"exitCode": 137, "reason": "OOMKilled", "message": "too large"}
    broken["status"]["containerStatuses"][0]["lastState"] = {"terminated": ended}
    status = judged(obj("Revision", "r", template()["spec"]), broken)
    assert "137 (OOMKilled): too large" in condition(status)["message"]


# Routes


PORTS = {"ns/s": 41001, "ns/new-s": 41002}


def routing(
    traffic: list[Object], *, before: list[Object] | None = None, port: int | None = 8080, **states: str
) -> Object:
    found = {name: obj("Revision", name, {}, status=ready(state)) for name, state in states.items()}
    configurations = {"c": obj("Configuration", "c", {}, status={"latestReadyRevisionName": "r2"})}
    made = obj("Route", "s", {"traffic": traffic}, status={"traffic": before} if before else {})
    for published in (False, True):  # the pass that assigns the traffic, and the one after the gateways have it
        seen = route.Observed(found, configurations, port=port, published=published, ports=PORTS if port else {})
        plan = route.decide(made, seen, NOW)
        assert plan.status is not None
        made["status"] = plan.status
    return plan.status


def test_traffic_goes_to_revisions_by_name_and_to_the_newest_ready_one() -> None:
    status = routing(
        [{"revisionName": "r1", "percent": 90}, {"configurationName": "c", "percent": 10, "tag": "new"}],
        r1="True",
        r2="True",
    )
    assert [(t["revisionName"], t["percent"]) for t in status["traffic"]] == [("r1", 90), ("r2", 10)]
    assert (status["url"], status["traffic"][1]["url"]) == ("http://127.0.0.1:41001", "http://127.0.0.1:41002")
    assert status["annotations"] == {NAME_URL: "http://s.ns.localhost:8080"}
    assert condition(status)["status"] == "True"


@pytest.mark.parametrize(("state", "verdict"), [("Unknown", "Unknown"), ("False", "False")])
def test_traffic_stays_where_it_was_until_all_targets_are_ready(state: str, verdict: str) -> None:
    before = [{"revisionName": "r1", "percent": 100, "latestRevision": False}]
    status = routing([{"revisionName": "r2", "percent": 100}], before=before, r1="True", r2=state)
    assert status["traffic"] == before
    assert condition(status, "AllTrafficAssigned")["status"] == verdict
    assert "waiting for a Revision" not in condition(status, "AllTrafficAssigned")["message"], "it is one itself"


def test_a_revision_that_serves_and_falls_ill_keeps_its_traffic() -> None:
    before = [{"revisionName": "r1", "percent": 100, "latestRevision": False}]
    status = routing([{"revisionName": "r1", "percent": 100}], before=before, r1="False")
    assert condition(status)["status"] == "True"


def test_a_revision_that_does_not_exist_is_named() -> None:
    status = routing([{"revisionName": "nobody", "percent": 100}])
    assert condition(status)["reason"] == "RevisionMissing"
    assert "nobody" in condition(status)["message"]


def test_without_a_gateway_a_route_waits() -> None:
    status = routing([{"revisionName": "r1", "percent": 100}], r1="True", port=None)
    assert condition(status, "IngressReady")["status"] == "Unknown"
    assert "url" not in status


TO_R1, TO_R2 = ([{"revisionName": name, "percent": 100}] for name in ("r1", "r2"))


def observed_route(**more: Any) -> route.Observed:
    found = {name: obj("Revision", name, {}, status=ready()) for name in ("r1", "r2")}
    return route.Observed(found, {}, **{"port": 8080, "ports": PORTS, **more})


def test_a_route_is_ready_when_the_gateways_have_acknowledged_its_traffic_and_not_before() -> None:
    made = obj("Route", "s", {"traffic": TO_R1})
    for traffic in (TO_R1, TO_R2):
        made["spec"]["traffic"] = traffic
        # What the gateways have acknowledged up to now is the traffic of before.
        assigned = route.decide(made, observed_route(published=traffic is TO_R2), NOW)
        assert assigned.status is not None
        assert condition(assigned.status)["status"] == "Unknown"
        assert condition(assigned.status, "IngressReady")["reason"] == "IngressNotConfigured"
        assert assigned.status["url"] == "http://127.0.0.1:41001"
        assert [t["revisionName"] for t in assigned.status["traffic"]] == [traffic[0]["revisionName"]]
        made["status"] = assigned.status
        waiting = route.decide(made, observed_route(), NOW + 1)
        assert waiting.status == assigned.status, "nothing to write while it waits"
        assert waiting.after, "gateways that never answer are not waited for"
        done = route.decide(made, observed_route(published=True), NOW + 2)
        assert done.status is not None
        assert condition(done.status)["status"] == condition(done.status, "IngressReady")["status"] == "True"
        assert done.after is None
        made["status"] = done.status


def test_a_route_that_is_served_stays_ready_while_gateways_connect_to_a_new_control_plane() -> None:
    made = obj("Route", "s", {"traffic": TO_R1})
    for published in (False, True):
        made["status"] = route.decide(made, observed_route(published=published), NOW).status
    assert route.decide(made, observed_route(port=None, settled=False), NOW).status == made["status"]
    lost = route.decide(made, observed_route(port=None), NOW).status
    assert lost is not None
    assert condition(lost)["reason"] == "GatewayStarting", "none of them came"
    made["spec"]["traffic"] = TO_R2
    moved = route.decide(made, observed_route(port=None, settled=False), NOW).status
    assert moved is not None
    assert condition(moved)["status"] == "Unknown", "that traffic was never published"


# The gateway's table


def test_a_route_of_many_tags_has_ports_for_the_first_of_them_only() -> None:
    tags = [{"revisionName": "r1", "percent": 0, "tag": f"t{number}"} for number in range(5000)]
    labels = labels_of(obj("Route", "s", {"traffic": [*TO_R1, *tags]}))
    assert labels[:3] == ["s", "t0-s", "t1-s"]
    assert len(labels) == MOST_PORTS


def test_a_route_is_known_by_all_its_hosts_and_its_tags_by_theirs() -> None:
    traffic = [{"revisionName": "r1", "percent": 100}, {"revisionName": "r2", "percent": 0, "tag": "next"}]
    made = obj("Route", "s", {}, status={"traffic": traffic})
    assert labels_of(made) == ["s", "next-s"]
    entries = route_entries(made, {"ns/s": 41001, "ns/next-s": 41002, "other/s": 41003})
    assert entries["host:s.ns.example.com"] == entries["host:s.ns.localhost"] == [["ns/r1", 100]]
    assert entries["path:ns/s"] == [["ns/r1", 100]]
    assert entries["host:next-s.ns.example.com"] == [["ns/r2", 100]]
    assert {name: entries[name] for name in entries if name.startswith("port")} == {
        "port:41001": [["ns/r1", 100]],
        "port:41002": [["ns/r2", 100]],
    }
    assert "port-h2c:41001" in route_entries(made, {"ns/s": 41001}, h2c=True)


NAMESPACES = st.sampled_from(["svc", "team", "team-a", "localhost", "example", "com", "local", "cluster"])
WORDS = st.text(alphabet="am-./", max_size=4)
LABELS = st.lists(st.one_of(NAMESPACES, WORDS), min_size=1, max_size=3).map(".".join)


@given(st.tuples(NAMESPACES, LABELS, LABELS), st.tuples(NAMESPACES, LABELS, LABELS))
@example(("svc", "a", "model.team"), ("team-a", "model", "next"))
def test_no_route_has_an_entry_of_another_namespace(one: tuple[str, str, str], other: tuple[str, str, str]) -> None:
    """Whatever a stored route is called and however its traffic is tagged."""
    found = []
    for namespace, name, tag in (one, other):
        made = obj("Route", name, {}, status={"traffic": [{"revisionName": "r", "percent": 100, "tag": tag}]})
        made["metadata"]["namespace"] = namespace
        found.append(set(route_entries(made)))
    assert one[0] == other[0] or not found[0] & found[1]


def test_a_stored_tag_that_is_no_label_gets_neither_host_nor_url() -> None:
    made = obj("Route", "s", {"traffic": [{"revisionName": "r1", "percent": 100, "tag": "kn.bob.localhost/x"}]})
    status = route.decide(made, observed_route(published=True), NOW).status
    assert status is not None
    assert status["traffic"] == [{"revisionName": "r1", "latestRevision": False, "percent": 100}]


def test_a_service_with_such_a_tag_can_still_be_changed_and_deleted() -> None:
    spec = split({"percent": 100, "tag": "model.team"})
    write("Service", obj("Service", "s", spec, status={}), obj("Service", "s", spec))


def test_only_pods_that_take_requests_are_in_the_table() -> None:
    made = obj("Revision", "r", {"containers": [{"image": "i"}], "containerConcurrency": 3, "timeoutSeconds": 9})
    pods = [pod(), pod(is_ready=False, uid="p2"), pod(uid="p3", deletionTimestamp="2026-01-01T00:00:00Z")]
    entries = revision_entry(made, pods, lambda uid, limit: f"{uid}/{limit}")
    assert entries == {"rev:ns/r": {"pods": [["127.9.9.9", 8080, "p1", "p1/3"]], "limit": 3, "timeout": 9}}


ENDED: Object = {"terminated": {"exitCode": 2, "message": "no model"}}


@pytest.mark.parametrize(
    ("pods", "failed"),
    [
        ([], False),
        ([{"waiting": {"reason": "ContainerCreating"}}], False),
        ([{"waiting": {"reason": "ErrImagePull"}}], True),
        ([{"waiting": {"reason": "CrashLoopBackOff"}}], True),
        ([{"waiting": {"reason": "CrashLoopBackOff"}}, {"running": {}}], False),
        ([ENDED], False),
        ([ENDED, 1], True),
        ([ENDED, 1, {"waiting": {"reason": "ImagePullBackOff"}}], True),
    ],
)
def test_the_table_says_why_a_revision_will_have_no_pods_once_all_of_them_failed_for_good(
    pods: list[Any], failed: bool
) -> None:
    made = obj("Revision", "r", template()["spec"])
    found: list[Object] = []
    for number, state in enumerate(pods):
        if isinstance(state, int):
            found[-1]["status"]["containerStatuses"][0]["restartCount"] = state
        else:
            found.append(pod(is_ready=False, uid=f"p{number}"))
            found[-1]["status"]["containerStatuses"] = [{"name": "c", "ready": False, "state": state}]
    (entry,) = revision_entry(made, found, lambda uid, limit: "").values()
    assert bool(entry.get("failed")) is failed
    (entry,) = revision_entry(made, [*found, pod(uid="ready")], lambda uid, limit: "").values()
    assert "failed" not in entry, "a ready pod serves"


def test_routes_are_found_by_what_they_lead_to_and_by_what_they_name() -> None:
    made = obj(
        "Route",
        "s",
        {"traffic": [{"revisionName": "r2"}, {"configurationName": "c"}]},
        status={"traffic": [{"revisionName": "r1"}]},
    )
    assert set(revisions_of(made)) == {"ns/r1", "ns/r2"}
    assert set(named_in(made)) == {"ns/r2", "ns/c"}
    assert not is_split(made)
    made["status"]["traffic"].append({"revisionName": "r2"})
    assert is_split(made)


# What Knative's webhook refuses


def write(kind: str, new: Object, old: Object | None = None) -> None:
    resource = {r.kind: r for r in (names.SERVICES, names.CONFIGURATIONS, names.REVISIONS, names.ROUTES)}[kind]
    judge(KindInfo(resource, singular=kind.lower()), new, old, WriteOptions(manager="test"))


def annotated(**annotations: str) -> Object:
    marks = {f"autoscaling.knative.dev/{name.replace('_', '-')}": value for name, value in annotations.items()}
    return {"template": {"metadata": {"annotations": marks}, **template()}}


def split(*traffic: Object) -> Object:
    return {"template": template(), "traffic": list(traffic)}


REFUSED: dict[str, Object] = {
    "spec.template.spec.containers": {"template": {"spec": {}}},
    "containers[0].image": {"template": {"spec": {"containers": [{}]}}},
    "containerConcurrency": {"template": template(containerConcurrency=1001)},
    "timeoutSeconds": {"template": template(timeoutSeconds=601)},
    "must have prefix": {"template": {"metadata": {"name": "other"}, **template()}},
    "at most 1000 targets": split(*({"percent": 0, "tag": f"t{number}"} for number in range(1001))),
    "sum to 90": split({"revisionName": "a", "percent": 90}),
    "latestRevision is true": split({"revisionName": "a", "latestRevision": True, "percent": 100}),
    "Multiple definitions": split({"percent": 50, "tag": "t"}, {"percent": 50, "tag": "t"}),
    "[model.team: at most 63": split({"percent": 100, "tag": "model.team"}),
    "[kn.bob.localhost/x: at most 63": split({"percent": 100, "tag": "kn.bob.localhost/x"}),
    "[Next: at most 63": split({"percent": 100, "tag": "Next"}),
    "-s: at most 63 characters]: spec.traffic[0].tag": split({"percent": 100, "tag": "t" * 62}),
    "autoscaling.knative.dev/target]": annotated(target="0"),
    "autoscaling.knative.dev/window]": annotated(window="5s"),
    "panic-window-percentage": annotated(panic_window_percentage="0.5"),
    "panic-threshold-percentage": annotated(panic_threshold_percentage="100"),
    "target-utilization-percentage": annotated(target_utilization_percentage="101"),
    "less than min-scale": annotated(min_scale="3", max_scale="2"),
    "autoscaling.knative.dev/metric]": annotated(metric="cpu"),
    "autoscaling.knative.dev/class]": annotated(**{"class": "nobody"}),
}  # fmt: skip


@pytest.mark.parametrize("message", REFUSED)
def test_what_knative_refuses_is_refused(message: str) -> None:
    with pytest.raises(BadRequest) as refusal:
        write("Service", obj("Service", "s", REFUSED[message]))
    assert message in str(refusal.value)


def test_another_template_needs_another_name() -> None:
    old = obj("Service", "s", {"template": {"metadata": {"name": "s-1"}, **template("one")}})
    same_name = obj("Service", "s", {"template": {"metadata": {"name": "s-1"}, **template("two")}})
    with pytest.raises(BadRequest, match="without a name change"):
        write("Service", same_name, old)
    write("Service", obj("Service", "s", {"template": {"metadata": {"name": "s-2"}, **template("two")}}), old)


@pytest.mark.parametrize("value", ["inf", "nan", "-1", "1e999", "9" * 5_000])
def test_annotations_of_a_revision_are_judged_as_those_of_its_template(value: str) -> None:
    old = obj("Revision", "r", template()["spec"])
    new = obj("Revision", "r", template()["spec"], annotations={"autoscaling.knative.dev/min-scale": value})
    with pytest.raises(BadRequest, match=r"metadata\.annotations\[autoscaling\.knative\.dev/min-scale\]"):
        write("Revision", new, old)
    write(
        "Revision", {**new, "metadata": {**new["metadata"], "labels": {"a": "b"}}}, new
    )  # as an earlier release stored it


def test_a_revision_is_never_changed() -> None:
    with pytest.raises(BadRequest, match="Immutable"):
        write("Revision", obj("Revision", "r", template("two")["spec"]), obj("Revision", "r", template("one")["spec"]))


@pytest.mark.parametrize("kind", ["Service", "Configuration", "Revision", "Route"])
def test_a_name_is_one_label_of_a_host(kind: str) -> None:
    """In the namespace `svc`, the route `web.team` would have the host `web.team.svc` of the namespace `team`."""
    spec = template()["spec"] if kind == "Revision" else {"template": template()}
    with pytest.raises(BadRequest, match=r"not a DNS 1035 label: \[web\.team: .*\]: metadata\.name"):
        write(kind, obj(kind, "web.team", spec))
