"""PaddleJob of Kubeflow's training operator (`kubeflow.org/v1`), and how it becomes one of ours.

Kubeflow no longer ships it, but its YAML is around. The embedded platform serves the kind; on a cluster it belongs to
the training operator. `convert` makes a PaddleJob of `batch.paddlepaddle.org/v1`: Master becomes ps, Worker becomes
worker, the container called `paddle` comes first, and defaults that differ between the two are written out.
"""

from __future__ import annotations

import copy
from typing import Annotated, Any, ClassVar

import msgspec

from paddlecloud.api import names, paddlejob
from paddlecloud.api.fields import Conditions, Embedded, Int32, Root, Rule, Time, Wire, doc
from paddlecloud.api.kind import AGE, Column, KindDeclaration, Scale
from paddlecloud.api.paddlejob.rules import MAX_PODS
from paddlecloud.api.paddlejob.spec import (
    PaddleJob,
    PaddleJobSpec,
    RoleSpec,
    RunPolicy,
)
from paddlecloud.api.problems import decode_as

CONTAINER = "paddle"
_CLEAN_POD_POLICIES = {"All": "Always", "Running": "Running", "None": "Never"}
ORIGIN_ANNOTATION = "paddlepaddle.org/converted-from"


class ReplicaSpec(Wire):
    """One replica type of the job."""

    replicas: Annotated[Int32 | None, doc("How many pods; 1 when left out.", minimum=0, maximum=MAX_PODS)] = None
    restart_policy: Annotated[
        str | None,
        doc(
            "What happens when a pod fails; OnFailure when left out.",
            enum=["Always", "OnFailure", "Never", "ExitCode"],
        ),
    ] = None
    template: Annotated[Embedded | None, doc("The pod, kept whole. Its training container is called paddle.")] = None


class ReplicaSpecs(Wire):
    """The replica types."""

    master: Annotated[ReplicaSpec | None, doc("The parameter servers.")] = msgspec.field(default=None, name="Master")
    worker: Annotated[ReplicaSpec | None, doc("The workers.")] = msgspec.field(default=None, name="Worker")


class ElasticPolicy(Wire):
    """How many workers an elastic job may have."""

    min_replicas: Annotated[Int32 | None, doc("Fewest workers.", minimum=0, maximum=MAX_PODS)] = None
    max_replicas: Annotated[Int32 | None, doc("Most workers.", minimum=0, maximum=MAX_PODS)] = None
    max_restarts: Annotated[Int32 | None, doc("How often the job is restarted.", minimum=0)] = None
    metrics: Annotated[list[Embedded] | None, doc("Accepted and ignored, as Kubeflow did.")] = None


_WORKER = "self.paddleReplicaSpecs.Worker"
_WORKERS = f"(has({_WORKER}.replicas) ? {_WORKER}.replicas : 1)"


class KubeflowSpec(Wire):
    """What to train."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            f"!has(self.elasticPolicy) || !has(self.paddleReplicaSpecs) || !has({_WORKER}) || ("
            f"(!has(self.elasticPolicy.minReplicas) || self.elasticPolicy.minReplicas <= {_WORKERS}) && "
            f"(!has(self.elasticPolicy.maxReplicas) || {_WORKERS} <= self.elasticPolicy.maxReplicas))",
            "spec.paddleReplicaSpecs.Worker.replicas must lie between spec.elasticPolicy.minReplicas and maxReplicas",
        ),
    )

    run_policy: Annotated[RunPolicy | None, doc("When to stop, and what to leave behind.")] = None
    elastic_policy: Annotated[ElasticPolicy | None, doc("How many workers the job may have.")] = None
    paddle_replica_specs: Annotated[ReplicaSpecs | None, doc("The pods.", required=True)] = None


class ReplicaStatus(Wire):
    """Pods of one replica type, counted by state."""

    active: Int32 | None = None
    succeeded: Int32 | None = None
    failed: Int32 | None = None
    selector: str | None = None


class KubeflowStatus(Wire):
    """What happened so far."""

    conditions: Annotated[Conditions | None, doc("Created, Running, Restarting, Succeeded, Suspended, Failed.")] = None
    replica_statuses: Annotated[dict[str, ReplicaStatus] | None, doc("Pods by replica type.")] = None
    start_time: Time | None = None
    completion_time: Time | None = None
    last_reconcile_time: Time | None = None


class KubeflowPaddleJob(Root):
    """A PaddleJob of Kubeflow."""

    spec: Annotated[KubeflowSpec | None, doc("What to train.")] = None
    status: Annotated[KubeflowStatus | None, doc("What happened so far; written by the controller.")] = None


DECLARATION = KindDeclaration(
    group=names.KUBEFLOW_PADDLEJOB.group,
    versions=(names.KUBEFLOW_PADDLEJOB.version,),
    kind=names.KUBEFLOW_PADDLEJOB.kind,
    plural=names.KUBEFLOW_PADDLEJOB.plural,
    singular="paddlejob",
    type=KubeflowPaddleJob,
    doc="A PaddleJob in the form of Kubeflow's training operator.",
    columns=(Column("State", "string", ".status.conditions[-1:].type"), AGE),
    scale=Scale(
        ".spec.paddleReplicaSpecs.Worker.replicas",
        ".status.replicaStatuses.Worker.active",
        ".status.replicaStatuses.Worker.selector",
    ),
    foreign=True,
)


def decode(obj: Any) -> KubeflowPaddleJob:
    """Read an object; `DecodeError` names the field that has the wrong shape."""
    return decode_as(KubeflowPaddleJob, obj)


def convert(job: KubeflowPaddleJob) -> PaddleJob:
    """The same job as one of ours; `paddlejob.validate` and `paddlejob.normalise` apply to the result."""
    spec = job.spec or KubeflowSpec()
    replicas = spec.paddle_replica_specs or ReplicaSpecs()
    elastic = spec.elastic_policy
    run = copy.copy(spec.run_policy) if spec.run_policy else RunPolicy()
    # Kubeflow keeps pods by default; we would delete those of a completed job
    run.clean_pod_policy = _CLEAN_POD_POLICIES.get(run.clean_pod_policy or "None", run.clean_pod_policy)
    if run.backoff_limit is None and elastic and elastic.max_restarts is not None:
        run.backoff_limit = elastic.max_restarts
    worker = _role(replicas.worker)
    if worker and elastic:
        worker.requests, worker.limits = elastic.min_replicas, elastic.max_replicas
    annotations = {**(job.metadata.get("annotations") or {}), ORIGIN_ANNOTATION: DECLARATION.api_version}
    return PaddleJob(
        api_version=paddlejob.DECLARATION.api_version,
        kind=paddlejob.DECLARATION.kind,
        metadata={**job.metadata, "annotations": annotations},
        spec=PaddleJobSpec(
            ps=_role(replicas.master),
            worker=worker,
            elastic=1 if elastic else None,
            run_policy=run,
        ),
    )


def _role(replica: ReplicaSpec | None) -> RoleSpec | None:
    if replica is None:
        return None
    return RoleSpec(
        replicas=replica.replicas,
        restart_policy=replica.restart_policy or "OnFailure",
        template=_paddle_first(replica.template) if replica.template else None,
    )


def _paddle_first(template: dict[str, Any]) -> dict[str, Any]:
    """Ours trains in the first container, Kubeflow in the one called paddle."""
    pod = template.get("spec")
    containers = pod.get("containers") if isinstance(pod, dict) else None
    if not isinstance(containers, list):
        return template
    ordered = sorted(containers, key=lambda c: not (isinstance(c, dict) and c.get("name") == CONTAINER))
    return {**template, "spec": {**template["spec"], "containers": ordered}}
