"""The chart on a real cluster, with real Helm: judged, its leaders killed, upgraded and taken back while jobs train.

The release is the one that the other tests on a cluster use; it is uninstalled at the end of them all (`operators`).
"""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from rendered import CHART, COMBINATIONS

from chart_exercise import COSCHEDULING, NO_KNATIVE, Exercise, job
from chart_rights import ON_A_CLUSTER, granted, refused, used
from harness import Kubectl, Target, need, until
from unit.chart.test_chart_rendering import render

from .harness import own_image
from .harness.juicefs import METADATA, OBJECTS
from .operators import NAMESPACE, RELEASE, flags
from .release import WIDE_AND_DEEP, as_it_is_here, audit_log, helm, identities, leaders

pytestmark = [pytest.mark.full, pytest.mark.timeout(900), pytest.mark.usefixtures("operators")]


@pytest.fixture(autouse=True)
def _engines(kubectl: Kubectl, server: Target) -> None:
    for name, kind in (("volcano", "queues"), ("knative", "revisions"), ("juicefs", "csidriver/csi.juicefs.com")):
        have = kubectl("get", kind, check=False).returncode == 0
        need(name, have=have, hint=f"`make cluster NODES=3 WITH={name}`")
    server.offer("paddlecloud/runtime")


@pytest.mark.parametrize("name", COMBINATIONS)
def test_the_server_would_take_every_object(name: str, kubectl: Kubectl, namespace: str) -> None:
    served = kubectl("api-versions").stdout.split()
    objects = [each for each in render(*COMBINATIONS[name], namespace=namespace) if each["apiVersion"] in served]
    for each in objects:
        if each["kind"] == "Pod":
            del each["spec"]["serviceAccountName"]  # a dry run makes no account
    text = yaml.safe_dump_all(objects)
    kubectl("apply", "--dry-run=server", "--server-side", "--force-conflicts", "-f", "-", input=text)


def test_a_release_is_judged_loses_its_leaders_and_is_upgraded_and_taken_back_under_running_jobs(
    kubectl: Kubectl, namespace: str, server: Target, tmp_path: Path
) -> None:
    server.offer(WIDE_AND_DEEP)

    def run(*arguments: str, input: str | None = None) -> str:
        return kubectl(*arguments, input=input, timeout=150).stdout

    files = {"name": namespace, "metaurl": f"{METADATA}-{namespace}", "storage": "file", "bucket": OBJECTS}
    exercise = Exercise(
        run, image=own_image.NAME, kubeflow=False, files=files, source="file:///usr/local/bin", cache="/var/cache"
    )

    # The manual's jobs, with real Paddle: one of them by Volcano. Beside them one that trains for as long as we like.
    run("apply", "-f", "-", input=as_it_is_here("wide-and-deep.yaml", "plain"))
    run("apply", "-f", "-", input=as_it_is_here("wide-and-deep-volcano.yaml", "by-volcano"))
    exercise.apply(COSCHEDULING, job("survivor", workers=2))
    until(exercise.phase("survivor", "Running"), timeout=120)
    before = identities(kubectl, "survivor")

    # Upgraded while they run: now with serving, on Knative.
    store = {"bucket": OBJECTS, "metaurl": f"{METADATA}-judged", "storage": "file", "enabled": "true"}
    reported = flags(
        serving__enabled="true",
        commonAnnotations__upgraded="yes",  # or the pods of the others would stay
        **{f"dataCenter__{name}": value for name, value in store.items()},
    )
    helm(server, "upgrade", RELEASE, str(CHART), *reported)
    until(lambda: len(leaders(kubectl)) == 3, timeout=60)
    judged = helm(server, "test", RELEASE, "--namespace", NAMESPACE, "--logs", "--timeout", "280s")
    for kind, verdict in (("paddlejob", "Completed"), ("sampleset", "Ready"), ("paddleservice", "Ready")):
        assert f"ok   {kind}: {verdict}" in judged
    # Knative's sidecar drains for half a minute; a program that ignores SIGTERM would stay for five.
    until(lambda: "helm-test-" not in run("get", "pods", "-n", NAMESPACE, "-o", "name"), timeout=120)
    exercise.begin()
    exercise.follow_up()

    # Every leader killed.
    first = leaders(kubectl)
    kubectl("delete", "pod", "-n", NAMESPACE, *first.values(), "--grace-period=0", "--force")
    until(lambda: len(set(leaders(kubectl).values()) - set(first.values())) == 3, timeout=90)
    exercise.end()

    # Upgraded to controllers that see no Knative, and taken back to where it began.
    changed = tmp_path / "changed.yaml"
    changed.write_text(yaml.safe_dump({"serving": {"command": ["python", "-c"], "args": [NO_KNATIVE]}}))
    helm(server, "upgrade", RELEASE, str(CHART), *reported, "--values", str(changed))
    exercise.without_knative()
    run("delete", "paddleservices.serving.paddlepaddle.org", "--all")
    _no_right_missing()  # later there are such: who is taken away may find its rights gone first
    helm(server, "rollback", RELEASE, "1", "--namespace", NAMESPACE, "--wait", "--timeout", "150s")

    for worker in range(2):
        run("exec", f"survivor-worker-{worker}", "--", "touch", "/tmp/go")
    until(exercise.phase("survivor", "Completed"), timeout=90)
    assert identities(kubectl, "survivor") == before, "none lost, none made twice"
    for name in ("plain", "by-volcano"):
        until(exercise.phase(name, "Completed"), timeout=300)
    _no_right_too_many()


def _no_right_missing() -> None:
    assert [line for line in refused(audit_log(), NAMESPACE) if "/namespaces/t-" not in line] == []


def _no_right_too_many() -> None:
    """The audit log of the cluster and that of the embedded platform together account for every rule."""
    given, taken = granted(render(namespace=NAMESPACE)), used(audit_log(), NAMESPACE)
    excess = {(account, right) for account, rights in taken.items() for right in rights - given.get(account, set())}
    assert not excess, excess
    unused = {(account, right) for account, right in ON_A_CLUSTER if right not in taken.get(account, set())}
    assert {right for _, right in unused if right.resource != "customresourcedefinitions"} == set()
