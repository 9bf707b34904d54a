"""The pods of an object, and which role and rank each of them has.

Coroutines here await nothing but the client, so the command line drives them without an event loop (`stdlib.drive`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import NamedTuple

from paddlecloud.api.names import (
    INDEX_LABEL,
    JOB_LABEL,
    ORIGINAL_ROLE_LABEL,
    ROLE_LABEL,
    SAMPLESET_LABEL,
    SERVICE_LABEL,
)
from paddlecloud.kube.argo import NODE_NAME, WORKFLOW, WORKFLOWS
from paddlecloud.kube.client import Client
from paddlecloud.kube.errors import Forbidden, MethodNotAllowed, NotFound
from paddlecloud.kube.resource import PADDLEJOBS, PODS, Object, is_owned_by

_KEPT = {"PaddleJob": PADDLEJOBS, "Workflow": WORKFLOWS}
"""Kinds below which the embedded platform keeps the logs of pods that are gone."""
ROLE_LABELS = (ROLE_LABEL, ORIGINAL_ROLE_LABEL)
INDEX_LABELS = (INDEX_LABEL, "batch.kubernetes.io/job-completion-index", "apps.kubernetes.io/pod-index")
"""Argo's annotation of a pod: WORKFLOW.STEP, with more steps behind it where they are nested."""
DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"
_ORDINAL = re.compile(r"^(?P<rest>.+?)(?:-(?P<role>ps|worker|heter))?-(?P<index>\d+)$")


class TooMuchOutput(Exception):
    """The program was left after it had printed more than its caller takes."""


class Member(NamedTuple):
    """`rank` counts within the role; None for pods that have no number, such as a Deployment's."""

    pod: Object
    role: str
    rank: int | None
    kept_in: str = ""
    """Where the log of a pod that is gone can be read; nothing for a pod that is there."""

    @property
    def name(self) -> str:
        return str(self.pod["metadata"]["name"])

    @property
    def uid(self) -> str:
        return str(self.pod["metadata"].get("uid") or "")

    @property
    def tag(self) -> str:
        """`worker-0`, the step of a workflow, or the pod's name where there is none of these."""
        if step := self.step:
            return step
        return f"{self.role}-{self.rank}" if self.role and self.rank is not None else self.name

    @property
    def step(self) -> str:
        """Of a workflow's pod: the step's name without that of the workflow; empty for other pods."""
        annotations = self.pod["metadata"].get("annotations") or {}
        name = str(annotations.get(NODE_NAME) or "")
        return name.partition(".")[2] or name

    @property
    def ended(self) -> bool:
        return (self.pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")

    def container(self, asked: str | None = None) -> str:
        """The container meant: asked for, marked as default, or the first."""
        if asked:
            return asked
        annotations = self.pod["metadata"].get("annotations") or {}
        containers = (self.pod.get("spec") or {}).get("containers") or [{}]
        return str(annotations.get(DEFAULT_CONTAINER) or containers[0].get("name") or "")

    def started(self, container: str | None = None) -> bool:
        """Whether there can be a log at all; asking earlier is answered with an error."""
        name = self.container(container)
        for entry in (self.pod.get("status") or {}).get("containerStatuses") or ():
            if entry.get("name") == name:
                state = entry.get("state") or {}
                return "running" in state or "terminated" in state or bool(entry.get("lastState"))
        return self.ended

    def restarted(self, container: str | None = None) -> bool:
        """Whether the container ran before in this pod: its log of then is the previous one."""
        name = self.container(container)
        entries = (self.pod.get("status") or {}).get("containerStatuses") or ()
        return any(entry.get("lastState") for entry in entries if entry.get("name") == name)


def member(pod: Object) -> Member:
    meta = pod["metadata"]
    labels = meta.get("labels") or {}
    found = _ORDINAL.match(str(meta["name"]))
    given_role = next((labels[name] for name in ROLE_LABELS if labels.get(name)), None)
    role = str(given_role or (found["role"] if found else "") or "")
    given = next((labels[name] for name in INDEX_LABELS if str(labels.get(name, "")).isdigit()), None)
    numbered = given if given is not None else (found["index"] if found and role else None)
    return Member(pod, role, int(numbered) if numbered is not None else None)


def watch_selector(obj: Object) -> str | None:
    """The labels by which the pods of an object can be watched; None where only owner references identify them."""
    if obj.get("kind") == "PaddleJob":
        return f"{JOB_LABEL}={obj['metadata']['name']}"
    if obj.get("kind") == "Workflow":
        return f"{WORKFLOW}={obj['metadata']['name']}"
    spec = obj.get("spec")
    return _label_selector(obj.get("kind"), spec) if isinstance(spec, dict) else None


async def pods_of(client: Client, obj: Object) -> list[Object]:
    """The pods an object selects or owns; itself when it is one, none for kinds without pods."""
    if obj.get("kind") == "Pod":
        return [obj]
    spec, meta = obj.get("spec") or {}, obj["metadata"]
    namespace = meta.get("namespace")
    if not namespace or not isinstance(spec, dict):
        return []
    selector = _label_selector(obj.get("kind"), spec)
    if selector is not None:
        return await _list(client, namespace, selector)
    uid = str(meta.get("uid"))
    if obj.get("kind") == "SampleSet":  # its cache servers belong to a StatefulSet
        return await _list(client, namespace, f"{SAMPLESET_LABEL}={meta['name']}")
    if obj.get("kind") == "PaddleService":  # its pods belong to ReplicaSets
        return await _list(client, namespace, f"{SERVICE_LABEL}={meta['name']}")
    if obj.get("kind") == "Workflow":
        labelled = await _list(client, namespace, f"{WORKFLOW}={meta['name']}")
        return [pod for pod in labelled if is_owned_by(pod, uid)]
    if obj.get("kind") == "PaddleJob":
        labelled = await _list(client, namespace, f"{JOB_LABEL}={meta['name']}")
        if owned := [pod for pod in labelled if is_owned_by(pod, uid)]:
            return owned
    if not _may_own_pods(spec):
        return []
    return [pod for pod in await _list(client, namespace, None) if is_owned_by(pod, uid)]


async def members_of(client: Client, obj: Object) -> list[Member]:
    """Ordered as people count: workers first, then the other roles, each by rank."""
    return in_order(map(member, await pods_of(client, obj)))


def in_order(found: Iterable[Member]) -> list[Member]:
    """Workers first, then the other roles, each by rank."""
    return sorted(found, key=_order)


def choose(members: Iterable[Member], *, ranks: Iterable[int] | None, everything: bool) -> list[Member]:
    """Rank 0 unless asked otherwise. Ranks are those of the workers; `everything` includes all roles."""
    members = list(members)
    if everything:
        return members
    workers = [one for one in members if one.role in ("worker", "")] or members
    if ranks is None:
        return [one for one in workers if one.tag == workers[0].tag]  # the first rank, in each of its lives
    wanted = frozenset(ranks)
    return [one for one in workers if one.rank in wanted]


def missing_ranks(obj: Object, found: Iterable[Member], ranks: Iterable[int]) -> str:
    """Why ranks cannot be shown, now or later: the job has no such workers. Empty where it has, or may yet have."""
    spec = (obj.get("spec") or {}).get("worker") or {}
    sizes = [spec.get(field) for field in ("replicas", "limits")] if isinstance(spec, dict) else []
    may_be = max((size for size in sizes if isinstance(size, int)), default=0)
    there = sorted(
        {one.rank for one in found if one.rank is not None and one.role in ("worker", "")} | {*range(may_be)}
    )
    wrong = sorted(frozenset(ranks).difference(there))
    if not wrong:
        return ""
    known = "none" if not there else f"{there[0]} to {there[-1]}" if len(there) > 1 else str(there[0])
    return f"no pod of {obj['metadata']['name']} has rank {', '.join(map(str, wrong))}; its ranks: {known}"


async def past_members_of(client: Client, obj: Object) -> list[Member]:
    """Pods of a job or workflow that are gone, oldest first, if the platform kept their logs; a cluster keeps none."""
    resource = _KEPT.get(str(obj.get("kind")))
    if resource is None:
        return []
    meta = obj["metadata"]
    place = resource.path(meta.get("namespace"), meta["name"], "log")
    try:
        answer = await client.raw("GET", place)
    except (NotFound, MethodNotAllowed, Forbidden):
        return []
    return [member(pod)._replace(kept_in=place) for pod in json.loads(answer.body)["items"]]


async def lives_of(client: Client, obj: Object) -> list[Member]:
    """Members with those that were before them, oldest first within a rank: whose logs there are."""
    return sorted([*await past_members_of(client, obj), *await members_of(client, obj)], key=_order)


async def _list(client: Client, namespace: str, selector: str | None) -> list[Object]:
    return (await client.list(PODS, namespace, label_selector=selector, limit=500)).items


def _order(one: Member) -> tuple[bool, str, int, str]:
    return (one.role not in ("worker", ""), one.role, one.rank if one.rank is not None else -1, one.name)


def _label_selector(kind: object, spec: Object) -> str | None:
    selector = spec.get("selector")
    if not isinstance(selector, dict) or not selector:
        return None
    labels = selector if kind in ("Service", "ReplicationController") else selector.get("matchLabels")
    if not isinstance(labels, dict) or not labels:
        return None
    return ",".join(f"{key}={value}" for key, value in labels.items())


def _may_own_pods(spec: Object) -> bool:
    """A kind makes pods of templates; to look through all pods for any other kind would be a waste."""
    blocks = [spec, *(block for block in spec.values() if isinstance(block, dict))]
    return any("template" in block or "templates" in block for block in blocks)
