"""SampleJob: something done to the data of a SampleSet, once or on a schedule.

`batch.paddlepaddle.org/v1alpha1`. The four types are `sync` (import), `warmup` (fill the caches), `clear` (empty the
caches) and `rmr` (remove data). `decode`, `validate` and `normalise` as for every kind.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal, NamedTuple, cast

import msgspec

from paddlecloud.api import cron, names
from paddlecloud.api.fields import (
    Conditions,
    Int32,
    Int64,
    IntOrString,
    ObjectReference,
    Root,
    SecretReference,
    Time,
    Wire,
    doc,
)
from paddlecloud.api.kind import Column, KindDeclaration
from paddlecloud.api.problems import Problem, declared_problems, decode_as, encode, invalid, required
from paddlecloud.api.sampleset import ADDRESS_RULES, Secret, TransferProgress, uri_problem

__all__ = [
    "DECLARATION",
    "PHASES",
    "TYPES",
    "Normalised",
    "SampleJob",
    "SampleJobSettings",
    "SampleJobSpec",
    "SampleJobStatus",
    "decode",
    "encode",
    "normalise",
    "validate",
]

TYPES = ("sync", "warmup", "rmr", "clear")
PHASES = ("Pending", "Running", "Succeeded", "Failed")
CONDITIONS = ("Valid", "Running", "Succeeded", "Failed", "Scheduled")
"""Before the first the phase is empty."""
MAX_THREADS, MAX_EPOCHS, MAX_RANKS_PER_NODE = 1_000, 10_000, 1_024
"""What a cache server plans and starts for one job is bounded by these."""


class SampleSetReference(Wire):
    """A SampleSet in the same namespace."""

    name: Annotated[str | None, doc("Its name.", required=True)] = None


class SyncOptions(Wire, rename="kebab"):
    """Options of an import, under the names `juicefs sync` gives them."""

    source: Annotated[
        str | None, doc("Where to copy from; the SampleSet's own source when left out.", rules=ADDRESS_RULES)
    ] = None
    destination: Annotated[str | None, doc("Directory inside the set; its root when left out.")] = None
    start: Annotated[IntOrString | None, doc("First key to copy.")] = None
    end: Annotated[IntOrString | None, doc("Last key to copy.")] = None
    threads: Annotated[
        int | None, doc("Transfers at the same time; 10 when left out.", minimum=0, maximum=MAX_THREADS)
    ] = None
    http_port: Annotated[int | None, doc("Accepted and ignored: current JuiceFS has no such option.")] = None
    update: Annotated[bool | None, doc("Copy again what is newer at the source.")] = None
    force_update: Annotated[bool | None, doc("Copy everything again.")] = None
    perms: Annotated[bool | None, doc("Keep permissions.")] = None
    dirs: Annotated[bool | None, doc("Copy empty directories too.")] = None
    dry: Annotated[bool | None, doc("Only say what would be copied.")] = None
    delete_src: Annotated[bool | None, doc("Delete at the source what has been copied.")] = None
    delete_dst: Annotated[bool | None, doc("Delete at the destination what the source does not have.")] = None
    exclude: Annotated[IntOrString | None, doc("Leave out keys that match this pattern.")] = None
    include: Annotated[IntOrString | None, doc("Copy keys that match this pattern although excluded.")] = None
    manager: Annotated[str | None, doc("Address of a manager of several syncing hosts.")] = None
    worker: Annotated[str | None, doc("Hosts that help syncing, joined by commas.")] = None
    bwlimit: Annotated[int | None, doc("Mbit/s at most; 0 means no limit.", minimum=0)] = None
    no_https: Annotated[bool | None, doc("Use plain HTTP for the object store.")] = None


class WarmupOptions(Wire):
    """Which data is brought to which node."""

    paths: Annotated[list[str] | None, doc("Paths inside the set; everything when left out.", minItems=1)] = None
    partitions: Annotated[Int32 | None, doc("Always taken from the SampleSet.", minimum=1)] = None
    strategy_name: Annotated[
        str | None,
        doc(
            "How samples are spread over partitions: `sequence` (the default) in turn, `random` by chance, `sampler` "
            "exactly as Paddle's DistributedBatchSampler will read them.",
            enum=["random", "sequence", "sampler"],
        ),
    ] = None
    file: Annotated[str | None, doc("File inside the set that lists the paths, one per line.")] = None
    threads: Annotated[
        int | None, doc("Transfers at the same time; 50 when left out.", minimum=0, maximum=MAX_THREADS)
    ] = None
    batch_size: Annotated[Int32 | None, doc("sampler: samples per batch and rank.", minimum=1)] = None
    shuffle: Annotated[bool | None, doc("sampler: whether the sampler shuffles.")] = None
    epochs: Annotated[Int32 | None, doc("sampler: epochs to plan for.", minimum=1, maximum=MAX_EPOCHS)] = None
    ranks_per_node: Annotated[
        Int32 | None, doc("sampler: training processes on each node.", minimum=1, maximum=MAX_RANKS_PER_NODE)
    ] = None
    seed: Annotated[Int64 | None, doc("random: makes the spread repeatable. sampler: the first epoch.")] = None


class RmrOptions(Wire):
    """Which data is removed."""

    paths: Annotated[list[str] | None, doc("Paths inside the set.", required=True, minItems=1)] = None


class ClearOptions(Wire):
    """Which caches are emptied."""

    paths: Annotated[list[str] | None, doc("Cache directories; all of them when left out.", minItems=1)] = None


class SampleJobSpec(Wire):
    """What to do with which set."""

    type: Annotated[str | None, doc("What to do.", required=True, enum=list(TYPES))] = None
    sample_set_ref: Annotated[SampleSetReference | None, doc("The set it is done to.", required=True)] = None
    secret_ref: Annotated[
        SecretReference | None,
        doc("sync: credentials of the source. Without it and without syncOptions.source: those of the SampleSet."),
    ] = None
    terminate: Annotated[bool | None, doc("First end whatever the cache servers are doing.")] = None
    cancel: Annotated[str | None, doc("First end this one job, named by its status.jobName.")] = None
    sync_options: Annotated[SyncOptions | None, doc("For type sync.")] = None
    warmup_options: Annotated[WarmupOptions | None, doc("For type warmup.")] = None
    rmr_options: Annotated[RmrOptions | None, doc("For type rmr, which cannot do without.")] = None
    clear_options: Annotated[ClearOptions | None, doc("For type clear.")] = None
    schedule: Annotated[
        str | None,
        doc(
            f"Cron schedule in UTC: {cron.FORM}. This job then creates a SampleJob each time it is due.",
            pattern=cron.PATTERN,
        ),
    ] = None
    suspend: Annotated[bool | None, doc("Create no further jobs from the schedule.")] = None
    concurrency_policy: Annotated[
        str | None,
        doc(
            "When a job is due and the last one still runs: `Forbid` (the default) skips it, `Allow` starts it, "
            "`Replace` ends the old one.",
            enum=["Allow", "Forbid", "Replace"],
        ),
    ] = None
    starting_deadline_seconds: Annotated[Int64 | None, doc("A job that is this late is skipped.", minimum=0)] = None
    successful_jobs_history_limit: Annotated[
        Int32 | None, doc("Succeeded jobs to keep; 3 when left out.", minimum=0)
    ] = None
    failed_jobs_history_limit: Annotated[Int32 | None, doc("Failed jobs to keep; 1 when left out.", minimum=0)] = None
    ttl_seconds_after_finished: Annotated[
        Int32 | None, doc("Delete the job this long after it has ended; never when left out.", minimum=0)
    ] = None


class SampleJobStatus(Wire):
    """What happened so far."""

    phase: Annotated[str | None, doc("Where the job stands: " + ", ".join(PHASES) + ".")] = None
    job_name: Annotated[str | None, doc("Id of the work on the cache servers.")] = None
    conditions: Annotated[Conditions | None, doc(", ".join(CONDITIONS) + ".")] = None
    observed_generation: Annotated[Int64 | None, doc("The generation of the spec this status is about.")] = None
    message: Annotated[str | None, doc("One sentence for the phase: what is awaited, or what went wrong.")] = None
    progress: Annotated[TransferProgress | None, doc("How far it has come.")] = None
    partitions: Annotated[Int32 | None, doc("Cache servers the work was given to.")] = None
    sample_set_uid: Annotated[
        str | None, doc("Uid of the SampleSet that the work was done to; another set of its name is another set.")
    ] = None
    missing: Annotated[list[str] | None, doc("Partitions that were not covered, when it failed.")] = None
    start_time: Annotated[Time | None, doc("When the work began.")] = None
    completion_time: Annotated[Time | None, doc("When it ended.")] = None
    retried_at: Annotated[
        str | None, doc("Value of the annotation paddlepaddle.org/retry-at that was last followed.")
    ] = None
    active: Annotated[list[ObjectReference] | None, doc("Jobs of the schedule that run now.")] = None
    last_schedule_time: Annotated[Time | None, doc("When the schedule last created a job.")] = None
    last_successful_time: Annotated[Time | None, doc("When such a job last succeeded.")] = None
    next_schedule_time: Annotated[Time | None, doc("When the next is due.")] = None


class SampleJob(Root):
    """Something done to the data of a SampleSet."""

    spec: Annotated[SampleJobSpec | None, doc("What to do with which set.")] = None
    status: Annotated[SampleJobStatus | None, doc("What happened so far; written by the controller.")] = None


DECLARATION = KindDeclaration(
    group=names.SAMPLEJOB.group,
    versions=(names.SAMPLEJOB.version,),
    kind=names.SAMPLEJOB.kind,
    plural=names.SAMPLEJOB.plural,
    singular="samplejob",
    categories=("all", "paddle"),
    type=SampleJob,
    doc="Something done to the data of a SampleSet, once or on a schedule: sync, warmup, clear or rmr.",
    conditions=CONDITIONS,
    phases=PHASES,
    columns=(
        Column("PHASE", "string", ".status.phase"),
        Column("Type", "string", ".spec.type", priority=1),
        Column("SampleSet", "string", ".spec.sampleSetRef.name", priority=1),
        Column("Schedule", "string", ".spec.schedule", priority=1),
        Column("Age", "date", ".metadata.creationTimestamp", priority=1),
    ),
)


class WarmupSettings(msgspec.Struct, frozen=True, kw_only=True):
    paths: tuple[str, ...]
    strategy: Literal["sequence", "random", "sampler"]
    file: str
    threads: int
    batch_size: int
    shuffle: bool
    epochs: int
    ranks_per_node: int
    seed: int | None


class SampleJobSettings(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    namespace: str
    type: Literal["sync", "warmup", "rmr", "clear", ""]
    sample_set: str
    secret: Secret | None
    terminate: bool
    cancel: str
    source: str
    destination: str
    sync_options: dict[str, str | bool]
    """What was set, as `juicefs sync` names it, without source and destination."""
    warmup: WarmupSettings
    paths: tuple[str, ...]
    """Of rmr and clear."""
    schedule: str
    suspend: bool
    concurrency_policy: Literal["Allow", "Forbid", "Replace"]
    starting_deadline_seconds: int | None
    successful_jobs_history_limit: int
    failed_jobs_history_limit: int
    ttl_seconds_after_finished: int | None


class Normalised(NamedTuple):
    settings: SampleJobSettings
    warnings: list[str]


def decode(obj: Any) -> SampleJob:
    """Read an object; `DecodeError` names the field that has the wrong shape."""
    return decode_as(SampleJob, obj)


def normalise(job: SampleJob) -> Normalised:
    """The meaning of a job, and sentences for people about what was not taken literally."""
    spec = job.spec or SampleJobSpec()
    sync = spec.sync_options or SyncOptions()
    secret = spec.secret_ref or SecretReference()
    removed = (spec.rmr_options.paths if spec.rmr_options else None) or ()
    cleared = (spec.clear_options.paths if spec.clear_options else None) or ()
    kept, failed = spec.successful_jobs_history_limit, spec.failed_jobs_history_limit
    warnings: list[str] = []
    settings = SampleJobSettings(
        name=job.name,
        namespace=job.namespace,
        type=cast(Any, spec.type) if spec.type in TYPES else "",
        sample_set=(spec.sample_set_ref.name if spec.sample_set_ref else None) or "",
        secret=Secret(secret.name, secret.namespace or job.namespace) if secret.name else None,
        terminate=bool(spec.terminate),
        cancel=spec.cancel or "",
        source=sync.source or "",
        destination=sync.destination or "",
        sync_options=_sync_options(sync, warnings),
        warmup=_warmup(spec.warmup_options or WarmupOptions(), warnings),
        paths=tuple(removed if spec.type == "rmr" else cleared),
        schedule=spec.schedule or "",
        suspend=bool(spec.suspend),
        concurrency_policy=cast(Any, spec.concurrency_policy or "Forbid"),
        starting_deadline_seconds=spec.starting_deadline_seconds,
        successful_jobs_history_limit=3 if kept is None else kept,
        failed_jobs_history_limit=1 if failed is None else failed,
        ttl_seconds_after_finished=spec.ttl_seconds_after_finished,
    )
    return Normalised(settings, warnings)


def _sync_options(options: SyncOptions, warnings: list[str]) -> dict[str, str | bool]:
    found: dict[str, str | bool] = {}
    for name, value in encode(options).items():
        if name in ("source", "destination") or value in (0, "", False):
            continue
        if name == "http-port":
            warnings.append("syncOptions.http-port is ignored: current JuiceFS has no such option")
            continue
        found[name] = value if value is True else str(value)
    return found


def _warmup(options: WarmupOptions, warnings: list[str]) -> WarmupSettings:
    if options.partitions is not None:
        warnings.append("warmupOptions.partitions is ignored: the SampleSet's own partitions count")
    return WarmupSettings(
        paths=tuple(options.paths or ()),
        strategy=cast(Any, options.strategy_name or "sequence"),
        file=options.file or "",
        threads=options.threads or 50,
        batch_size=options.batch_size or 1,
        shuffle=bool(options.shuffle),
        epochs=options.epochs or 1,
        ranks_per_node=options.ranks_per_node or 1,
        seed=options.seed,
    )


def validate(job: SampleJob) -> list[Problem]:
    """Everything wrong with the job that can be seen without looking at the cluster."""
    if job.spec is None:
        return [required("spec", "say what to do with which set")]
    return [*declared_problems(job.spec, "spec"), *_options(job.spec), *_schedule(job.spec)]


def _options(spec: SampleJobSpec) -> Iterator[Problem]:
    if spec.type == "sync":
        source = spec.sync_options.source if spec.sync_options else None
        if source and not (spec.secret_ref and spec.secret_ref.name):
            yield required("spec.secretRef.name", "the Secret of syncOptions.source; `none` for a public one")
        if source and (text := uri_problem(source)):
            yield invalid("spec.syncOptions.source", source, text)
    if spec.type == "rmr" and not (spec.rmr_options and spec.rmr_options.paths):
        yield required("spec.rmrOptions.paths", "say which data to remove")
    for name, paths in (
        ("rmrOptions", spec.rmr_options.paths if spec.rmr_options else None),
        ("warmupOptions", spec.warmup_options.paths if spec.warmup_options else None),
    ):
        for index, path in enumerate(paths or ()):
            if not path.strip("/ ") or ".." in path.split("/"):
                yield invalid(f"spec.{name}.paths[{index}]", path, "must be a path inside the set, without ..")
    destination = spec.sync_options.destination if spec.sync_options else None
    if destination and ".." in destination.split("/"):
        yield invalid("spec.syncOptions.destination", destination, "must be a path inside the set, without ..")


def _schedule(spec: SampleJobSpec) -> Iterator[Problem]:
    if spec.schedule is None:
        return
    try:
        cron.parse(spec.schedule)
    except cron.BadSchedule as error:
        yield invalid("spec.schedule", spec.schedule, str(error))
