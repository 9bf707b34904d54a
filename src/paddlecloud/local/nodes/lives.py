"""The life of a simulated pod: what its annotation says, and the statuses it goes through. Pure.

`paddlecloud.org/simulate: delay=2s,run=30s,exit=1` starts after two seconds, runs for thirty and fails with 1. Without
`run` it runs for ever. Probes, images and volumes do not matter to it: nothing is started.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from paddlecloud.api.durations import SECONDS
from paddlecloud.kube.clock import parse_rfc3339, rfc3339
from paddlecloud.kube.resource import Object
from paddlecloud.local.nodes.marks import SIMULATE

_TIME = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)?")


class LifeError(ValueError):
    """The annotation cannot be understood."""


@dataclass(frozen=True, slots=True)
class Life:
    """`run` None means for ever."""

    delay: float = 0.0
    run: float | None = None
    exit: int = 0


def life_of(pod: Object) -> Life:
    text = (pod["metadata"].get("annotations") or {}).get(SIMULATE) or ""
    fields: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = part.partition("=")
        if not equals or name not in ("delay", "run", "exit"):
            raise LifeError(f"{SIMULATE}: {part!r} is none of delay=TIME, run=TIME, exit=CODE")
        fields[name] = value
    code = fields.get("exit", "0")
    if not re.fullmatch(r"\d{1,3}", code) or int(code) > 255:
        raise LifeError(f"{SIMULATE}: exit={code} is not an exit code")
    return Life(
        delay=_seconds(fields["delay"]) if "delay" in fields else 0.0,
        run=_seconds(fields["run"]) if "run" in fields else None,
        exit=int(code),
    )


def _seconds(text: str) -> float:
    found = _TIME.fullmatch(text)
    if found is None:
        raise LifeError(f"{SIMULATE}: {text!r} is not a time such as 200ms, 30s or 1.5h")
    return float(found[1]) * SECONDS[found[2] or "s"]


def restarts(pod: Object, life: Life) -> bool:
    """Whether a container that ends is started again."""
    policy = pod["spec"].get("restartPolicy", "Always")
    return policy == "Always" or (policy == "OnFailure" and life.exit != 0)


# Statuses. Each is a patch; conditions are merged by type.


def running(pod: Object, *, ip: str, now: float, restart_count: int = 0) -> Object:
    time = rfc3339(now)
    state = {"running": {"startedAt": time}}
    return {
        "phase": "Running",
        "hostIP": "127.0.0.1",
        "podIP": ip,
        "podIPs": [{"ip": ip}],
        "startTime": (pod.get("status") or {}).get("startTime") or time,
        "conditions": _conditions(time, ready=True),
        "containerStatuses": [
            _container(c, state, ready=True, restart_count=restart_count) for c in pod["spec"]["containers"]
        ],
        **_init(pod, time),
    }


def ended(pod: Object, life: Life, *, now: float) -> Object:
    time = rfc3339(now)
    ok = life.exit == 0
    status: Object = pod.get("status") or {}
    known = {c["name"]: c for c in status.get("containerStatuses") or ()}
    return {
        "phase": "Succeeded" if ok else "Failed",
        "conditions": _conditions(time, ready=False, reason="PodCompleted" if ok else "PodFailed"),
        "containerStatuses": [
            _container(
                c,
                {"terminated": _end(life, started_at(known.get(c["name"], {})) or time, time)},
                ready=False,
                restart_count=int(known.get(c["name"], {}).get("restartCount") or 0),
            )
            for c in pod["spec"]["containers"]
        ],
    }


def confused(pod: Object, error: LifeError) -> Object:
    """What a kubelet says of a pod that it cannot start as it stands."""
    waiting = {"waiting": {"reason": "CreateContainerConfigError", "message": str(error)}}
    return {
        "phase": "Pending",
        "containerStatuses": [_container(c, waiting, ready=False) for c in pod["spec"]["containers"]],
    }


def started_at(container: Mapping[str, object]) -> str:
    state = container.get("state")
    running_ = state.get("running") if isinstance(state, dict) else None
    return str((running_ or {}).get("startedAt") or "")


def since(pod: Object) -> float | None:
    """When the present run began; None while it has not."""
    for container in (pod.get("status") or {}).get("containerStatuses") or ():
        if text := started_at(container):
            return parse_rfc3339(text)
    return None


def restart_count(pod: Object) -> int:
    known = (pod.get("status") or {}).get("containerStatuses") or ()
    return max((int(c.get("restartCount") or 0) for c in known), default=0)


def _conditions(time: str, *, ready: bool, reason: str = "") -> list[Object]:
    readiness: Object = {"status": "True" if ready else "False", "lastTransitionTime": time}
    if reason:
        readiness["reason"] = reason
    return [
        {"type": "Initialized", "status": "True", "lastTransitionTime": time},
        {"type": "Ready", **readiness},
        {"type": "ContainersReady", **readiness},
    ]


def _container(container: Object, state: Object, *, ready: bool, restart_count: int = 0) -> Object:
    return {
        "name": container["name"],
        "image": container.get("image", ""),
        "imageID": "",
        "ready": ready,
        "started": ready,
        "restartCount": restart_count,
        "state": state,
    }


def _end(life: Life, started: str, finished: str) -> Object:
    reason = "Completed" if life.exit == 0 else "OOMKilled" if life.exit == 137 else "Error"
    return {"exitCode": life.exit, "reason": reason, "startedAt": started, "finishedAt": finished}


def _init(pod: Object, time: str) -> Object:
    """Init containers are over in no time; those that stay run beside the others."""
    containers = pod["spec"].get("initContainers") or ()
    if not containers:
        return {}
    done = {"terminated": _end(Life(), time, time)}
    return {
        "initContainerStatuses": [
            _container(c, {"running": {"startedAt": time}} if c.get("restartPolicy") == "Always" else done, ready=True)
            for c in containers
        ]
    }
