"""The fields of a SampleSet as people write them, and its status."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

from paddlecloud.api.fields import (
    FOLDER_ADDRESS,
    Conditions,
    Embedded,
    Int32,
    Int64,
    IntOrString,
    Root,
    Rule,
    SecretReference,
    Time,
    Wire,
    doc,
)
from paddlecloud.api.name_rules import DNS_LABEL, no_longer_than

_PLAIN = r"^[^\x00-\x20\x7f,;&|<>$`'\"\\(){}\[\]*?!#]*$"
"""Text that becomes part of a list of mount options, and of a shell's command line in the CSI driver's mount pod."""

PHASES = ("Bound", "Mount", "Syncing", "SyncFailed", "PartialReady", "Ready")
"""In the order of a set's life; before the first the phase is empty."""
CONDITIONS = ("Valid", "Bound", "Synced", "RuntimeReady", "Warm", "Ready", "InUse")
MAX_NAME = 44
"""The StatefulSet NAME-runtime has at most 52 characters: Kubernetes adds a hash and makes it a label of its pods."""
MAX_PARTITIONS = 10_000
"""Each is a cache server on its own node."""


ADDRESS_FORM = (
    "must be SCHEME://BUCKET[.ENDPOINT][/PREFIX], as in bos://bucket.bj.bcebos.com/imagenet; for a folder file:// and "
    "its absolute path, as in file:///data/x"
)
ADDRESS_RULES = (Rule("self == '' || self.contains('://')", ADDRESS_FORM), FOLDER_ADDRESS)
"""What an address must look like; `uri_problem` judges the same, and more, for objects stored already."""
_URI = "(has({0}.spec) && has({0}.spec.source) && has({0}.spec.source.uri) ? {0}.spec.source.uri : '')"
SOURCE_IS_KEPT = Rule(
    "!has(oldSelf.status) || !has(oldSelf.status.source) || "
    f"{_URI.format('self')} in [{_URI.format('oldSelf')}, oldSelf.status.source]",
    "spec.source.uri: the set holds data of the source that it has, and data of two sources is never mixed: make "
    "another SampleSet for the other source; or delete this one, remove its data and apply it again",
)
"""The controller holds a set whose source was changed before its status said that there is data of the former one."""


class SourceSpec(Wire):
    """Where the data comes from."""

    uri: Annotated[
        str | None,
        doc(
            "SCHEME://BUCKET[.ENDPOINT][/PREFIX], for example bos://bucket.bj.bcebos.com/imagenet; a folder is file:// "
            "and its absolute path, for example file:///data/x. Fixed once the set holds data of it (status.source).",
            rules=ADDRESS_RULES,
        ),
    ] = None
    secret_ref: Annotated[
        SecretReference | None, doc("Credentials of the source; what it leaves out comes from spec.secretRef.")
    ] = None


class MountOptions(Wire, rename="kebab"):
    """Options of the JuiceFS mount, under the names JuiceFS gives them."""

    metrics: Annotated[str | None, doc("Address of the metrics endpoint.", pattern=_PLAIN)] = None
    attr_cache: Annotated[int | None, doc("Seconds attributes are cached.")] = None
    entry_cache: Annotated[int | None, doc("Seconds file entries are cached.")] = None
    dir_entry_cache: Annotated[int | None, doc("Seconds directory entries are cached.")] = None
    enable_xattr: Annotated[bool | None, doc("Support extended attributes.")] = None
    get_timeout: Annotated[int | None, doc("Seconds a download may take.")] = None
    put_timeout: Annotated[int | None, doc("Seconds an upload may take.")] = None
    io_retries: Annotated[int | None, doc("Retries after a network failure.")] = None
    max_uploads: Annotated[int | None, doc("Connections used to upload.")] = None
    buffer_size: Annotated[int | None, doc("Read and write buffer in MiB.")] = None
    prefetch: Annotated[int | None, doc("Blocks fetched ahead in parallel.")] = None
    writeback: Annotated[bool | None, doc("Upload in the background.")] = None
    cache_dir: Annotated[str | None, doc("Cache directories, joined by colons.", pattern=_PLAIN)] = None
    cache_size: Annotated[int | None, doc("Cache size in MiB.")] = None
    free_space_ratio: Annotated[IntOrString | None, doc("Share of the disk that stays free, such as 0.1.")] = None
    cache_partial_only: Annotated[bool | None, doc("Cache only small and random reads.")] = None
    open_cache: Annotated[int | None, doc("Seconds open files are cached; 0 switches it off.")] = None
    sub_dir: Annotated[str | None, doc("Directory that is mounted as the root.", pattern=_PLAIN)] = None


class Csi(Wire):
    """Which engine keeps the data."""

    driver: Annotated[
        str | None,
        doc(
            "`juicefs` or `local`. When left out: juicefs where its CSI driver is installed, else local; "
            "status.driver says which.",
            enum=["juicefs", "local"],
        ),
    ] = None
    juicefs_mount_options: Annotated[MountOptions | None, doc("Options of the mount. Fixed once the set is bound.")] = (
        msgspec.field(default=None, name="juiceFSMountOptions")
    )


class CacheLevel(Wire):
    """One tier of the cache on every node."""

    medium_type: Annotated[str | None, doc("Kind of storage.", enum=["MEM", "SSD", "HDD"])] = None
    path: Annotated[str | None, doc("One or several directories, joined by colons.", minLength=1, pattern=_PLAIN)] = (
        None
    )
    cache_size: Annotated[Int64 | None, doc("MiB for all paths of the level together.", minimum=0)] = None


class Cache(Wire):
    """Where each node keeps its part of the data."""

    levels: Annotated[list[CacheLevel] | None, doc("The tiers, fastest first.", minItems=1)] = None


class SampleSetSpec(Wire):
    """Which data, from where, and over how many nodes it is cached."""

    partitions: Annotated[
        Int32 | None,
        doc(
            "Number of nodes that cache a part of the data. Can be changed at any time.",
            minimum=1,
            maximum=MAX_PARTITIONS,
            default=1,
        ),
    ] = None
    source: Annotated[SourceSpec | None, doc("The data to import.")] = None
    secret_ref: Annotated[
        SecretReference | None, doc("Secret of the JuiceFS file system. Fixed once the set is bound.")
    ] = None
    no_sync: Annotated[bool | None, doc("The data is already in the file system: import nothing.")] = None
    csi: Annotated[Csi | None, doc("The engine that keeps the data.")] = None
    cache: Annotated[Cache | None, doc("Where nodes keep their part.")] = None
    node_affinity: Annotated[Embedded | None, doc("core/v1 NodeAffinity of the cache servers, kept whole.")] = None
    tolerations: Annotated[list[Embedded] | None, doc("core/v1 Tolerations of the cache servers.")] = None


class CacheStatus(Wire):
    """How much there is and how much of it is cached, in words for people."""

    total_size: Annotated[str | None, doc('Size of the data, as "4.2 GiB".')] = None
    total_files: Annotated[str | None, doc('Number of files, as "128,660".')] = None
    cached_size: Annotated[str | None, doc("Size of what all nodes have cached.")] = None
    disk_size: Annotated[str | None, doc("Size of the cache disks of all nodes.")] = None
    disk_used: Annotated[str | None, doc("Used on them.")] = None
    disk_avail: Annotated[str | None, doc("Free on them.")] = None
    disk_usage_rate: Annotated[str | None, doc('Used share of them, as "12.5%".')] = None
    error_massage: Annotated[
        str | None, doc("What kept the figures from being collected. The spelling is part of the API.")
    ] = None


class RuntimeStatus(Wire):
    """The cache servers."""

    runtime_ready: Annotated[str | None, doc('Ready of wanted servers, as "1/1".')] = None
    spec_replicas: Annotated[Int32 | None, doc("Servers wanted.")] = None
    ready_replicas: Annotated[Int32 | None, doc("Servers ready.")] = None


class JobsName(Wire):
    """Ids of the jobs the set itself runs."""

    sync_job_name: Annotated[str | None, doc("The import.")] = None
    sync_source: Annotated[str | None, doc("What it imports: spec.source.uri when it began.")] = None
    warmup_job_name: Annotated[str | None, doc("The warm-up.")] = None


class TransferProgress(Wire):
    """How far a transfer has come."""

    files: Annotated[Int64 | None, doc("Files done, those included that were there already.")] = None
    total_files: Annotated[Int64 | None, doc("Files to do.")] = None
    skipped_files: Annotated[Int64 | None, doc("Files that were there already, unchanged.")] = None
    deleted_files: Annotated[Int64 | None, doc("Files that were deleted because the source has them no longer.")] = None
    bytes: Annotated[Int64 | None, doc("Bytes done.")] = None
    total_bytes: Annotated[Int64 | None, doc("Bytes to do.")] = None
    bytes_per_second: Annotated[Int64 | None, doc("Rate over the last interval.")] = None
    seconds_left: Annotated[Int64 | None, doc("Time left at this rate.")] = None
    update_time: Annotated[Time | None, doc("When this was measured.")] = None


class SampleSetContent(Wire):
    """Which state of its data the set holds. What pods write into it is not counted."""

    revision: Annotated[Int64 | None, doc("1: the import; one more with each sync or rmr that changed files.")] = None
    changed_at: Annotated[Time | None, doc("When the last of them ended.")] = None
    changed_by: Annotated[str | None, doc("The SampleJob that did it; none for the import.")] = None
    files: Annotated[Int64 | None, doc("Files there were then.")] = None
    bytes: Annotated[Int64 | None, doc("Their size.")] = None


class ReadReport(Wire):
    """How one job read the set in one epoch."""

    job: Annotated[str | None, doc("Name of the PaddleJob.")] = None
    epoch: Annotated[Int64 | None, doc("The epoch, from 0.")] = None
    hits: Annotated[Int64 | None, doc("Samples read from the node's own cache.")] = None
    misses: Annotated[Int64 | None, doc("Samples fetched from elsewhere.")] = None
    stall_seconds: Annotated[float | None, doc("Time spent waiting for data.")] = None


class SampleSetStatus(Wire):
    """What happened so far."""

    phase: Annotated[str | None, doc("Where the set stands: " + ", ".join(PHASES) + ".")] = None
    content: Annotated[SampleSetContent | None, doc("Which state of the data the set holds.")] = None
    cache_status: Annotated[CacheStatus | None, doc("Sizes, in words for people.")] = None
    runtime_status: Annotated[RuntimeStatus | None, doc("The cache servers.")] = None
    jobs_name: Annotated[JobsName | None, doc("Ids of the jobs the set itself runs.")] = None
    driver: Annotated[str | None, doc("The engine in use: juicefs or local.")] = None
    conditions: Annotated[Conditions | None, doc(", ".join(CONDITIONS) + ".")] = None
    observed_generation: Annotated[Int64 | None, doc("The generation of the spec this status is about.")] = None
    message: Annotated[str | None, doc("One sentence for the phase: what is awaited, or what went wrong.")] = None
    progress: Annotated[TransferProgress | None, doc("How far the import has come.")] = None
    cache_dirs: Annotated[
        list[str] | None,
        doc(
            "The cache directories on every node, fastest first; local: each node uses the folder of its name in them."
        ),
    ] = None
    source: Annotated[
        str | None, doc("Where the data comes from: set with the first file that an import has copied.")
    ] = None
    sync_attempts: Annotated[Int32 | None, doc("How often the import was tried again after it had failed.")] = None
    retried_at: Annotated[
        str | None, doc("Value of the annotation paddlepaddle.org/retry-at that was last followed.")
    ] = None
    reads: Annotated[list[ReadReport] | None, doc("How jobs read the set, newest last.")] = None


class SampleSet(Root):
    """A data set."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        DNS_LABEL,
        no_longer_than(MAX_NAME, "names of the cache servers are made from it"),
        SOURCE_IS_KEPT,
    )

    spec: Annotated[SampleSetSpec | None, doc("Which data, from where, cached over how many nodes.")] = None
    status: Annotated[SampleSetStatus | None, doc("What happened so far; written by the controller.")] = None
