"""Artifacts of workflows on the embedded platform: between steps, in and out of the built-in repository."""

from __future__ import annotations

import hashlib
import http.server
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from embedded.test_workflows import OVER, nodes, printed, run
from harness import Target, until
from tools.s3 import ACCESS_KEY, SECRET_KEY, S3Server
from unit.local.workloads.real import Kubectl, apply, read

PASSING = """
    entrypoint: main
    templates:
    - name: main
      steps:
      - - {name: make, template: make}
      - - name: take
          template: take
          arguments:
            artifacts:
            - {name: file, from: "{{steps.make.outputs.artifacts.file}}"}
            - {name: tree, from: "{{steps.make.outputs.artifacts.tree}}"}
            - {name: plain, from: "{{steps.make.outputs.artifacts.plain}}"}
            - {name: zipped, from: "{{steps.make.outputs.artifacts.zipped}}"}
            - {name: text, raw: {data: "a raw text"}}
    - name: make
      container:
        image: busybox
        command: [sh, -c]
        args:
        - mkdir -p /tmp/tree/deep; echo one > /tmp/file; echo two > "/tmp/tree/deep/a name"; echo three > /tmp/plain;
          echo '#!/bin/sh' > /tmp/tree/run.sh; chmod 755 /tmp/tree/run.sh; ln -s deep /tmp/tree/link
      outputs:
        artifacts:
        - {name: file, path: /tmp/file}
        - {name: tree, path: /tmp/tree}
        - {name: plain, path: /tmp/plain, archive: {none: {}}}
        - {name: zipped, path: /tmp/tree, archive: {zip: {}}}
        - {name: never, path: /tmp/never, optional: true}
    - name: take
      inputs:
        artifacts:
        - {name: file, path: /nowhere/on/this/machine/file, mode: 0600}
        - {name: tree, path: /tmp/in/tree}
        - {name: plain, path: /tmp/plain}
        - {name: zipped, path: /usr/share/argo-zipped}
        - {name: text, path: /scratch/text}
        - {name: missing, path: /tmp/missing, optional: true}
      script:
        image: python:3.11
        command: [python]
        volumeMounts: [{name: scratch, mountPath: /scratch}]
        source: |
          import json, os, stat
          seen = {
            "file": open("/nowhere/on/this/machine/file").read(),
            "mode": oct(stat.S_IMODE(os.stat("/nowhere/on/this/machine/file").st_mode)),
            "tree": sorted(os.listdir("/tmp/in/tree")),
            "deep": open("/tmp/in/tree/link/a name").read(),
            "runs": os.access("/tmp/in/tree/run.sh", os.X_OK),
            "plain": open("{{inputs.artifacts.plain.path}}").read(),
            "zipped": open("/usr/share/argo-zipped/deep/a name").read(),
            "text": open("/scratch/text").read(),
            "missing": os.path.exists("/tmp/missing"),
          }
          print(json.dumps(seen))
      volumes: [{name: scratch, emptyDir: {}}]
"""


def test_files_and_folders_go_from_step_to_step(kubectl: Kubectl) -> None:
    status = run(kubectl, "passing", PASSING)
    found = nodes(status)
    assert status["phase"] == "Succeeded", [(name, node["phase"], node.get("message")) for name, node in found.items()]
    seen = json.loads(printed(kubectl, status, "take"))
    assert seen == {
        "file": "one\n",
        "mode": "0o600",
        "tree": ["deep", "link", "run.sh"],
        "deep": "two\n",
        "runs": True,
        "plain": "three\n",
        "zipped": "two\n",
        "text": "a raw text",
        "missing": False,
    }
    made = {each["name"]: each for each in found["make"]["outputs"]["artifacts"]}
    assert set(made) == {"file", "tree", "plain", "zipped"}
    pod = f"passing-make-{found['make']['id'].removeprefix('passing-')}"
    assert made["file"] == {"name": "file", "path": "/tmp/file", "s3": {"key": f"passing/{pod}/file.tgz"}}
    assert made["plain"]["s3"] == {"key": f"passing/{pod}/plain"}
    assert status["artifactRepositoryRef"]["default"] is True


ONE = """
    entrypoint: main
    templates:
    - name: main
      container: {{image: busybox, command: [sh, -c], args: ["{command}"]}}
      outputs: {{artifacts: [{{name: made, path: /tmp/made, archive: {{none: {{}}}}}}]}}
"""


def stored(kubectl: Kubectl, workflow: str, query: str = "") -> str:
    namespace = read(kubectl, f"workflow/{workflow}")["metadata"]["namespace"]
    path = f"/apis/argoproj.io/v1alpha1/namespaces/{namespace}/workflows/{workflow}/artifacts{query}"
    return kubectl("get", "--raw", path).stdout


def test_users_read_artifacts_with_their_digests_until_the_workflow_is_deleted(kubectl: Kubectl) -> None:
    status = run(kubectl, "kept", ONE.format(command="printf hello > /tmp/made"))
    (node,) = status["nodes"].values()
    (listed,) = json.loads(stored(kubectl, "kept"))["items"]
    assert (listed["name"], listed["size"]) == ("made", 5)
    assert listed["digest"] == "sha256:" + hashlib.sha256(b"hello").hexdigest()
    assert stored(kubectl, "kept", f"?node={node['id']}&name=made") == "hello"
    key = node["outputs"]["artifacts"][0]["s3"]["key"]
    again = READ.format(key=key)
    assert printed(kubectl, run(kubectl, "reader", again), "reader") == "hello"
    kubectl("delete", "wf", "kept")

    def fails() -> str:
        status = run(kubectl, "reader", again)
        kubectl("delete", "wf", "reader")
        return str(status["message"]) if status["phase"] != "Succeeded" else ""

    kubectl("delete", "wf", "reader")
    until(fails, lambda message: f"nothing in the artifact repository under the key {key}" in message)


READ = """
    entrypoint: main
    templates:
    - name: main
      inputs: {{artifacts: [{{name: it, path: /tmp/it, s3: {{key: "{key}"}}}}]}}
      script: {{image: busybox, command: [sh], source: "cat /tmp/it"}}
"""


MEMOIZED = """
    entrypoint: main
    templates:
    - name: main
      steps:
      - - {name: make, template: make}
      - - name: take
          template: take
          arguments: {artifacts: [{name: data, from: "{{steps.make.outputs.artifacts.data}}"}]}
    - name: make
      memoize: {key: made, cache: {configMap: {name: made-before}}}
      container: {image: busybox, command: [sh, -c], args: ["echo one > /tmp/data"]}
      outputs: {artifacts: [{name: data, path: /tmp/data}]}
    - name: take
      inputs: {artifacts: [{name: data, path: /tmp/data}]}
      container: {image: busybox, command: [cat, /tmp/data]}
"""


def test_a_step_whose_cached_artifact_went_with_its_workflow_runs_again(kubectl: Kubectl, server: Target) -> None:
    def hit(name: str) -> bool:
        status = run(kubectl, name, MEMOIZED)
        assert status["phase"] == "Succeeded", status.get("message")
        assert printed(kubectl, status, "take") == "one"
        return bool(nodes(status)["make"]["memoizationStatus"]["hit"])

    assert [hit("memo-1"), hit("memo-2")] == [False, True]
    (made,) = server.kubeconfig.parent.glob("artifacts/namespaces/*/files/memo-1/*/data.tgz")
    kubectl("delete", "wf", "memo-1")
    until(made.exists, lambda is_there: not is_there)
    assert [hit("memo-3"), hit("memo-4")] == [False, True]


def test_runs_of_a_schedule_that_was_deleted_without_them_keep_their_artifacts_and_logs(kubectl: Kubectl) -> None:
    """As with Argo the runs are owned by their CronWorkflow: `kubectl delete` alone deletes them, too."""
    spec = {"entrypoint": "main", "templates": [MAKES]}
    every = {"schedules": ["@every 1s"], "successfulJobsHistoryLimit": 100, "workflowSpec": spec}
    cron = {"apiVersion": "argoproj.io/v1alpha1", "kind": "CronWorkflow", "metadata": {"name": "tick"}, "spec": every}
    apply(kubectl, cron)

    def runs() -> list[dict[str, Any]]:
        return list(read(kubectl, "workflows")["items"])

    until(runs, lambda found: any(each.get("status", {}).get("phase") == "Succeeded" for each in found))
    kubectl("patch", "cronworkflow/tick", "--type=merge", "-p", '{"spec": {"suspend": true}}')
    before = {each["metadata"]["name"] for each in until(runs, over)}
    kubectl("delete", "--cascade=orphan", "cronworkflow/tick")
    after = until(runs, lambda found: not any("ownerReferences" in each["metadata"] for each in found))
    kept = [each for each in after if each["metadata"]["name"] in before]
    assert len(kept) == len(before)
    for each in kept:
        (node,) = each["status"]["nodes"].values()
        assert stored(kubectl, each["metadata"]["name"], f"?node={node['id']}&name=made") == "hello\n"
        assert printed(kubectl, each["status"], node["displayName"]) == "hello"


def over(runs: list[dict[str, Any]]) -> bool:
    return all(each.get("status", {}).get("phase") in OVER for each in runs)


MAKES: dict[str, Any] = {
    "name": "main",
    "container": {"image": "busybox", "command": ["sh", "-c", "echo hello | tee /tmp/made"]},
    "outputs": {"artifacts": [{"name": "made", "path": "/tmp/made", "archive": {"none": {}}}]},
}


def test_a_step_without_the_artifact_it_promised_is_an_error_that_names_it(kubectl: Kubectl) -> None:
    status = run(kubectl, "nothing", ONE.format(command="true"))
    assert status["phase"] == "Error"
    assert "failed to save output artifact made: there is no file or folder /tmp/made" in status["message"]


@pytest.fixture
def web() -> Iterator[str]:
    class Answers(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = f"for {self.headers.get('X-Who')}".encode()
            self.send_response(200 if self.path == "/file" else 404)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


def test_artifacts_from_the_web_are_fetched_by_the_pod(kubectl: Kubectl, web: str) -> None:
    text = """
        entrypoint: main
        arguments: {artifacts: [{name: page, http: {url: "URL", headers: [{name: X-Who, value: me}]}}]}
        templates:
        - name: main
          inputs: {artifacts: [{name: page, path: /tmp/page}]}
          script: {image: busybox, command: [sh], source: "cat /tmp/page"}
    """
    found = run(kubectl, "web", text.replace("URL", f"{web}/file"))
    assert printed(kubectl, found, "web") == "for me"
    found = run(kubectl, "web-missing", text.replace("URL", f"{web}/other"))
    assert "the server answered 404" in found["message"]


def test_outputs_beyond_a_termination_message_are_reported(kubectl: Kubectl) -> None:
    status = run(
        kubectl,
        "long",
        """
        entrypoint: main
        templates:
        - name: main
          steps: [[{name: write, template: write}]]
          outputs: {parameters: [{name: said, valueFrom: {parameter: "{{steps.write.outputs.result}}"}}]}
        - name: write
          script:
            image: python:3.11
            command: [python]
            source: |
              open("/tmp/long", "w").write("x" * 200_000)
              print("y" * 100_000)
          outputs: {parameters: [{name: long, valueFrom: {path: /tmp/long}}]}
        """,
    )
    outputs = nodes(status)["write"]["outputs"]
    assert (len(outputs["parameters"][0]["value"]), len(outputs["result"])) == (200_000, 100_000)


def test_long_scripts_and_raw_artifacts_reach_the_step(kubectl: Kubectl) -> None:
    """One variable of a program has 128 KiB; two long comments and the artifact are more."""
    status = run(
        kubectl,
        "long",
        f"""
        entrypoint: main
        templates:
        - name: main
          inputs: {{artifacts: [{{name: text, path: /tmp/text, raw: {{data: "{"$(HOME)" * 25_000}"}}}}]}}
          script:
            image: busybox
            command: [sh]
            source: |
              # {"$(HOME)" * 25_000}
              set -e
              wc -c < /tmp/text > /tmp/length
              env | grep -c ARGO_TEMPLATE > /tmp/variables || true
          outputs:
            parameters:
            - {{name: length, valueFrom: {{path: /tmp/length}}}}
            - {{name: variables, valueFrom: {{path: /tmp/variables}}}}
        """,
    )
    assert status["phase"] == "Succeeded", status.get("message")
    values = {each["name"]: each["value"] for each in nodes(status)["long"]["outputs"]["parameters"]}
    assert values == {"length": str(7 * 25_000), "variables": "0"}


def test_outputs_with_a_global_name_are_for_all_steps_and_conditions_choose_among_artifacts(kubectl: Kubectl) -> None:
    status = run(
        kubectl,
        "global",
        """
        entrypoint: main
        templates:
        - name: main
          steps:
          - - {name: make, template: make}
          - - name: take
              template: take
              arguments:
                parameters: [{name: text, value: "{{workflow.outputs.parameters.word}}"}]
                artifacts: [{name: it, from: "{{workflow.outputs.artifacts.thing}}"}]
          outputs:
            artifacts:
            - name: chosen
              globalName: chosen
              fromExpression: >-
                steps.make.status == 'Succeeded' ? steps.make.outputs.artifacts.a : steps.make.outputs.artifacts.b
        - name: make
          container: {image: busybox, command: [sh, -c], args: ["echo a > /tmp/a; echo b > /tmp/b; echo w > /tmp/w"]}
          outputs:
            parameters: [{name: w, globalName: word, valueFrom: {path: /tmp/w}}]
            artifacts:
            - {name: a, path: /tmp/a, globalName: thing}
            - {name: b, path: /tmp/b}
        - name: take
          inputs: {parameters: [{name: text}], artifacts: [{name: it, path: /tmp/it}]}
          script: {image: busybox, command: [sh], source: "cat /tmp/it; echo {{inputs.parameters.text}}"}
        """,
    )
    assert status["phase"] == "Succeeded", [(name, node.get("message")) for name, node in nodes(status).items()]
    assert printed(kubectl, status, "take") == "a\nw"
    assert [each["value"] for each in status["outputs"]["parameters"]] == ["w"]
    found = {each["name"]: each["s3"]["key"] for each in status["outputs"]["artifacts"]}
    assert set(found) == {"thing", "chosen"}
    assert found["thing"] == found["chosen"]


def test_artifacts_that_go_with_the_end_of_the_workflow_are_marked(kubectl: Kubectl) -> None:
    run(kubectl, "brief", "artifactGC: {strategy: OnWorkflowCompletion}\n" + ONE_PLAIN)

    def artifact() -> dict[str, Any]:
        (node,) = read(kubectl, "workflow/brief")["status"]["nodes"].values()
        return dict(node["outputs"]["artifacts"][0])

    until(artifact, lambda made: made.get("deleted") is True)
    (listed,) = json.loads(stored(kubectl, "brief"))["items"]
    assert (listed["deleted"], listed["size"]) == (True, None)


ONE_PLAIN = """entrypoint: main
templates:
- name: main
  container: {image: busybox, command: [sh, -c], args: ["echo x > /tmp/made"]}
  outputs: {artifacts: [{name: made, path: /tmp/made}]}
"""


def test_a_step_cannot_change_artifacts_of_others(kubectl: Kubectl, server: Target) -> None:
    """The repository is in view of the init container alone, and read-only there; digests tell what was changed."""
    status = run(kubectl, "victim", ONE.format(command="printf hello > /tmp/made"))
    key = next(iter(status["nodes"].values()))["outputs"]["artifacts"][0]["s3"]["key"]
    attempt = """
        entrypoint: main
        volumes: [{name: all, csi: {driver: artifacts.paddlecloud.org, READONLY volumeAttributes: {folder: artifacts}}}]
        templates:
        - name: main
          container:
            image: busybox
            command: [sh, -c, "echo changed > /all/files/KEY"]
            volumeMounts: [{name: all, mountPath: /all}]
          activeDeadlineSeconds: 5
    """.replace("KEY", key)
    status = run(kubectl, "readonly", attempt.replace("READONLY", "readOnly: true,"))
    assert status["phase"] == "Failed"
    status = run(kubectl, "writable", attempt.replace("READONLY", ""))
    assert status["phase"] == "Failed"
    again = READ.format(key=key)
    assert printed(kubectl, run(kubectl, "unchanged", again), "unchanged") == "hello"


def test_an_artifact_that_was_damaged_is_not_used(kubectl: Kubectl, server: Target) -> None:
    status = run(kubectl, "sound", ONE.format(command="printf hello > /tmp/made"))
    key = next(iter(status["nodes"].values()))["outputs"]["artifacts"][0]["s3"]["key"]
    (place,) = server.kubeconfig.parent.glob(f"artifacts/namespaces/*/files/{key}")
    place.write_text("jello")
    status = run(kubectl, "reads-damage", READ.format(key=key))
    assert status["phase"] == "Error"
    assert f"what is stored under the key {key} is damaged" in status["message"]


def test_a_flood_of_output_is_passed_on_and_the_result_is_its_beginning(kubectl: Kubectl) -> None:
    status = run(
        kubectl,
        "flood",
        """
        entrypoint: main
        templates:
        - name: main
          steps: [[{name: write, template: write}]]
          outputs: {parameters: [{name: said, valueFrom: {parameter: "{{steps.write.outputs.result}}"}}]}
        - name: write
          script:
            image: python:3.11
            command: [python]
            source: 'for _ in range(1600): print("x" * 65535)'
        """,
    )
    assert status["phase"] == "Succeeded", status
    assert len(nodes(status)["write"]["outputs"]["result"]) == 256 * 1024 - 1  # the last byte is the end of a line


S3_STEPS = """
    entrypoint: main
    templates:
    - name: main
      steps:
      - - {name: put, template: put}
      - - {name: get, template: get}
    - name: put
      container: {image: busybox, command: [sh, -c], args: ["mkdir /tmp/d; echo 1 > /tmp/d/one; echo 2 > /tmp/d/two"]}
      outputs:
        artifacts:
        - {name: packed, path: /tmp/d, s3: {PLACE, key: "odd names/packed ü.tgz"}}
        - {name: folder, path: /tmp/d, archive: {none: {}}, s3: {PLACE, key: folder}}
    - name: get
      inputs:
        artifacts:
        - {name: packed, path: /tmp/packed, s3: {PLACE, key: "odd names/packed ü.tgz"}}
        - {name: folder, path: /tmp/folder, s3: {PLACE, key: folder}}
      script: {image: busybox, command: [sh], source: "cat /tmp/packed/one /tmp/folder/two"}
"""


def test_artifacts_in_an_s3_store_with_credentials_of_a_secret(kubectl: Kubectl, s3_server: S3Server) -> None:
    kubectl("create", "secret", "generic", "keys", f"--from-literal=a={ACCESS_KEY}", f"--from-literal=s={SECRET_KEY}")
    secrets = "accessKeySecret: {name: keys, key: a}, secretKeySecret: {name: keys, key: s}"
    place = f'endpoint: "{s3_server.host}:{s3_server.port}", insecure: true, bucket: flows, {secrets}'
    s3_server.store("flows").put("first", b"a bucket is made by its first object")
    status = run(kubectl, "stores", S3_STEPS.replace("PLACE", place))
    assert status["phase"] == "Succeeded", [(name, node.get("message")) for name, node in nodes(status).items()]
    assert printed(kubectl, status, "get") == "1\n2"
