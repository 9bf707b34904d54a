"""Receives reports: keeps what the pods of each job send, and gives them the token they send it with.

Only this and `listener` know that there is a network; what was reported reaches decisions as `report.Reports`.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from paddlecloud.api.paddlejob import phase_of
from paddlecloud.controllers.paddlejob import names
from paddlecloud.controllers.paddlejob.pods import objects
from paddlecloud.controllers.paddlejob.reports import token
from paddlecloud.controllers.paddlejob.reports.listener import Channel, ListenAddress, Report
from paddlecloud.controllers.paddlejob.reports.report import Listener, Reports
from paddlecloud.controllers.paddlejob.status import FINISHED
from paddlecloud.kube import shared_key
from paddlecloud.kube.client import Client
from paddlecloud.kube.clock import Clock
from paddlecloud.kube.errors import AlreadyExists, NotFound
from paddlecloud.kube.resource import SECRETS, Key, Object, key_of

log = logging.getLogger(__name__)


class ReportReceiver:
    """`job_of` finds a job by name; `wake` is called with the key of a job that has reported."""

    def __init__(
        self,
        client: Client,
        *,
        clock: Clock,
        job_of: Callable[[Key], Object | None],
        wake: Callable[[Key], None],
    ) -> None:
        self._client = client
        self._clock = clock
        self._job_of = job_of
        self._wake = wake
        self._key = b""
        self._listeners: dict[str, Listener] = {}
        self._equipped: dict[str, int] = {}
        self._channel = Channel(self._token_of, self._take, clock=clock)

    @asynccontextmanager
    async def open(self, place: ListenAddress) -> AsyncIterator[str]:
        """Listen while the context is open; yields the URL pods report to."""
        self._key = await shared_key.ensure_key(self._client, token.KEY_NAME, place.key_namespace)
        async with self._channel.serve(place) as url:
            yield url

    def reports(self, job: Object) -> Reports:
        """What the pods of the job's present generation have reported."""
        return self._listener(job).reports()

    def reports_first(self, job: Object) -> bool:
        """Whether the pods have reported progress, or a checkpoint, and the job's status has none yet."""
        status, known = job.get("status") or {}, self._listener(job).reports()
        return bool(known.progress and not status.get("progress")) or bool(
            known.checkpoint and not status.get("checkpoint")
        )

    def forget(self, uid: str) -> None:
        """The job is gone, or another one has its name."""
        self._listeners.pop(uid, None)
        self._equipped.pop(uid, None)

    def _listener(self, job: Object) -> Listener:
        uid, generation = job["metadata"]["uid"], _generation(job)
        known = self._listeners.get(uid)
        if known is None or known.generation != generation:
            known = self._listeners[uid] = Listener(generation, self._clock.now())
        return known

    def _token_of(self, key: Key) -> str:
        job = self._job_of(key)
        return "" if job is None else token.derive(self._key, job["metadata"]["uid"])

    def _take(self, report: Report) -> None:
        job = self._job_of(report.job)
        if job is None or _generation(job) != report.generation:
            return
        if phase_of((job.get("status") or {}).get("phase")) in FINISHED:
            return
        self._listener(job).take(report.rank, report.message, self._clock.now())
        if report.message.is_news:
            self._wake(report.job)

    async def equip(self, job: Object) -> None:
        """Make the Secret with the job's token; once per generation, in case somebody took it away."""
        meta = job["metadata"]
        if self._equipped.get(meta["uid"]) == _generation(job):
            return
        name = token.secret_name(meta["name"], meta["uid"])
        described = objects.metadata(job, name, labels={names.JOB: meta["name"]})
        secret = token.build_secret(described, token.derive(self._key, meta["uid"]))
        try:
            await self._client.create(SECRETS, secret)
        except AlreadyExists:
            await self._settle_existing(job, secret)
        self._equipped[meta["uid"]] = _generation(job)

    async def _settle_existing(self, job: Object, secret: Object) -> None:
        """From before a crash or a restart: good. Anybody else's: left alone."""
        name, namespace = secret["metadata"]["name"], key_of(job).namespace
        try:
            existing = await self._client.get(SECRETS, name, namespace)
        except NotFound:
            await self._client.create(SECRETS, secret)
            return
        if existing.get("data") != secret["data"]:
            log.warning("secret %s/%s is not ours: the pods of job %s cannot report", namespace, name, key_of(job))


def _generation(job: Object) -> int:
    return int((job.get("status") or {}).get("generation") or 0)
