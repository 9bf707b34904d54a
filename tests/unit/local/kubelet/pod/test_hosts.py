"""Names inside pods: which forms resolve for whom, and files that change under running pods."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from paddlecloud.kube.resource import Object
from paddlecloud.local.kubelet.pod.hosts import HostsWriter, Name, names_of, own_lines, render


def service(name: str, ip: str, *, namespace: str = "d", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": namespace}, "spec": {"clusterIP": ip, **spec}}


def endpoints(service: str, *entries: Any, namespace: str = "d") -> dict[str, Any]:
    labels = {"kubernetes.io/service-name": service}
    return {"metadata": {"name": f"{service}-1", "namespace": namespace, "labels": labels}, "endpoints": list(entries)}


def entry(ip: str, *, ready: bool = True, hostname: str | None = None) -> dict[str, Any]:
    return {"addresses": [ip], "conditions": {"ready": ready}, **({"hostname": hostname} if hostname else {})}


def test_a_cluster_service_resolves_to_its_own_address_in_every_form() -> None:
    text = render(names_of([service("web", "127.32.0.10")], [endpoints("web", entry("127.64.0.1"))]), "d")
    assert text == "127.32.0.10\tweb.d.svc.cluster.local web.d.svc web.d web\n"


def test_the_short_name_belongs_to_the_services_own_namespace() -> None:
    assert render([Name("127.32.0.10", "web", "d")], "other") == (
        "127.32.0.10\tweb.d.svc.cluster.local web.d.svc web.d\n"
    )


def test_a_headless_service_resolves_to_its_ready_pods_and_their_host_names() -> None:
    slices = [endpoints("db", entry("127.64.0.1", hostname="db-0"), entry("127.64.0.2", ready=False))]
    assert names_of([service("db", "None")], slices) == [
        Name("127.64.0.1", "db", "d"),
        Name("127.64.0.1", "db", "d", "db-0"),
    ]


def test_addresses_not_ready_resolve_where_the_service_says_so() -> None:
    slices = [endpoints("db", entry("127.64.0.2", ready=False))]
    assert names_of([service("db", "None", publishNotReadyAddresses=True)], slices)


def test_a_pods_own_lines_have_its_name_its_subdomain_and_its_aliases() -> None:
    pod: Object = {
        "metadata": {"name": "db-0", "namespace": "d"},
        "spec": {"subdomain": "db", "hostAliases": [{"ip": "10.0.0.1", "hostnames": ["a", "b"]}]},
    }
    lines = own_lines(pod, "127.64.0.1").splitlines()
    assert "127.64.0.1\tdb-0.db.d.svc.cluster.local db-0" in lines
    assert "10.0.0.1\ta\tb" in lines
    assert lines[0] == "# Kubernetes-managed hosts file."
    pod["spec"]["hostNetwork"] = True
    assert own_lines(pod, "127.0.0.1").splitlines()[0] == "# Kubernetes-managed hosts file (host network)."


def test_files_of_running_pods_follow_changes_in_place(tmp_path: Path) -> None:
    file = tmp_path / "hosts"
    writer = HostsWriter()
    writer.add("u", file, own="127.64.0.1\tme\n", namespace="d")
    inode = os.stat(file).st_ino
    writer.set_names([Name("127.32.0.10", "a-long-name", "d"), Name("127.32.0.11", "b", "d")])
    assert "127.32.0.11\tb.d.svc.cluster.local b.d.svc b.d b" in file.read_text()
    writer.set_names([])
    assert file.read_text() == "127.64.0.1\tme\n"
    assert os.stat(file).st_ino == inode
    writer.remove("u")
    writer.set_names([Name("127.32.0.10", "late", "d")])
    assert "late" not in file.read_text()
