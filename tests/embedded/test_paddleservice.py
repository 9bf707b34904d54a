"""PaddleServices with real kubectl, on the embedded platform: a URL, a canary, a new revision, a true status."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

import paddlecloud as pc
from embedded.serving_world import AUTOSCALER, Load, apply, ask, endpoint, paddleservice, read, url_of
from harness import Kubectl, Target, pdc, until

KIND = "paddleservice.serving.paddlepaddle.org"


def status(kubectl: Kubectl, name: str = "m") -> dict[str, Any]:
    found: dict[str, Any] = read(kubectl, KIND, name).get("status") or {}
    return found


def condition(kubectl: Kubectl, kind: str = "Ready", name: str = "m") -> dict[str, Any]:
    return next((c for c in status(kubectl, name).get("conditions") or () if c["type"] == kind), {})


@pytest.mark.parametrize("group", ["serving.paddlepaddle.org", "elasticserving.paddlepaddle.org"])
def test_a_service_of_either_group_gets_a_url_that_answers(kubectl: Kubectl, namespace: str, group: str) -> None:
    apply(kubectl, paddleservice("m", "one", group=group))
    kind = f"paddleservice.{group}"
    url = url_of(kubectl, kind, "m")
    found = read(kubectl, kind, "m")["status"]
    revision = found["default"]["name"]
    assert ask(url) == (200, f"one {revision}")
    assert ask(url, host=f"m.{namespace}.example.com") == (200, f"one {revision}")
    assert found["traffic"] == "100"
    assert {c["type"]: c["status"] for c in found["conditions"]} == {
        "DefaultEndpointReady": "True",
        "RoutesReady": "True",
        "Ready": "True",
    }
    table = kubectl("get", kind).stdout.splitlines()
    assert table[0].split() == ["NAME", "URL", "DEFAULT", "CANARY", "TRAFFIC", "READY", "REPLICAS", "AGE"]
    assert table[1].split()[:5] == ["m", url, revision, "100", "True"]


def test_half_of_a_thousand_requests_reach_the_canary(kubectl: Kubectl, namespace: str) -> None:
    apply(kubectl, paddleservice("m", "one", "two"))
    url = url_of(kubectl, KIND, "m")
    until(lambda: status(kubectl).get("traffic") == "50/50")
    until(lambda: ask(url)[1].startswith("two") or ask(url)[1].startswith("two"))
    with Load(url, clients=4, pause=0) as load:
        reported = load.more(1000, timeout=60)
    assert load.errors == []
    assert 0.45 <= reported["two"] / sum(reported.values()) <= 0.55
    names = {item["metadata"]["name"] for item in read(kubectl, "service")["items"]}
    assert {"m", "m-default", "m-default-private", "m-canary-private"} <= names
    pod = read(kubectl, "pods", "-l", "serving.paddlepaddle.org/endpoint=canary")["items"][0]
    assert pod["spec"]["containers"][0]["name"] == "paddleserving"


def test_update_canary_promote_and_rollback_lose_no_request(kubectl: Kubectl, namespace: str, server: Target) -> None:
    def command(*args: str) -> None:
        pdc("-n", namespace, *args, env=server.env)

    def only(word: str) -> bool:
        return set(load.more(20)) == {word}

    apply(kubectl, paddleservice("m", "one"))
    url = url_of(kubectl, KIND, "m")
    with Load(url) as load:
        load.more(20)
        apply(kubectl, paddleservice("m", "two"))
        until(lambda: only("two"), every=0)
        apply(kubectl, paddleservice("m", "two", "three"))
        until(lambda: {"two", "three"} == set(load.more(20)), every=0)
        command("rollback", "m")
        until(lambda: "m-canary-" not in kubectl("get", "revisions", "-o", "name").stdout)
        until(lambda: only("two"), every=0)  # what was asked before has its answer from the canary still
        apply(kubectl, paddleservice("m", "two", "three"))
        until(lambda: {"two", "three"} == set(load.more(20)), every=0)
        command("promote", "m")
        until(lambda: only("three"), every=0)
        command("rollback", "m")
        until(lambda: only("two"), every=0)
        kubectl("wait", "--for=condition=Ready", f"{KIND}/m", "--timeout=60s")
    assert load.errors == []
    assert sum(load.answers.values()) > 100


def test_a_file_is_applied_again_after_promote_and_rollback(
    kubectl: Kubectl, namespace: str, server: Target, tmp_path: Path
) -> None:
    file = tmp_path / "service.json"
    file.write_text(json.dumps(paddleservice("m", "one", "two")))

    def command(*args: str) -> str:
        return pdc("-n", namespace, *args, env=server.env).stdout

    for act in ("promote", "rollback"):
        command("apply", "-f", str(file))
        command("wait", f"{KIND}/m", "--for=condition=CanaryEndpointReady", "--timeout=80s")
        before = read(kubectl, KIND, "m")["status"]["default"]["name"]
        command("promote", "m")
        if act == "rollback":
            command("wait", f"{KIND}/m", "--for=condition=Ready", "--timeout=80s")
            newest = read(kubectl, KIND, "m")["status"]["default"]["name"]
            assert f"m rolled back from {newest} to {before} (" in command("rollback", "m")
        assert command("apply", "-f", str(file)).endswith("configured\n")
        assert read(kubectl, KIND, "m")["spec"]["canary"] == paddleservice("m", "one", "two")["spec"]["canary"]


def test_a_revision_that_never_starts_leaves_the_old_one_serving_and_says_why(kubectl: Kubectl, namespace: str) -> None:
    apply(kubectl, paddleservice("m", "one"))
    url = url_of(kubectl, KIND, "m")
    broken = paddleservice("m", "one")
    broken["spec"]["default"] |= {"containerImage": "nobody/has-this", "tag": "1"}
    began = time.monotonic()
    with Load(url) as load:
        apply(kubectl, broken)
        until(lambda: condition(kubectl).get("status") == "False")
        reported = time.monotonic() - began
        load.more(30)
    assert load.errors == []
    assert set(load.answers) == {"one"}
    assert "nobody/has-this:1" in condition(kubectl)["message"]
    events = read(kubectl, "events")["items"]
    assert any("nobody/has-this:1" in e["message"] for e in events if e["involvedObject"]["kind"] == "PaddleService")
    print(f"reported after {reported:.2f} s")
    apply(kubectl, paddleservice("m", "one"))
    url_of(kubectl, KIND, "m")


BROKEN = {
    "an image that nobody has": ({"containerImage": "nobody/has-this", "tag": "1"}, "nobody/has-this:1"),
    "a program that ends": ({"arg": "echo no such table >&2; exit 3"}, "exited with code 3"),
}


@pytest.mark.parametrize("place", ["default", "canary"])
@pytest.mark.parametrize(("change", "reason"), BROKEN.values(), ids=BROKEN.keys())
def test_waiting_for_a_broken_revision_ends_with_the_reason(
    kubectl: Kubectl, namespace: str, server: Target, tmp_path: Path, place: str, change: dict[str, Any], reason: str
) -> None:
    """Without a time-out: what ends the commands is what the service reports."""
    apply(kubectl, paddleservice("m", "one"))
    url_of(kubectl, KIND, "m")
    broken = paddleservice("m", "one", "two")
    broken["spec"][place] |= change
    file = tmp_path / "service.yaml"
    file.write_text(json.dumps(broken))
    apply_and_wait = ("-n", namespace, "apply", "--force-conflicts", "-f", str(file), "--wait")
    applied = pdc(*apply_and_wait, env=server.env, check=False, timeout=120)
    assert applied.returncode == 100, applied.stderr
    assert reason in applied.stderr
    goal = {"default": "Ready", "canary": "CanaryEndpointReady"}[place]
    wait = ("-n", namespace, "wait", "pds/m", f"--for=condition={goal}", "--timeout=1h")
    waited = pdc(*wait, env=server.env, check=False, timeout=120)
    assert waited.returncode == 100, waited.stderr
    assert reason in waited.stderr
    connection = pc.connect(kubeconfig=server.kubeconfig, namespace=namespace)
    with connection as client, pytest.raises(pc.NotServed, match=reason):
        client.get("pds", "m").wait_for(goal, timeout=3600)


BAD = {
    "spec.default": {"default": None},
    "spec.rollout.steps[1]": {"rollout": {"steps": [50, 20]}},
    "spec.service.window": {"service": {"window": "2s"}},
    "spec.default.port": {"default": {"containerImage": "python", "tag": "3", "port": None}},
}


def test_a_service_that_was_never_ready_answers_with_the_reason(kubectl: Kubectl, namespace: str) -> None:
    broken = {**endpoint("one"), "arg": "echo no such model >&2; exit 7"}
    service = paddleservice("m", "one")
    service["spec"]["default"] = broken
    apply(kubectl, service)
    until(lambda: condition(kubectl)["status"] == "False", timeout=60)
    found = status(kubectl)
    for url, host in ((found["url"], ""), (found["nameUrl"], urlsplit(found["nameUrl"]).netloc)):
        until(lambda url=url, host=host: ask(url, host=host)[0] == 503, timeout=60)  # type: ignore[misc]
        assert "exited with code 7" in ask(url, host=host)[1]


def test_a_service_that_is_repaired_is_served_at_once_after_a_retry(
    kubectl: Kubectl, namespace: str, server: Target, tmp_path: Path
) -> None:
    switch = tmp_path / "switch"
    service = paddleservice("m", "one")
    service["spec"]["default"]["arg"] = f"test -e {switch} || exit 7; {service['spec']['default']['arg']}"
    service["spec"] |= {
        "volumes": [{"name": "switch", "hostPath": {"path": str(tmp_path)}}],
        "volumeMounts": [{"name": "switch", "mountPath": str(tmp_path)}],
    }
    apply(kubectl, service)
    until(lambda: condition(kubectl).get("reason") == "CrashLoopBackOff", timeout=60)
    failed = status(kubectl)["default"]["name"]
    switch.touch()
    said = pdc("-n", namespace, "retry", "pds/m", env=server.env)
    assert "m is tried again" in said.stdout
    pdc("-n", namespace, "wait", "pds/m", "--for=condition=Ready", "--timeout=60s", env=server.env)
    assert ask(status(kubectl)["url"])[1].startswith("one")
    assert status(kubectl)["default"]["name"] != failed
    refused = pdc("-n", namespace, "retry", "pds/m", env=server.env, check=False)
    assert (refused.returncode, "nothing to try again" in refused.stderr) == (4, True)


@pytest.mark.parametrize("group", ["serving.paddlepaddle.org", "elasticserving.paddlepaddle.org"])
def test_a_spec_with_both_a_model_and_a_default_is_refused(kubectl: Kubectl, namespace: str, group: str) -> None:
    both = paddleservice("m", "one", group=group, model="digits:v1")
    refused = kubectl("apply", "--dry-run=server", "-f", "-", input=json.dumps(both), check=False)
    assert refused.returncode != 0
    assert "set one of spec.model and spec.default and remove the other" in refused.stderr


def test_bad_input_is_reported_at_once_and_the_old_revision_keeps_serving(kubectl: Kubectl, namespace: str) -> None:
    apply(kubectl, paddleservice("m", "one"))
    url = url_of(kubectl, KIND, "m")
    for field, change in BAD.items():
        kubectl("patch", KIND, "m", "--type=merge", "-p", json.dumps({"spec": change}))
        until(lambda field=field: field in condition(kubectl).get("message", ""))
        assert condition(kubectl)["reason"] == "InvalidSpec"
        assert ask(url)[0] == 200
        undo = {"spec": {"default": endpoint("one"), "rollout": None, "service": None}}
        kubectl("patch", KIND, "m", "--type=merge", "-p", json.dumps(undo))
    refused = kubectl("patch", KIND, "m", "--type=merge", "-p", '{"spec":{"canaryTrafficPercent":101}}', check=False)
    assert "spec.canaryTrafficPercent" in refused.stderr, "what a schema can say is refused when it is written"
    url_of(kubectl, KIND, "m")


def test_what_starts_badly_is_reported_with_its_cause_and_the_old_revision_keeps_serving(
    kubectl: Kubectl, namespace: str, server: Target, tmp_path: Path
) -> None:
    server.offer("paddlecloud/serving:latest")
    with (tmp_path / "model.onnx").open("wb") as file:
        file.truncate(1 << 42)  # sparse: only its size is that large
    closed = {**endpoint("one"), "arg": "exec sleep 600"}
    causes = {
        "port 9292 of its program does not answer yet": closed,
        "there is no Model nobody in namespace": {"model": "nobody:v1"},
        "the model is 4194304 MiB": {"model": f"file://{tmp_path}"},
        "folder /etc is not below one that the operator allows": {"model": "file:///etc"},
        "hidden folders such as .ssh": {"model": f"file://{tmp_path}/.ssh"},
    }
    apply(kubectl, paddleservice("m", "one"))
    url = url_of(kubectl, KIND, "m")
    for cause, change in causes.items():
        kubectl("patch", KIND, "m", "--type=json", "-p", json.dumps([_default(change)]))
        until(lambda cause=cause: cause in condition(kubectl).get("message", ""))
        until(lambda cause=cause: any(cause in text for text in _events(kubectl)))
        assert ask(url)[1].startswith("one")
    kubectl("patch", KIND, "m", "--type=json", "-p", json.dumps([_default(endpoint("one"))]))
    url_of(kubectl, KIND, "m")


def _default(value: dict[str, Any]) -> dict[str, Any]:
    return {"op": "replace", "path": "/spec/default", "value": value}


def _events(kubectl: Kubectl) -> list[str]:
    found = read(kubectl, "events", "--field-selector", "involvedObject.kind=PaddleService")["items"]
    return [event["message"] for event in found]


def test_kubectl_scale_pins_the_number_of_pods(kubectl: Kubectl, namespace: str) -> None:
    apply(kubectl, paddleservice("m", "one"))
    url = url_of(kubectl, KIND, "m")
    with Load(url) as load:
        kubectl("scale", f"{KIND}/m", "--replicas=2")
        until(
            lambda: status(kubectl)["default"]["replicas"] == 2 and condition(kubectl)["status"] == "True", timeout=30
        )
    assert load.errors == []
    selector = status(kubectl)["selector"]
    ready = [p for p in read(kubectl, "pods", "-l", selector)["items"] if not p["metadata"].get("deletionTimestamp")]
    assert len(ready) >= 2


def test_a_name_in_both_groups_belongs_to_the_first(kubectl: Kubectl, namespace: str) -> None:
    earlier = "paddleservice.elasticserving.paddlepaddle.org"
    apply(kubectl, paddleservice("m", "one", group="elasticserving.paddlepaddle.org"))
    url = url_of(kubectl, earlier, "m")
    apply(kubectl, paddleservice("m", "two"))
    until(lambda: condition(kubectl, "Conflict").get("status") == "True")
    assert "elasticserving" in condition(kubectl)["message"]
    assert ask(url)[1].startswith("one")
    kubectl("delete", earlier, "m", "--wait")
    url = url_of(kubectl, KIND, "m")
    until(lambda: ask(url)[1].startswith("two"))


def test_a_roll_out_that_brings_errors_goes_back_by_itself_and_says_so(
    kubectl: Kubectl, namespace: str, server: Target, tmp_path: Path
) -> None:
    rollout = {"steps": [50], "pauseSeconds": 600, "maxErrorPercent": 10}
    apply(kubectl, paddleservice("m", "one", rollout=rollout))
    url = url_of(kubectl, KIND, "m")
    good, file = status(kubectl)["default"]["name"], tmp_path / "broken.json"
    file.write_text(json.dumps(paddleservice("m", "broken", rollout=rollout)))

    def command(*args: str, check: bool = True) -> Any:
        return pdc("-n", namespace, *args, env=server.env, check=check, timeout=150)

    with Load(url) as load:
        load.more(20)
        ended = command("apply", "-f", str(file), "--force-conflicts", "--wait", "--timeout=120s", check=False)
        until(lambda: load.more(40).get("one", 0) >= 40, every=0)
    assert (ended.returncode, "errors, more than 10 %" in ended.stderr) == (100, True), ended.stderr
    found = status(kubectl)
    assert (found["default"]["name"], found["traffic"], found["rollout"]["phase"]) == (good, "100", "WentBack")
    for said in (
        command("explain", "pds/m").stdout,
        command("describe", "pds/m").stdout,
        condition(kubectl)["message"],
    ):
        assert f"the roll-out of {found['default']['latest']} went back: " in said
        assert f"more than 10 %; {good} is served" in said
    assert f" {good} " in command("get", "pds").stdout
    assert "WentBack" in kubectl("get", "pds", "-o", "wide").stdout
    kubectl("wait", "--for=condition=Ready", f"{KIND}/m", "--timeout=5s")
    kubectl("patch", KIND, "m", "--type=merge", "-p", json.dumps({"spec": {"rollout": None}}))
    until(lambda: ask(url)[1].startswith("broken"))
    assert load.errors, "half of the requests got the errors that were the reason"
    events = read(kubectl, "events", "--field-selector", "reason=WentBack")["items"]
    assert "errors" in events[0]["message"]


def test_a_start_from_zero_is_in_the_status_stage_by_stage(kubectl: Kubectl, namespace: str) -> None:
    apply(kubectl, paddleservice("m", "one", service={"window": "6s"}))
    kubectl("apply", "-n", "knative-serving", "-f", "-", input=json.dumps(AUTOSCALER))
    url = url_of(kubectl, KIND, "m")
    until(lambda: status(kubectl)["replicas"] == 0)
    assert ask(url)[0] == 200
    until(lambda: "coldStart" in status(kubectl))
    cold = status(kubectl)["coldStart"]
    assert set(cold) == {"queue", "spawn", "load", "total"}
    assert cold["total"] >= cold["queue"] + cold["spawn"]
