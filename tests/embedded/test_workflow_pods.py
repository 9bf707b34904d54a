"""What pods of workflows do beside running one program: resources, container sets, sidecars, daemons."""

from __future__ import annotations

import json

from embedded.test_workflows import nodes, printed, run
from harness import until
from unit.local.workloads.real import Kubectl, read


def messages(status: dict) -> list[tuple[str, str, str | None]]:  # type: ignore[type-arg]
    return [(name, node["phase"], node.get("message")) for name, node in nodes(status).items()]


def allow(kubectl: Kubectl, *resources: str) -> None:
    """The default ServiceAccount may write these."""
    kubectl("create", "role", "writer", "--verb=*", *(f"--resource={each}" for each in resources))
    namespace = read(kubectl, "role/writer")["metadata"]["namespace"]
    kubectl("create", "rolebinding", "writer", "--role=writer", f"--serviceaccount={namespace}:default")


RESOURCES = """
    entrypoint: main
    templates:
    - name: main
      steps:
      - - {name: make, template: make}
      - - name: job
          template: job
          arguments: {parameters: [{name: word, value: "{{steps.make.outputs.parameters.name}}"}]}
      - - {name: patch, template: patch}
      - - {name: look, template: look}
      - - {name: drop, template: drop}
    - name: make
      resource:
        action: create
        setOwnerReference: true
        manifest: |
          apiVersion: v1
          kind: ConfigMap
          metadata: {name: "{{workflow.name}}-made", labels: {made: "yes"}}
          data: {word: "{{workflow.name}}"}
      outputs:
        parameters:
        - {name: name, valueFrom: {jsonPath: "{.metadata.name}"}}
        - {name: labels, valueFrom: {jqFilter: ".metadata.labels"}}
        - {name: nothing, valueFrom: {jsonPath: "{.status.capacity}"}}
    - name: job
      inputs: {parameters: [{name: word}]}
      resource:
        action: create
        successCondition: status.succeeded > 0
        failureCondition: status.failed > 0
        manifest: |
          apiVersion: batch/v1
          kind: Job
          metadata: {generateName: made-}
          spec:
            template:
              spec:
                restartPolicy: Never
                containers: [{name: c, image: busybox, command: [echo, "{{inputs.parameters.word}}"]}]
    - name: patch
      resource:
        action: patch
        mergeStrategy: json
        flags: [configmap, "{{workflow.name}}-made"]
        manifest: |
          - {op: add, path: /data/more, value: patched}
    - name: look
      resource:
        action: get
        manifest: "{apiVersion: v1, kind: ConfigMap, metadata: {name: '{{workflow.name}}-made'}}"
      outputs: {parameters: [{name: whole, valueFrom: {jsonPath: "{.data.word}/{.data.more}"}}]}
    - name: drop
      resource: {action: delete, flags: [configmap, --selector, "made=yes"]}
"""


def test_resource_templates_act_with_the_rights_of_their_account(kubectl: Kubectl) -> None:
    status = run(kubectl, "unallowed", RESOURCES)
    assert status["phase"] == "Failed"
    assert 'cannot create resource "configmaps"' in nodes(status)["make"]["message"]
    allow(kubectl, "configmaps", "jobs")
    status = run(kubectl, "resources", RESOURCES)
    assert status["phase"] == "Succeeded", messages(status)
    made = {each["name"]: each["value"] for each in nodes(status)["make"]["outputs"]["parameters"]}
    assert (made["name"], json.loads(made["labels"]), made["nothing"]) == ("resources-made", {"made": "yes"}, "")
    assert nodes(status)["look"]["outputs"]["parameters"][0]["value"] == "resources/patched"
    assert kubectl("get", "configmap", "resources-made", check=False).returncode != 0


def test_a_failure_condition_fails_the_step(kubectl: Kubectl) -> None:
    allow(kubectl, "configmaps")
    status = run(
        kubectl,
        "condition",
        """
        entrypoint: main
        templates:
        - name: main
          resource:
            action: apply
            successCondition: data.state == good
            failureCondition: data.state in (bad, worse)
            manifest: "{apiVersion: v1, kind: ConfigMap, metadata: {name: state}, data: {state: bad}}"
        """,
    )
    assert status["phase"] == "Failed"
    assert "The failure condition" in status["message"]


def test_containers_of_a_set_run_in_their_order_and_share_a_folder(kubectl: Kubectl) -> None:
    status = run(
        kubectl,
        "set",
        """
        entrypoint: main
        templates:
        - name: main
          volumes: [{name: work, emptyDir: {}}]
          containerSet:
            volumeMounts: [{name: work, mountPath: /workspace}]
            retryStrategy: {retries: 2}
            containers:
            - {name: main, image: busybox, command: [sh, -c], args: ["cat /workspace/*"], dependencies: [b, c]}
            - {name: a, image: busybox, command: [sh, -c], args: ["echo a > /workspace/a"]}
            - name: b
              image: busybox
              dependencies: [a]
              command: [sh, -c]
              args: ["test -e /tmp/tried || { touch /tmp/tried; exit 1; }; sed s/a/b/ /workspace/a > /workspace/b"]
            - name: c
              image: busybox
              dependencies: [a]
              command: [sh, -c, "sed s/a/c/ /workspace/a > /workspace/c"]
          outputs: {parameters: [{name: seen, valueFrom: {path: /workspace/c}}]}
        """,
    )
    assert status["phase"] == "Succeeded", messages(status)
    found = nodes(status)
    assert {name: found[name]["type"] for name in ("set", "main", "a", "b", "c")} == {
        "set": "Pod", "main": "Container", "a": "Container", "b": "Container", "c": "Container",
    }  # fmt: skip
    assert all(node["phase"] == "Succeeded" for node in found.values())
    assert found["set"]["outputs"]["parameters"][0]["value"] == "c"
    assert found["a"]["id"] in found["set"]["children"]
    assert found["main"]["id"] in found["b"]["children"]


def test_a_container_that_fails_fails_what_depends_on_it(kubectl: Kubectl) -> None:
    status = run(
        kubectl,
        "bad-set",
        """
        entrypoint: main
        templates:
        - name: main
          containerSet:
            containers:
            - {name: a, image: busybox, command: [sh, -c, "exit 3"]}
            - {name: main, image: busybox, command: [sh, -c, "echo never"], dependencies: [a]}
        """,
    )
    assert status["phase"] == "Failed"
    assert nodes(status)["a"]["message"] == "Error (exit code 3)"
    assert nodes(status)["main"]["phase"] == "Error"


def test_sidecars_end_with_the_main_container(kubectl: Kubectl) -> None:
    status = run(
        kubectl,
        "beside",
        """
        entrypoint: main
        templates:
        - name: main
          volumes: [{name: work, emptyDir: {}}]
          initContainers:
          - {name: first, image: busybox, mirrorVolumeMounts: true, command: [sh, -c, "echo init > /shared/init"]}
          container:
            image: busybox
            command: [sh, -c]
            args: ["until test -e /shared/side; do sleep 0.05; done; cat /shared/init /shared/side > /tmp/o"]
            volumeMounts: [{name: work, mountPath: /shared}]
          sidecars:
          - name: polite
            image: busybox
            mirrorVolumeMounts: true
            command: [sh, -c, "echo side > /shared/side.new; mv /shared/side.new /shared/side; sleep 3600"]
          outputs: {parameters: [{name: o, valueFrom: {path: /tmp/o}}]}
        """,
    )
    assert status["phase"] == "Succeeded", messages(status)
    assert nodes(status)["beside"]["outputs"]["parameters"][0]["value"] == "init\nside"


NO_COMMANDS = """
    entrypoint: main
    templates:
    - name: main
      steps: [[{name: one, template: one}, {name: set, template: set}], [{name: unknown, template: unknown}]]
    - name: one
      volumes: [{name: work, emptyDir: {}}]
      container:
        image: busybox
        args: [sh, -c, "until test -s /shared/side; do sleep 0.05; done; cat /shared/side > /tmp/o"]
        volumeMounts: [{name: work, mountPath: /shared}]
      sidecars:
      - {name: side, image: busybox, mirrorVolumeMounts: true, args: [sh, -c, "echo hello > /shared/side; sleep 3600"]}
      outputs: {parameters: [{name: o, valueFrom: {path: /tmp/o}}]}
    - name: set
      containerSet:
        containers:
        - {name: a, image: busybox}
        - {name: main, image: busybox, args: [sh, -c, "echo after > /tmp/o"], dependencies: [a]}
      outputs: {parameters: [{name: o, valueFrom: {path: /tmp/o}}]}
    - name: unknown
      container: {image: "example.com/nowhere:v1", args: [say]}
      outputs: {parameters: [{name: o, valueFrom: {path: /tmp/o}}]}
"""


def test_containers_without_a_command_run_that_of_their_image(kubectl: Kubectl) -> None:
    status = run(kubectl, "images", NO_COMMANDS)
    found = nodes(status)
    given = {name: found[name]["outputs"]["parameters"][0]["value"] for name in ("one", "set")}
    assert given == {"one": "hello", "set": "after"}, messages(status)
    assert found["unknown"]["phase"] == "Error"
    assert "image example.com/nowhere:v1" in found["unknown"]["message"]


DAEMON = """
    entrypoint: main
    templates:
    - name: main
      steps:
      - - {name: server, template: server}
      - - name: client
          template: client
          arguments: {parameters: [{name: ip, value: "{{steps.server.ip}}"}]}
    - name: server
      daemon: true
      RETRY
      container:
        image: python:3.11
        command: [python, -m, http.server, "8123", --directory, /tmp]
        readinessProbe: {httpGet: {path: /, port: 8123}, periodSeconds: 1}
    - name: client
      inputs: {parameters: [{name: ip}]}
      script:
        image: python:3.11
        command: [python]
        source: |
          import urllib.request
          print(urllib.request.urlopen("http://{{inputs.parameters.ip}}:8123/").status)
"""


def test_a_daemon_serves_later_steps_and_ends_with_them(kubectl: Kubectl) -> None:
    for name, retry in (("daemon", ""), ("daemon-retry", "retryStrategy: {limit: 2}")):
        status = run(kubectl, name, DAEMON.replace("RETRY", retry))
        found = nodes(status)
        assert status["phase"] == "Succeeded", messages(status)
        assert printed(kubectl, status, "client") == "200"
        assert all(node["phase"] == "Succeeded" and not node.get("daemoned") for node in found.values())
        running = f"-l=workflows.argoproj.io/workflow={name}", "--field-selector=status.phase=Running"
        until(lambda running=running: read(kubectl, "pods", *running)["items"], [])  # type: ignore[misc]


CLAIMS = """
    entrypoint: main
    volumeClaimTemplates:
    - metadata: {name: work}
      spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
    templates:
    - name: main
      steps:
      - - {name: write, template: write}
      - - {name: read, template: read}
    - name: write
      container:
        image: busybox
        command: [sh, -c, "echo kept > /vol/f"]
        volumeMounts: [{name: work, mountPath: /vol}]
    - name: read
      script: {image: busybox, command: [sh], source: "cat /vol/f; EXIT", volumeMounts: [{name: work, mountPath: /vol}]}
"""


def test_claims_are_made_with_a_workflow_and_deleted_when_it_succeeded(kubectl: Kubectl) -> None:
    status = run(kubectl, "claims", CLAIMS.replace("EXIT", "true"))
    assert status["phase"] == "Succeeded", messages(status)
    assert printed(kubectl, status, "read") == "kept"
    assert status["persistentVolumeClaims"] == [{"name": "work", "persistentVolumeClaim": {"claimName": "claims-work"}}]
    kubectl("delete", "pods", "-l=workflows.argoproj.io/workflow=claims")  # a claim in use stays until then
    until(lambda: read(kubectl, "pvc")["items"], [])
    status = run(kubectl, "failed", CLAIMS.replace("EXIT", "exit 1"))
    assert status["phase"] == "Failed"
    assert [each["metadata"]["name"] for each in read(kubectl, "pvc")["items"]] == ["failed-work"]


def test_pods_are_patched_by_the_workflow_and_then_by_the_template(kubectl: Kubectl) -> None:
    status = run(
        kubectl,
        "patched",
        """
        entrypoint: main
        arguments: {parameters: [{name: memory, value: 64Mi}]}
        podSpecPatch: |
          terminationGracePeriodSeconds: 7
          containers:
          - name: main
            resources: {limits: {memory: "{{workflow.parameters.memory}}"}}
            env: [{name: FROM, value: workflow}]
        templates:
        - name: main
          podSpecPatch: '{"containers": [{"name": "main", "env": [{"name": "FROM", "value": "template"}]}]}'
          script: {image: busybox, command: [sh], source: "echo $FROM"}
        """,
    )
    assert printed(kubectl, status, "patched") == "template", messages(status)
    pod = read(kubectl, "pod/patched")["spec"]
    assert pod["terminationGracePeriodSeconds"] == 7
    assert pod["containers"][0]["resources"]["limits"] == {"memory": "64Mi"}
