"""The life of a PaddleJob, and what it says when something stands in its way: the same on every platform."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from harness import Kubectl, Target, pdc, until

from .hands import (
    HOLD,
    Hands,
    Story,
    apply,
    conditions,
    events,
    identities,
    job,
    kill,
    reached,
    read,
    release,
    status,
)

pytestmark = [pytest.mark.core, pytest.mark.timeout(300), pytest.mark.usefixtures("operators")]


def test_a_job_runs_to_its_end_and_its_pods_know_each_other(kubectl: Kubectl, story: Story) -> None:
    apply(kubectl, job("two", f"{HOLD}; env | grep -E '^(PADDLE|POD_IP|TRAIN)' | sort"))
    reached(kubectl, "two", "Running")
    header, row = kubectl("get", "pdj", "two").stdout.splitlines()
    assert header.split() == ["NAME", "STATUS", "MODE", "PS", "WORKER", "AGE"]
    assert row.split()[:4] == ["two", "Running", "Collective", "2/2"]
    release(kubectl, "two-worker-0", "two-worker-1")
    assert conditions(reached(kubectl, "two", "Completed"))["Succeeded"] == "True"
    story.was("two", "Running", "Completed")
    reported = []
    for index in range(2):
        env = dict(line.split("=", 1) for line in kubectl("logs", f"two-worker-{index}").stdout.splitlines())
        endpoint = f"{env['POD_IP']}:{env['PADDLE_PORT']}"
        assert env["PADDLE_TRAINER_ENDPOINTS"].split(",")[index] == endpoint
        assert (env["PADDLE_CURRENT_ENDPOINT"], env["PADDLE_TRAINER_ID"]) == (endpoint, str(index))
        reported.append(env["PADDLE_TRAINER_ENDPOINTS"])
    assert reported[0] == reported[1]
    assert len({entry.rpartition(":")[0] for entry in reported[0].split(",")}) == 2, "Paddle counts distinct hosts"


def test_servers_are_ended_with_the_workers_and_keep_their_logs(kubectl: Kubectl, story: Story, server: Target) -> None:
    program = f'echo I am $TRAINING_ROLE; test "$TRAINING_ROLE" = TRAINER || exec sleep 600; {HOLD}'
    apply(kubectl, job("wide", program, ps=2))
    reached(kubectl, "wide", "Running")
    release(kubectl, "wide-worker-0", "wide-worker-1")
    reached(kubectl, "wide", "Completed")
    row = kubectl("get", "pdj", "wide").stdout.splitlines()[1]
    assert row.split()[:5] == ["wide", "Completed", "PS", "2/2", "0/2"]

    def server_phases() -> set[str]:
        return {pod["status"]["phase"] for pod in read(kubectl, "pods", "-l", "paddlepaddle.org/role=ps")["items"]}

    until(lambda: server_phases() == {"Failed"}, timeout=60)
    shown = "Ended" if server.embedded else "Error"  # which kubectl prints for the exit code 143 of a container
    until(lambda: kubectl("get", "pod", "wide-ps-0", "--no-headers").stdout.split()[2] == shown, timeout=60)
    assert kubectl("logs", "wide-ps-1").stdout == "I am PSERVER\n"
    story.was("wide", "Running", "Completed")
    assert read(kubectl, "pdj", "wide")["status"]["message"] == "2 workers succeeded; 2 pods that still ran were ended"
    described = kubectl("describe", "pod", "wide-ps-0").stdout
    assert "paddlepaddle.org/ended: on purpose: its job is Completed" in described


def test_a_server_that_takes_its_end_for_success_reads_completed_beside_the_job(kubectl: Kubectl) -> None:
    served = "trap 'exit 0' TERM; sleep 600 & wait"
    apply(kubectl, job("calm", f'test "$TRAINING_ROLE" = TRAINER || {{ {served}; }}', ps=1, workers=1))
    reached(kubectl, "calm", "Completed")

    def shown() -> list[list[str]]:
        return [line.split()[:3] for line in kubectl("get", "pods", "--no-headers").stdout.splitlines()]

    until(lambda: shown() == [[f"calm-{role}-0", "0/1", "Completed"] for role in ("ps", "worker")], timeout=60)


def test_a_failure_is_reported_in_the_words_of_the_program(kubectl: Kubectl) -> None:
    pod = {"restartPolicy": "Never"}
    apply(kubectl, job("doomed", "echo ValueError: out of luck >&2; exit 3", workers=1, pod=pod))
    found = reached(kubectl, "doomed", "Failed")
    assert (found["reason"], found["failures"][-1]["exitCode"]) == ("UserError", 3)
    assert found["message"] == "doomed-worker-0 failed: UserError (exit code 3): ValueError: out of luck"
    assert found["message"] in events(kubectl, "doomed")["Failed"]


def test_a_misspelt_field_of_a_template_is_named_on_the_job(kubectl: Kubectl) -> None:
    body = json.loads(job("typo", "true", workers=1))
    body["spec"]["worker"]["template"]["spec"]["containers"][0]["volumeMount"] = [{"name": "x", "mountPath": "/x"}]
    apply(kubectl, json.dumps(body))
    until(lambda: "UnknownField" in events(kubectl, "typo"))
    assert events(kubectl, "typo")["UnknownField"].endswith(
        'spec.worker.template.spec.containers[0].volumeMount: did you mean "volumeMounts"?'
    )


def test_a_killed_rank_restarts_all_ranks_together_once(kubectl: Kubectl, story: Story) -> None:
    apply(kubectl, job("hurt", HOLD))
    reached(kubectl, "hurt", "Running")
    before = identities(kubectl, "hurt")
    kill(kubectl, "hurt-worker-1")
    until(lambda: status(kubectl, "hurt").get("restarts") == 1)
    found = reached(kubectl, "hurt", "Running")
    after = identities(kubectl, "hurt")
    assert after.keys() == before.keys()
    assert not set(after.values()) & set(before.values()), "the survivor is restarted too"
    assert (found["restarts"], found["generation"]) == (1, 1)
    assert (found["failures"][-1]["pod"], found["failures"][-1]["failureClass"]) == ("hurt-worker-1", "Killed")
    release(kubectl, *after)
    reached(kubectl, "hurt", "Completed")
    story.was("hurt", "Running", "Restarting", "Running", "Completed")


def test_a_budget_that_is_used_up_fails_the_job(kubectl: Kubectl) -> None:
    apply(kubectl, job("worn", "exit 7", workers=1, backoffLimit=1))
    found = reached(kubectl, "worn", "Failed")
    assert (found["reason"], found["restarts"]) == ("BackoffLimitExceeded", 1)
    assert [failure["action"] for failure in found["failures"]] == ["Restart", "Fail"]


def test_the_controller_is_killed_and_the_job_ends_as_it_would_have(kubectl: Kubectl, hands: Hands) -> None:
    apply(kubectl, job("steady", HOLD))
    apply(kubectl, job("orphan", HOLD))
    for name in ("steady", "orphan"):
        reached(kubectl, name, "Running")
    before = {name: identities(kubectl, name) for name in ("steady", "orphan")}
    release(kubectl, *before["steady"])
    hands.stop_controller()
    hands.start_controller()
    reached(kubectl, "steady", "Completed")
    assert identities(kubectl, "steady") == before["steady"], "nothing was made anew"
    assert (status(kubectl, "orphan")["phase"], identities(kubectl, "orphan")) == ("Running", before["orphan"])
    kill(kubectl, "orphan-worker-0")
    until(lambda: status(kubectl, "orphan").get("restarts") == 1)


def test_a_suspended_job_has_no_pods_and_comes_back(kubectl: Kubectl, story: Story) -> None:
    apply(kubectl, job("paused", HOLD))
    reached(kubectl, "paused", "Running")
    kubectl("patch", "pdj", "paused", "--type=merge", "-p", '{"spec":{"suspend":true}}')
    found = reached(kubectl, "paused", "Suspended")
    assert "startTime" not in found
    until(lambda: not identities(kubectl, "paused"), timeout=60)
    kubectl("patch", "pdj", "paused", "--type=merge", "-p", '{"spec":{"suspend":false}}')
    reached(kubectl, "paused", "Running")
    release(kubectl, *identities(kubectl, "paused"))
    found = reached(kubectl, "paused", "Completed")
    assert (found.get("restarts"), conditions(found)["Suspended"]) == (None, "False")
    story.was("paused", "Running", "Suspended", "Forming", "Running", "Completed")


def test_scaling_forms_the_job_anew_with_other_addresses(kubectl: Kubectl, story: Story) -> None:
    apply(kubectl, job("grows", f"{HOLD}; echo $PADDLE_TRAINERS_NUM", workers=1, elastic=1))
    body = {"spec": {"worker": {"requests": 1, "limits": 3}}}
    kubectl("patch", "pdj", "grows", "--type=merge", "-p", json.dumps(body))
    reached(kubectl, "grows", "Running")
    kubectl("scale", "pdj/grows", "--replicas=3")
    until(lambda: status(kubectl, "grows").get("generation") == 1)
    found = reached(kubectl, "grows", "Running")
    assert (found["worker"]["ready"], found.get("restarts")) == ("3/3", None)
    endpoints = read(kubectl, "configmap", "grows")["data"]["PADDLE_TRAINER_ENDPOINTS"].split(",")
    addresses = [pod["status"]["podIP"] for pod in read(kubectl, "pods")["items"]]
    assert sorted(entry.rpartition(":")[0] for entry in endpoints) == sorted(addresses)
    release(kubectl, *identities(kubectl, "grows"))
    reached(kubectl, "grows", "Completed")
    assert kubectl("logs", "grows-worker-2").stdout == "3\n"
    story.was("grows", "Running", "Scaling", "Running", "Completed")


def test_a_finished_job_goes_when_its_time_is_over_and_takes_everything_along(kubectl: Kubectl) -> None:
    apply(kubectl, job("brief", "true", intranet="Service", ttlSecondsAfterFinished=2))

    def left() -> list[str]:
        shown = kubectl("get", "pdj,pods,services,configmaps,secrets", "-o", "name").stdout.split()
        return [name for name in shown if "brief" in name]

    until(lambda: not left(), timeout=90)
    assert "Completed" in events(kubectl, "brief")


def test_a_job_that_ran_too_long_fails(kubectl: Kubectl) -> None:
    apply(kubectl, job("late", HOLD, workers=1))
    reached(kubectl, "late", "Running")
    kubectl("patch", "pdj", "late", "--type=merge", "-p", '{"spec":{"activeDeadlineSeconds":2}}')
    found = reached(kubectl, "late", "Failed")
    assert (found["reason"], found["message"]) == ("DeadlineExceeded", "the job was active for more than 2 seconds")
    until(lambda: read(kubectl, "pod", "late-worker-0")["status"]["phase"] == "Failed", timeout=60)


def test_a_quota_is_named_nothing_stays_half_made_and_more_room_lets_it_run(kubectl: Kubectl) -> None:
    kubectl("create", "quota", "small", "--hard=pods=1")
    until(lambda: "pods" in (read(kubectl, "quota", "small").get("status") or {}).get("used", {}))
    apply(kubectl, job("refused", HOLD))
    until(lambda: "exceeded quota: small" in status(kubectl, "refused").get("message", ""))
    assert "exceeded quota: small" in events(kubectl, "refused")["FailedCreate"]
    until(lambda: not identities(kubectl, "refused"))
    assert conditions(status(kubectl, "refused"))["PodsReady"] == "False"
    kubectl("patch", "quota", "small", "--type=merge", "-p", '{"spec":{"hard":{"pods":"2"}}}')
    reached(kubectl, "refused", "Running")
    kubectl("delete", "quota", "small")


def _without_containers(spec: dict[str, Any]) -> None:
    spec["worker"]["template"]["spec"]["containers"] = []


Spoil = Callable[[dict[str, Any]], object]

BAD: dict[str, tuple[Spoil, str]] = {
    "no-container": (_without_containers, "spec.worker.template.spec.containers: Required value: at least one"),
    "intranet": (lambda spec: spec.update(intranet="Carrier"), 'supported values: "PodIP", "Service", "Host"'),
}


def test_a_job_that_makes_no_sense_says_so_and_creates_nothing(kubectl: Kubectl) -> None:
    bodies = []
    for name, (spoil, _) in BAD.items():
        body = json.loads(job(name, "true"))
        spoil(body["spec"])
        bodies.append(body)
    apply(kubectl, json.dumps({"apiVersion": "v1", "kind": "List", "items": bodies}))
    for name, (_, said) in BAD.items():
        found = reached(kubectl, name, "Failed", timeout=30)
        assert (found["reason"], conditions(found)["Valid"]) == ("InvalidSpec", "False")
        assert said in found["message"], found["message"]
        assert said in events(kubectl, name)["InvalidSpec"]
    assert read(kubectl, "pods")["items"] == []
    apply(kubectl, job("no-container", "true"))  # the mistake is repaired
    reached(kubectl, "no-container", "Completed")


WRONG_NUMBERS: dict[str, tuple[Spoil, str]] = {
    "no role": (lambda spec: spec.pop("worker"), "at least one role needs a pod"),
    "no pods": (lambda spec: spec["worker"].update(replicas=0), "at least one role needs a pod"),
    "one digit too many": (
        lambda spec: spec["worker"].update(replicas=99_999),
        "spec.worker.replicas in body should be less than or equal to 5000",
    ),
    "too many of two roles": (
        lambda spec: (spec["worker"].update(replicas=3_000), spec.update(ps=spec["worker"])),
        "a job has at most 5000 pods",
    ),
    "elastic without workers": (
        lambda spec: spec.update(elastic=1, ps=spec.pop("worker")),
        "spec.worker is required in an elastic job",
    ),
    "elastic bounds": (
        lambda spec: (spec.update(elastic=1), spec["worker"].update(requests=4, limits=3)),
        "must lie between spec.worker.requests and spec.worker.limits",
    ),
    "a gang of more": (
        lambda spec: spec.update(schedulingPolicy={"minAvailable": 9}),
        "spec.schedulingPolicy.minAvailable must not exceed the number of pods",
    ),
}


@pytest.mark.parametrize("case", WRONG_NUMBERS.values(), ids=WRONG_NUMBERS.keys())
def test_numbers_of_pods_that_make_no_sense_are_refused_at_once(kubectl: Kubectl, case: tuple[Spoil, str]) -> None:
    spoil, said = case
    body = json.loads(job("bad", "true"))
    spoil(body["spec"])
    refused = kubectl("create", "-f", "-", input=json.dumps(body), check=False)
    assert (refused.returncode, said in refused.stderr) == (1, True), refused.stderr


def test_a_scale_outside_of_the_bounds_is_refused_and_a_later_mistake_leaves_the_job_looked_after(
    kubectl: Kubectl, server: Target, namespace: str, hands: Hands
) -> None:
    body = json.loads(job("bound", HOLD, elastic=1))
    body["spec"]["worker"] |= {"requests": 1, "limits": 3}
    apply(kubectl, json.dumps(body))
    reached(kubectl, "bound", "Running")
    for replicas in (0, 9):
        refused = kubectl("scale", "pdj/bound", f"--replicas={replicas}", check=False)
        assert refused.returncode != 0
        assert "must lie between spec.worker.requests and spec.worker.limits" in refused.stderr
    asked = pdc("-n", namespace, "scale", "pdj/bound", "--replicas", "9", env=server.env, check=False)
    assert (asked.returncode != 0, "must lie between" in asked.stderr) == (True, True), asked.stderr
    assert read(kubectl, "pdj", "bound")["spec"]["worker"]["replicas"] == 2

    kubectl("patch", "pdj", "bound", "--type=merge", "-p", json.dumps({"spec": {"intranet": "Carrier"}}))
    until(lambda: conditions(status(kubectl, "bound")).get("Valid") == "False")
    hands.stop_controller()  # the last valid spec is known to its successor
    hands.start_controller()
    before = identities(kubectl, "bound")
    kill(kubectl, "bound-worker-1")
    until(lambda: status(kubectl, "bound").get("restarts") == 1)
    reached(kubectl, "bound", "Running")
    assert not set(before.values()) & set(identities(kubectl, "bound").values())
    header, row = pdc("-n", namespace, "get", "pdj", "bound", env=server.env).stdout.splitlines()
    assert (header.split()[:3], row.split()[:3]) == (["NAME", "STATUS", "VALID"], ["bound", "Running", "False"])
    explained = pdc("-n", namespace, "explain", "pdj/bound", env=server.env, check=False).stdout
    assert explained.splitlines()[0] == "pdj/bound: waiting (InvalidSpec)"
    assert "the job goes on by its last valid spec" in explained
    release(kubectl, *identities(kubectl, "bound"))
    reached(kubectl, "bound", "Completed")


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"worker": {"replicas": -1}}, "spec.worker.replicas"),
        ({"worker": {"replicas": "two"}}, "spec.worker.replicas"),
        ({"withGloo": 3}, "spec.withGloo"),
        ({"restartScope": "World"}, "spec.restartScope"),
        ({"sampleSetRef": {"name": "imagenet"}}, "spec.sampleSetRef.mountPath"),
    ],
)
def test_what_the_schema_forbids_is_refused_at_once(kubectl: Kubectl, change: dict[str, Any], path: str) -> None:
    body = json.loads(job("bad", "true"))
    for field, value in change.items():
        body["spec"][field] = {**body["spec"].get(field, {}), **value} if isinstance(value, dict) else value
    refused = kubectl("create", "-f", "-", input=json.dumps(body), check=False)
    assert refused.returncode != 0
    assert path in refused.stderr


def test_an_unknown_policy_is_guessed_aloud_and_missing_data_is_awaited(kubectl: Kubectl) -> None:
    data = {"name": "imagenet", "mountPath": "/data"}
    apply(kubectl, job("odd", "true", cleanPodPolicy="Sometimes", sampleSetRef=data))
    found = reached(kubectl, "odd", "Pending")
    assert conditions(found)["DataReady"] == "False"
    assert "imagenet not found" in found["message"]
    assert "Sometimes" in events(kubectl, "odd")["Guessed"]
    assert not identities(kubectl, "odd")


@pytest.mark.parametrize(
    ("name", "pods", "fits"),
    [("n" * 70, 1, False), ("n" * 55, 1, False), ("n" * 54, 11, False), ("a.b", 1, False), ("n" * 54, 10, True)],
    ids=["far too long", "one too long", "too long for its last pod", "dotted", "as long as may be"],
)
def test_a_name_whose_pods_could_never_be_made_is_refused_at_once(
    kubectl: Kubectl, name: str, pods: int, fits: bool
) -> None:
    body = json.loads(job(name, "true"))
    body["spec"]["worker"]["replicas"] = pods
    answer = kubectl("create", "--dry-run=server", "-f", "-", input=json.dumps(body), check=False)
    assert (answer.returncode == 0) is fits, answer.stderr
    if not fits:
        assert "use a job name of at most 54" in answer.stderr or "must not contain dots" in answer.stderr
