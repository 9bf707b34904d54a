"""PodGroup and Queue of Volcano (`scheduling.volcano.sh/v1beta1`).

They belong to Volcano. A cluster has them from there; the embedded platform, whose scheduler understands them, serves
them by these declarations. Field names and columns are Volcano's.
"""

from __future__ import annotations

from typing import Annotated, Any

from paddlecloud.api.fields import Embedded, Int32, Resources, Root, Time, Wire, doc
from paddlecloud.api.kind import AGE, Column, KindDeclaration
from paddlecloud.api.problems import decode_as

GROUP = "scheduling.volcano.sh"
POD_GROUP_PHASES = ("Pending", "Running", "Unknown", "Inqueue", "Completed")
QUEUE_STATES = ("Open", "Closed", "Closing", "Unknown")


class PodGroupSpec(Wire):
    """When a gang of pods may start."""

    min_member: Annotated[Int32 | None, doc("How many pods must fit before any starts.")] = None
    min_task_member: Annotated[dict[str, Int32] | None, doc("The same, task by task.")] = None
    queue: Annotated[str | None, doc("The queue the gang waits in.", default="default")] = None
    priority_class_name: Annotated[str | None, doc("PriorityClass of the gang.")] = None
    min_resources: Annotated[Resources | None, doc("Resources that must be free before any pod starts.")] = None
    network_topology: Annotated[Embedded | None, doc("How near to each other the pods must run.")] = None
    sub_group_policy: Annotated[list[Embedded] | None, doc("Gangs within the gang.")] = None


class PodGroupCondition(Wire):
    """One aspect of the gang's state, in Volcano's form."""

    type: str | None = None
    status: str | None = None
    transition_id: Annotated[str | None, doc("Which scheduling session wrote it.")] = None
    last_transition_time: Time | None = None
    reason: str | None = None
    message: str | None = None


class PodGroupStatus(Wire):
    """What the scheduler made of it."""

    phase: Annotated[str | None, doc("Where the gang stands: " + ", ".join(POD_GROUP_PHASES) + ".")] = None
    conditions: Annotated[list[PodGroupCondition] | None, doc("What is awaited, or what went wrong.")] = None
    running: Annotated[Int32 | None, doc("Pods that run.")] = None
    succeeded: Annotated[Int32 | None, doc("Pods that succeeded.")] = None
    failed: Annotated[Int32 | None, doc("Pods that failed.")] = None


class PodGroup(Root):
    """Pods that start together or not at all."""

    spec: Annotated[PodGroupSpec | None, doc("When the gang may start.")] = None
    status: Annotated[PodGroupStatus | None, doc("What the scheduler made of it.")] = None


class Guarantee(Wire):
    """Resources kept free for a queue."""

    resource: Resources | None = None


class QueueSpec(Wire):
    """What a queue may use."""

    weight: Annotated[
        Int32 | None, doc("Share of the cluster beside other queues.", minimum=1, maximum=65535, default=1)
    ] = None
    capability: Annotated[Resources | None, doc("Most it may ever use.")] = None
    deserved: Annotated[Resources | None, doc("What it is entitled to when others want resources too.")] = None
    guarantee: Annotated[Guarantee | None, doc("What is kept free for it.")] = None
    reclaimable: Annotated[bool | None, doc("Whether others may take back what it uses beyond its share.")] = None
    parent: Annotated[str | None, doc("The queue this one is part of.")] = None
    priority: Annotated[Int32 | None, doc("Queues of higher priority are served first.", minimum=0)] = None
    type: Annotated[str | None, doc("Free text.")] = None
    affinity: Annotated[Embedded | None, doc("Node groups the queue may use.")] = None
    extend_clusters: Annotated[list[Embedded] | None, doc("Other clusters the queue may use.")] = None
    dequeue_strategy: Annotated[str | None, doc("Order of jobs in the queue.", enum=["fifo", "traverse"])] = None


class Reservation(Wire):
    """What is reserved for a queue."""

    nodes: list[str] | None = None
    resource: Resources | None = None


class QueueStatus(Wire):
    """What the queue holds."""

    state: Annotated[str | None, doc("Where the queue stands: " + ", ".join(QUEUE_STATES) + ".")] = None
    unknown: Annotated[Int32 | None, doc("PodGroups in this phase.")] = None
    pending: Annotated[Int32 | None, doc("PodGroups in this phase.")] = None
    running: Annotated[Int32 | None, doc("PodGroups in this phase.")] = None
    inqueue: Annotated[Int32 | None, doc("PodGroups in this phase.")] = None
    completed: Annotated[Int32 | None, doc("PodGroups in this phase.")] = None
    allocated: Annotated[Resources | None, doc("What it uses.")] = None
    reservation: Annotated[Reservation | None, doc("What is reserved for it.")] = None


class Queue(Root):
    """Where gangs wait, and what they may use together."""

    spec: Annotated[QueueSpec | None, doc("What the queue may use.")] = None
    status: Annotated[QueueStatus | None, doc("What the queue holds.")] = None


POD_GROUP = KindDeclaration(
    group=GROUP,
    versions=("v1beta1",),
    kind="PodGroup",
    plural="podgroups",
    singular="podgroup",
    short_names=("pg", "podgroup-v1beta1"),
    type=PodGroup,
    doc="Pods that start together or not at all.",
    columns=(
        Column("STATUS", "string", ".status.phase"),
        Column("minMember", "integer", ".spec.minMember"),
        Column("RUNNINGS", "integer", ".status.running"),
        AGE,
        Column("QUEUE", "string", ".spec.queue", priority=1),
    ),
    foreign=True,
)
QUEUE = KindDeclaration(
    group=GROUP,
    versions=("v1beta1",),
    kind="Queue",
    plural="queues",
    singular="queue",
    short_names=("q", "queue-v1beta1"),
    scope="Cluster",
    type=Queue,
    doc="Where gangs wait, and what they may use together.",
    columns=(Column("PARENT", "string", ".spec.parent"),),
    foreign=True,
)


def decode(obj: Any) -> PodGroup:
    """Read a PodGroup; `DecodeError` names the field that has the wrong shape."""
    return decode_as(PodGroup, obj)
