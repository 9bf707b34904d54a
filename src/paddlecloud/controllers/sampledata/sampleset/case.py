"""One set and everything known about it at one moment, in the words that every rule needs. Nothing here decides."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from paddlecloud import __version__
from paddlecloud.api.names import RETRY_AT
from paddlecloud.api.problems import DecodeError
from paddlecloud.api.sampleset import SampleSet, SampleSetSettings, SampleSetStatus, Secret, decode, normalise
from paddlecloud.api.sampleset.spec import ReadReport
from paddlecloud.controllers.node_folders import DEFAULT_CACHES, NodeFolders, local_cache, named_by, own_folder
from paddlecloud.controllers.sampledata import names
from paddlecloud.controllers.sampledata.servers import transfer
from paddlecloud.controllers.sampledata.servers.access import Access
from paddlecloud.controllers.sampledata.servers.access import read as read_access
from paddlecloud.controllers.sampledata.servers.responses import Figures, JobReport
from paddlecloud.kube import conditions
from paddlecloud.kube.resource import Object, controller_of

RUNTIME_IMAGE = f"paddlecloud/runtime:{__version__}"


@dataclass(frozen=True, slots=True)
class SampleSetOptions:
    """Settings of the controllers of sets and of their jobs."""

    image: str = RUNTIME_IMAGE
    endpoints: str = ""
    """Which servers really answer for addresses of object stores, as cache servers read it (`storage.endpoints`)."""
    local_root: str = ""
    """The folder under which the engine `local` keeps its caches; empty where there is no such engine."""
    caches: NodeFolders = DEFAULT_CACHES
    """Which folders of nodes sets may name for their caches."""
    sources: NodeFolders | None = None
    """Which folders `file://` sources may name; None where pods see no files but their own."""
    exists: Callable[[str], bool] = os.path.exists
    is_file: Callable[[str], bool] = os.path.isfile
    """Whether this machine has a file or folder; asked for sources that `sources` allows."""
    retained: Callable[[str, str], str | None] = lambda namespace, name: None
    """The source of the data that the engine `local` has under the name of a set, empty when it is not known; None
    where there is no data."""

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> SampleSetOptions:
        return cls(
            image=environment.get("RUNTIME_IMAGE") or RUNTIME_IMAGE,
            endpoints=environment.get("PADDLECLOUD_ENDPOINTS", ""),
            caches=NodeFolders.for_caches(environment),
        )


class SecretView(NamedTuple):
    """A Secret: its trimmed values, and a version that changes with them and does not show their content."""

    values: Mapping[str, str]
    version: str


@dataclass(frozen=True, slots=True)
class CacheServer:
    """One cache server, as its pod shows it."""

    ordinal: int
    name: str
    uid: str
    instance: str = ""
    """Which run of its container this is: another after every restart."""
    node: str = ""
    ip: str = ""
    """Empty where the pod is not of the set's own StatefulSet: such a pod is never asked."""
    running: bool = False
    ready: bool = False
    leaving: bool = False
    trouble: str = ""
    """Why it does not run, as far as the pod itself shows."""


@dataclass(frozen=True, slots=True)
class SampleJobView:
    """A SampleJob that was done to the set, or is being done."""

    name: str
    type: str
    whole: bool
    """A warm-up of everything, or of everything that a sampler will read; not of some paths. A sync of the whole of the
    set's own source into its root."""
    partitions: int
    phase: str
    completed: float
    changed_files: bool = False
    """Whether it has ended, and added, replaced or removed files of the set."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Of a warm-up."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """The set's own object, decoded. One that cannot be decoded has `error`, and settings of its name alone."""

    settings: SampleSetSettings
    status: SampleSetStatus
    decoded: SampleSet | None = None
    warnings: tuple[str, ...] = ()
    error: str = ""

    @classmethod
    def of(cls, sample_set: Object) -> Parsed:
        try:
            decoded = decode(sample_set)
        except DecodeError as error:
            bare = normalise(decode({"metadata": sample_set["metadata"]})).settings
            return cls(bare, SampleSetStatus(), error=str(error))
        settings, warnings = normalise(decoded)
        return cls(settings, decoded.status or SampleSetStatus(), decoded, tuple(warnings))


@dataclass(frozen=True, slots=True)
class Observed:
    parsed: Parsed | None = None
    """The decoded set, if observing it took decoding: `decide` then does not decode it again."""
    volume: Object | None = None
    """The set's own volume, under whichever of its names."""
    taken: frozenset[str] = frozenset()
    """Those of its names that somebody else's volume has."""
    same_handle: tuple[str, ...] = ()
    """Other volumes with the handle of the set's own."""
    claim: Object | None = None
    service: Object | None = None
    stateful_set: Object | None = None
    secret: Object | None = None
    cache_servers: tuple[CacheServer, ...] = ()
    nodes: Mapping[str, str] = field(default_factory=dict)
    """Nodes that carry the set's label, with its value."""
    secrets: Mapping[Secret, SecretView | None] = field(default_factory=dict)
    """Secrets the set refers to; None for one that is not there."""
    juicefs: bool = False
    """Whether the cluster has the CSI driver of JuiceFS."""
    figures: Mapping[str, Figures] = field(default_factory=dict)
    silent: Mapping[str, str] = field(default_factory=dict)
    """Servers that gave no figures, and why."""
    sync: JobReport | None = None
    """The import as server 0 reports it; None when it does not know of it or was not asked."""
    sync_asked: bool = False
    """Whether server 0 answered the question for the import."""
    cleared: bool = False
    """Whether the caches of servers that are to go have been emptied, or cannot be."""
    jobs: tuple[SampleJobView, ...] = ()
    readers: tuple[str, ...] = ()
    """Jobs and pods that use the data now."""
    holders: tuple[str, ...] = ()
    """Pods that have ended but still refer to the claim: Kubernetes keeps it until they are deleted."""
    reads: tuple[ReadReport, ...] = ()
    """How jobs that are there read the set, epoch by epoch."""
    warning: tuple[str, str] | None = None
    """Reason and message of the last warning about server 0."""
    fresh_access: Mapping[str, str] = field(default_factory=dict)
    """Data for the Secret of the cache servers, where there is none yet."""
    refused: str = ""
    """Why server 0 would not take the import."""
    trouble: str = ""
    """What the last pass could not do."""
    missing_source: str = ""
    """The folder of this machine that is to be imported and does not exist."""
    file_source: str = ""
    """What is to be imported of this machine and is a file."""
    retained: str | None = None
    """The source of data that a deleted set of this name left, empty when it is not known; None where there is none."""

    @property
    def access(self) -> Access | None:
        """What opens the cache servers; None until their Secret exists."""
        return read_access(self.secret)


@dataclass(frozen=True)
class SampleSetCase:
    sample_set: Object
    settings: SampleSetSettings
    old: SampleSetStatus
    observed: Observed
    now: float
    options: SampleSetOptions

    @property
    def phase(self) -> str:
        return self.old.phase or ""

    @property
    def uid(self) -> str:
        return str(self.sample_set["metadata"]["uid"])

    @property
    def driver(self) -> str:
        return self.known_driver or ("juicefs" if self.observed.juicefs else "local")

    @property
    def known_driver(self) -> str:
        """The engine, unless the cluster is to choose it. Once there is a volume it stays: it has the data."""
        if self.phase and self.old.driver:
            return self.old.driver
        if self.observed.volume is not None:
            served_by = (self.observed.volume["spec"].get("csi") or {}).get("driver")
            return "juicefs" if served_by == names.JUICEFS_DRIVER else "local"
        return self.settings.driver

    @cached_property
    def alias(self) -> str:
        """Name of the set's volume: its own, unless a set of that name in another namespace was first."""
        if self.observed.volume is not None:
            return str(self.observed.volume["metadata"]["name"])
        plain = self.settings.name
        return names.unique(self.settings.namespace, plain) if plain in self.observed.taken else plain

    @property
    def handle(self) -> str:
        """By this storage drivers know a mount, on every node: volumes with one handle would share it."""
        return names.unique(self.settings.namespace, self.settings.name)

    @property
    def label(self) -> str:
        return names.ownership(self.driver, self.alias)

    @property
    def cache_dirs(self) -> tuple[str, ...]:
        """Cache directories as the set names them; people and cache servers know them by these names."""
        return tuple(self.cache_folders)

    @cached_property
    def cache_folders(self) -> dict[str, str]:
        """The folders on each node, by these names: always the set's own, below the one that is named.

        Without levels the local engine uses a folder below its root. Under JuiceFS they are those of the mount, which
        stay as they were when the volume was made: one of an earlier release or of the original operator has its cache
        right in the folder that was named.
        """
        settings = self.settings
        if self.driver == "local" and not settings.levels:
            own = local_cache(self.options.local_root, settings.namespace, settings.name)
            return {own: own}
        mounted = transfer.mounted_cache_dirs(self.observed.volume) if self.driver == "juicefs" else ()
        if mounted:
            return {named_by(folder, settings.namespace, settings.name) or folder: folder for folder in mounted}
        named = transfer.cache_dirs(settings)
        return {path: own_folder(path, settings.namespace, settings.name) for path in named}

    @cached_property
    def access(self) -> Access | None:
        return self.observed.access

    @property
    def imports(self) -> bool:
        """Whether the source is still to be read."""
        return not (self.settings.no_sync or conditions.holds(self.old.conditions, "Synced"))

    @property
    def retry_request(self) -> str:
        """A new value of this annotation asks for a failed import to be tried again."""
        return str((self.sample_set["metadata"].get("annotations") or {}).get(RETRY_AT) or "")

    @property
    def changed_source(self) -> str:
        """What is wrong where the spec names another source than that of the data; empty where nothing is.

        A folder is the same with and without its last slash.
        """
        origin, uri = self.old.source or "", self.settings.uri
        if not origin or origin.rstrip("/") == uri.rstrip("/"):
            return ""
        return (
            f"spec.source.uri is {uri or 'empty'}, but the set holds data of {origin}, and data of two sources is "
            "never mixed: set it back, and make another SampleSet for the other source; or delete this one, remove its "
            "data and apply it again"
        )

    @property
    def source_secret(self) -> SecretView:
        secret = self.settings.source_secret
        return (self.observed.secrets.get(secret) if secret else None) or SecretView({}, "")

    @property
    def secrets(self) -> frozenset[Secret]:
        """Every Secret the set makes use of: those its spec names, and the one that its volume was made with."""
        named = {self.settings.secret, self.settings.source_secret, transfer.mounted_secret(self.observed.volume)}
        return frozenset(secret for secret in named if secret is not None)

    @property
    def first(self) -> CacheServer | None:
        """Server 0, which does the importing."""
        return next((server for server in self.observed.cache_servers if server.ordinal == 0), None)

    def is_ours(self, obj: Object) -> bool:
        """Controlled by this set; or by nobody but marked as its own, as older controllers leave things."""
        owner = controller_of(obj)
        if owner is None:
            return (obj["metadata"].get("labels") or {}).get(self.label) == "true"
        return bool(owner["uid"] == self.uid)
