"""The contract between a PaddleJob and the program in its pods: environment variables and nothing else.

`shared` is the content of the ConfigMap named like the job, the same for all pods; `own` is what differs per pod. The
names and formats are paddle-operator's. Added is what Paddle 2.5 and later read, so that one program runs both as
`python train.py` and under `python -m paddle.distributed.launch`; there a user's own value wins.

Invariants, each of which some release of the original broke: every pod finds `POD_IP:PADDLE_PORT` in the list of its
role, no two roles share a list, and the gloo port is nobody's endpoint.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paddlecloud.api.names import ROLES
from paddlecloud.api.paddlejob import JobSettings
from paddlecloud.api.paddlejob.gate import GENERATION, SERVERS_READY
from paddlecloud.controllers.paddlejob import names
from paddlecloud.controllers.paddlejob.pods import ports
from paddlecloud.controllers.paddlejob.reports import token

Hosts = Mapping[str, Sequence[str]]
"""For every role the hosts of its pods by index, as peers address them."""

Env = list[dict[str, Any]]

ROLE_NAMES = {"ps": "PSERVER", "worker": "TRAINER"}
ELASTIC_TIMEOUT = "60"
ETCD = "etcd://"
_ACCELERATORS = ("gpu", "xpu", "npu", "dcu", "mlu")


def endpoint(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def generation_key(generation: int) -> str:
    """The ConfigMap key a pod of this generation waits for: it can never start with the endpoints of an older gang."""
    return f"{GENERATION}{generation}"


def servers_ready_key(generation: int) -> str:
    """The key workers wait for besides, where they must not start before the parameter servers listen."""
    return f"{SERVERS_READY}{generation}"


def holds_workers(settings: JobSettings) -> bool:
    """Whether workers wait for the servers' ports.

    Without gloo a worker that comes too early never connects. With gloo it must not be held: the servers wait for the
    workers before they listen.
    """
    return (
        settings.mode == "PS" and not settings.with_gloo and min(_count(settings, "ps"), _count(settings, "worker")) > 0
    )


def shared(settings: JobSettings, hosts: Hosts, *, port: int) -> dict[str, str]:
    """What all pods get."""
    data = {"TRAINER_PORTS_NUM": str(ports.BLOCK), "PADDLE_PORT": str(port), "PADDLE_JOB_ID": job_id(settings)}
    servers, workers, heters = ([endpoint(host, port) for host in hosts.get(role, ())] for role in ROLES)
    if servers:
        data["PADDLE_PSERVERS_IP_PORT_LIST"] = ",".join(servers)
    if workers:
        data["PADDLE_TRAINER_ENDPOINTS"] = ",".join(workers)
        data["PADDLE_TRAINERS"] = ",".join(hosts["worker"])
        data["PADDLE_TRAINERS_NUM"] = str(len(workers))
        data["PADDLE_MASTER"] = workers[0]
        data["PADDLE_NNODES"] = str(len(workers))
    if heters:
        data |= _heter(workers, heters)
    if settings.with_gloo and servers:
        data["PADDLE_WITH_GLOO"] = str(settings.with_gloo)
        data["PADDLE_GLOO_RENDEZVOUS"] = "3"
        data["PADDLE_GLOO_HTTP_ENDPOINT"] = endpoint(hosts["ps"][0], port + ports.GLOO_OFFSET)
    return data


def _heter(workers: Sequence[str], heters: Sequence[str]) -> dict[str, str]:
    """Two stages: workers feed heter pods. PADDLE_HETER_ENDPOINTS is the original's; Paddle reads the others."""
    return {
        "PADDLE_HETER_ENDPOINTS": ",".join(heters),
        "PADDLE_HETER_TRAINER_IP_PORT_LIST": ",".join(heters),
        "PADDLE_ALL_HETER_TRAINER_IP_PORT_LIST": ",".join(heters),
        "PADDLE_STAGE_TRAINERS_NUM": f"[{len(workers)},{len(heters)}]",
        "STAGE_NUM": "2",
    }


def etcd_of(settings: JobSettings, default: str = "") -> str:
    """The etcd through which the workers of an elastic job find each other, as `host:port`; empty when we form the job.

    A template names it the way Paddle's launchers read it, or the controller's settings have one for all.
    """
    worker = settings.role("worker")
    if settings.elastic is None or worker is None:
        return ""
    for container in (worker.template.get("spec") or {}).get("containers") or ():
        for entry in container.get("env") or ():
            value = str(entry.get("value") or "")
            if entry.get("name") == "PADDLE_MASTER" and value.startswith(ETCD):
                return value.removeprefix(ETCD)
            if entry.get("name") == "PADDLE_ELASTIC_SERVER" and value:
                return value.removeprefix(ETCD)
    return default


def own(
    settings: JobSettings, role: str, index: int, *, port: int, container: Mapping[str, Any], etcd: str = ""
) -> Env:
    """The training container's environment: the user's entries, then ours.

    Ours come last and so win over entries of the same name, except for the additions, which fill gaps only.
    """
    user: Env = list(container.get("env") or ())
    given = {entry.get("name") for entry in user}
    identity = _identity(settings, role, index)
    additions = _additions(settings, role, index, port=port, container=container)
    if etcd:
        additions += _through_etcd(settings, port=port, etcd=etcd)
    return [*user, *identity, *(entry for entry in additions if entry["name"] not in given)]


def _identity(settings: JobSettings, role: str, index: int) -> Env:
    role_name = ROLE_NAMES.get(role, settings.heter_role)
    if settings.intranet == "Service":
        address: dict[str, Any] = {
            "name": "POD_IP",
            "value": names.host_name(settings.name, role, index, namespace=settings.namespace),
        }
    else:
        address = {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    return [
        address,
        {"name": "PADDLE_TRAINER_ID", "value": str(index)},
        {"name": "TRAINING_ROLE", "value": role_name},
        {"name": "PADDLE_TRAINING_ROLE", "value": role_name},
    ]


def _additions(settings: JobSettings, role: str, index: int, *, port: int, container: Mapping[str, Any]) -> Env:
    pod = names.pod_name(settings.name, role, index)
    plain = {
        "PADDLE_CURRENT_ENDPOINT": f"$(POD_IP):{port}",
        # Pods that share a file system would write their launcher's logs over each other.
        "PADDLE_LOG_DIR": f"/tmp/paddle-log/{settings.namespace}/{pod}",  # noqa: S108 - a path inside the pod
        "PYTHONUNBUFFERED": "1",
    }
    if not wants_accelerator(container):
        plain["PADDLE_DISTRI_BACKEND"] = "gloo"  # what `auto` picks on a CPU leaves no process group behind
    if role == "heter":
        plain |= {"STAGE_ID": "2", "HETER_DEVICE_TYPE": "gpu" if wants_accelerator(container) else "cpu"}
    elif role == "worker" and _count(settings, "heter"):
        plain["STAGE_ID"] = "1"
    if settings.elastic is not None:
        plain |= {
            "PADDLE_ELASTIC_JOB_ID": job_id(settings),
            "PADDLE_ELASTIC_NP": str(_count(settings, "worker")),
            "PADDLE_ELASTIC_TIMEOUT": ELASTIC_TIMEOUT,
        }
    return [{"name": name, "value": value} for name, value in plain.items()]


def _through_etcd(settings: JobSettings, *, port: int, etcd: str) -> Env:
    """What Paddle's own elastic launcher needs: current releases read the first four, earlier ones the fifth."""
    worker = settings.role("worker")
    low, high = (worker.minimum, worker.maximum) if worker else (1, 1)
    plain = {
        "PADDLE_MASTER": f"{ETCD}{etcd}",
        "PADDLE_NNODES": str(low) if low == high else f"{low}:{high}",
        "PADDLE_JOB_ID": job_id(settings),
        "PADDLE_ELASTIC_LEVEL": "1",
        "PADDLE_ELASTIC_SERVER": etcd,
        "PADDLE_PORT": str(port),
        "TRAINER_PORTS_NUM": str(ports.BLOCK),
    }
    return [{"name": name, "value": value} for name, value in plain.items()]


def neighbours(settings: JobSettings, role: str) -> Env:
    """In a heter job, the stage before and after this pod's own: the lists of other roles under other names.

    With them Paddle 2.6.2 and its role maker accept all three roles.
    """
    if not _count(settings, "heter") or not _count(settings, "worker"):
        return []
    sources = {
        "worker": ("PADDLE_NEXT_HETER_TRAINER_IP_PORT_LIST", "PADDLE_HETER_ENDPOINTS"),
        "heter": ("PADDLE_PREVIOUS_HETER_TRAINER_IP_PORT_LIST", "PADDLE_TRAINER_ENDPOINTS"),
    }
    if role not in sources:
        return []
    name, key = sources[role]
    return [{"name": name, "valueFrom": {"configMapKeyRef": {"name": settings.name, "key": key}}}]


def reporting(settings: JobSettings, role: str, index: int, *, uid: str, generation: int, url: str) -> Env:
    """Where and with which token a pod reports. The reference is optional: a job without the Secret trains silently."""
    if not url:
        return []
    path = f"report/{settings.namespace}/{settings.name}/{generation}/{role}/{index}"
    secret = {"name": token.secret_name(settings.name, uid), "key": token.TOKEN, "optional": True}
    entries: Env = [
        {"name": "PADDLECLOUD_REPORT_URL", "value": f"{url}/{path}"},
        {"name": "PADDLECLOUD_REPORT_TOKEN", "valueFrom": {"secretKeyRef": secret}},
    ]
    if settings.heartbeat_seconds is not None and role != "ps":
        entries.append({"name": "PADDLECLOUD_HEARTBEAT_SECONDS", "value": str(settings.heartbeat_seconds)})
    return entries


def python_path(container: Mapping[str, Any], folder: str) -> Env:
    """Lets programs import `paddlecloud.data`. The user's own folders come first."""
    if not folder:
        return []
    own = [entry for entry in container.get("env") or () if entry.get("name") == "PYTHONPATH"]
    return [{"name": "PYTHONPATH", "value": f"$(PYTHONPATH):{folder}" if own else folder}]


def gates(settings: JobSettings, role: str, generation: int) -> Env:
    """References to ConfigMap keys that do not exist yet: the kubelet starts the container when they do.

    This is the start barrier. It needs no init container and no image, and pods hold their place in the gang meanwhile.
    """
    keys = [generation_key(generation)]
    if role != "ps" and holds_workers(settings):
        keys.append(servers_ready_key(generation))
    return [{"name": key, "valueFrom": {"configMapKeyRef": {"name": settings.name, "key": key}}} for key in keys]


def job_id(settings: JobSettings) -> str:
    return f"{settings.namespace}-{settings.name}"


def wants_accelerator(container: Mapping[str, Any]) -> bool:
    resources = container.get("resources") or {}
    asked = {**(resources.get("requests") or {}), **(resources.get("limits") or {})}
    return any("/" in name and any(word in name.lower() for word in _ACCELERATORS) for name in asked)


def _count(settings: JobSettings, role: str) -> int:
    found = settings.role(role)
    return found.replicas if found else 0
