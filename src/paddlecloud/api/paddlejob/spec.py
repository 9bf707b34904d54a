"""The fields of a PaddleJob as people write them.

Everything that paddle-operator and PaddleCloud accept is accepted under the same name; what is added is optional. Words
that occur misspelt in published YAML (`cleanPodPolicy`, `intranet`) are free strings here and are understood in
`settings`.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from paddlecloud.api.fields import Embedded, Int32, Int64, IntOrString, Resources, Root, Rule, Wire, doc
from paddlecloud.api.names import ROLES
from paddlecloud.api.paddlejob.rules import MAX_PODS, NAME, NUMBERS_OF_PODS
from paddlecloud.api.paddlejob.status import PaddleJobStatus


class RoleSpec(Wire):
    """One role of the job: how many pods, and what each looks like."""

    replicas: Annotated[
        Int32 | None,
        doc("How many pods of this role. One when left out.", minimum=0, maximum=MAX_PODS, default=1),
    ] = None
    requests: Annotated[
        Int32 | None,
        doc(
            "Smallest number of pods an elastic job may shrink to; `replicas` when left out.",
            minimum=0,
            maximum=MAX_PODS,
        ),
    ] = None
    limits: Annotated[
        Int32 | None,
        doc(
            "Largest number of pods an elastic job may grow to; `replicas` when left out.",
            minimum=0,
            maximum=MAX_PODS,
        ),
    ] = None
    restart_policy: Annotated[
        str | None,
        doc(
            "What happens when a pod of this role fails. `ExitCode` restarts on exit codes of 128 and above (a signal) "
            "and fails on all others. When left out, the pod template's own restartPolicy decides.",
            enum=["Never", "OnFailure", "Always", "ExitCode"],
        ),
    ] = None
    template: Annotated[
        Embedded | None,
        doc("The pod (core/v1 PodTemplateSpec), kept whole. Its first container is the training program."),
    ] = None


class SchedulingPolicy(Wire):
    """How the pods are scheduled as one gang."""

    min_available: Annotated[
        Int32 | None, doc("How many pods must fit before any starts; all of them when left out.", minimum=0)
    ] = None
    queue: Annotated[str | None, doc("Volcano queue of the job.")] = None
    priority_class: Annotated[str | None, doc("PriorityClass of the gang.")] = None
    min_resources: Annotated[
        Resources | None, doc("Resources that must be free before any pod starts; computed when left out.")
    ] = None
    schedule_timeout_seconds: Annotated[
        Int32 | None, doc("Fail the job when its gang has not been scheduled after this time.", minimum=0)
    ] = None


class SampleSetRef(Wire):
    """The data set the job reads."""

    name: Annotated[str | None, doc("Name of the SampleSet; its PVC has the same name.", required=True)] = None
    namespace: Annotated[str | None, doc("The job's own namespace, or left out: a job reads no other's sets.")] = None
    mount_path: Annotated[str | None, doc("Where the first container of every role sees the data.", required=True)] = (
        None
    )
    policy: Annotated[
        str | None,
        doc(
            "Whether worker i must run (`Required`, the default) or should run (`Preferred`) on the node that caches "
            "partition i.",
            enum=["Required", "Preferred"],
        ),
    ] = None
    wait_for: Annotated[
        str | None,
        doc(
            "What the job waits for: `Ready` (the default) the set is ready, `Warm` all of it is cached too, `None` "
            "only that the volume exists.",
            enum=["Ready", "Warm", "None"],
        ),
    ] = None
    read_only: Annotated[bool | None, doc("Mount the data read-only.")] = None


class FailureRule(Wire):
    """What to do with failures of a kind. Every criterion that is given must match; the first matching rule decides."""

    action: Annotated[
        str | None,
        doc(
            "`Restart` counts against backoffLimit, `Fail` ends the job at once, `Ignore` restarts without counting.",
            required=True,
            enum=["Restart", "Fail", "Ignore"],
        ),
    ] = None
    exit_codes: Annotated[
        list[IntOrString] | None, doc('Exit codes of the first container, single or as a range: 137, "128-159".')
    ] = None
    reasons: Annotated[list[str] | None, doc("Reasons of the pod or container, such as OOMKilled, Evicted, Error.")] = (
        None
    )
    message_pattern: Annotated[
        str | None,
        doc(
            "Regular expression (RE2 syntax) searched for in the last lines of output and in the pod's message; one "
            "that costs too much to match does not match."
        ),
    ] = None
    roles: Annotated[list[str] | None, doc("Roles the rule applies to; all when left out.")] = None


class FailurePolicy(Wire):
    """Rules for failures, tried in order before the restart policy."""

    rules: Annotated[list[FailureRule] | None, doc("The rules.")] = None


class HangDetection(Wire):
    """When a running job counts as hung. Off unless a time is given."""

    heartbeat_seconds: Annotated[
        Int32 | None, doc("Restart the job when a rank has sent no heartbeat for this time.", minimum=1)
    ] = None
    log_silence_seconds: Annotated[
        Int32 | None, doc("Restart the job when no rank has written a line for this time.", minimum=1)
    ] = None


class RunPolicy(Wire):
    """The run policy in the shape Kubeflow uses; each field means the same as its namesake in `spec`."""

    clean_pod_policy: Annotated[str | None, doc("See spec.cleanPodPolicy.")] = None
    backoff_limit: Annotated[Int32 | None, doc("See spec.backoffLimit.", minimum=0)] = None
    active_deadline_seconds: Annotated[Int64 | None, doc("See spec.activeDeadlineSeconds.", minimum=0)] = None
    ttl_seconds_after_finished: Annotated[Int32 | None, doc("See spec.ttlSecondsAfterFinished.", minimum=0)] = None
    suspend: Annotated[bool | None, doc("See spec.suspend.")] = None
    managed_by: Annotated[str | None, doc("See spec.managedBy.")] = None
    scheduling_policy: Annotated[SchedulingPolicy | None, doc("See spec.schedulingPolicy.")] = None


class PaddleJobSpec(Wire):
    """What to train, with how many pods, and what to do when something goes wrong."""

    RULES: ClassVar[tuple[Rule, ...]] = NUMBERS_OF_PODS

    clean_pod_policy: Annotated[
        str | None,
        doc(
            "Which pods are deleted when the job has ended: Always, Never, OnFailure, OnCompletion (the default) or "
            "Running (only those still running)."
        ),
    ] = None
    clean_policy: Annotated[str | None, doc("Another spelling of cleanPodPolicy, which wins over it.")] = None
    intranet: Annotated[str | None, doc("How pods address each other: PodIP (the default), Service or Host.")] = None
    with_gloo: Annotated[
        int | None,
        doc(
            "Start gloo beside parameter servers: 0 not, 1 on workers, 2 on workers and servers.",
            minimum=0,
            maximum=2,
        ),
    ] = None
    elastic: Annotated[
        int | None,
        doc("Present: the job is elastic, and workers may change between `requests` and `limits`."),
    ] = None
    scheduling_policy: Annotated[SchedulingPolicy | None, doc("How the pods are scheduled as a gang.")] = None
    sample_set_ref: Annotated[SampleSetRef | None, doc("The data set the job reads.")] = None
    ps: Annotated[RoleSpec | None, doc("The parameter servers.")] = None
    worker: Annotated[RoleSpec | None, doc("The workers.")] = None
    heter: Annotated[RoleSpec | None, doc("The heterogeneous workers.")] = None

    run_policy: Annotated[
        RunPolicy | None, doc("Kubeflow's place for run settings; the same names directly in `spec` win.")
    ] = None
    backoff_limit: Annotated[
        Int32 | None,
        doc(
            "How often the job is restarted before it fails. When left out: 0 if every pod template says "
            "`restartPolicy: Never`, otherwise 3. Lost nodes, evictions and preemptions are not counted.",
            minimum=0,
        ),
    ] = None
    active_deadline_seconds: Annotated[
        Int64 | None, doc("Fail the job when it has been active for this long.", minimum=0)
    ] = None
    ttl_seconds_after_finished: Annotated[
        Int32 | None, doc("Delete the job this long after it has ended; never when left out.", minimum=0)
    ] = None
    suspend: Annotated[bool | None, doc("Remove the pods and wait; they return when set to false.")] = None
    managed_by: Annotated[
        str | None, doc("Name of another controller that looks after this job; ours then leaves it alone.")
    ] = None
    success_policy: Annotated[
        str | None,
        doc(
            "Who decides that the job has completed: `Workers` (the default; servers are then stopped) or `AllRoles`.",
            enum=["Workers", "AllRoles"],
        ),
    ] = None
    restart_scope: Annotated[
        str | None,
        doc(
            "What restarts when one pod fails: the whole `Job` together (the default) or only that `Pod`.",
            enum=["Job", "Pod"],
        ),
    ] = None
    schedule_timeout_seconds: Annotated[
        Int32 | None, doc("See schedulingPolicy.scheduleTimeoutSeconds, which wins over it.", minimum=0)
    ] = None
    failure_policy: Annotated[FailurePolicy | None, doc("Rules for particular failures.")] = None
    hang_detection: Annotated[HangDetection | None, doc("When a running job counts as hung.")] = None
    compat: Annotated[
        str | None,
        doc(
            "`HETER` keeps the role name older Paddle releases expect in heter pods instead of HETER_TRAINER.",
            enum=["HETER"],
        ),
    ] = None

    def role(self, name: str) -> RoleSpec | None:
        """The block of a role by its name in YAML."""
        return {"ps": self.ps, "worker": self.worker, "heter": self.heter}[name]

    def roles(self) -> list[tuple[str, RoleSpec]]:
        """The roles that are there, in start order."""
        return [(name, block) for name in ROLES if (block := self.role(name)) is not None]


class PaddleJob(Root):
    """A distributed training job with PaddlePaddle."""

    RULES: ClassVar[tuple[Rule, ...]] = NAME

    spec: Annotated[PaddleJobSpec | None, doc("What to run.")] = None
    status: Annotated[PaddleJobStatus | None, doc("What happened so far; written by the controller.")] = None
