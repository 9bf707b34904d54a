"""Argo's workflows on the embedded platform, with real kubectl and real pods."""

from __future__ import annotations

import base64
import gzip
import itertools
import json
import textwrap
from typing import Any

import pytest

from harness import until
from unit.local.workloads.real import Kubectl, read

OVER = ("Succeeded", "Failed", "Error")


def manifest(name: str, spec: str) -> str:
    text = f"apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nmetadata: {{name: {name}}}\nspec:\n"
    return text + textwrap.indent(textwrap.dedent(spec), "  ")


def run(kubectl: Kubectl, name: str, spec: str) -> dict[str, Any]:
    """Create a workflow and wait for its end; gives its status."""
    kubectl("create", "-f", "-", input=manifest(name, spec))
    return ended(kubectl, name)


def ended(kubectl: Kubectl, name: str) -> dict[str, Any]:
    found = until(lambda: read(kubectl, f"workflow/{name}"), lambda wf: wf.get("status", {}).get("phase") in OVER)
    return dict(found["status"])


def nodes(status: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {node["displayName"]: node for node in status["nodes"].values()}


def printed(kubectl: Kubectl, status: dict[str, Any], step: str) -> str:
    """What the program of a step wrote. As in Argo, it is a result only where another step names it."""
    identity = nodes(status)[step]["id"]
    pods = read(kubectl, "pods")["items"]
    pod = next(
        each for each in pods if each["metadata"]["annotations"].get("workflows.argoproj.io/node-id") == identity
    )
    return str(kubectl("logs", pod["metadata"]["name"]).stdout).removesuffix("\n")


COIN = """
    entrypoint: main
    templates:
    - name: main
      steps:
      - - {name: flip, template: flip}
      - - name: write
          template: write
          when: "{{steps.flip.outputs.result}} == heads"
          withItems: [a, b]
          arguments: {parameters: [{name: text, value: "{{item}}"}]}
        - {name: tails, template: flip, when: "{{steps.flip.outputs.result}} == tails"}
      - - name: show
          template: show
          arguments: {parameters: [{name: text, value: "{{steps.write.outputs.parameters}}"}]}
    - name: flip
      script: {image: "python:alpine3.6", command: [python], source: "print('heads')"}
    - name: write
      inputs: {parameters: [{name: text}]}
      outputs: {parameters: [{name: made, valueFrom: {path: /tmp/made}}]}
      container: {image: busybox, command: [sh, -c], args: ["echo {{inputs.parameters.text}}{{pod.name}} > /tmp/made"]}
    - name: show
      inputs: {parameters: [{name: text}]}
      container: {image: busybox, command: [echo], args: ["{{inputs.parameters.text}}"]}
"""


def test_a_workflow_of_scripts_loops_and_conditions_runs_to_its_end(kubectl: Kubectl) -> None:
    status = run(kubectl, "coin", COIN)
    found = nodes(status)
    assert (status["phase"], status["progress"]) == ("Succeeded", "4/4")
    assert found["flip"]["outputs"] == {"exitCode": "0", "result": "heads"}
    assert found["tails"]["phase"] == "Skipped"
    pods = {pod["metadata"]["name"] for pod in read(kubectl, "pods", "-l=workflows.argoproj.io/workflow=coin")["items"]}
    shown = json.loads(kubectl("logs", next(name for name in pods if "-show-" in name)).stdout)
    assert [each["made"][0] for each in shown] == ["a", "b"]
    assert {each["made"][1:] for each in shown} < pods
    assert kubectl("get", "wf", "coin").stdout.split()[:5] == ["NAME", "STATUS", "AGE", "MESSAGE", "coin"]
    kubectl("delete", "wf", "coin")
    until(lambda: read(kubectl, "pods", "-l=workflows.argoproj.io/workflow=coin")["items"], [])


def test_a_step_that_fails_says_why(kubectl: Kubectl) -> None:
    main = "{image: busybox, command: [sh, -c], args: ['exit 3']}"
    status = run(kubectl, "bad", f"entrypoint: main\ntemplates:\n- {{name: main, container: {main}}}\n")
    assert (status["phase"], status["message"]) == ("Failed", "main: Error (exit code 3)")


def test_a_step_without_the_output_it_promised_names_the_file(kubectl: Kubectl) -> None:
    spec = """
        entrypoint: main
        templates:
        - name: main
          outputs: {parameters: [{name: made, valueFrom: {path: /tmp/nothing}}]}
          container: {image: busybox, command: ['true']}
    """
    status = run(kubectl, "promise", spec)
    assert status["phase"] == "Error"
    assert "output parameter made: there is no file /tmp/nothing" in status["message"]


def test_given_pods_that_the_api_server_refuses_then_the_first_is_an_error_and_no_other_begins(
    kubectl: Kubectl,
) -> None:
    spec = """
        entrypoint: main
        templates:
        - {name: main, steps: [[{name: bad, template: bad}, {name: good, template: good}]]}
        - {name: bad, serviceAccountName: nobody, container: {image: busybox, command: ['true']}}
        - {name: good, container: {image: busybox, command: ['true']}}
    """
    status = run(kubectl, "refused", spec)
    assert status["phase"] == "Failed"
    assert 'error: pods "refused-bad-' in status["message"]
    assert 'serviceaccount "nobody" not found' in status["message"]
    assert {name: node["phase"] for name, node in nodes(status).items()} == {
        "refused": "Failed", "[0]": "Error", "bad": "Error",
    }  # fmt: skip
    until(lambda: read(kubectl, "pods", "-l=workflows.argoproj.io/workflow=refused")["items"], [])


def test_what_is_not_served_is_refused_by_its_name_before_anything_starts(kubectl: Kubectl) -> None:
    stored = {"artifacts": [{"name": "made", "path": "/made", "gcs": {"key": "k"}}]}
    other = {"name": "other", "container": {"image": "busybox"}, "outputs": stored}
    spec = {"entrypoint": "main", "flavour": "sweet", "templates": [other]}
    body = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": "no"}, "spec": spec}
    refused = kubectl("create", "-f", "-", input=json.dumps(body), check=False)
    assert refused.returncode != 0
    for part in ("spec.entrypoint", "there are: other", "spec.flavour", "spec.templates[0].outputs.artifacts[0].gcs"):
        assert part in refused.stderr


def test_the_log_of_a_step_is_kept_and_its_metrics_are_exported(kubectl: Kubectl) -> None:
    status = run(
        kubectl,
        "logged",
        """
        entrypoint: main
        archiveLogs: true
        templates:
        - name: main
          metrics:
            prometheus:
            - name: logged_ends
              help: Ends
              labels: [{key: code, value: "{{exitCode}}"}]
              counter: {value: "1"}
          script:
            image: busybox
            command: [sh]
            source: echo to the log; echo and its errors >&2; exit 3
        """,
    )
    (node,) = status["nodes"].values()
    assert [each["name"] for each in node["outputs"]["artifacts"]] == ["main-logs"]
    namespace = read(kubectl, "workflow/logged")["metadata"]["namespace"]
    place = f"/apis/argoproj.io/v1alpha1/namespaces/{namespace}/workflows/logged/artifacts"
    log = kubectl("get", "--raw", f"{place}?node={node['id']}&name=main-logs").stdout
    assert sorted(log.splitlines()) == ["and its errors", "to the log"]
    counted = f'argo_workflows_logged_ends{{workflow_namespace="{namespace}",code="3"}} 1'
    until(lambda: kubectl("get", "--raw", "/metrics").stdout, lambda text: counted in text)


def test_a_workflow_is_deleted_when_its_time_is_over(kubectl: Kubectl) -> None:
    spec = """
        entrypoint: main
        ttlStrategy: {secondsAfterCompletion: 0}
        podGC: {strategy: OnPodCompletion}
        templates: [{name: main, container: {image: busybox, command: ["true"]}}]
    """
    kubectl("create", "-f", "-", input=manifest("short", spec))
    until(lambda: read(kubectl, "workflows")["items"], lambda left: "short" not in [_name(each) for each in left])


def _name(obj: dict[str, Any]) -> str:
    return str(obj["metadata"]["name"])


def test_a_workflow_with_thousands_of_nodes_ends_and_its_status_is_packed(kubectl: Kubectl) -> None:
    """Its status with managed fields, which are half of it again, would exceed the size of a custom object."""
    status = run(
        kubectl,
        "many",
        """
        entrypoint: main
        templates:
        - name: main
          steps:
          - - {name: a, template: nothing, when: "1 == 2", withSequence: {count: 4900}}
        - {name: nothing, steps: []}
        """,
    )
    nodes = json.loads(gzip.decompress(base64.b64decode(status["compressedNodes"])))
    assert (status["phase"], "nodes" in status, len(nodes)) == ("Succeeded", False, 4902)


def test_a_mutex_is_held_by_one_workflow_at_a_time(kubectl: Kubectl) -> None:
    spec = """
        entrypoint: main
        templates:
        - name: main
          synchronization: {mutexes: [{name: one}]}
          container: {image: busybox, command: [sleep, "0.3"]}
    """
    names = ["first", "second", "third"]
    kubectl("create", "-f", "-", input="\n---\n".join(manifest(name, spec) for name in names))
    found = until(
        lambda: read(kubectl, "workflows")["items"],
        lambda items: [wf.get("status", {}).get("phase") for wf in items] == ["Succeeded"] * 3,
    )
    ran = sorted(_ran(pod) for pod in read(kubectl, "pods")["items"])
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(ran)), ran
    assert not any("synchronization" in wf["status"] for wf in found)


def _ran(pod: dict[str, Any]) -> tuple[str, str]:
    ended = pod["status"]["containerStatuses"][0]["state"]["terminated"]
    return ended["startedAt"], ended["finishedAt"]


def test_a_hundred_workflows_at_once_all_succeed(kubectl: Kubectl) -> None:
    """One step each: what is tested is that none is forgotten among the others, not how fast they are."""
    spec = """
        entrypoint: main
        podGC: {strategy: OnPodCompletion}
        templates:
        - name: main
          steps: [[{name: say, template: say}]]
        - name: say
          container: {image: busybox, command: [echo, hello], resources: {requests: {cpu: 1m}}}
    """
    kubectl("create", "-f", "-", input="\n---\n".join(manifest(f"w{number}", spec) for number in range(100)))
    phases = until(
        lambda: [wf.get("status", {}).get("phase") for wf in read(kubectl, "workflows")["items"]],
        lambda found: len(found) == 100 and all(phase in OVER for phase in found),
        timeout=110,
        every=1,
    )
    assert phases == ["Succeeded"] * 100


DEAF = """
    entrypoint: main
    podSpecPatch: '{"terminationGracePeriodSeconds": 1}'
    templates:
    - {name: main, steps: [[{name: deaf, template: deaf}]]}
    - name: deaf
      container: {image: busybox, command: [sh, -c], args: ["trap '' TERM; echo ready; while :; do sleep 0.2; done"]}
"""


@pytest.mark.parametrize(
    ("change", "message", "step"),
    [
        ({"shutdown": "Stop"}, "Stopped with strategy 'Stop'", "workflow shutdown with strategy:  Stop"),
        ({"activeDeadlineSeconds": 1}, "child '{id}' failed", "Step exceeded its deadline"),
    ],
    ids=["stopped", "at its deadline"],
)
def test_given_a_step_that_ignores_sigterm_then_it_ends_with_its_workflow(
    kubectl: Kubectl, change: dict[str, Any], message: str, step: str
) -> None:
    """Messages as Argo's controller writes them."""
    kubectl("create", "-f", "-", input=manifest("deaf", DEAF))
    pods = until(lambda: read(kubectl, "pods")["items"])
    until(lambda: kubectl("logs", pods[0]["metadata"]["name"], check=False).stdout, "ready\n")
    kubectl("patch", "workflow", "deaf", "--type=merge", "-p", json.dumps({"spec": change}))
    status = ended(kubectl, "deaf")
    found = nodes(status)
    assert (status["phase"], status["message"]) == ("Failed", message.format(id=found["deaf"]["id"]))
    assert (found["deaf"]["phase"], found["deaf"]["message"]) == ("Failed", step)
    until(lambda: read(kubectl, "pods")["items"], [])
