"""Real kubectl, reading: get in every form, describe, watch, explain, events and who may do what."""

from __future__ import annotations

import json
import re
import subprocess
from typing import TYPE_CHECKING

import pytest
import yaml

from paddlecloud.kube.resource import CONFIGMAPS, EVENTS, PODS, Resource

from .world import DEPLOYMENTS, ScratchNamespace, eventually, sleeping_pod

if TYPE_CHECKING:
    from harness import Kubectl, Target


@pytest.fixture
def populated(here: ScratchNamespace) -> ScratchNamespace:
    here.make(CONFIGMAPS, "one", data={"k": "v"}, labels={"app": "x"}, annotations={"note": "hi"})
    here.make(CONFIGMAPS, "two", data={"a": "1", "b": "2"})
    here.create(PODS, sleeping_pod("p", labels={"app": "x"}))
    return here


def rows(printed: str) -> list[list[str]]:
    return [re.split(r"\s{2,}", line.strip()) for line in printed.strip().splitlines()]


# get -----------------------------------------------------------------------------------------------------------------


def test_get_prints_a_table(populated: ScratchNamespace, kubectl: Kubectl) -> None:
    header, *found = rows(kubectl("get", "configmaps").stdout)
    assert header == ["NAME", "DATA", "AGE"]
    assert [row[:2] for row in found if row[0] in ("one", "two")] == [["one", "1"], ["two", "2"]]


def test_get_wide_shows_more(populated: ScratchNamespace, kubectl: Kubectl) -> None:
    header, row = rows(kubectl("get", "pod", "p", "-o", "wide").stdout)
    assert header == [
        "NAME", "READY", "STATUS", "RESTARTS", "AGE", "IP", "NODE", "NOMINATED NODE", "READINESS GATES",
    ]  # fmt: skip
    assert row[:4] == ["p", "0/1", "Pending", "0"]
    assert row[5:] == ["<none>", "<none>", "<none>", "<none>"]


def test_get_as_yaml_json_and_name(populated: ScratchNamespace, kubectl: Kubectl) -> None:
    assert yaml.safe_load(kubectl("get", "cm", "one", "-o", "yaml").stdout)["data"] == {"k": "v"}
    listed = json.loads(kubectl("get", "cm", "one", "two", "-o", "json").stdout)
    assert listed["kind"] == "List"
    assert [item["metadata"]["name"] for item in listed["items"]] == ["one", "two"]
    assert kubectl("get", "cm/one", "pod/p", "-o", "name").stdout.split() == ["configmap/one", "pod/p"]


@pytest.mark.parametrize(
    ("output", "printed"),
    [
        ("jsonpath={.data.k}", "v"),
        ("jsonpath={.metadata['name','namespace']}", "one {ns}"),
        ("go-template={{.metadata.name}}={{.data.k}}", "one=v"),
        ("custom-columns=N:.metadata.name,K:.data.k", "N     K\none   v"),
        ("custom-columns=X:.spec.missing", "X\n<none>"),
    ],
)
def test_get_with_templates(populated: ScratchNamespace, kubectl: Kubectl, output: str, printed: str) -> None:
    assert kubectl("get", "cm", "one", "-o", output).stdout.strip() == printed.format(ns=populated.namespace)


def test_get_with_selectors_labels_and_sorting(populated: ScratchNamespace, kubectl: Kubectl) -> None:
    assert kubectl("get", "cm,pods", "-l", "app=x", "-o", "name").stdout.split() == ["configmap/one", "pod/p"]
    assert kubectl("get", "cm", "--field-selector", "metadata.name=two", "-o", "name").stdout == "configmap/two\n"
    header, row = rows(kubectl("get", "cm", "one", "--show-labels", "-L", "app").stdout)
    assert (header[-2:], row[-2:]) == (["APP", "LABELS"], ["x", "app=x"])
    sorted_ = kubectl("get", "cm", "--sort-by", "{.metadata.creationTimestamp}", "--no-headers").stdout
    names = [row[0] for row in rows(sorted_) if row[0] in ("one", "two")]
    assert sorted(names) == ["one", "two"]


def test_get_of_nothing_says_so(here: ScratchNamespace, kubectl: Kubectl) -> None:
    assert f"No resources found in {here.namespace} namespace." in kubectl("get", "pods").stderr
    missing = kubectl("get", "pod", "nobody", check=False)
    assert missing.returncode == 1
    assert missing.stderr.strip() == 'Error from server (NotFound): pods "nobody" not found'
    assert kubectl("get", "pod", "nobody", "--ignore-not-found").stdout == ""


def test_get_of_an_unknown_kind_says_so(here: ScratchNamespace, kubectl: Kubectl) -> None:
    unknown = kubectl("get", "unicorns", check=False)
    assert unknown.returncode == 1
    assert 'the server doesn\'t have a resource type "unicorns"' in unknown.stderr


def test_get_everything_everywhere(populated: ScratchNamespace, kubectl: Kubectl) -> None:
    assert "pod/p" in kubectl("get", "all").stdout
    table = rows(kubectl("get", "pods", "-A").stdout)
    assert table[0][:2] == ["NAMESPACE", "NAME"]
    assert [populated.namespace, "p"] in [row[:2] for row in table]


def test_get_in_chunks_shows_all(here: ScratchNamespace, kubectl: Kubectl) -> None:
    for number in range(7):
        here.make(CONFIGMAPS, f"c{number}")
    names = kubectl("get", "cm", "--chunk-size", "2", "-o", "name").stdout.split()
    assert [f"configmap/c{number}" for number in range(7)] == [n for n in names if "root-ca" not in n]


def test_get_of_a_custom_kind_by_short_name_and_group(
    here: ScratchNamespace, kubectl: Kubectl, widgets: Resource
) -> None:
    here.make(widgets, "w", spec={"colour": "red"})
    here.patch(widgets, "w", {"status": {"phase": "Running"}}, subresource="status")
    header, row = rows(kubectl("get", f"wid.{widgets.group}", "-o", "wide").stdout)
    assert header == ["NAME", "SIZE", "PHASE", "COLOUR", "AGE"]
    assert row[:4] == ["w", "3", "Running", "red"]


def test_get_raw(kubectl: Kubectl) -> None:
    assert json.loads(kubectl("get", "--raw", "/api/v1").stdout)["kind"] == "APIResourceList"


def test_get_subresource(here: ScratchNamespace, kubectl: Kubectl, widgets: Resource) -> None:
    here.make(widgets, "w", spec={"replicas": 4})
    kind = f"{widgets.plural}.{widgets.group}"
    assert kubectl("get", kind, "w", "--subresource=scale", "-o", "jsonpath={.spec.replicas}").stdout == "4"


def test_get_watch_prints_what_changes(populated: ScratchNamespace, kubectl_binary: str, server: Target) -> None:
    command = [kubectl_binary, "-n", populated.namespace, "get", "pods", "-w", "--no-headers"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=server.env) as watching:
        assert watching.stdout is not None
        try:
            assert watching.stdout.readline().split()[:3] == ["p", "0/1", "Pending"]
            populated.create(PODS, sleeping_pod("q"))
            assert watching.stdout.readline().split()[:3] == ["q", "0/1", "Pending"]
            populated.patch(PODS, "q", {"status": {"phase": "Running"}}, subresource="status")
            assert watching.stdout.readline().split()[:3] == ["q", "0/1", "Running"]
        finally:
            watching.terminate()


def test_get_watch_names_the_kind_of_change(here: ScratchNamespace, kubectl_binary: str, server: Target) -> None:
    command = [
        kubectl_binary, "-n", here.namespace, "get", "cm", "--field-selector=metadata.name=w", "--watch",
        "--output-watch-events", "-o",
        "jsonpath={.type}{' '}{.object.data.k}{'\\n'}",
    ]  # fmt: skip
    here.make(CONFIGMAPS, "w", data={"k": "1"})
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=server.env) as watching:
        assert watching.stdout is not None
        try:
            assert watching.stdout.readline() == "ADDED 1\n"
            here.patch(CONFIGMAPS, "w", {"data": {"k": "2"}})
            assert watching.stdout.readline() == "MODIFIED 2\n"
            here.delete(CONFIGMAPS, "w")
            assert watching.stdout.readline() == "DELETED 2\n"
        finally:
            watching.terminate()


# describe, events, explain -------------------------------------------------------------------------------------------


def test_describe_shows_the_story_of_a_pod(populated: ScratchNamespace, kubectl: Kubectl) -> None:
    pod = populated.get(PODS, "p")
    reference = {"kind": "Pod", "name": "p", "namespace": populated.namespace, "uid": pod["metadata"]["uid"]}
    populated.make(
        EVENTS, "p.1", involvedObject={"apiVersion": "v1", **reference}, reason="Tested", message="it was tested",
        type="Warning", source={"component": "conformance"}, count=3,
        firstTimestamp="2026-01-02T03:04:05Z", lastTimestamp="2026-01-02T03:05:05Z",
    )  # fmt: skip
    reported = kubectl("describe", "pod", "p").stdout
    assert re.search(r"^Name:\s+p$", reported, re.MULTILINE)
    assert re.search(r"^Status:\s+Pending$", reported, re.MULTILINE)
    assert re.search(r"^Service Account:\s+default$", reported, re.MULTILINE)
    assert re.search(r"Warning\s+Tested\s+.*x3 over.*conformance\s+it was tested", reported)


@pytest.mark.parametrize("kind", ["configmap", "namespace", "serviceaccount", "deployment", "widget"])
def test_describe_knows_every_kind(here: ScratchNamespace, kubectl: Kubectl, widgets: Resource, kind: str) -> None:
    labels = {"app": "x"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    if kind == "deployment":
        here.make(DEPLOYMENTS, "x", spec={"replicas": 0, "selector": {"matchLabels": labels}, "template": template})
    elif kind == "widget":
        here.make(widgets, "x")
        kind = f"widget.{widgets.group}"
    name = {"namespace": here.namespace, "serviceaccount": "default"}.get(kind, "x")
    if kind == "configmap":
        here.make(CONFIGMAPS, "x", data={"k": "v"})
    reported = kubectl("describe", kind, name).stdout
    assert re.search(rf"^Name:\s+{name}$", reported, re.MULTILINE)


def test_events_lists_them(populated: ScratchNamespace, kubectl: Kubectl) -> None:
    pod = populated.get(PODS, "p")
    reference = {"kind": "Pod", "name": "p", "namespace": populated.namespace, "uid": pod["metadata"]["uid"]}
    populated.make(
        EVENTS, "p.2", involvedObject={"apiVersion": "v1", **reference}, reason="Tested", message="it was tested",
        type="Normal", firstTimestamp="2026-01-02T03:04:05Z", lastTimestamp="2026-01-02T03:05:05Z", count=1,
    )  # fmt: skip
    table = rows(kubectl("events", "--for", "pod/p").stdout)
    assert table[0] == ["LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]
    assert table[1][1:] == ["Normal", "Tested", "Pod/p", "it was tested"]
    assert "it was tested" in kubectl("get", "events").stdout


def test_explain_knows_built_in_fields(kubectl: Kubectl) -> None:
    reported = kubectl("explain", "pod.spec.containers.image").stdout
    assert "KIND:       Pod" in reported
    assert "FIELD: image <string>" in reported
    assert "nodeSelector\t<map[string]string>" in kubectl("explain", "pods.spec").stdout


def test_explain_knows_custom_fields(kubectl: Kubectl, widgets: Resource) -> None:
    def reported() -> str:
        return kubectl("explain", f"widgets.{widgets.group}", "--recursive", check=False).stdout

    text = eventually(reported, lambda seen: "size" in seen)
    assert "A widget of the conformance suite." in text
    assert "How large." in kubectl("explain", f"widgets.{widgets.group}.spec.size").stdout
    assert "enum: red, green, blue" in kubectl("explain", f"widgets.{widgets.group}.spec").stdout


# api-resources, versions, auth ---------------------------------------------------------------------------------------


def test_api_resources_and_versions(kubectl: Kubectl, widgets: Resource) -> None:
    table = kubectl("api-resources", "--api-group", "apps", "--no-headers").stdout
    assert re.search(r"^deployments\s+deploy\s+apps/v1\s+true\s+Deployment$", table, re.MULTILINE)
    names = kubectl("api-resources", "-o", "name", "--verbs", "list,watch", "--namespaced").stdout.split()
    assert {"pods", "configmaps", f"widgets.{widgets.group}"} <= set(names)
    assert "nodes" not in names
    assert {"v1", "apps/v1", f"{widgets.group}/v1"} <= set(kubectl("api-versions").stdout.split())


def test_version_shows_the_server(kubectl: Kubectl) -> None:
    assert json.loads(kubectl("version", "-o", "json").stdout)["serverVersion"]["major"] == "1"


def test_auth_can_i_and_whoami(here: ScratchNamespace, kubectl: Kubectl) -> None:
    assert kubectl("auth", "can-i", "create", "pods").stdout.strip() == "yes"
    denied = kubectl("auth", "can-i", "create", "pods", "--as", "nobody", check=False)
    assert (denied.returncode, denied.stdout.strip()) == (1, "no")
    assert "*.*" in kubectl("auth", "can-i", "--list").stdout
    who = kubectl("auth", "whoami", "-o", "json", "--as", "jane", "--as-group", "devs")
    info = json.loads(who.stdout)["status"]["userInfo"]
    assert (info["username"], set(info["groups"])) == ("jane", {"devs", "system:authenticated"})
