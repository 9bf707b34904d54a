"""The base cluster does what a cluster does: it schedules, runs, limits, probes, resolves, routes and answers."""

from __future__ import annotations

import json
import urllib.request

import pytest

from harness import Kubectl

pytestmark = pytest.mark.core

WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: web
        image: busybox:1.36
        command: [sh, -c, 'mkdir /www; hostname > /www/index.html; exec httpd -f -p 8080 -h /www']
        readinessProbe: {httpGet: {path: /, port: 8080}, periodSeconds: 1}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
"""


def pod(name: str, *command: str, **container: object) -> str:
    """A pod that runs one command and ends."""
    main = {"name": "main", "image": "busybox", "command": list(command), **container}
    spec = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [main]}
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})


def finish(kubectl: Kubectl, name: str, phase: str = "Succeeded") -> str:
    """The log of a pod once it is over."""
    kubectl("wait", "--for", f"jsonpath={{.status.phase}}={phase}", f"pod/{name}", "--timeout=60s", timeout=70)
    return kubectl("logs", name).stdout


def test_a_pod_runs_and_its_log_can_be_read(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", input=pod("hello", "echo", "hello from a container"))
    assert finish(kubectl, "hello") == "hello from a container\n"


def test_a_command_can_be_run_in_a_running_pod(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", input=pod("sleeper", "sleep", "60"))
    kubectl("wait", "--for=condition=Ready", "pod/sleeper", "--timeout=60s", timeout=70)
    assert kubectl("exec", "sleeper", "--", "cat", "/etc/hostname").stdout == "sleeper\n"


def test_a_service_answers_by_its_name_from_inside_and_by_its_address_from_the_tests(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", input=WEB)
    kubectl("rollout", "status", "deployment/web", "--timeout=60s", timeout=70)
    kubectl("create", "-f", "-", input=pod("client", "timeout", "10", "wget", "-qO-", "http://web"))
    names = kubectl("get", "pods", "-l", "app=web", "-o", "jsonpath={.items[*].metadata.name}").stdout.split()
    assert finish(kubectl, "client").strip() in names
    address = kubectl("get", "service", "web", "-o", "jsonpath={.spec.clusterIP}").stdout
    with urllib.request.urlopen(f"http://{address}/", timeout=10) as answer:
        assert answer.read().decode().strip() in names


def test_limits_reach_the_kernel(kubectl: Kubectl) -> None:
    files = ["/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "/sys/fs/cgroup/memory/memory.limit_in_bytes"]
    newer = ["/sys/fs/cgroup/cpu.max", "/sys/fs/cgroup/memory.max"]
    script = f"cat {' '.join(files)} 2>/dev/null || cat {' '.join(newer)}"
    limits = {"limits": {"cpu": "200m", "memory": "64Mi"}}
    kubectl("create", "-f", "-", input=pod("limited", "sh", "-c", script, resources=limits))
    assert finish(kubectl, "limited").split() in (["20000", "67108864"], ["20000", "100000", "67108864"])


def test_a_pod_over_its_memory_is_killed_and_says_why(kubectl: Kubectl) -> None:
    greedy = ("dd", "if=/dev/zero", "of=/dev/null", "bs=200M", "count=5")
    kubectl("create", "-f", "-", input=pod("greedy", *greedy, resources={"limits": {"memory": "50Mi"}}))
    finish(kubectl, "greedy", "Failed")
    ended = json.loads(kubectl("get", "pod", "greedy", "-o", "json").stdout)["status"]["containerStatuses"][0]["state"]
    assert (ended["terminated"]["reason"], ended["terminated"]["exitCode"]) == ("OOMKilled", 137)


def test_an_image_nobody_offers_is_refused_in_the_words_of_the_registry(kubectl: Kubectl) -> None:
    missing = pod("missing", "true", image="example.org/none:1", imagePullPolicy="Always")
    kubectl("create", "-f", "-", input=missing)
    reason = "{.status.containerStatuses[0].state.waiting.reason}"
    kubectl("wait", "--for", f"jsonpath={reason}=ErrImagePull", "pod/missing", "--timeout=60s", timeout=70)
    message = kubectl("get", "pod", "missing", "-o", "jsonpath={.status.containerStatuses[0].state.waiting.message}")
    assert "example.org/none:1: not found" in message.stdout


def test_a_service_account_may_do_nothing_until_it_is_allowed(kubectl: Kubectl, namespace: str) -> None:
    who = f"system:serviceaccount:{namespace}:default"
    assert kubectl("auth", "can-i", "list", "pods", "--as", who, check=False).stdout.strip() == "no"
    kubectl("create", "rolebinding", "reader", "--clusterrole=view", f"--serviceaccount={namespace}:default")
    assert kubectl("auth", "can-i", "list", "pods", "--as", who).stdout.strip() == "yes"


def test_pods_get_a_token_of_their_own(kubectl: Kubectl) -> None:
    folder = "/var/run/secrets/kubernetes.io/serviceaccount"
    kubectl("create", "-f", "-", input=pod("token", "sh", "-c", f"cut -c1-3 {folder}/token; ls {folder}"))
    assert finish(kubectl, "token").split() == ["eyJ", "ca.crt", "namespace", "token"]
