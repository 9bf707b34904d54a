"""Verdicts: one table from what a cluster wrote down to the sentence a user reads."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.api import mounts
from paddlecloud.api.names import ENDPOINT
from paddlecloud.cli.objects import outcome
from paddlecloud.cli.objects.members import member
from paddlecloud.cli.objects.why import why
from paddlecloud.cli.phrases import PHRASES, preferred
from paddlecloud.cli.render import description
from paddlecloud.cli.render.events import rows

NOW = 1_800_000_000.0


def pod(name: str = "p", *, spec: dict[str, Any] | None = None, **status: Any) -> dict[str, Any]:
    return {
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"nodeName": "n1"} if spec is None else spec,
        "status": status,
    }


def container(**state: Any) -> list[dict[str, Any]]:
    return [{"name": "main", "restartCount": 3, **state}]


def restarted(phase: str, *, actions: list[str], **counts: int) -> dict[str, Any]:
    failure = {"time": "2027-01-15T07:59:00Z", "pod": "x", "failureClass": "OOM"}
    failures = [{**failure, "action": action} for action in actions]
    status = {"phase": phase, "failures": failures, **counts}
    return {"kind": "PaddleJob", "metadata": {"name": "x"}, "status": status}


UNSCHEDULABLE = [
    {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes: 3 too few GPUs"}
]

PODS = [
    (pod(phase="Running", containerStatuses=container(ready=True)), "ok", "running"),
    (pod(phase="Succeeded"), "ok", "finished: every container ended with exit code 0"),
    (
        pod(phase="Pending", spec={}, conditions=UNSCHEDULABLE),
        "waiting",
        "no node can take it: 0/3 nodes: 3 too few GPUs",
    ),
    (pod(phase="Pending", spec={}), "waiting", "waiting for the scheduler"),
    (pod(phase="Pending"), "waiting", "starting on node n1"),
    (pod(phase="Pending", spec={"schedulingGates": [{"name": "g"}]}), "waiting", "held back by scheduling gates: g"),
    (
        pod(
            phase="Pending",
            containerStatuses=container(state={"waiting": {"reason": "ImagePullBackOff", "message": "no\nsuch"}}),
        ),
        "failed",
        "container main waits: ImagePullBackOff: no; such",
    ),
    (
        pod(phase="Pending", containerStatuses=container(state={"waiting": {"reason": "ContainerCreating"}})),
        "waiting",
        "starting on node n1",
    ),
    (
        pod(
            phase="Running",
            containerStatuses=container(
                state={"waiting": {"reason": "CrashLoopBackOff"}},
                lastState={"terminated": {"exitCode": 1, "reason": "Error"}},
            ),
        ),
        "failed",
        "container main ended with exit code 1, restarted 3 times",
    ),
    (
        pod(
            phase="Failed", containerStatuses=container(state={"terminated": {"exitCode": 137, "reason": "OOMKilled"}})
        ),
        "failed",
        "container main ended with exit code 137 (OOMKilled)",
    ),
    (pod(phase="Failed", reason="Evicted", message="disk"), "failed", "failed: Evicted: disk"),
    (pod(phase="Running", containerStatuses=container(ready=False)), "waiting", "running, but not ready: main"),
]


@pytest.mark.parametrize(("obj", "state", "text"), PODS, ids=[text for _, _, text in PODS])
def test_pods(obj: dict[str, Any], state: str, text: str) -> None:
    verdict = why(obj, now=NOW)
    assert (verdict.state, verdict.text) == (state, text)


def job(phase: str = "", *, conditions: list[dict[str, Any]] | None = None, **status: Any) -> dict[str, Any]:
    body = {"phase": phase, "conditions": conditions or [], **status}
    return {"kind": "PaddleJob", "metadata": {"name": "j"}, "spec": {}, "status": body}


OTHERS = [
    (job("Completed"), "ok", "succeeded"),
    (job("Failed", message="rank 1 ran out of memory"), "failed", "failed: rank 1 ran out of memory"),
    (job("Running"), "ok", "Running"),
    (job("Running", reason="Running"), "ok", "Running"),
    (job("Pending", message="queue is full"), "waiting", "Pending: queue is full"),
    (job("Suspended"), "waiting", "suspended: it has no pods until it is resumed"),
    (job("Pending", conditions=UNSCHEDULABLE), "waiting", "no node can take it: 0/3 nodes: 3 too few GPUs"),
    (
        job("", conditions=[{"type": "Available", "status": "False", "reason": "Min", "message": "1 of 2"}]),
        "waiting",
        "Available is False: Min: 1 of 2",
    ),
    (
        job(
            "Running", conditions=[{"type": "Valid", "status": "False", "reason": "SecretNotGranted", "message": "ask"}]
        ),
        "waiting",
        "Valid is False: SecretNotGranted: ask",
    ),
    (
        job("Suspended", conditions=[{"type": "Valid", "status": "False", "reason": "InvalidSpec"}, *UNSCHEDULABLE]),
        "waiting",
        "Valid is False: InvalidSpec",
    ),
    (job("", conditions=[{"type": "Ready", "status": "True"}]), "ok", "ready"),
    (
        job("", conditions=[{"type": "DiskPressure", "status": "True"}]),
        "waiting",
        "DiskPressure is True: no reason given",
    ),
    ({"kind": "ConfigMap", "metadata": {"name": "c"}}, "ok", "nothing stands in its way"),
    (
        {"kind": "ReplicaSet", "metadata": {"name": "r"}, "spec": {"replicas": 3}, "status": {"readyReplicas": 1}},
        "waiting",
        "1 of 3 replicas are ready",
    ),
    (
        {"kind": "Node", "metadata": {"name": "n"}, "spec": {"unschedulable": True}},
        "waiting",
        "cordoned: takes no new pods",
    ),
    (
        {"kind": "X", "metadata": {"name": "x", "deletionTimestamp": "2027-01-15T07:55:00Z", "finalizers": ["a/b"]}},
        "deleting",
        "being deleted (for 5m); held by finalizers: a/b",
    ),
    (
        {
            "kind": "PaddleJob",
            "metadata": {"name": "x"},
            "status": {
                "phase": "Running",
                "restarts": 1,
                "disruptions": 1,
                "failures": [{"time": "2027-01-15T07:59:00Z", "pod": "x-worker-0", "failureClass": "Deleted"}],
            },
        },
        "ok",
        "Running; restarts: 1, and 1 that are not counted as retries, the last 60s ago after x-worker-0: Deleted",
    ),
    (
        restarted("Running", restarts=1, actions=["Restart"]),
        "ok",
        "Running; restarts: 1, the last 60s ago after x: OOM",
    ),
    (
        restarted("Running", disruptions=1, actions=["Restart", "Ignore"]),
        "ok",
        "Running; restarts: 0, and 2 that are not counted as retries, the last 60s ago after x: OOM",
    ),
    (
        restarted("Completed", restarts=2, actions=["Restart", "Restart"]),
        "ok",
        "succeeded; restarts: 2, the last 60s ago after x: OOM",
    ),
    (restarted("Completed", actions=[]), "ok", "succeeded"),
    (
        {
            "kind": "SampleSet",
            "metadata": {"name": "x", "deletionTimestamp": "2027-01-15T07:55:00Z", "finalizers": ["a/b"]},
            "status": {
                "conditions": [{"type": "InUse", "status": "True", "message": "deletion waits for Pod p to end"}]
            },
        },
        "deleting",
        "being deleted (for 5m): deletion waits for Pod p to end",
    ),
]


@pytest.mark.parametrize(("obj", "state", "text"), OTHERS, ids=[text for _, _, text in OTHERS])
def test_other_kinds(obj: dict[str, Any], state: str, text: str) -> None:
    verdict = why(obj, now=NOW)
    assert (verdict.state, verdict.text) == (state, text)


def test_a_waiting_owner_is_explained_by_its_pods() -> None:
    pods = [
        pod("w-0", phase="Running"),
        *(pod(f"w-{n}", phase="Pending", spec={}, conditions=UNSCHEDULABLE) for n in (1, 2)),
    ]
    verdict = why(job("Pending"), pods=pods, now=NOW)
    assert verdict.text == "Pending: w-1 is not scheduled: 0/3 nodes: 3 too few GPUs"
    assert verdict.reason == "Unschedulable"


def test_a_refused_spec_weighs_more_than_any_pod_until_the_job_has_ended() -> None:
    refused = [{"type": "Valid", "status": "False", "reason": "InvalidSpec", "message": "goes on"}]
    pods = [pod("w-1", phase="Failed", reason="Evicted")]
    verdict = why(job("Restarting", conditions=refused), pods=pods, now=NOW)
    assert (verdict.text, verdict.reason) == ("Valid is False: InvalidSpec: goes on", "InvalidSpec")
    assert why(job("Completed", conditions=refused), pods=pods, now=NOW).state == "ok"


def test_a_failed_pod_weighs_more_than_a_waiting_one() -> None:
    pods = [pod("w-0", phase="Pending", spec={}), pod("w-1", phase="Failed", reason="Evicted")]
    assert why(job("Pending"), pods=pods, now=NOW).text == "w-1: failed: Evicted"


def test_the_last_warning_is_added_where_the_state_does_not_explain_itself() -> None:
    events: list[dict[str, Any]] = [
        {"type": "Warning", "reason": "Old", "message": "x"},
        {
            "type": "Warning",
            "reason": "FailedMount",
            "message": "no such volume",
            "involvedObject": {"kind": "Pod", "name": "p"},
        },
        {"type": "Normal", "reason": "Pulled"},
    ]
    assert why(pod(phase="Pending"), events=events, now=NOW).text == (
        "starting on node n1; last warning: FailedMount: no such volume"
    )
    assert why(job("Pending"), events=events, now=NOW).text == (
        "Pending; last warning on pod/p: FailedMount: no such volume"
    )
    assert "FailedMount" not in why(pod(phase="Running"), events=events, now=NOW).text


@pytest.mark.parametrize("in_status", [True, False], ids=["the embedded kubelet", "Kubernetes' kubelet"])
def test_a_mount_that_failed_is_the_verdict_wherever_the_kubelet_reports_it(in_status: bool) -> None:
    said = mounts.sentence("data", "hostPath type check failed: /x is not a directory")
    about = {"kind": "Pod", "name": "p"}
    events = [{"type": "Warning", "reason": "FailedMount", "message": said, "involvedObject": about}]
    waiting = {"reason": "ContainerCreating", **({"message": said} if in_status else {})}
    found = why(pod(phase="Pending", containerStatuses=container(state={"waiting": waiting})), events=events, now=NOW)
    assert (found.state, found.reason) == ("failed", "FailedMount")
    assert found.text == f"container main waits: FailedMount: {said}", "and it is said once"


def test_a_program_that_a_signal_ended_is_reported_by_the_name_of_the_signal() -> None:
    ended = {"terminated": {"exitCode": 139, "reason": "Error"}}
    found = why(pod(phase="Failed", containerStatuses=container(state=ended)), now=NOW)
    assert found.text == "container main ended with exit code 139: segmentation fault (SIGSEGV)"


def test_a_job_that_ended_and_says_why_needs_no_warning_about_its_pods() -> None:
    cleared = {"type": "Warning", "reason": "DeadlineExceeded", "message": "the pod was ended with its job"}
    failed = job("Failed")
    failed["status"].update(completionTime="2026-01-01T00:00:08Z", message="worker-1 failed: OOM")
    assert "DeadlineExceeded" not in why(failed, events=[cleared], now=NOW).text


def test_verdicts_are_translated_to_chinese() -> None:
    verdict = why(pod(phase="Pending", spec={}, conditions=UNSCHEDULABLE), now=NOW, language="zh")
    assert verdict.text == "没有节点可以容纳它：0/3 nodes: 3 too few GPUs"
    assert verdict.reason == "Unschedulable"


def test_the_failure_of_a_job_is_reported_in_the_language_of_the_user() -> None:
    status = {
        "phase": "Failed",
        "reason": "UserError",
        "message": "crash-worker-1 failed: UserError (exit code 1): boom",
    }
    job = {"kind": "PaddleJob", "metadata": {"name": "crash"}, "status": status}
    assert why(job, now=NOW).text == "failed: crash-worker-1 failed: UserError (exit code 1): boom"
    assert why(job, now=NOW, language="zh").text == "已失败：crash-worker-1 失败：UserError（退出码 1）: boom"


def test_both_languages_take_the_same_values() -> None:
    import string

    for key, texts in PHRASES.items():
        fields = [{name for _, name, _, _ in string.Formatter().parse(text) if name} for text in texts]
        assert fields[0] == fields[1], key


@pytest.mark.parametrize(
    ("environment", "language"),
    [
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "zh_CN", "LC_ALL": "C"}, "en"),
        ({}, "en"),
        ({"LC_MESSAGES": "zh"}, "zh"),
    ],
)
def test_the_locale_chooses(monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], language: str) -> None:
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert preferred() == language


def deployment(**status: int) -> dict[str, Any]:
    return {"kind": "Deployment", "metadata": {"name": "d", "generation": 2}, "spec": {"replicas": 2}, "status": status}


def refused_set(reason: str, *, of: str = "Valid", phase: str = "", generation: int = 1) -> dict[str, Any]:
    entry = {"type": of, "status": "False", "reason": reason, "message": "because"}
    status = {"observedGeneration": 1, "phase": phase, "conditions": [entry]}
    return {"kind": "SampleSet", "metadata": {"name": "s", "generation": generation}, "status": status}


def refused_job(message: str) -> dict[str, Any]:
    entry = {"type": "Created", "status": "False", "reason": "FailedCreate", "message": message}
    return {"kind": "PaddleJob", "metadata": {"name": "x"}, "status": {"phase": "Pending", "conditions": [entry]}}


SETTLED: list[tuple[dict[str, Any], str | None]] = [
    (deployment(observedGeneration=2, updatedReplicas=2, availableReplicas=2, replicas=2), "ready"),
    (deployment(observedGeneration=1, updatedReplicas=2, availableReplicas=2, replicas=2), None),
    (deployment(observedGeneration=2, updatedReplicas=2, availableReplicas=2, replicas=3), None),
    (pod(phase="Running", conditions=[{"type": "Ready", "status": "True"}]), "ready"),
    (pod(phase="Running", conditions=[{"type": "Ready", "status": "False"}]), None),
    (pod(phase="Running"), None),
    (pod(phase="Failed"), "failed"),
    (job("Running"), None),
    (job("Completed"), "succeeded"),
    (job("Succeed"), "succeeded"),
    (job("Terminated"), "failed"),
    ({"kind": "Job", "metadata": {}, "status": {"conditions": [{"type": "Complete", "status": "True"}]}}, "succeeded"),
    ({"kind": "Job", "metadata": {}, "status": {"conditions": [{"type": "Failed", "status": "True"}]}}, "failed"),
    ({"kind": "PersistentVolumeClaim", "metadata": {}, "status": {"phase": "Bound"}}, "ready"),
    ({"kind": "PersistentVolumeClaim", "metadata": {}, "status": {"phase": "Pending"}}, None),
    ({"kind": "SampleSet", "metadata": {}, "status": {"phase": "SyncFailed"}}, "failed"),
    ({"kind": "SampleSet", "metadata": {"generation": 2}, "status": {"phase": "SyncFailed"}}, None),
    ({"kind": "SampleSet", "metadata": {}}, None),
    (refused_set("InvalidSpec"), "refused"),
    (refused_set("InvalidSpec", phase="Ready"), "refused"),
    (refused_set("InvalidSpec", generation=2), None),
    (refused_set("SourceIsFile"), "refused"),
    (refused_set("FolderNotAllowed"), "refused"),
    (refused_set("DataRetained"), "refused"),
    (refused_set("BadOptions", of="Synced"), "refused"),
    (refused_set("SourceNotExist"), "refused"),
    (refused_set("SecretNotExist"), None),
    (refused_job('create Pod x-worker-0: Pod "x-worker-0" is invalid: spec.containers[0]: 1Gb'), "refused"),
    (refused_job("create Pod x-worker-0: exceeded quota: few"), None),
    ({"kind": "ConfigMap", "metadata": {}}, "ready"),
    ({"kind": "Service", "metadata": {}}, "ready"),
    (
        {
            "kind": "Gadget",
            "metadata": {"generation": 2},
            "status": {"observedGeneration": 1, "conditions": [{"type": "Ready", "status": "True"}]},
        },
        None,
    ),
]


@pytest.mark.parametrize(("obj", "state"), SETTLED)
def test_what_apply_waits_for(obj: dict[str, Any], state: str | None) -> None:
    result = outcome.settled(obj)
    assert (result.state if result else None) == state


@pytest.mark.parametrize(("reason", "ends"), [("InvalidSpec", True), ("DataRetained", False), ("SourceIsFile", False)])
def test_a_status_from_before_the_command_ends_no_wait_unless_the_spec_alone_is_wrong(reason: str, ends: bool) -> None:
    """After `rm-data`, a second apply changes nothing, and the controller has not looked again."""
    assert (outcome.settled(refused_set(reason), changed=False) is not None) is ends
    assert (outcome.ended_otherwise(refused_set(reason), "Ready") is not None) is ends


@pytest.mark.parametrize(("reason", "warns"), [("Synced", True), ("NotWanted", False)])
def test_a_set_that_has_more_files_than_its_source_is_ready_with_a_remark(reason: str, warns: bool) -> None:
    entry = {"type": "Synced", "status": "True", "reason": reason, "message": "300 files that the source did not have"}
    ready = {"kind": "SampleSet", "metadata": {}, "status": {"phase": "Ready", "conditions": [entry]}}
    assert outcome.settled(ready) == ("ready", 0, entry["message"] if warns else "")
    assert outcome.settled(ready, changed=False) == ("ready", 0, ""), "it was said when the set was made"


def test_a_bound_sample_set_whose_cache_server_fails_is_not_well() -> None:
    """Bound is the beginning of a set's life: its volume is there, and nothing serves it yet."""
    text = "set-runtime-0: container main ended with exit code 1"
    bound = {"kind": "SampleSet", "metadata": {"name": "set"}, "status": {"phase": "Bound", "message": text}}
    verdict = why(bound, now=NOW)
    assert (verdict.state, verdict.text) == ("waiting", f"Bound: {text}")
    claim = {"kind": "PersistentVolumeClaim", "metadata": {"name": "set"}, "status": {"phase": "Bound"}}
    assert why(claim, now=NOW).state == "ok"


def test_a_warning_that_repeats_what_the_container_reports_is_not_added() -> None:
    said = 'exec: "pyton": executable file not found in $PATH'
    failed = pod(phase="Failed", containerStatuses=container(state={"terminated": {"exitCode": 128, "message": said}}))
    verdict = why(failed, events=[event(f"container main (run 0): {said}", pod="p")], now=NOW)
    assert verdict.text == f"container main ended with exit code 128: {said}"


OUTPUT = "epoch 1\nepoch 2\nTraceback (most recent call last):\n  File t.py, line 1\nValueError: no such column"
CRASHED = container(state={"terminated": {"exitCode": 1, "message": OUTPUT}})


def test_an_output_is_the_verdict_in_one_line_and_its_last_lines_under_it() -> None:
    verdict = why(pod(phase="Failed", containerStatuses=CRASHED), now=NOW)
    assert verdict.text == "container main ended with exit code 1: ValueError: no such column"
    assert verdict.details == tuple(OUTPUT.splitlines())
    long = why(job("Failed", message="it failed", failures=[{"message": "\n".join(map(str, range(99)))}]), now=NOW)
    assert long.details == tuple(map(str, range(89, 99))), "the end of it"


def test_describe_shows_the_last_lines_under_the_verdict_and_one_line_per_pod() -> None:
    failed = job("Failed", message="w failed: ValueError: no such column", failures=[{"message": OUTPUT}])
    ended = pod("w", phase="Failed", containerStatuses=CRASHED)
    verdict = why(failed, pods=[ended], now=NOW)
    lines = description.describe(failed, members=[member(ended)], events=[], verdict=verdict, now=NOW).splitlines()
    assert lines[0] == "Why:          failed: w failed: ValueError: no such column"
    assert [line.strip() for line in lines[1:6]] == [line.strip() for line in OUTPUT.splitlines()]
    (row,) = [line for line in lines if line.startswith("  w ")]
    assert row.endswith("container main ended with exit code 1: ValueError: no such column")


def event(message: str, *, pod: str = "hi-worker-0", type: str = "Warning", reason: str = "Failed") -> dict[str, Any]:
    about = {"kind": "Pod", "name": pod}
    return {"type": type, "reason": reason, "message": message, "involvedObject": about, "metadata": {"name": "e"}}


BARRIER = {
    "no ConfigMap yet": ('Error: configmap "hi" not found', "waiting until every pod of job hi has an address"),
    "a restart": (
        "Error: couldn't find key PADDLE_GENERATION_3 in ConfigMap default/hi",
        "waiting until every pod of job hi has an address",
    ),
    "servers that do not listen yet": (
        "Error: couldn't find key PADDLE_SERVERS_READY_0 in ConfigMap default/hi",
        "waiting for the parameter servers of job hi to listen",
    ),
}


@pytest.mark.parametrize(("message", "shown"), BARRIER.values(), ids=BARRIER.keys())
def test_the_start_barrier_is_no_warning_where_people_look(message: str, shown: str) -> None:
    """Kubernetes' kubelet writes one for every pod of a job that starts as it should."""
    (row,) = rows([event(message)], NOW, {})
    assert row[1:] == ["Normal", "Waiting", "pod/hi-worker-0", shown]
    verdict = why(job("Starting", message="containers are starting"), events=[event(message)], now=NOW)
    assert verdict.text == "Starting: containers are starting"


def test_another_configmap_that_is_missing_stays_a_warning() -> None:
    missing = event('Error: configmap "settings" not found')
    assert rows([missing], NOW, {})[0][1:3] == ["Warning", "Failed"]
    assert "settings" in why(job("Starting"), events=[missing], now=NOW).text


@pytest.mark.parametrize(("canary", "state"), [("True", "ready"), ("Unknown", None), ("False", "failed")])
def test_a_service_is_settled_with_its_canary(canary: str, state: str | None) -> None:
    conditions = [{"type": "Ready", "status": "True"}, {"type": "CanaryEndpointReady", "status": canary}]
    service = {
        "kind": "PaddleService",
        "metadata": {"name": "s"},
        "spec": {"canary": {"tag": "2"}},
        "status": {"conditions": conditions},
    }
    found = outcome.settled(service)
    assert (found.state if found else None) == state
    assert (why(service, now=NOW).state == "waiting") is (state is None)
    del service["spec"], conditions[1]
    assert outcome.settled(service) is not None, "without one, only the default counts"


def test_a_service_whose_canary_alone_failed_is_ok_and_says_so() -> None:
    ended = {"exitCode": 2, "message": "inference.json is damaged"}
    state = {"waiting": {"reason": "CrashLoopBackOff"}}
    broken = pod("c", phase="Running", containerStatuses=container(state=state, lastState={"terminated": ended}))
    broken["metadata"]["labels"] = {ENDPOINT: "canary"}
    conditions = [{"type": "Ready", "status": "True"}, {"type": "CanaryEndpointReady", "status": "False"}]
    service = {"kind": "PaddleService", "metadata": {"name": "s"}, "status": {"conditions": conditions}}
    verdict = why(service, pods=[broken], now=NOW)
    assert (verdict.state, verdict.reason) == ("ok", "CanaryFailed")
    assert verdict.text.startswith("ready; its canary failed: c: container main ended with exit code 2")
    conditions[0]["status"] = "False"
    assert why(service, pods=[broken], now=NOW).state == "failed", "the default does not serve either"


def test_what_the_controller_adds_to_a_ready_service_is_said() -> None:
    status = {"conditions": [{"type": "Ready", "status": "True"}], "message": "HTTP/2 is not routed:\n pip install it"}
    service = {"kind": "PaddleService", "metadata": {"name": "s"}, "status": status}
    assert why(service, now=NOW).text == "ready: HTTP/2 is not routed: pip install it"
    found = outcome.settled(service)
    assert found is not None
    assert (found.state, found.message) == ("ready", "HTTP/2 is not routed: pip install it")


def endpoint(kind: str, status: str, reason: str, *, generation: int = 2) -> dict[str, Any]:
    text = f"{reason} of {kind}"
    return {"type": kind, "status": status, "reason": reason, "message": text, "observedGeneration": generation}


DEFAULT_FAILED = [endpoint("Ready", "False", "ErrImagePull"), endpoint("DefaultEndpointReady", "False", "ErrImagePull")]
CANARY_FAILED = [endpoint("Ready", "True", "Ready"), endpoint("CanaryEndpointReady", "False", "ExitCode1")]
REVISIONS = {
    "its image is missing": (DEFAULT_FAILED, "Ready", "ErrImagePull of DefaultEndpointReady"),
    "it made no progress": (
        [endpoint("DefaultEndpointReady", "False", "ProgressDeadlineExceeded")],
        "Ready",
        "ProgressDeadlineExceeded of DefaultEndpointReady",
    ),
    "the canary's program ends": (CANARY_FAILED, "CanaryEndpointReady", "ExitCode1 of CanaryEndpointReady"),
    "the canary does not make the service unready": (CANARY_FAILED, "Ready", None),
    "the spec is refused": ([endpoint("Ready", "False", "InvalidSpec")], "CanaryEndpointReady", "InvalidSpec of Ready"),
    "the API refused a write, which is retried": ([endpoint("Ready", "False", "Refused")], "Ready", None),
    "it is starting": ([endpoint("DefaultEndpointReady", "Unknown", "Waiting")], "Ready", None),
    "that was an earlier spec": (
        [endpoint("DefaultEndpointReady", "False", "ErrImagePull", generation=1)],
        "Ready",
        None,
    ),
}


@pytest.mark.parametrize(("conditions", "wanted", "message"), REVISIONS.values(), ids=REVISIONS.keys())
def test_waiting_for_a_service_ends_when_its_newest_revision_failed(
    conditions: list[dict[str, Any]], wanted: str, message: str | None
) -> None:
    meta, status = {"name": "s", "generation": 2}, {"conditions": conditions}
    service = {"kind": "PaddleService", "metadata": meta, "status": status}
    found = outcome.ended_otherwise(service, wanted)
    assert (found and (found.exit_code, found.message)) == (message and (100, message))
    if wanted != "Ready":
        service["spec"] = {"canary": {"tag": "2"}}
    settled = outcome.settled(service)
    assert (settled.message if settled and settled.exit_code else None) == message


def test_a_package_that_an_image_lacks_is_not_a_submodule_and_needs_another_image_on_a_cluster() -> None:
    def step(line: str) -> str:
        failure = {"failureClass": "UserError", "message": f"Traceback …\n{line}"}
        return outcome.next_step({"metadata": {"name": "j"}, "status": {"failures": [failure]}})

    assert step("ModuleNotFoundError: No module named 'pandas'").endswith("an --image that has pandas")
    assert step("ModuleNotFoundError: No module named 'paddle.fluid'") == ""
    assert step("ValueError: no") == ""


def rolled(phase: str, **more: Any) -> dict[str, Any]:
    message = "the roll-out of m-2 went back: 50.0 % of 40 answers were errors; m-1 is served"
    ready = {"type": "Ready", "status": "True", "observedGeneration": 2}
    return {
        "kind": "PaddleService",
        "metadata": {"name": "m", "generation": 2},
        "status": {
            "conditions": [ready],
            "default": {"name": "m-1", "latest": "m-2"},
            "rollout": {"phase": phase, "percent": 50, "step": 2, **more},
            **({"message": message} if phase == "WentBack" else {}),
        },
    }


ROLLOUTS = [
    (
        rolled("WentBack", message="went back: 50.0 % of 40 answers were errors"),
        "WentBack",
        "the roll-out of m-2 went back: 50.0 % of 40 answers were errors; m-1 is served. To try again: pdc retry pds/m",
        100,
    ),
    (
        rolled("Progressing", nextStepTime="2027-01-15T08:00:00Z"),
        "RolloutProgressing",
        "m-2 is being rolled out: it has 50 % of the traffic of m-1 (step 2), next step at 2027-01-15T08:00:00Z",
        None,
    ),
    (rolled("Paused", message="paused"), "RolloutPaused", "it has 50 % of the traffic of m-1 (step 2): paused", 0),
]


@pytest.mark.parametrize(("service", "reason", "text", "code"), ROLLOUTS)
def test_a_roll_out_says_which_revision_serves_and_ends_the_wait_when_it_ended(
    service: dict[str, Any], reason: str, text: str, code: int | None
) -> None:
    verdict = why(service, now=NOW)
    assert (verdict.state, verdict.reason) == ("ok", reason)
    assert text in verdict.text
    settled = outcome.settled(service)
    assert (settled.exit_code if settled else None) == code


def test_a_failure_before_a_requested_retry_does_not_end_the_wait() -> None:
    failed = {"type": "DefaultEndpointReady", "status": "False", "reason": "CrashLoopBackOff", "message": "no model"}
    meta = {"name": "m", "annotations": {"paddlepaddle.org/retry-at": "b"}}
    service = {"kind": "PaddleService", "metadata": meta, "status": {"conditions": [failed], "retriedAt": "a"}}
    assert outcome.settled(service) is None
    service["status"]["retriedAt"] = "b"  # type: ignore[index]
    settled = outcome.settled(service)
    assert settled is not None
    assert settled.exit_code == 100
