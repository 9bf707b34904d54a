"""The machine under real kubectl, as its users know it from clusters: run, create, logs, exec, cp, port-forward, top,
rollout, cordon and drain. On its own platform with two nodes, because some of it empties nodes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import Kubectl, Target, pdc, until

QUICK = "--timeout=60s"
FOREVER = "trap 'exit 0' TERM; while :; do sleep 0.05; done"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    data = tmp_path_factory.mktemp("machine")
    pdc("up", "--data", str(data), "--port", "0", "--nodes", "2", "--kubeconfig", str(data / "own"))
    yield Target(data / "kubeconfig", embedded=True)
    pdc("down", "--data", str(data))


def apply_pod(kubectl: Kubectl, name: str, *containers: Any, **spec: Any) -> None:
    body = {"containers": list(containers), "terminationGracePeriodSeconds": 1, **spec}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}}, "spec": body}
    kubectl("apply", "-f", "-", input=json.dumps(pod))


def container(name: str, script: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "image": "busybox", "command": ["sh", "-c", script], **fields}


def path(kubectl: Kubectl, what: str, jsonpath: str) -> str:
    return kubectl("get", *what.split(), "-o", f"jsonpath={jsonpath}").stdout


# --- run and create ---


def test_run_starts_a_pod_with_what_the_flags_say(kubectl: Kubectl) -> None:
    kubectl(
        "run", "web", "--image=busybox", "--labels=tier=front", "--env=GREETING=hello", "--port=8080",
        "--command", "--", "sh", "-c", f'echo "$GREETING from $HOSTNAME"; {FOREVER}',
    )  # fmt: skip
    kubectl("wait", "pod/web", "--for=condition=Ready", QUICK)
    until(lambda: kubectl("logs", "web").stdout == "hello from web\n")
    assert path(kubectl, "pods -l tier=front", "{.items[*].metadata.name}") == "web"
    assert path(kubectl, "pod web", "{.spec.containers[0].ports[0].containerPort}") == "8080"


def test_run_rm_hands_input_output_and_exit_code_through(kubectl: Kubectl) -> None:
    once = ("run", "-i", "--rm", "--quiet", "--restart=Never", "--image=busybox")
    done = kubectl(*once, "upper", "--command", "--", "tr", "a-z", "A-Z", input="shout\n")
    assert done.stdout == "SHOUT\n"
    failed = kubectl(*once, "bad", "--command", "--", "sh", "-c", "cat; exit 7", input="", check=False)
    assert failed.returncode == 7
    assert path(kubectl, "pods", "{.items[*].metadata.name}") == ""


def test_create_job_runs_to_its_end(kubectl: Kubectl) -> None:
    kubectl("create", "job", "sums", "--image=busybox", "--", "sh", "-c", "echo $((6 * 7))")
    kubectl("wait", "job/sums", "--for=condition=complete", QUICK)
    assert kubectl("logs", "job/sums").stdout == "42\n"
    assert path(kubectl, "job sums", "{.status.succeeded}") == "1"


def test_a_deployment_is_rolled_out_restarted_and_rolled_back(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "shop", "--image=busybox", "--replicas=2", "--", "sh", "-c", f"echo v1; {FOREVER}")
    assert "successfully rolled out" in kubectl("rollout", "status", "deploy/shop", QUICK).stdout
    first = set(path(kubectl, "pods -l app=shop", "{.items[*].metadata.uid}").split())
    assert len(first) == 2

    kubectl("rollout", "restart", "deploy/shop")
    kubectl("rollout", "status", "deploy/shop", QUICK)
    until(lambda: not first & set(path(kubectl, "pods -l app=shop", "{.items[*].metadata.uid}").split()))

    kubectl("set", "image", "deploy/shop", "busybox=example.com/no/such:v2")
    assert kubectl("rollout", "history", "deploy/shop").stdout.split()[-2] == "3"
    kubectl("rollout", "undo", "deploy/shop", "--to-revision=1")
    kubectl("rollout", "status", "deploy/shop", QUICK)
    assert path(kubectl, "deploy shop", "{.spec.template.spec.containers[0].image}") == "busybox"
    until(lambda: kubectl("logs", "deploy/shop").stdout == "v1\n")


# --- logs ---


@pytest.fixture
def talkative(kubectl: Kubectl) -> str:
    """Two containers that ended, after one that prepared them."""
    apply_pod(
        kubectl,
        "talk",
        container("one", "echo one 1; echo one 2; echo one 3"),
        container("two", "echo two 1; echo two err >&2"),
        initContainers=[container("prepare", "echo prepared")],
        restartPolicy="Never",
    )
    kubectl("wait", "pod/talk", "--for=jsonpath={.status.phase}=Succeeded", QUICK)
    return "talk"


def test_logs_in_all_forms(kubectl: Kubectl, talkative: str) -> None:
    table: list[tuple[list[str], list[str]]] = [
        (["talk", "-c", "one"], ["one 1", "one 2", "one 3"]),
        (["talk", "-c", "prepare"], ["prepared"]),
        (["talk", "-c", "one", "--tail=2"], ["one 2", "one 3"]),
        (["talk", "-c", "one", "--tail=0"], []),
        (["talk", "-c", "one", "--limit-bytes=5"], ["one 1"]),
        (["talk", "-c", "one", "--since=1h"], ["one 1", "one 2", "one 3"]),
        (["talk", "-c", "one", "--since-time=2099-01-01T00:00:00Z"], []),
        (["talk", "-c", "one", "-f"], ["one 1", "one 2", "one 3"]),
        (["talk", "--all-containers"], ["one 1", "one 2", "one 3", "prepared", "two 1", "two err"]),
        (["-l", "app=talk", "-c", "two"], ["two 1", "two err"]),
        (["-l", "app=talk", "-c", "one", "--tail=1"], ["one 3"]),
        (["-l", "app=talk", "-c", "one", "--prefix", "--tail=1"], ["[pod/talk/one] one 3"]),
        (["pod/talk", "-c", "two", "--prefix", "--tail=1"], ["[pod/talk/two] two err"]),
    ]
    for arguments, lines in table:
        printed = kubectl("logs", *arguments).stdout.splitlines()
        assert (sorted(printed) if "--all-containers" in arguments else printed) == lines, arguments
    stamped = kubectl("logs", "talk", "-c", "one", "--timestamps", "--tail=1").stdout
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z one 3\n", stamped), stamped


def test_logs_that_are_not_there_are_refused_with_the_reason(kubectl: Kubectl, talkative: str) -> None:
    table = [
        (["talk"], 0, "Defaulted container"),
        (["talk", "-c", "three"], 1, "container three is not valid for pod talk"),
        (["talk", "-c", "one", "--previous"], 1, 'previous terminated container "one" in pod "talk" not found'),
        (["nobody"], 1, 'pods "nobody" not found'),
    ]
    for arguments, code, words in table:
        done = kubectl("logs", *arguments, check=False)
        assert (done.returncode, words in done.stderr) == (code, True), (arguments, done.stderr)


def test_logs_of_the_run_before_the_last(kubectl: Kubectl) -> None:
    """The count is kept where it survives the restart: in a volume of the pod."""
    count = 'n=$(cat /v/n 2>/dev/null || echo 0); echo $((n + 1)) > /v/n; echo "run $n"; test $n -gt 0 || exit 3; '
    again = container("main", count + FOREVER, volumeMounts=[{"name": "v", "mountPath": "/v"}])
    apply_pod(kubectl, "again", again, volumes=[{"name": "v", "emptyDir": {}}])
    until(lambda: path(kubectl, "pod again", "{.status.containerStatuses[0].restartCount}") == "1")
    kubectl("wait", "pod/again", "--for=condition=Ready", QUICK)
    assert kubectl("logs", "again", "--previous").stdout == "run 0\n"
    until(lambda: kubectl("logs", "again").stdout == "run 1\n")


def test_followed_logs_come_while_the_pod_runs_and_end_with_it(
    kubectl: Kubectl, kubectl_binary: str, namespace: str, server: Target, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    gate.mkdir()
    wait = container("main", "echo first; until [ -e /gate/open ]; do sleep 0.02; done; echo last",
                     volumeMounts=[{"name": "gate", "mountPath": "/gate"}])  # fmt: skip
    volume = {"name": "gate", "hostPath": {"path": str(gate)}}
    apply_pod(kubectl, "slow", wait, volumes=[volume], restartPolicy="Never")
    kubectl("wait", "pod/slow", "--for=condition=Ready", QUICK)
    follower = subprocess.Popen(
        [kubectl_binary, "-n", namespace, "logs", "-f", "-l", "app=slow"], stdout=subprocess.PIPE, text=True,
        env=server.env,
    )  # fmt: skip
    with follower:
        assert follower.stdout is not None
        assert follower.stdout.readline() == "first\n"
        (gate / "open").touch()
        assert follower.stdout.read() == "last\n"
    assert follower.returncode == 0


# --- inside pods ---


@pytest.fixture
def pod(kubectl: Kubectl) -> str:
    serve = "mkdir -p /tmp/www; echo hello > /tmp/www/index.html; exec python3 -m http.server -d /tmp/www 8080"
    ready = {"tcpSocket": {"port": 8080}}
    apply_pod(kubectl, "box", container("web", serve, readinessProbe=ready), container("side", FOREVER))
    kubectl("wait", "pod/box", "--for=condition=Ready", QUICK)
    return "box"


def test_exec_runs_beside_the_container(kubectl: Kubectl, pod: str) -> None:
    assert kubectl("exec", pod, "-c", "web", "--", "cat", "/tmp/www/index.html").stdout == "hello\n"
    assert kubectl("exec", "-i", pod, "-c", "side", "--", "wc", "-c", input="12345").stdout.split() == ["5"]
    failed = kubectl("exec", pod, "-c", "side", "--", "sh", "-c", "echo sorry >&2; exit 9", check=False)
    assert (failed.returncode, failed.stderr.splitlines()[0]) == (9, "sorry")
    assert "container nobody is not valid" in kubectl("exec", pod, "-c", "nobody", "--", "true", check=False).stderr
    unknown = kubectl("exec", pod, "-c", "side", "--", "no-such-program", check=False)
    assert unknown.returncode != 0
    assert "no-such-program" in unknown.stderr


def test_cp_carries_trees_both_ways(kubectl: Kubectl, pod: str, tmp_path: Path) -> None:
    tree = tmp_path / "tree" / "deep"
    tree.mkdir(parents=True)
    (tree / "data").write_bytes(os.urandom(100_000))
    kubectl("cp", str(tmp_path / "tree"), f"{pod}:/tmp/there", "-c", "side")
    kubectl("cp", f"{pod}:/tmp/there/deep/data", str(tmp_path / "back"), "-c", "side")
    assert (tmp_path / "back").read_bytes() == (tree / "data").read_bytes()


@pytest.mark.parametrize("target", ["pod/box", "service/box"])
def test_port_forward_reaches_the_pod(
    kubectl: Kubectl, kubectl_binary: str, namespace: str, server: Target, pod: str, target: str
) -> None:
    if target.startswith("service"):
        kubectl("expose", "pod", pod, "--port=80", "--target-port=8080")
    port = "80" if target.startswith("service") else "8080"
    command = [kubectl_binary, "-n", namespace, "port-forward", target, f":{port}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=server.env) as forwarding:
        try:
            assert forwarding.stdout is not None
            found = re.search(r"127\.0\.0\.1:(\d+) ->", forwarding.stdout.readline())
            assert found is not None
            with urllib.request.urlopen(f"http://127.0.0.1:{found[1]}/", timeout=20) as answer:
                assert answer.read() == b"hello\n"
        finally:
            forwarding.terminate()


def test_debug_runs_a_further_container_in_a_running_pod(kubectl: Kubectl, pod: str) -> None:
    kubectl("debug", pod, "--image=busybox", "--container=look", "--", "sh", "-c", "exit 7")
    ended = "jsonpath={.status.ephemeralContainerStatuses[0].state.terminated.exitCode}=7"
    kubectl("wait", f"pod/{pod}", f"--for={ended}", QUICK)
    assert kubectl("get", "pod", pod, "-o=jsonpath={.status.phase}").stdout == "Running"


def test_top_shows_who_is_busy(kubectl: Kubectl) -> None:
    apply_pod(kubectl, "busy", container("main", "while :; do :; done"))
    apply_pod(kubectl, "idle", container("main", FOREVER))
    kubectl("wait", "pod", "--all", "--for=condition=Ready", QUICK)

    def usage() -> dict[str, int]:
        done = kubectl("top", "pod", "--containers", "--no-headers", check=False)
        rows = [line.split() for line in done.stdout.splitlines()]
        return {row[0]: int(row[2].removesuffix("m")) for row in rows}

    until(lambda: usage().get("busy", 0) > 100 and "idle" in usage())
    assert usage()["idle"] < usage()["busy"]
    assert len(kubectl("top", "node", "--no-headers").stdout.splitlines()) == 2


# --- nodes ---


def node_of(kubectl: Kubectl, pods: str = "") -> set[str]:
    return set(path(kubectl, f"pods {pods}", "{.items[*].spec.nodeName}").split())


def names(kubectl: Kubectl) -> list[str]:
    return sorted(path(kubectl, "nodes", "{.items[*].metadata.name}").split())


def test_a_cordoned_node_takes_no_pods(kubectl: Kubectl) -> None:
    closed, open_ = names(kubectl)
    kubectl("cordon", closed)
    try:
        assert "SchedulingDisabled" in kubectl("get", "node", closed).stdout
        kubectl("create", "deployment", "away", "--image=busybox", "--replicas=3", "--", "sh", "-c", FOREVER)
        kubectl("rollout", "status", "deploy/away", QUICK)
        assert node_of(kubectl) == {open_}
    finally:
        kubectl("uncordon", closed)


def test_a_drained_node_is_empty_and_its_pods_run_elsewhere(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "moving", "--image=busybox", "--replicas=4", "--", "sh", "-c", FOREVER)
    kubectl("rollout", "status", "deploy/moving", QUICK)
    emptied, other = names(kubectl)
    try:
        drained = kubectl("drain", emptied, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=60s")
        assert f"node/{emptied} drained" in drained.stdout
        kubectl("rollout", "status", "deploy/moving", QUICK)
        assert node_of(kubectl) == {other}
    finally:
        kubectl("uncordon", emptied)


def test_a_tainted_node_is_for_those_who_tolerate_it(kubectl: Kubectl) -> None:
    tainted, other = names(kubectl)
    kubectl("taint", "node", tainted, "for=gpu:NoSchedule")
    try:
        apply_pod(kubectl, "plain", container("main", FOREVER))
        toleration = {"key": "for", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"}
        there = {"kubernetes.io/hostname": tainted}
        apply_pod(kubectl, "special", container("main", FOREVER), tolerations=[toleration], nodeSelector=there)
        kubectl("wait", "pod", "--all", "--for=condition=Ready", QUICK)
        assert (node_of(kubectl, "-l app=plain"), node_of(kubectl, "-l app=special")) == ({other}, {tainted})
        kubectl("taint", "node", tainted, "for=gpu:NoExecute")
        until(lambda: "special" not in path(kubectl, "pods", "{.items[*].metadata.name}"))
    finally:
        kubectl("taint", "node", tainted, "for-")


def test_describe_shows_the_life_of_a_pod(kubectl: Kubectl) -> None:
    apply_pod(kubectl, "ill", container("main", "exit 3"))
    until(lambda: "CrashLoopBackOff" in kubectl("get", "pod", "ill").stdout)
    until(lambda: "restarting failed container" in kubectl("describe", "pod", "ill").stdout)
    text = kubectl("describe", "pod", "ill").stdout
    assert re.search(r"Reason:\s+CrashLoopBackOff", text)
    assert re.search(r"Exit Code:\s+3", text)
