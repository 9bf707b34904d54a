"""Knative Services with real kubectl: reached by host and by path, split, asleep and awake again."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from pathlib import Path

from embedded.serving_world import AUTOSCALER, QUICK, Load, apply, ask, kservice, read, url_of
from harness import Completed, Kubectl, pdc, until


def test_a_service_answers_under_every_name_it_has(kubectl: Kubectl, namespace: str) -> None:
    apply(kubectl, kservice("hello", "one"))
    url = url_of(kubectl, "ksvc", "hello")
    expected = (200, "one hello-00001")
    assert ask(url) == expected
    by_name = read(kubectl, "ksvc", "hello")["status"]["annotations"]["gateway.paddlecloud.dev/name-url"]
    assert by_name.startswith(f"http://hello.{namespace}.localhost:")
    assert ask(by_name) == expected
    for host in (f"hello.{namespace}.example.com", f"hello.{namespace}", f"hello.{namespace}.svc.cluster.local"):
        assert ask(url, host=host) == expected
    assert ask(by_name, f"/{namespace}/hello/some/path", host="127.0.0.1") == expected
    status, text = ask(url, host="nobody.example.com")
    assert (status, "nobody.example.com" in json.loads(text)["error"]) == (404, True)


def test_the_four_kinds_have_the_status_that_knative_gives_them(kubectl: Kubectl, namespace: str) -> None:
    apply(kubectl, kservice("hello", "one"))
    url = url_of(kubectl, "ksvc", "hello")
    table = kubectl("get", "ksvc").stdout.splitlines()
    assert table[0].split() == ["NAME", "URL", "LATESTCREATED", "LATESTREADY", "READY", "REASON"]
    assert table[1].split() == ["hello", url, "hello-00001", "hello-00001", "True"]
    revision = kubectl("get", "rev").stdout.splitlines()
    assert revision[1].split() == ["hello-00001", "hello", "1", "True", "1", "1"]
    assert kubectl("get", "rt").stdout.splitlines()[1].split() == ["hello", url, "True"]
    assert kubectl("get", "cfg").stdout.splitlines()[1].split() == ["hello", "hello-00001", "hello-00001", "True"]
    kubectl("delete", "ksvc", "hello", "--wait", "--cascade=foreground")
    assert read(kubectl, "rev,rt,cfg,deploy")["items"] == []
    until(lambda: refuses(url))


def test_traffic_is_split_by_weight_and_tags_have_hosts_of_their_own(kubectl: Kubectl, namespace: str) -> None:
    apply(kubectl, kservice("s", "one"))
    url_of(kubectl, "ksvc", "s")
    traffic = [
        {"revisionName": "s-00001", "percent": 75, "tag": "old"},
        {"latestRevision": True, "percent": 25, "tag": "new"},
    ]
    apply(kubectl, kservice("s", "two", traffic=traffic))
    url = url_of(kubectl, "ksvc", "s")
    until(lambda: len(read(kubectl, "ksvc", "s")["status"]["traffic"]) == 2)
    with Load(url, clients=2, pause=0) as load:
        reported = load.more(400)
    assert load.errors == []
    assert 0.20 <= reported["two"] / sum(reported.values()) <= 0.30
    assert ask(url, host=f"old-s.{namespace}.example.com")[1].startswith("one")
    assert ask(url, host=f"new-s.{namespace}.example.com")[1].startswith("two")
    tagged = {target["tag"]: target["url"] for target in read(kubectl, "ksvc", "s")["status"]["traffic"]}
    assert ask(tagged["old"])[1].startswith("one")
    assert ask(tagged["new"])[1].startswith("two")


def test_a_service_sleeps_wakes_grows_and_sleeps_again(kubectl: Kubectl, namespace: str) -> None:
    marks = {f"autoscaling.knative.dev/{name}": value for name, value in QUICK.items()}
    kubectl("apply", "-n", "knative-serving", "-f", "-", input=json.dumps(AUTOSCALER))
    apply(kubectl, kservice("s", "one", annotations=marks, containerConcurrency=1))
    url = url_of(kubectl, "ksvc", "s")

    def pods() -> int:
        return int(read(kubectl, "rev", "s-00001")["status"]["actualReplicas"])

    until(lambda: pods() == 0)
    assert ask(url) == (200, "one s-00001"), "the request that wakes it is answered"
    assert pods() == 1
    with Load(url, clients=6, pause=0, path="/slow/0.2") as load:
        until(lambda: pods() >= 3)
    assert load.errors == []
    until(lambda: pods() == 0, timeout=60)


def test_a_service_that_cannot_wake_for_want_of_its_folder_says_so_and_wakes_once_it_is_back(
    kubectl: Kubectl, namespace: str, tmp_path: Path
) -> None:
    marks = {f"autoscaling.knative.dev/{name}": value for name, value in QUICK.items()}
    kubectl("apply", "-n", "knative-serving", "-f", "-", input=json.dumps(AUTOSCALER))
    model = tmp_path / "model"
    model.mkdir()
    service = kservice("s", "one", annotations=marks)
    spec = service["spec"]["template"]["spec"]
    spec["volumes"] = [{"name": "model", "hostPath": {"path": str(model), "type": "Directory"}}]
    spec["containers"][0]["volumeMounts"] = [{"name": "model", "mountPath": "/model"}]
    apply(kubectl, service)
    url = url_of(kubectl, "ksvc", "s")
    until(lambda: read(kubectl, "rev", "s-00001")["status"]["actualReplicas"] == 0)
    model.rmdir()
    status, text = ask(url)
    said = f'FailedMount: MountVolume.SetUp failed for volume "model" : hostPath type check failed: {model}'
    assert (status, json.loads(text)["error"].startswith(said)) == (503, True), text
    until(lambda: _reason(kubectl) == "FailedMount")
    model.mkdir()
    until(lambda: ask(url) == (200, "one s-00001"))
    until(lambda: _reason(kubectl) == "")


def _reason(kubectl: Kubectl) -> str:
    """Why the revision is not ready; empty if it is."""
    conditions = read(kubectl, "rev", "s-00001")["status"]["conditions"]
    ready = next(one for one in conditions if one["type"] == "Ready")
    return "" if ready["status"] == "True" else str(ready.get("reason"))


def refuses(url: str) -> bool:
    """Whether nobody listens there."""
    try:
        ask(url)
    except ConnectionError:
        return True
    return False


def gateway_pids(data: Path) -> set[int]:
    return {int(word) for word in (data / "gateway" / "pids").read_text().split()}


def test_a_gateway_that_is_killed_comes_back_and_the_others_go_on(
    kubectl: Kubectl, namespace: str, platform_data: Path
) -> None:
    apply(kubectl, kservice("s", "one"))
    url = url_of(kubectl, "ksvc", "s")
    before = gateway_pids(platform_data)
    assert len(before) >= 2
    with Load(url, clients=8) as load:
        load.more(50)
        victim = min(before)
        os.kill(victim, signal.SIGKILL)
        until(lambda: len(gateway_pids(platform_data) - {victim}) == len(before))
        load.more(200)
    assert len(load.errors) <= 8, "only what was under way in that process"
    with Load(url, clients=8) as later:
        later.more(100)
    assert later.errors == []


def test_places_that_killed_gateways_held_are_free_again(kubectl: Kubectl, namespace: str, platform_data: Path) -> None:
    marks = {"autoscaling.knative.dev/max-scale": "1"}
    apply(kubectl, kservice("s", "one", annotations=marks, containerConcurrency=1))
    url = url_of(kubectl, "ksvc", "s")
    victims = gateway_pids(platform_data)
    with Load(url, clients=1, path="/slow/1"):
        until(lambda: is_full(url))
        for pid in victims:
            os.kill(pid, signal.SIGKILL)
        until(lambda: len(gateway_pids(platform_data) - victims) == len(victims))
    until(lambda: answers(url))


def is_full(url: str) -> bool:
    """The only place is taken: another request finds none within the time it has."""
    try:
        ask(url, timeout=0.3)
    except OSError:
        return True
    return False


def answers(url: str) -> bool:
    try:
        return ask(url, timeout=5)[0] == 200
    except OSError:
        return False


def lives(pid: str) -> bool:
    """A dead process whose new parent has not looked yet does not count."""
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"


def test_requests_go_on_while_the_control_plane_is_dead(tmp_path: Path, kubectl_binary: str) -> None:
    data = tmp_path / "own"
    pdc("up", "--data", str(data))
    try:
        environment = {**os.environ, "KUBECONFIG": str(data / "kubeconfig")}

        def kubectl(*args: str, input: str | None = None, timeout: float = 60) -> Completed:
            return subprocess.run(
                [kubectl_binary, *args],
                env=environment,
                input=input,
                timeout=timeout,
                capture_output=True,
                text=True,
                check=True,
            )

        apply(kubectl, kservice("s", "one"))
        url = url_of(kubectl, "ksvc", "s")
        gateways = (data / "gateway" / "pids").read_text()
        conditions = read(kubectl, "rt", "s")["status"]["conditions"]
        with Load(url) as load:
            load.more(20)
            os.kill(json.loads(pdc("status", "--data", str(data), "-o", "json").stdout)["pid"], signal.SIGKILL)
            load.more(100)
            pdc("up", "--data", str(data))
            load.more(50)
            until(lambda: read(kubectl, "ksvc", "s")["status"]["url"] == url)
        assert load.errors == []
        assert (data / "gateway" / "pids").read_text() == gateways, "they were found again, not started anew"
        assert read(kubectl, "rt", "s")["status"]["conditions"] == conditions, "it was ready all the time"
    finally:
        pdc("down", "--data", str(data))
    assert [pid for pid in gateways.split() if lives(pid)] == []


OUTSIDE = """
apiVersion: v1
kind: Service
metadata: {name: outside}
spec: {type: NodePort, ports: [{port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: outside-1, labels: {kubernetes.io/service-name: outside}}
addressType: IPv4
ports: [{port: 80}]
endpoints: [{addresses: [10.1.2.3]}]
"""


def test_the_addresses_of_services_take_connections_once_the_platform_is_said_to_be_ready(
    tmp_path: Path, kubectl_binary: str
) -> None:
    data = tmp_path / "own"
    pdc("up", "--data", str(data))
    try:

        def kubectl(*args: str, input: str | None = None, timeout: float = 60) -> Completed:
            environment = {**os.environ, "KUBECONFIG": str(data / "kubeconfig")}
            command = [kubectl_binary, *args]
            return subprocess.run(
                command, env=environment, input=input, timeout=timeout, capture_output=True, text=True, check=True
            )

        apply(kubectl, kservice("s", "one"))
        url = url_of(kubectl, "ksvc", "s")
        kubectl("apply", "-f", "-", input=OUTSIDE)
        node_port = read(kubectl, "svc", "outside")["spec"]["ports"][0]["nodePort"]
        pdc("down", "--data", str(data))
        pdc("up", "--data", str(data))
        for port in (int(url.rpartition(":")[2]), node_port):
            socket.create_connection(("127.0.0.1", port), timeout=30).close()
    finally:
        pdc("down", "--data", str(data))


def test_a_revision_that_cannot_start_fails_with_the_reason(kubectl: Kubectl, namespace: str) -> None:
    broken = kservice("s", "one")
    broken["spec"]["template"]["spec"]["containers"][0] = {"image": "nobody/has-this:1"}
    apply(kubectl, broken)
    kubectl("wait", "--for=condition=Ready=False", "ksvc/s", "--timeout=60s")
    condition = next(c for c in read(kubectl, "ksvc", "s")["status"]["conditions"] if c["type"] == "Ready")
    assert "nobody/has-this:1" in condition["message"]


def test_a_request_that_wakes_a_service_whose_program_now_fails_is_answered_with_the_reason(
    kubectl: Kubectl, namespace: str
) -> None:
    marks = {f"autoscaling.knative.dev/{name}": value for name, value in QUICK.items()}
    kubectl("apply", "-n", "knative-serving", "-f", "-", input=json.dumps(AUTOSCALER))
    service = kservice("s", "one", annotations=marks)
    container = service["spec"]["template"]["spec"]["containers"][0]
    line = 'if [ "$DAMAGED" ]; then echo "$DAMAGED" >/dev/termination-log; exit 2; fi; exec "$@"'
    container["command"] = ["sh", "-c", line, "sh", *container["command"]]
    source = {"configMapKeyRef": {"name": "model", "key": "damaged", "optional": True}}
    container["env"] = [{"name": "DAMAGED", "valueFrom": source}]
    apply(kubectl, service)
    url = url_of(kubectl, "ksvc", "s")
    until(lambda: read(kubectl, "rev", "s-00001")["status"]["actualReplicas"] == 0)
    kubectl("create", "configmap", "model", "--from-literal=damaged=the model is damaged")
    status, text = ask(url, timeout=120)
    assert status == 503
    assert "the model is damaged" in json.loads(text)["error"]
    kubectl("delete", "configmap", "model")
    until(lambda: ask(url, timeout=120)[0] == 200, timeout=120)


def test_what_knatives_webhook_refuses_is_refused_in_its_words(kubectl: Kubectl, namespace: str) -> None:
    bad = kservice("s", "one", containerConcurrency=1001)
    refused = kubectl("apply", "-f", "-", input=json.dumps(bad), check=False)
    assert refused.returncode != 0
    assert "expected 0 <= 1001 <= 1000: spec.template.spec.containerConcurrency" in refused.stderr
