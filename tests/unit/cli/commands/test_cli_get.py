"""`pdc get`: what is asked of the server and how the answer is shown."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from paddlecloud.cli.render import server_table
from unit.cli.conftest import Pdc
from unit.cli.samples import pod_with
from unit.cli.stub import Stub


def pod(name: str, *, phase: str = "Running", node: str = "n1", labels: dict[str, str] | None = None) -> dict[str, Any]:
    meta: dict[str, Any] = {"name": name}
    if labels:
        meta["labels"] = labels
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"nodeName": node}, "status": {"phase": phase}}


@pytest.fixture
def cluster(stub: Stub) -> Stub:
    stub.add(pod("web-0", labels={"app": "web"}))
    stub.add(pod("db-0", phase="Pending", node="n2", labels={"app": "db"}))
    stub.add(pod("far", labels={"app": "web"}), namespace="other")
    stub.add({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}})
    return stub


def test_a_table_has_the_servers_columns(cluster: Stub, pdc: Pdc) -> None:
    assert pdc("get", "pods").out == "NAME    STATUS\ndb-0    Pending\nweb-0   Running\n"


@pytest.mark.parametrize(
    ("flags", "lines"),
    [
        (["-o", "wide"], ["NAME STATUS NODE", "db-0 Pending n2", "web-0 Running n1"]),
        (["-A"], ["NAMESPACE NAME STATUS", "default db-0 Pending", "default web-0 Running", "other far Running"]),
        (["-n", "other"], ["NAME STATUS", "far Running"]),
        (["--no-headers"], ["db-0 Pending", "web-0 Running"]),
        (["-l", "app=web"], ["NAME STATUS", "web-0 Running"]),
        (["--field-selector", "status.phase=Pending"], ["NAME STATUS", "db-0 Pending"]),
        (["--show-labels"], ["NAME STATUS LABELS", "db-0 Pending app=db", "web-0 Running app=web"]),
        (["-L", "app"], ["NAME STATUS APP", "db-0 Pending db", "web-0 Running web"]),
        (["--sort-by", ".status.phase"], ["NAME STATUS", "db-0 Pending", "web-0 Running"]),
        (["--sort-by", "{.metadata.resourceVersion}"], ["NAME STATUS", "web-0 Running", "db-0 Pending"]),
        (["web-0", "db-0"], ["NAME STATUS", "web-0 Running", "db-0 Pending"]),
        (["-o", "name"], ["pod/db-0", "pod/web-0"]),
        (["-o", "jsonpath={.items[*].metadata.name}"], ["db-0 web-0"]),
        (["web-0", "-o", "jsonpath={.status.phase}"], ["Running"]),
        (["web-0", "-o", "jsonpath=.status.phase"], ["Running"]),
        (["-o", "custom-columns=N:.metadata.name,X:.nope"], ["N X", "db-0 <none>", "web-0 <none>"]),
        (["-o", "custom-columns=N:.metadata.name", "--no-headers"], ["db-0", "web-0"]),
    ],
)
def test_every_form_of_output(cluster: Stub, pdc: Pdc, flags: list[str], lines: list[str]) -> None:
    result = pdc("get", "pods", *flags)
    assert result.code == 0
    assert [" ".join(line.split()) for line in result.out.splitlines()] == lines


def test_json_of_a_collection_is_a_list_and_of_a_name_the_object(cluster: Stub, pdc: Pdc) -> None:
    everything = pdc("get", "pods", "-o", "json").json()
    assert everything["kind"] == "List"
    assert [item["metadata"]["name"] for item in everything["items"]] == ["db-0", "web-0"]
    assert {item["kind"] for item in everything["items"]} == {"Pod"}
    assert pdc("get", "pod/web-0", "-o", "json").json()["kind"] == "Pod"


def test_yaml_reads_back_as_the_object(cluster: Stub, pdc: Pdc) -> None:
    live = dict(cluster.objects[("pods", "default", "web-0")])
    assert yaml.safe_load(pdc("get", "pod", "web-0", "-o", "yaml").out) == live


def test_managed_fields_are_shown_only_when_asked_for(stub: Stub, pdc: Pdc) -> None:
    busy = pod("busy")
    busy["metadata"]["managedFields"] = [{"manager": "x"}]
    stub.add(busy)
    assert "managedFields" not in pdc("get", "pod", "busy", "-o", "yaml").out
    assert "managedFields" in pdc("get", "pod", "busy", "-o", "yaml", "--show-managed-fields").out


def test_several_kinds_are_distinguished_by_prefix(cluster: Stub, pdc: Pdc) -> None:
    out = pdc("get", "pods,svc").out
    assert "pod/web-0" in out
    assert "service/web" in out
    assert "\n\n" in out, "an empty line between the kinds"


def test_a_category_stands_for_its_members(cluster: Stub, pdc: Pdc) -> None:
    out = pdc("get", "all").out
    assert "pod/web-0" in out
    assert "service/web" in out


def test_ps_lists_paddlejobs(stub: Stub, pdc: Pdc) -> None:
    job = {"apiVersion": "batch.paddlepaddle.org/v1", "kind": "PaddleJob", "metadata": {"name": "wide"}}
    stub.add({**job, "status": {"phase": "Running"}})
    assert pdc("ps").out.split() == ["NAME", "STATUS", "wide", "Running"]
    assert pdc("ps", "-o", "name").out == "paddlejob.batch.paddlepaddle.org/wide\n"


def test_nothing_found_is_said_on_stderr_and_is_no_error(stub: Stub, pdc: Pdc) -> None:
    result = pdc("get", "pods")
    assert (result.code, result.out) == (0, "")
    assert result.err == "No resources found in default namespace.\n"
    assert pdc("get", "pods", "-A").err == "No resources found\n"
    assert pdc("get", "pods", "-o", "json").json()["items"] == []


def test_one_missing_name_does_not_hide_the_others(cluster: Stub, pdc: Pdc) -> None:
    result = pdc("get", "pods", "web-0", "gone")
    assert result.code == 3
    assert "web-0" in result.out
    assert 'pods "gone" not found' in result.err
    assert "next:  pdc get pods" in result.err


def test_ignore_not_found(cluster: Stub, pdc: Pdc) -> None:
    result = pdc("get", "pod", "gone", "--ignore-not-found")
    assert (result.code, result.out, result.err) == (0, "", "")


def test_flags_may_stand_between_names(cluster: Stub, pdc: Pdc) -> None:
    assert pdc("-n", "default", "get", "pods", "-o", "name", "web-0").out == "pod/web-0\n"


def test_discovery_is_asked_once_and_again_for_an_unknown_kind(cluster: Stub, pdc: Pdc) -> None:
    pdc("get", "pods")
    pdc("get", "pods")
    assert [path for path, _, _ in cluster.asked("GET")].count("/apis") == 1
    cluster.kinds.append(("new.example", "v1", "gadgets", "Gadget", True, []))
    assert pdc("get", "gadgets").code == 0
    assert [path for path, _, _ in cluster.asked("GET")].count("/apis") == 2


def test_what_was_remembered_of_servers_long_gone_is_dropped(cluster: Stub, pdc: Pdc, home: Path) -> None:
    folder = home / "cache" / "paddlecloud" / "discovery"
    folder.mkdir(parents=True)
    for name, age in (("old.json", 100_000), ("yesterday.json", 50_000)):
        (folder / name).touch()
        os.utime(folder / name, (time.time() - age,) * 2)
    pdc("get", "pods")
    assert {path.name for path in folder.iterdir()} & {"old.json", "yesterday.json"} == {"yesterday.json"}


def test_a_remembered_kind_that_left_is_forgotten(cluster: Stub, pdc: Pdc) -> None:
    cluster.kinds.append(("new.example", "v1", "gadgets", "Gadget", True, []))
    assert pdc("get", "gadgets").code == 0
    cluster.kinds.pop()
    assert pdc("get", "gadgets").code == 3
    assert 'no resource type "gadgets"' in pdc("get", "gadgets").err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["get"], "no kind given"),
        (["get", "pods/a", "b"], "KIND/NAME"),
        (["get", "pods", "-o", "xml"], "is not offered here"),
        (["get", "pods", "-o", "jsonpath"], "needs an expression"),
        (["get", "pods", "-o", "jsonpath={.a"], "is not a JSONPath"),
        (["get", "pods", "-o", "custom-columns=X"], "HEADER:PATH"),
        (["get", "pods", "x", "-A"], "across all namespaces"),
        (["get", "pods", "--nope"], "--nope"),
        (["get", "pods,svc", "-w"], "only one kind"),
    ],
)
def test_usage_errors_exit_2_and_ask_the_server_for_no_object(
    cluster: Stub, pdc: Pdc, arguments: list[str], says: str
) -> None:
    result = pdc(*arguments)
    assert result.code == 2
    assert says in result.err
    assert result.out == ""
    assert not [path for path, _, _ in cluster.asked("GET") if "pods" in path]


def test_control_characters_cannot_move_the_cursor(stub: Stub, pdc: Pdc) -> None:
    stub.add(pod("evil", phase="Run\x1b[2Jning\nfake-row"))
    out = pdc("get", "pods").out
    assert "\x1b" not in out
    assert len(out.splitlines()) == 2


def test_wide_characters_keep_columns_aligned(stub: Stub, pdc: Pdc) -> None:
    stub.add(pod("a", phase="训练"))
    stub.add(pod("b", phase="ok"))
    out = pdc("get", "pods", "-o", "wide").out.splitlines()
    assert out[1] == "a      训练     n1"
    assert out[2] == "b      ok       n1"


def test_warnings_of_the_server_go_to_stderr(cluster: Stub, pdc: Pdc) -> None:
    cluster.warnings = ["v1 pods are old"]
    result = pdc("get", "pods", "-o", "name")
    assert "Warning: v1 pods are old" in result.err
    assert "Warning" not in result.out


def test_get_watch_prints_changes_until_interrupted(stub: Stub) -> None:
    stub.add(pod_with({"phase": "Pending"}))
    stub.watch_events = [{"type": "MODIFIED", "object": pod_with({"phase": "Running"}, resourceVersion="200")}]
    child = subprocess.Popen(
        [sys.executable, "-m", "paddlecloud.cli.main", "get", "pods", "-w"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    lines = [child.stdout.readline().split() for _ in range(3)]
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=60)
    assert lines == [["NAME", "STATUS"], ["p", "Pending"], ["p", "Running"]]
    assert child.returncode == 130
    assert "Traceback" not in err


def test_what_is_being_deleted_is_shown_as_terminating_whatever_its_last_phase_was() -> None:
    columns = [server_table.Column("Name"), server_table.Column("Phase")]
    rows = [
        server_table.Row(["a", "Ready"], {"metadata": {"name": "a", "deletionTimestamp": "2027-01-15T07:55:00Z"}}),
        server_table.Row(["b", "Ready"], {"metadata": {"name": "b"}}),
    ]
    assert [server_table.Shape().cells(columns, row) for row in rows] == [["a", "Terminating"], ["b", "Ready"]]
