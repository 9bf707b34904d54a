"""The objects a PaddleJob is made of, as pure functions of what was asked for.

Pods, the ConfigMap with the addresses of all of them, and the headless Service of `intranet: Service`. The gang's
PodGroup has its own file (`gang`), and so has the data volume (`data`).
"""

from __future__ import annotations

import copy
from typing import Any

from paddlecloud.api.paddlejob import JobSettings, RoleSettings
from paddlecloud.controllers.paddlejob import names
from paddlecloud.controllers.paddlejob.decision.case import JobCase
from paddlecloud.controllers.paddlejob.gang import podgroup
from paddlecloud.controllers.paddlejob.pods import data, env, hosts, ports
from paddlecloud.kube.resource import Object, owner_reference

NODE_LOSS_SECONDS = 30
"""How long a pod may sit on a node that is away. Kubernetes' default of five minutes would idle the whole gang."""

_AWAY = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def metadata(job: Object, name: str, *, labels: dict[str, str]) -> Object:
    return {
        "name": name,
        "namespace": job["metadata"]["namespace"],
        "labels": labels,
        "ownerReferences": [owner_reference(job)],
    }


def build_pod(case: JobCase, role: RoleSettings, index: int, *, port: int) -> Object:
    """One pod: the template, and what makes it a rank of this job. The first container is the training program."""
    template = copy.deepcopy(role.template)
    spec: dict[str, Any] = template.get("spec") or {}
    meta = _pod_metadata(case, role, index, written=template.get("metadata") or {}, port=port)
    settings, options, generation = case.settings, case.options, case.generation
    spec["hostname"] = meta["name"]
    if settings.intranet == "Service":
        spec["subdomain"] = settings.name
    in_place = restarts_in_place(settings, case.etcd) and role.restart_policy != "Never"
    spec["restartPolicy"] = "OnFailure" if in_place else "Never"
    if not spec.get("hostPID"):
        # Paddle as process 1 survives its own abort when a peer is lost, and the pod would run on for ever.
        spec.setdefault("shareProcessNamespace", True)
    _tolerate_node_loss(spec)
    container = spec["containers"][0]
    container["env"] = [
        *env.own(settings, role.name, index, port=port, container=container, etcd=case.etcd),
        *env.reporting(
            settings, role.name, index, uid=case.job["metadata"]["uid"], generation=generation, url=options.report_url
        ),
        *env.python_path(container, options.python_path),
    ]
    container.setdefault("terminationMessagePolicy", "FallbackToLogsOnError")  # the end of a traceback, in the status
    if not case.etcd:
        _bind_to_gang(container, settings, role.name, generation=generation, port=port)
    if settings.intranet == "Host":
        _use_host_network(spec, port)
        if options.hosts_files and not case.etcd:
            hosts.mount(spec, settings, generation=generation)
    data.mount(spec, settings, role.name, index, case.observed, options)
    podgroup.enroll(meta, spec, settings, case.gang)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def _pod_metadata(case: JobCase, role: RoleSettings, index: int, *, written: Object, port: int) -> Object:
    """What the template says of its pods, and by what the job, and who looks for it, knows this one."""
    labels = {**(written.get("labels") or {}), **_labels(case.settings, role.name, index, case.generation)}
    meta = metadata(case.job, names.pod_name(case.settings.name, role.name, index), labels=labels)
    meta["annotations"] = {
        names.NO_SIDECAR: "false",  # a proxy in between breaks rendezvous, and a pod with one never completes
        **(written.get("annotations") or {}),
        names.RESOURCE: role.name,
        names.PORT: str(port),
    }
    if written.get("finalizers"):
        meta["finalizers"] = written["finalizers"]
    return meta


def build_config(job: Object, settings: JobSettings, addresses: env.Hosts, *, generation: int, port: int) -> Object:
    meta = metadata(job, settings.name, labels={names.RESOURCE_NAME: settings.name, names.JOB: settings.name})
    content = env.shared(settings, addresses, port=port)
    content[env.generation_key(generation)] = str(generation)
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": content}


def build_service(job: Object, settings: JobSettings, *, port: int) -> Object:
    """One headless Service for the whole job: `<pod>.<job>` is a pod's name for life, whatever address it has.

    Unready pods are published too: ranks find each other before anyone is ready.
    """
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(job, settings.name, labels={names.RESOURCE_NAME: settings.name, names.JOB: settings.name}),
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": {names.JOB: settings.name},
            "ports": [{"name": f"p-{i}", "port": port + i, "targetPort": port + i} for i in range(ports.BLOCK)],
        },
    }


def _labels(settings: JobSettings, role: str, index: int, generation: int) -> dict[str, str]:
    labels = {
        names.RESOURCE_NAME: names.pod_name(settings.name, role, index),
        names.RESOURCE_TYPE: role,
        names.JOB: settings.name,
        names.ROLE: role,
        names.INDEX: str(index),
        names.GENERATION: str(generation),
    }
    return labels | {alias: labels[key] for alias, key in names.KUBEFLOW_LABELS.items()}


def restarts_in_place(settings: JobSettings, etcd: str) -> bool:
    """Who restarts: the controller, all ranks together; or, where a pod may return alone, its kubelet."""
    return settings.restart_scope == "Pod" or bool(etcd)


def _bind_to_gang(container: dict[str, Any], settings: JobSettings, role: str, *, generation: int, port: int) -> None:
    """Start with the others, and with what the ConfigMap says about them."""
    container["env"] += [*env.neighbours(settings, role), *env.gates(settings, role, generation)]
    container["envFrom"] = [*(container.get("envFrom") or ()), {"configMapRef": {"name": settings.name}}]
    if role == "ps" and env.holds_workers(settings):
        # A server is ready when its port accepts; that is what lets the workers go.
        container.setdefault("readinessProbe", {"tcpSocket": {"port": port}, "periodSeconds": 1})


def _use_host_network(spec: dict[str, Any], port: int) -> None:
    """The declared port makes the scheduler keep two ranks off one machine, where they would fight for it."""
    spec["hostNetwork"] = True
    spec.setdefault("dnsPolicy", "ClusterFirstWithHostNet")
    declared = spec["containers"][0].setdefault("ports", [])
    if all(entry.get("containerPort") != port for entry in declared):
        declared.append({"name": "paddle", "containerPort": port, "hostPort": port})


def _tolerate_node_loss(spec: dict[str, Any]) -> None:
    tolerations = spec.setdefault("tolerations", [])
    known = {entry.get("key") for entry in tolerations}
    if None in known:
        return  # the template tolerates everything
    tolerations.extend(
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": NODE_LOSS_SECONDS}
        for key in _AWAY
        if key not in known
    )
