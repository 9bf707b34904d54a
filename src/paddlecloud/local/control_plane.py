"""The control plane of the embedded platform: one directory, one API server, and the housekeeping every cluster has.

    <data>/lock          held while a platform runs on the directory
    <data>/state.db      the revision log
    <data>/pki/          certificate authority, server certificate, tokens (0600)
    <data>/audit.log     who did what

What runs pods (scheduler, kubelet) and what this project adds (PaddleJob and the others) is added by
`platform.assembly`.
"""

from __future__ import annotations

import asyncio
import fcntl
import functools
import logging
import os
import random
import stat
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, Protocol

from paddlecloud.kube.client import Client
from paddlecloud.kube.clock import Clock, SystemClock
from paddlecloud.kube.errors import AlreadyExists
from paddlecloud.kube.resource import Object, Resource
from paddlecloud.local import loopback
from paddlecloud.local.apiserver.api import Api, Extensions
from paddlecloud.local.apiserver.auth import authorization, bootstrap_roles, escalation, reviews
from paddlecloud.local.apiserver.auth.audit import AuditLog
from paddlecloud.local.apiserver.auth.authentication import ADMIN, Authenticator, StaticTokens, User
from paddlecloud.local.apiserver.auth.tokens import TokenIssuer, ensure_token
from paddlecloud.local.apiserver.builtin import ingresses, pods, services
from paddlecloud.local.apiserver.builtin.defaults import complete_job, count_templates, keep_empty_metadata
from paddlecloud.local.apiserver.builtin.kinds import builtin_kinds
from paddlecloud.local.apiserver.crd import registration
from paddlecloud.local.apiserver.housekeeping import namespaces
from paddlecloud.local.apiserver.housekeeping.expiry import EventExpiry
from paddlecloud.local.apiserver.housekeeping.garbage import GarbageCollector
from paddlecloud.local.apiserver.housekeeping.own_service import OwnService
from paddlecloud.local.apiserver.housekeeping.role_aggregation import RoleAggregator
from paddlecloud.local.apiserver.housekeeping.system_namespaces import SystemNamespaces
from paddlecloud.local.apiserver.http import certs, documents
from paddlecloud.local.apiserver.http.inprocess import InProcessTransport
from paddlecloud.local.apiserver.http.server import HttpsServer
from paddlecloud.local.apiserver.metrics import ApiMetrics
from paddlecloud.local.apiserver.objects.admission import Admission, WriteOptions
from paddlecloud.local.apiserver.objects.verbs import Verbs
from paddlecloud.local.apiserver.policy import service_accounts
from paddlecloud.local.apiserver.policy.quota_keeper import QuotaKeeper
from paddlecloud.local.apiserver.proxy import handlers as proxy
from paddlecloud.local.apiserver.registry import Registry
from paddlecloud.local.apiserver.streaming import handlers as streaming
from paddlecloud.local.apiserver.streaming import kept
from paddlecloud.local.apiserver.streaming.handlers import PodStreams
from paddlecloud.local.apiserver.streaming.kept import KeptLogs
from paddlecloud.local.store.record import ObjectAddress
from paddlecloud.local.store.store import Store

log = logging.getLogger(__name__)

OURS = "app.kubernetes.io/managed-by"


class Collector(Protocol):
    async def run(self) -> None: ...


class PlatformError(Exception):
    """The platform cannot start here; the message says why and what to do."""


class ControlPlane:
    def __init__(
        self, data: Path, *, durable: bool = False, clock: Clock | None = None, seed: int | None = None
    ) -> None:
        self.data = data
        self.clock: Clock = clock or SystemClock()
        self._lock = _lock(data)
        self._tasks: list[asyncio.Task[Any]] = []
        self.failed = asyncio.Event()
        self.store = Store(data / "state.db", durable=durable)  # first: it refuses the directory of a newer release
        self.certs = certs.ensure(data / "pki")
        self.tokens = TokenIssuer.load(data / "pki" / "sa.key", clock=self.clock)
        self.registry = Registry(builtin_kinds())
        self.extensions = Extensions()
        # For uids and generated names: unique, not secret. Asking the kernel each time would cost more than the rest.
        rng = random.Random(os.urandom(32) if seed is None else seed)  # noqa: S311
        self.admission = Admission(self.clock, rng)
        self.verbs = Verbs(self.store, self.admission, self.clock)
        self.authorizer = authorization.Authorizer(self.store)
        self.audit = AuditLog(data / "audit.log", clock=self.clock)
        self.metrics = ApiMetrics(self.store, self.audit)
        self.api = Api(
            store=self.store,
            registry=self.registry,
            verbs=self.verbs,
            authorizer=self.authorizer,
            audit=self.audit,
            clock=self.clock,
            extensions=self.extensions,
            metrics=self.metrics,
        )
        admin = StaticTokens({ensure_token(data / "pki" / "admin.token"): ADMIN})
        self.authenticator = Authenticator(admin, issuer=self.tokens, lookup=self._uid_of)
        self._https = HttpsServer(self.api, self.authenticator, tls=certs.server_context(self.certs))
        self._plug_in()

    def _spec_of_pod(self, namespace: str, name: str) -> Object:
        record = self.store.get(ObjectAddress("/pods", namespace, name))
        return record.object["spec"] if record is not None else {}

    def _uid_of(self, kind: str, namespace: str, name: str) -> str | None:
        """For tokens: the object behind one, if it still exists."""
        record = self.store.get(ObjectAddress(f"/{kind.lower()}s", namespace, name))
        return record.meta.uid if record else None

    def _plug_in(self) -> None:
        """Behaviour that Kubernetes gives to particular kinds."""
        network = loopback.network_for(str(self.data), loopback.SERVICES)
        start = loopback.start_in(network, str(self.data))
        self._own_service = OwnService(self.store, self.registry, self.verbs, cluster_ip=str(network[start + 1]))
        quotas = QuotaKeeper(self.store, self.registry, self.verbs)
        addresses = services.ClusterIPs(self.store, network, start=start)
        self.admission.mutators += [
            namespaces.default,
            functools.partial(registration.accept, self.clock, self.registry),
            quotas.default,
            functools.partial(pods.default, self.store),
            functools.partial(service_accounts.add_service_account, self.store, self.admission.rng),
            addresses.assign,
            functools.partial(ingresses.assign_class, self.store),
            complete_job,
            count_templates,
            keep_empty_metadata,
        ]
        self.admission.guards += [
            functools.partial(namespaces.admit, self.store),
            functools.partial(escalation.policy, self.authorizer.index),
        ]
        self.admission.policies += [
            addresses.confirm,
            quotas.admit,
            registration.warn,
            ingresses.warn,
        ]
        self.admission.removals += [namespaces.keep]
        self.extensions.handlers.update(
            {
                ("", "pods", "binding"): pods.binding(self.verbs, self.clock),
                ("", "pods", "eviction"): pods.eviction(self.verbs),
                **reviews.handlers(
                    self.verbs, self.authorizer, self.authenticator, self.tokens, self._uid_of, self._spec_of_pod
                ),
            }
        )
        self.extensions.paths.update(
            documents.paths(self.tokens, self.metrics.registry, self.registry, url=lambda: self.url)
        )
        self._system_namespaces = SystemNamespaces(self.store, self.registry, self.verbs)
        self._collectors: list[Collector] = [
            self._system_namespaces,
            self._own_service,
            quotas,
            RoleAggregator(self.store, self.registry, self.verbs, self.authorizer.index),
            registration.CustomKinds(self.store, self.registry, self.verbs),
            EventExpiry(self.store, self.registry, self.verbs, self.clock),
            GarbageCollector(self.store, self.registry, self.verbs),
            namespaces.NamespaceCollector(self.store, self.registry, self.verbs),
            namespaces.NamespaceInitializer(self.store, self.registry, self.verbs, ca=self.certs.ca_cert.read_text()),
        ]

    async def start(self, *, host: str = "127.0.0.1", port: int = 0, objects: list[Object] | None = None) -> None:
        """Ready to serve when this returns. `objects` are made if they are not there yet."""
        await self._system_namespaces.ensure()
        await self._bootstrap([*authorization.bootstrap_objects(), *_priority_objects(), *(objects or [])])
        for collector in self._collectors:
            self.spawn(collector.run())
        await self.listen(host=host, port=port)

    async def listen(self, *, host: str = "127.0.0.1", port: int = 0) -> None:
        await self._https.start(host, port)
        self._own_service.serve(host, self.port)

    def serve_streams(self, streams: PodStreams) -> None:
        """Offer logs, exec, attach, port-forward and the proxy of the pods that a kubelet runs."""
        self.extensions.handlers.update(streaming.handlers(self.verbs, streams))
        self.extensions.handlers.update(proxy.handlers(self.verbs, self.registry, streams, self.admission.rng))

    def serve_kept_logs(self, logs: KeptLogs, owners: Sequence[Resource]) -> None:
        """Offer the logs of pods that are gone, below the objects that made them."""
        self.extensions.handlers.update(kept.handlers(self.verbs, logs, owners))

    @property
    def port(self) -> int:
        return self._https.port

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    def spawn(self, coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run something for as long as the platform lives. Should it fail, `failed` is set: half a platform is none."""
        task = asyncio.get_running_loop().create_task(coroutine)
        task.add_done_callback(self._ended)
        self._tasks.append(task)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        if not task.cancelled() and task.exception() is not None:
            log.critical("%s failed", task.get_coro(), exc_info=task.exception())
            self.failed.set()

    def client(self, user: User = ADMIN, *, user_agent: str = "paddlecloud") -> Client:
        """A client inside the process, under the identity of `user`."""
        return Client(InProcessTransport(self.api, user, user_agent=user_agent), field_manager=user_agent)

    async def _bootstrap(self, objects: list[Object]) -> None:
        for obj in objects:
            group, _, version = obj["apiVersion"].rpartition("/")
            info = self.registry.by_kind(group, version, obj["kind"])
            assert info is not None, f"{obj['apiVersion']} {obj['kind']} is not served"
            meta = obj["metadata"]
            options = WriteOptions(manager="paddlecloud")
            try:
                await self.verbs.create(info, obj, namespace=meta.get("namespace", ""), options=options)
            except AlreadyExists:
                # Made by an earlier start. What users changed since stays; what the release defines follows it.
                if change := _follow_release(obj):
                    await self.verbs.update(info, "", meta["name"], change, options=options)

    async def stop(self) -> None:
        """Stop serving, then stop working, then close the store: no write is acknowledged that was not kept."""
        await self._https.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.store.close()
        self.audit.close()
        os.close(self._lock)


def _follow_release(obj: Object) -> Callable[[Object], Object] | None:
    """How an object of an earlier start becomes that of this release; None for what belongs to users by now."""
    meta = obj["metadata"]
    if obj["kind"] == "CustomResourceDefinition":
        return lambda current: {**current, "spec": obj["spec"]}
    if obj["kind"] == "ClusterRole" and (meta.get("labels") or {}).get(OURS) == "paddlecloud":
        return lambda current: {**current, "rules": obj["rules"]}
    if bootstrap_roles.is_default(obj):
        return lambda current: bootstrap_roles.completed(current, obj)
    return None


def _priority_objects() -> list[Object]:
    """The classes that manifests of cluster components name."""
    return [
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
            "description": f"Used for system critical pods that must {what}.",
        }
        for name, value, what in (
            ("system-node-critical", 2_000_001_000, "not be moved from their current node"),
            (
                "system-cluster-critical",
                2_000_000_000,
                "run in the cluster, but can be moved to another node if necessary",
            ),
        )
    ]


def _close_to_others(data: Path) -> None:
    """Who can write to the directory can replace the keys and the state in it, and so become its administrator."""
    found = data.stat()
    if found.st_uid not in (0, os.geteuid()):
        raise PlatformError(f"{data} belongs to another user (uid {found.st_uid}); choose a directory of your own")
    if found.st_mode & stat.S_ISVTX:
        raise PlatformError(
            f"{data} is shared by all users of this machine; choose a directory of your own with --data"
        )
    if found.st_mode & 0o022:
        data.chmod(stat.S_IMODE(found.st_mode) & ~0o022)


def _lock(data: Path) -> int:
    """Two platforms on one directory would corrupt each other's view: the second is refused."""
    try:
        data.mkdir(parents=True, exist_ok=True, mode=0o700)
        _close_to_others(data)
        handle = os.open(data / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise PlatformError(f"cannot use {data}: {error.strerror}; choose a writable directory with --data") from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise PlatformError(
            f"a platform already runs on {data}; use it, stop it with `pdc down --data {data}`, "
            "or choose another directory with --data"
        ) from None
    return handle
