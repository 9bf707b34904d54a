"""One watch for each kind, shared by all pages, and who is woken by which change.

The watches run with the rights of the dashboard itself. What a viewer may see of them is decided by `rights`, on every
read; nothing here is shown to anybody directly. A kind is watched from the first time that a page reads it. Where the
dashboard may not list a kind in all namespaces, it watches those that it was given.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from paddlecloud.api.argo_nodes import BadPacking, packed
from paddlecloud.api.names import JOB_LABEL, MODEL_LABEL, SAMPLESET_LABEL, SERVICE, SERVICE_LABEL
from paddlecloud.kube import access
from paddlecloud.kube.argo import CRON_WORKFLOW, OVER, WORKFLOW, WORKFLOWS
from paddlecloud.kube.cache import Indexer
from paddlecloud.kube.client import Client
from paddlecloud.kube.errors import ApiError, NotFound
from paddlecloud.kube.informer import Informer, drop_managed_fields
from paddlecloud.kube.resource import (
    EVENTS,
    KNATIVE_REVISIONS,
    MODELVERSIONS,
    PADDLEJOBS,
    PODS,
    Key,
    Object,
    Resource,
    key_of,
)
from paddlecloud.modelhub.origin import claims_of
from paddlecloud.ui.progress_history import ProgressHistory

SYNC_SECONDS = 5.0
"""How long a page waits for the first list of a kind; after that it is shown with what is there, and says so."""
_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_UNREAD = (
    *("env", "envFrom", "volumeMounts", "volumeDevices", "command", "args", "lifecycle", "securityContext"),
    *("livenessProbe", "readinessProbe", "startupProbe", "terminationMessagePath", "terminationMessagePolicy"),
)
"""Fields of containers that no page shows: most of what a pod takes in memory, and where secrets are."""

T = TypeVar("T")
Measure = Callable[[Object], tuple[str, Mapping[str, int]] | None]


class Dependency(NamedTuple):
    """Something that a page has read. A field that is empty matches every object."""

    kind: str
    namespace: str = ""
    name: str = ""
    indexed_by: str = ""
    value: str = ""


def slim(obj: Object) -> Object:
    """Without what no page reads."""
    drop_managed_fields(obj)
    (obj["metadata"].get("annotations") or {}).pop(_APPLIED, None)
    return obj


def slim_pod(pod: Object) -> Object:
    spec = pod.get("spec") or {}
    for field in ("containers", "initContainers"):
        for container in spec.get(field) or ():
            for name in _UNREAD:
                container.pop(name, None)
    return slim(pod)


def slim_workflow(workflow: Object) -> Object:
    """Without its templates. Nodes of a run that is over are packed until a page shows them: most runs are over."""
    kept = ("arguments", "entrypoint", "shutdown", "suspend", "workflowTemplateRef")
    spec, status = workflow.get("spec") or {}, workflow.get("status") or {}
    workflow["spec"] = {name: spec[name] for name in kept if name in spec}
    for name in ("storedTemplates", "resourcesDuration", "artifactRepositoryRef", "synchronization"):
        status.pop(name, None)
    stored = status.pop("storedWorkflowTemplateSpec", None) or {}
    if stored.get("arguments"):
        status["storedWorkflowTemplateSpec"] = {"arguments": stored["arguments"]}
    if status.get("nodes") and status.get("phase") in OVER:
        with contextlib.suppress(BadPacking):  # it stays as it was; the page that shows it says why it cannot
            workflow["status"] = packed(status)
    return slim(workflow)


def in_namespace(obj: Object, value: str) -> str:
    """Values of indexes begin with the namespace: a label or uid of another one's object must find nothing."""
    return f"{obj['metadata'].get('namespace', '')}/{value}"


def _by_label(label: str) -> Indexer:
    def by_label(obj: Object) -> Iterable[str]:
        name = (obj["metadata"].get("labels") or {}).get(label)
        return (in_namespace(obj, name),) if name else ()

    return by_label


def _by_claim(job: Object) -> Iterable[str]:
    """The claim of a SampleSet has its name."""
    return [in_namespace(job, claim) for claim in claims_of(job)]


def _by_node(pod: Object) -> Iterable[str]:
    node = (pod.get("spec") or {}).get("nodeName")
    return (str(node),) if node else ()


def _by_subject(event: Object) -> Iterable[str]:
    uid = (event.get("involvedObject") or {}).get("uid")
    return (in_namespace(event, uid),) if uid else ()


JOB, NODE, SUBJECT = "job", "node", "subject"
SERVICE_OF, SAMPLE_SET, MODEL_OF = "service", "sampleset", "model"
RUN, SCHEDULE = "run", "schedule"
INDEXES: dict[str, dict[str, Indexer]] = {
    PODS.full_name: {
        JOB: _by_label(JOB_LABEL),
        NODE: _by_node,
        SERVICE_OF: _by_label(SERVICE_LABEL),
        SAMPLE_SET: _by_label(SAMPLESET_LABEL),
        RUN: _by_label(WORKFLOW),
    },
    PADDLEJOBS.full_name: {SAMPLE_SET: _by_claim},
    KNATIVE_REVISIONS.full_name: {SERVICE_OF: _by_label(SERVICE)},
    MODELVERSIONS.full_name: {MODEL_OF: _by_label(MODEL_LABEL)},
    WORKFLOWS.full_name: {SCHEDULE: _by_label(CRON_WORKFLOW)},
    EVENTS.full_name: {SUBJECT: _by_subject},
}
TRANSFORMS: dict[str, Callable[[Object], Object]] = {
    PODS.full_name: slim_pod,
    WORKFLOWS.full_name: slim_workflow,
}


class Rows(Generic[T]):
    """What is derived of every object of a kind, kept up to date: ten thousand are not judged for every page."""

    def __init__(self, derive: Callable[[Object], T]) -> None:
        self._derive = derive
        self._found: dict[Key, T] = {}

    def change(self, old: Object | None, new: Object | None) -> None:
        if new is not None:
            self._found[key_of(new)] = self._derive(new)
        elif old is not None:
            self._found.pop(key_of(old), None)

    def all(self) -> list[tuple[Key, T]]:
        return [*self._found.items()]


class Totals:
    """Amounts summed over all objects of a kind by a name, such as what the pods of each node hold; kept up to date."""

    def __init__(self, measure: Measure) -> None:
        self._measure = measure
        self._sums: dict[str, dict[str, int]] = {}

    def change(self, old: Object | None, new: Object | None) -> None:
        for obj, sign in ((old, -1), (new, 1)):
            if obj is not None and (found := self._measure(obj)) is not None:
                name, amounts = found
                sums = self._sums.setdefault(name, {})
                for resource, amount in amounts.items():
                    sums[resource] = sums.get(resource, 0) + sign * amount

    def of(self, name: str) -> Mapping[str, int]:
        return self._sums.get(name, {})


class Collection:
    """All objects of one kind that the dashboard may list, from one watch, or from one for each namespace."""

    def __init__(self, resource: Resource, informers: Sequence[Informer]) -> None:
        self.resource = resource
        self._informers = informers
        self._rows: dict[Callable[[Object], Any], Rows[Any]] = {}
        self._totals: dict[Measure, Totals] = {}
        self._history: ProgressHistory | None = None

    @property
    def failure(self) -> Exception | None:
        """Why it cannot be read at this moment; None while all is well."""
        return next((informer.failure for informer in self._informers if informer.failure is not None), None)

    @property
    def synced(self) -> bool:
        return all(informer.synced for informer in self._informers)

    def get(self, namespace: str, name: str) -> Object | None:
        found = (informer.cache.get(Key(namespace, name)) for informer in self._informers)
        return next((obj for obj in found if obj is not None), None)

    def objects(self, namespace: str | None = None) -> list[Object]:
        return [obj for informer in self._informers for obj in informer.cache.list(namespace)]

    def by_index(self, index: str, value: str) -> list[Object]:
        return [obj for informer in self._informers for obj in informer.cache.by_index(index, value)]

    def rows(self, derive: Callable[[Object], T]) -> Rows[T]:
        """`derive` must be a function of a module: by it the rows are found again."""
        if derive not in self._rows:
            made = self._rows[derive] = Rows(derive)
            for informer in self._informers:
                informer.on_change(made.change)
        return self._rows[derive]

    def totals(self, measure: Measure) -> Totals:
        """`measure` must be a function of a module, as for `rows`."""
        if measure not in self._totals:
            made = self._totals[measure] = Totals(measure)
            for informer in self._informers:
                informer.on_change(made.change)
        return self._totals[measure]

    def history(self) -> ProgressHistory:
        """Of a kind that reports progress; from the first call on."""
        if self._history is None:
            self._history = ProgressHistory()
            for informer in self._informers:
                informer.on_change(self._history.change)
        return self._history


class Subscription:
    """One open page: what it has read, and whether any of that has changed since."""

    def __init__(self) -> None:
        self.changed = asyncio.Event()
        self.reads: frozenset[Dependency] = frozenset()


class Feed:
    """`client` has the dashboard's own rights; `namespaces` are watched where it may not list a kind everywhere."""

    def __init__(self, client: Client, namespaces: Sequence[str]) -> None:
        self._client = client
        self._namespaces = namespaces
        self._collections: dict[str, asyncio.Task[Collection]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._subscribers: dict[Dependency, set[Subscription]] = {}
        self._version: Object | None = None

    async def collection(self, resource: Resource) -> Collection:
        """With all objects there are, unless the server takes longer than `SYNC_SECONDS` to list them."""
        name = resource.full_name
        if name not in self._collections or _has_failed(self._collections[name]):
            self._collections[name] = asyncio.ensure_future(self._open(resource))
        found = await asyncio.shield(self._collections[name])
        if not found.synced:
            await self._wait(found)
        return found

    async def version(self) -> Object:
        """What the API server says of itself."""
        if self._version is None:
            import msgspec

            self._version = msgspec.json.decode((await self._client.raw("GET", "/version")).body)
        return self._version or {}

    @contextlib.contextmanager
    def subscription(self) -> Iterator[Subscription]:
        made = Subscription()
        try:
            yield made
        finally:
            self.follow(made, frozenset())

    def follow(self, subscription: Subscription, reads: frozenset[Dependency]) -> None:
        """Wake it by changes of these from now on, and of no others."""
        for gone in subscription.reads - reads:
            subscribers = self._subscribers[gone]
            subscribers.discard(subscription)
            if not subscribers:
                del self._subscribers[gone]
        for new in reads - subscription.reads:
            self._subscribers.setdefault(new, set()).add(subscription)
        subscription.reads = reads

    def wake(self, dependency: Dependency) -> None:
        """Pages that depend on something that is of no watch."""
        for subscription in self._subscribers.get(dependency, ()):
            subscription.changed.set()

    async def close(self) -> None:
        tasks = [*self._tasks, *self._collections.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _open(self, resource: Resource) -> Collection:
        everywhere = await access.may(self._client, "list", resource)
        scopes = [None] if everywhere or not resource.namespaced else [*self._namespaces]
        informers = [
            Informer(
                self._client,
                resource,
                namespace=scope,
                indexers=INDEXES.get(resource.full_name, {}),
                transform=TRANSFORMS.get(resource.full_name, slim),
                optional=True,
            )
            for scope in scopes
        ]
        for informer in informers:
            informer.on_change(lambda old, new: self._wake(resource.full_name, old, new))
            task = asyncio.create_task(informer.run(), name=f"watch {resource.plural}")
            self._tasks.add(task)
        return Collection(resource, informers)

    async def _wait(self, found: Collection) -> None:
        """Also ends when the first list was refused: nothing comes of waiting then."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + SYNC_SECONDS
        while not found.synced and found.failure is None and loop.time() < deadline:  # noqa: ASYNC110 - no event tells it
            await asyncio.sleep(0.01)

    def _wake(self, kind: str, old: Object | None, new: Object | None) -> None:
        if not self._subscribers:
            return
        for dependency in _touched(kind, old, new):
            self.wake(dependency)


def _has_failed(task: asyncio.Task[Collection]) -> bool:
    return task.done() and not task.cancelled() and task.exception() is not None


def _touched(kind: str, old: Object | None, new: Object | None) -> set[Dependency]:
    found = {Dependency(kind)}
    for obj in (old, new):
        if obj is None:
            continue
        key = key_of(obj)
        found |= {Dependency(kind, key.namespace), Dependency(kind, key.namespace, key.name)}
        for index, values in INDEXES.get(kind, {}).items():
            found |= {Dependency(kind, indexed_by=index, value=value) for value in values(obj)}
    return found


def explain_failure(error: Exception) -> str:
    """In a sentence, for a page that lacks these objects."""
    if isinstance(error, NotFound):
        return "the server does not serve this kind"
    return error.message if isinstance(error, ApiError) else str(error)
