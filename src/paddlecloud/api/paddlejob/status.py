"""The status of a PaddleJob: upstream's fields under their old names, and what was missing there."""

from __future__ import annotations

from typing import Annotated

from paddlecloud.api.fields import Conditions, Embedded, Int32, Int64, ObjectReference, Time, Wire, doc

PHASES = (
    "Pending",
    "Starting",
    "Running",
    "Scaling",
    "Restarting",
    "Completed",
    "Failed",
    "Terminating",
    "Suspended",
)
"""The phases this project writes. Readers of older objects also meet `Succeed` and `Terminated`."""

_OLD_PHASES = {"Succeed": "Completed", "Terminated": "Failed", "Aborted": "Failed"}


ALL_PHASES = (*PHASES, *_OLD_PHASES)
CONDITIONS = (
    *("Created", "DataReady", "GangScheduled", "Startable", "PodsReady", "Running", "Restarting", "Succeeded"),
    *("Failed", "Suspended", "Valid"),
)


def phase_of(phase: str | None) -> str:
    """A phase under its present name, also when an older controller wrote it."""
    return _OLD_PHASES.get(phase or "", phase or "")


class RoleStatus(Wire):
    """Pods of one role, counted by state."""

    pending: Annotated[Int32 | None, doc("Pods waiting for a node, an image or a volume.")] = None
    starting: Annotated[Int32 | None, doc("Pods with a container that is not running and ready yet.")] = None
    running: Annotated[Int32 | None, doc("Pods with every container running and ready.")] = None
    failed: Annotated[Int32 | None, doc("Pods that failed.")] = None
    succeeded: Annotated[Int32 | None, doc("Pods that ended with exit code 0.")] = None
    unknown: Annotated[Int32 | None, doc("Pods on nodes that are out of reach.")] = None
    ready: Annotated[
        str | None, doc('Running of wanted pods, as "2/2"; kept as it was when the job completes, none when it fails.')
    ] = None
    refs: Annotated[list[ObjectReference] | None, doc("The pods, by index.")] = None
    selector: Annotated[str | None, doc("Label selector of the pods of this role.")] = None


class Progress(Wire):
    """What the training program reports of itself."""

    step: Annotated[Int64 | None, doc("Steps done.")] = None
    total_steps: Annotated[Int64 | None, doc("Steps to do.")] = None
    epoch: Annotated[Int64 | None, doc("Current epoch, from 0.")] = None
    total_epochs: Annotated[Int64 | None, doc("Epochs to do.")] = None
    done: Annotated[str | None, doc('How far it is, for people: "120/300 (40%)".')] = None
    loss: Annotated[float | None, doc("The last loss.")] = None
    samples_per_second: Annotated[float | None, doc("Throughput of the whole job.")] = None
    eta_seconds: Annotated[Int64 | None, doc("Time left at the rate so far.")] = None
    eta: Annotated[str | None, doc('The same, for people: "1h20m".')] = None
    metrics: Annotated[dict[str, float] | None, doc("Other last values, such as acc.")] = None
    update_time: Annotated[Time | None, doc("When this was reported.")] = None


class Checkpoint(Wire):
    """The last checkpoint a restart can begin from."""

    path: Annotated[str | None, doc("Where it lies, as the program names it.")] = None
    step: Annotated[Int64 | None, doc("The step it holds.")] = None
    epoch: Annotated[Int64 | None, doc("The epoch it holds.")] = None
    time: Annotated[Time | None, doc("When it was complete.")] = None


class EpochReads(Wire):
    """How the job read its SampleSet in one epoch."""

    epoch: Annotated[Int64 | None, doc("The epoch, from 0.")] = None
    hits: Annotated[Int64 | None, doc("Samples read from the node's own cache.")] = None
    misses: Annotated[Int64 | None, doc("Samples fetched from elsewhere.")] = None
    stall_seconds: Annotated[float | None, doc("Time spent waiting for data.")] = None


class CacheUse(Wire):
    """How the job read its SampleSet."""

    hits: Annotated[Int64 | None, doc("Samples read from the node's own cache.")] = None
    misses: Annotated[Int64 | None, doc("Samples fetched from elsewhere.")] = None
    stall_seconds: Annotated[float | None, doc("Time spent waiting for data.")] = None
    epochs: Annotated[list[EpochReads] | None, doc("The same by epoch, the last ten.")] = None


class DataSeen(Wire):
    """A SampleSet as it was when the job's pods started."""

    name: Annotated[str | None, doc("Name of the SampleSet.")] = None
    uid: Annotated[str | None, doc("Uid of it: one that was made later under the name is another.")] = None
    revision: Annotated[Int64 | None, doc("Its status.content.revision then.")] = None
    changed_at: Annotated[Time | None, doc("When its files had changed last.")] = None
    files: Annotated[Int64 | None, doc("Files in it.")] = None
    bytes: Annotated[Int64 | None, doc("Their size.")] = None


class Failure(Wire):
    """One failure and what was made of it."""

    time: Annotated[Time | None, doc("When it was seen.")] = None
    pod: Annotated[str | None, doc("The pod.")] = None
    node: Annotated[str | None, doc("The node it ran on.")] = None
    failure_class: Annotated[
        str | None,
        doc(
            "OOM, Evicted, Preempted, NodeLost, NodeShutdown, UserError, Image, Config, Mount, StartTimeout, "
            "RendezvousTimeout, Hung …"
        ),
    ] = None
    exit_code: Annotated[Int32 | None, doc("Exit code of the training container.")] = None
    message: Annotated[str | None, doc("The last lines of output; of older failures the line that says why.")] = None
    action: Annotated[str | None, doc("What was done: Restart, Fail or Ignore.")] = None


class PaddleJobStatus(Wire):
    """What happened so far."""

    phase: Annotated[str | None, doc("Where the job stands: " + ", ".join(PHASES) + ".")] = None
    mode: Annotated[str | None, doc("PS, Collective, Single or Heter.")] = None
    ps: Annotated[RoleStatus | None, doc("The parameter servers.")] = None
    worker: Annotated[RoleStatus | None, doc("The workers.")] = None
    heter: Annotated[RoleStatus | None, doc("The heterogeneous workers.")] = None
    elastic: Annotated[str | None, doc("The last change of an elastic job: NONE, DOING, DONE or ERROR.")] = None
    start_time: Annotated[Time | None, doc("When all pods ran for the first time.")] = None
    completion_time: Annotated[Time | None, doc("When the job ended.")] = None
    last_reconcile_time: Annotated[Time | None, doc("When this status was last changed.")] = None
    observed_generation: Annotated[Int64 | None, doc("The generation of the spec this status is about.")] = None
    conditions: Annotated[
        Conditions | None,
        doc(", ".join(CONDITIONS) + "."),
    ] = None
    reason: Annotated[str | None, doc("One word for the phase.")] = None
    message: Annotated[str | None, doc("One sentence for the phase: what is awaited, or what went wrong.")] = None
    restarts: Annotated[Int32 | None, doc("Restarts counted against backoffLimit.")] = None
    disruptions: Annotated[Int32 | None, doc("Restarts after lost nodes, evictions and preemptions.")] = None
    generation: Annotated[Int64 | None, doc("Counts gang restarts and re-formations; pods carry it.")] = None
    retried_at: Annotated[
        str | None, doc("Value of the annotation paddlepaddle.org/retry-at that was last followed.")
    ] = None
    port: Annotated[Int32 | None, doc("First of the twenty ports the job uses.")] = None
    progress: Annotated[Progress | None, doc("What the training program reports.")] = None
    checkpoint: Annotated[Checkpoint | None, doc("The last complete checkpoint.")] = None
    heartbeat_time: Annotated[Time | None, doc("When the rank whose last report is the oldest reported.")] = None
    cache: Annotated[CacheUse | None, doc("How the job read its SampleSet.")] = None
    data: Annotated[list[DataSeen] | None, doc("The SampleSets of its pods, as they were when these began.")] = None
    failures: Annotated[list[Failure] | None, doc("The last failures, newest last.")] = None
    last_valid_spec: Annotated[
        Embedded | None,
        doc("The spec that a job which has not ended is run by; it differs from `spec` where `Valid` is False."),
    ] = None
