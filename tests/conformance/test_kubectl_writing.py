"""Real kubectl, writing: create, apply, edit, label, patch, replace, scale, wait, delete, diff."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from paddlecloud.kube.resource import CONFIGMAPS, PODS, SECRETS, SERVICEACCOUNTS, Object, Resource

from .world import DEPLOYMENTS, ScratchNamespace, sleeping_pod

if TYPE_CHECKING:
    from harness import Kubectl, Target

MANIFEST = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: c
data:
  a: "1"
  b: "2"
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: d
spec:
  replicas: 0
  selector:
    matchLabels: {app: x}
  template:
    metadata:
      labels: {app: x}
    spec:
      containers:
        - {name: main, image: "registry.example/none:1"}
        - {name: side, image: "registry.example/side:1"}
"""


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    path = tmp_path / "manifest.yaml"
    path.write_text(MANIFEST)
    return path


# create --------------------------------------------------------------------------------------------------------------


def test_create_configmap_from_literals_and_files(here: ScratchNamespace, kubectl: Kubectl, tmp_path: Path) -> None:
    (tmp_path / "text.conf").write_text("x = 1\n")
    (tmp_path / "bytes.bin").write_bytes(b"\xff\x00\xfe")
    said = kubectl(
        "create", "configmap", "c", "--from-literal=a=1", f"--from-file={tmp_path}/text.conf",
        f"--from-file=raw={tmp_path}/bytes.bin",
    ).stdout  # fmt: skip
    assert said == "configmap/c created\n"
    made = here.get(CONFIGMAPS, "c")
    assert made["data"] == {"a": "1", "text.conf": "x = 1\n"}
    assert made["binaryData"] == {"raw": "/wD+"}


def test_create_secrets(here: ScratchNamespace, kubectl: Kubectl) -> None:
    kubectl("create", "secret", "generic", "g", "--from-literal=user=me", "--type=example.org/mine")
    made = here.get(SECRETS, "g")
    assert (made["type"], made["data"]) == ("example.org/mine", {"user": "bWU="})
    kubectl(
        "create", "secret", "docker-registry", "r", "--docker-server=registry.example", "--docker-username=u",
        "--docker-password=p",
    )  # fmt: skip
    assert here.get(SECRETS, "r")["type"] == "kubernetes.io/dockerconfigjson"


def test_create_namespace_and_its_deletion(here: ScratchNamespace, kubectl: Kubectl) -> None:
    name = f"{here.namespace}-x"
    assert kubectl("create", "namespace", name).stdout == f"namespace/{name} created\n"
    assert kubectl("delete", "namespace", name, "--wait=false").stdout == f'namespace "{name}" deleted\n'


def test_create_serviceaccount_and_token(here: ScratchNamespace, kubectl: Kubectl) -> None:
    kubectl("create", "serviceaccount", "robot")
    token = kubectl("create", "token", "robot", "--duration=20m").stdout.strip()
    whoami = kubectl("auth", "whoami", "-o", "json", "--token", token, check=False)
    assert token.count(".") == 2
    assert here.exists(SERVICEACCOUNTS, "robot")
    assert whoami.returncode == 0


def test_create_roles_and_bindings(here: ScratchNamespace, kubectl: Kubectl) -> None:
    kubectl("create", "role", "reader", "--verb=get,list", "--resource=pods,deployments.apps")
    kubectl("create", "rolebinding", "readers", "--role=reader", "--user=jane", "--serviceaccount=x:y")
    assert kubectl("auth", "can-i", "list", "pods", "--as", "jane").stdout.strip() == "yes"
    assert kubectl("auth", "can-i", "delete", "pods", "--as", "jane", check=False).stdout.strip() == "no"


@pytest.mark.parametrize(
    "command",
    [
        ["create", "deployment", "x", "--image=registry.example/none:1", "--replicas=0"],
        ["create", "service", "clusterip", "x", "--tcp=80:8080"],
        ["create", "service", "externalname", "x", "--external-name=example.org"],
        ["create", "job", "x", "--image=registry.example/none:1", "--dry-run=server"],
        ["create", "quota", "x", "--hard=pods=10"],
        ["create", "poddisruptionbudget", "x", "--selector=a=b", "--min-available=1"],
        ["create", "ingress", "x", "--rule=a.example.org/*=web:80,tls=keys"],
        ["create", "priorityclass", "x", "--value=10", "--dry-run=server"],
        ["create", "clusterrole", "x", "--verb=get", "--resource=pods", "--dry-run=server"],
        ["create", "clusterrolebinding", "x", "--clusterrole=view", "--user=u", "--dry-run=server"],
        ["run", "x", "--image=registry.example/none:1", "--dry-run=server"],
    ],
    ids=lambda command: " ".join(command[:3]),
)
def test_create_typed_kinds(kubectl: Kubectl, command: list[str]) -> None:
    """These bodies travel as protobuf or JSON, as kubectl likes."""
    assert "created" in kubectl(*command).stdout


def test_create_from_a_file_once(kubectl: Kubectl, manifest: Path) -> None:
    said = kubectl("create", "-f", str(manifest)).stdout.splitlines()
    assert said == ["configmap/c created", "deployment.apps/d created"]
    again = kubectl("create", "-f", str(manifest), check=False)
    assert again.returncode == 1
    assert "Error from server (AlreadyExists): error when creating" in again.stderr


# apply ---------------------------------------------------------------------------------------------------------------


def test_apply_creates_changes_and_prunes_fields(here: ScratchNamespace, kubectl: Kubectl, manifest: Path) -> None:
    def apply() -> list[str]:
        return kubectl("apply", "-f", str(manifest)).stdout.splitlines()

    assert apply() == ["configmap/c created", "deployment.apps/d created"]
    assert apply() == ["configmap/c unchanged", "deployment.apps/d unchanged"]
    here.patch(CONFIGMAPS, "c", {"data": {"foreign": "stays"}})
    manifest.write_text(MANIFEST.replace('  b: "2"\n', "").replace("side:1", "side:2"))
    assert apply() == ["configmap/c configured", "deployment.apps/d configured"]
    assert here.get(CONFIGMAPS, "c")["data"] == {"a": "1", "foreign": "stays"}
    containers = here.get(DEPLOYMENTS, "d")["spec"]["template"]["spec"]["containers"]
    assert [c["image"] for c in containers] == ["registry.example/none:1", "registry.example/side:2"]


def test_apply_drops_a_list_item_that_left_the_file(here: ScratchNamespace, kubectl: Kubectl, manifest: Path) -> None:
    kubectl("apply", "-f", str(manifest))
    manifest.write_text(MANIFEST.replace('        - {name: side, image: "registry.example/side:1"}\n', ""))
    kubectl("apply", "-f", str(manifest))
    containers = here.get(DEPLOYMENTS, "d")["spec"]["template"]["spec"]["containers"]
    assert [c["name"] for c in containers] == ["main"]


def test_apply_of_a_custom_kind(here: ScratchNamespace, kubectl: Kubectl, widgets: Resource) -> None:
    def widget(**spec: object) -> str:
        return json.dumps(
            {"apiVersion": widgets.api_version, "kind": "Widget", "metadata": {"name": "w"}, "spec": spec}
        )

    kubectl("apply", "-f", "-", input=widget(size=2, colour="red"))
    kubectl("apply", "-f", "-", input=widget(size=5))
    assert here.get(widgets, "w")["spec"] == {"size": 5}
    refused = kubectl("apply", "-f", "-", input=widget(size=50), check=False)
    assert refused.returncode == 1
    assert "spec.size: Invalid value: 50" in refused.stderr


def test_apply_names_a_misspelt_field(kubectl: Kubectl) -> None:
    bad = MANIFEST.split("---")[1].replace("replicas:", "replica:")
    refused = kubectl("apply", "-f", "-", input=bad, check=False)
    assert refused.returncode == 1
    assert 'unknown field "spec.replica"' in refused.stderr


def test_apply_server_side_with_conflicts(here: ScratchNamespace, kubectl: Kubectl, manifest: Path) -> None:
    said = kubectl("apply", "--server-side", "-f", str(manifest)).stdout.splitlines()
    assert said == ["configmap/c serverside-applied", "deployment.apps/d serverside-applied"]
    here.patch(CONFIGMAPS, "c", {"data": {"a": "changed"}}, field_manager="hand")
    refused = kubectl("apply", "--server-side", "-f", str(manifest), check=False)
    assert refused.returncode == 1
    assert 'Apply failed with 1 conflict: conflict with "hand" using v1: .data.a' in refused.stderr
    kubectl("apply", "--server-side", "--force-conflicts", "-f", str(manifest))
    assert here.get(CONFIGMAPS, "c")["data"]["a"] == "1"


def test_apply_moves_from_client_to_server_side(here: ScratchNamespace, kubectl: Kubectl, manifest: Path) -> None:
    kubectl("apply", "-f", str(manifest))
    kubectl("apply", "--server-side", "-f", str(manifest))
    manifest.write_text(MANIFEST.replace('  b: "2"\n', ""))
    kubectl("apply", "--server-side", "-f", str(manifest))
    assert here.get(CONFIGMAPS, "c")["data"] == {"a": "1"}


def test_apply_dry_run_shows_and_changes_nothing(here: ScratchNamespace, kubectl: Kubectl, manifest: Path) -> None:
    said = kubectl("apply", "--dry-run=server", "-f", str(manifest)).stdout.splitlines()
    assert said == ["configmap/c created (server dry run)", "deployment.apps/d created (server dry run)"]
    assert here.names(CONFIGMAPS) == []


def test_apply_prunes_by_label(here: ScratchNamespace, kubectl: Kubectl) -> None:
    def config(name: str) -> str:
        return f"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, labels: {{set: s}}}}\n"

    kubectl("apply", "-f", "-", input=config("a") + config("b"))
    kubectl("apply", "-f", "-", "--prune", "-l", "set=s", "--prune-allowlist=core/v1/ConfigMap", input=config("b"))
    assert here.names(CONFIGMAPS) == ["b"]


def test_diff_shows_what_apply_would_change(here: ScratchNamespace, kubectl: Kubectl, manifest: Path) -> None:
    kubectl("apply", "-f", str(manifest))
    assert kubectl("diff", "-f", str(manifest)).stdout == ""
    manifest.write_text(MANIFEST.replace('a: "1"', 'a: "9"'))
    found = kubectl("diff", "-f", str(manifest), check=False)
    assert found.returncode == 1
    assert '-  a: "1"' in found.stdout
    assert '+  a: "9"' in found.stdout
    assert here.get(CONFIGMAPS, "c")["data"]["a"] == "1"


# Changing what is there ----------------------------------------------------------------------------------------------


def test_edit(here: ScratchNamespace, kubectl_binary: str, server: Target, tmp_path: Path) -> None:
    import subprocess

    here.make(CONFIGMAPS, "c", data={"a": "1"})
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nsed -i \'s/a: "1"/a: "edited"/\' "$1"\n')
    editor.chmod(0o755)
    done = subprocess.run(
        [kubectl_binary, "-n", here.namespace, "edit", "configmap", "c"],
        env={**server.env, "EDITOR": str(editor), "KUBE_EDITOR": str(editor)},
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.stdout == "configmap/c edited\n", done.stderr
    assert here.get(CONFIGMAPS, "c")["data"] == {"a": "edited"}


def test_label_and_annotate(here: ScratchNamespace, kubectl: Kubectl) -> None:
    here.make(CONFIGMAPS, "c", labels={"old": "x"})
    assert kubectl("label", "cm", "c", "new=1", "old-").stdout == "configmap/c labeled\n"
    refused = kubectl("label", "cm", "c", "new=2", check=False)
    assert "'new' already has a value (1), and --overwrite is false" in refused.stderr
    kubectl("label", "cm", "c", "new=2", "--overwrite")
    kubectl("annotate", "cm", "c", "why=because")
    meta = here.get(CONFIGMAPS, "c")["metadata"]
    assert (meta["labels"], meta["annotations"]) == ({"new": "2"}, {"why": "because"})
    bad = kubectl("label", "cm", "c", "bad value=x y", check=False)
    assert bad.returncode == 1


@pytest.mark.parametrize(
    ("kind", "patch", "images"),
    [
        ("json", [{"op": "replace", "path": "/spec/template/spec/containers/1/image", "value": "j"}], ["i", "j"]),
        ("merge", {"spec": {"template": {"spec": {"containers": [{"name": "a", "image": "m"}]}}}}, ["m"]),
        ("strategic", {"spec": {"template": {"spec": {"containers": [{"name": "b", "image": "s"}]}}}}, None),
    ],
)
def test_patch(here: ScratchNamespace, kubectl: Kubectl, kind: str, patch: object, images: list[str] | None) -> None:
    labels = {"app": "x"}
    containers = [{"name": "a", "image": "i"}, {"name": "b", "image": "i"}]
    template = {"metadata": {"labels": labels}, "spec": {"containers": containers}}
    here.make(DEPLOYMENTS, "d", spec={"replicas": 0, "selector": {"matchLabels": labels}, "template": template})
    said = kubectl("patch", "deployment", "d", "--type", kind, "-p", json.dumps(patch)).stdout
    assert said == "deployment.apps/d patched\n"
    found = here.get(DEPLOYMENTS, "d")["spec"]["template"]["spec"]["containers"]
    assert sorted(c["image"] for c in found) == (images or ["i", "s"])


def test_patch_of_status(here: ScratchNamespace, kubectl: Kubectl, widgets: Resource) -> None:
    here.make(widgets, "w")
    kind = f"{widgets.plural}.{widgets.group}"
    kubectl("patch", kind, "w", "--subresource=status", "--type=merge", "-p", '{"status":{"phase":"Up"}}')
    assert here.get(widgets, "w")["status"] == {"phase": "Up"}


def test_replace_and_replace_by_force(here: ScratchNamespace, kubectl: Kubectl) -> None:
    made = here.make(CONFIGMAPS, "c", data={"a": "1"})
    made["data"] = {"b": "2"}
    assert kubectl("replace", "-f", "-", input=json.dumps(made)).stdout == "configmap/c replaced\n"
    assert here.get(CONFIGMAPS, "c")["data"] == {"b": "2"}
    stale = kubectl("replace", "-f", "-", input=json.dumps(made), check=False)
    assert "the object has been modified" in stale.stderr
    del made["metadata"]["resourceVersion"], made["metadata"]["uid"]
    kubectl("replace", "--force", "-f", "-", input=json.dumps(made))
    assert here.get(CONFIGMAPS, "c")["metadata"]["uid"] != made["metadata"].get("uid")


def test_scale(here: ScratchNamespace, kubectl: Kubectl, widgets: Resource) -> None:
    here.make(widgets, "w", spec={"replicas": 1})
    kind = f"{widgets.plural}.{widgets.group}"
    assert "scaled" in kubectl("scale", kind, "w", "--replicas=3").stdout
    assert here.get(widgets, "w")["spec"]["replicas"] == 3
    refused = kubectl("scale", kind, "w", "--replicas=5", "--current-replicas=1", check=False)
    assert refused.returncode == 1
    assert here.get(widgets, "w")["spec"]["replicas"] == 3


def test_set_image_and_env(here: ScratchNamespace, kubectl: Kubectl, manifest: Path) -> None:
    kubectl("apply", "-f", str(manifest))
    kubectl("set", "image", "deployment/d", "side=registry.example/side:9")
    kubectl("set", "env", "deployment/d", "-c", "main", "MODE=test")
    main, side = here.get(DEPLOYMENTS, "d")["spec"]["template"]["spec"]["containers"]
    assert side["image"] == "registry.example/side:9"
    assert main["env"] == [{"name": "MODE", "value": "test"}]


# wait, delete --------------------------------------------------------------------------------------------------------


def test_wait_for_a_condition_a_value_and_a_deletion(
    here: ScratchNamespace, kubectl: Kubectl, widgets: Resource
) -> None:
    here.create(PODS, sleeping_pod("p"))
    ready = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    here.patch(PODS, "p", ready, subresource="status")
    said = kubectl("wait", "pod/p", "--for=condition=Ready", "--timeout=50s").stdout
    assert said == "pod/p condition met\n"
    kubectl("wait", "pod/p", "--for=jsonpath={.status.phase}=Running", "--timeout=50s")
    late = kubectl("wait", "pod/p", "--for=condition=Sleeping", "--timeout=1s", check=False)
    assert late.returncode == 1
    assert "timed out waiting for the condition" in late.stderr
    here.delete(PODS, "p", grace_period=0)
    kubectl("wait", "pod/p", "--for=delete", "--timeout=50s")


def test_delete_by_name_file_selector_and_all(here: ScratchNamespace, kubectl: Kubectl, manifest: Path) -> None:
    kubectl("apply", "-f", str(manifest))
    said = kubectl("delete", "-f", str(manifest)).stdout
    assert 'configmap "c" deleted' in said
    assert 'deployment.apps "d" deleted' in said
    for name in ("a", "b", "c", "d"):
        here.make(SECRETS, name, labels={"half": str(name in "ab")})
    kubectl("delete", "secret", "-l", "half=True")
    assert here.names(SECRETS) == ["c", "d"]
    kubectl("delete", "secrets", "--all")
    assert here.names(SECRETS) == []
    gone = kubectl("delete", "secret", "a", check=False)
    assert gone.stderr.strip() == 'Error from server (NotFound): secrets "a" not found'
    kubectl("delete", "secret", "a", "--ignore-not-found")


def test_delete_with_grace_and_by_force(here: ScratchNamespace, kubectl: Kubectl) -> None:
    here.create(PODS, sleeping_pod("p", spec={"nodeName": "no-such-node"}))
    kubectl("delete", "pod", "p", "--wait=false")
    assert here.get(PODS, "p")["metadata"]["deletionGracePeriodSeconds"] == 30
    kubectl("delete", "pod", "p", "--grace-period=0", "--force", "--ignore-not-found")  # it is collected after a while
    assert not here.exists(PODS, "p")


def test_delete_cascade_orphan(here: ScratchNamespace, kubectl: Kubectl) -> None:
    owner = here.make(CONFIGMAPS, "owner")
    reference: Object = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    here.make(SECRETS, "child", ownerReferences=[reference])
    kubectl("delete", "cm", "owner", "--cascade=orphan")
    assert not here.exists(CONFIGMAPS, "owner")
    assert here.exists(SECRETS, "child")


# Mistakes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("kind: [", "error"),
        ("just text", "error"),
        ("apiVersion: example.invalid/v1\nkind: Unicorn\nmetadata: {name: u}", 'no matches for kind "Unicorn"'),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Bad_Name}", "Invalid value"),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: 1}", "ConfigMap"),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: elsewhere}", "does not match the namespace"),
    ],
)
def test_mistakes_in_a_manifest_are_reported(here: ScratchNamespace, kubectl: Kubectl, text: str, said: str) -> None:
    refused = kubectl("apply", "-f", "-", input=textwrap.dedent(text), check=False)
    assert refused.returncode == 1
    assert said in refused.stderr
    assert here.names(CONFIGMAPS) == []


def test_output_of_a_write_is_the_object(kubectl: Kubectl, manifest: Path) -> None:
    made = list(yaml.safe_load(kubectl("apply", "-f", str(manifest), "-o", "yaml").stdout)["items"])
    assert [item["kind"] for item in made] == ["ConfigMap", "Deployment"]
    assert all(item["metadata"]["uid"] for item in made)
