"""What is known about a SampleJob at one moment, and the draft of its status and plan. Nothing here decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from paddlecloud.api.names import RETRY_AT
from paddlecloud.api.problems import DecodeError
from paddlecloud.api.samplejob import SampleJob, SampleJobSettings, SampleJobStatus, decode, normalise
from paddlecloud.controllers.sampledata.draft import Draft
from paddlecloud.controllers.sampledata.sampleset.case import CacheServer, Parsed, SampleSetOptions, SecretView
from paddlecloud.controllers.sampledata.servers.access import Access
from paddlecloud.controllers.sampledata.servers.requests import Work
from paddlecloud.controllers.sampledata.servers.responses import JobReport
from paddlecloud.kube.clock import rfc3339
from paddlecloud.kube.plan import Plan
from paddlecloud.kube.resource import Object

FINISHED = frozenset({"Succeeded", "Failed"})
LOST_AFTER = 120.0
"""Seconds of silence after which a server's part of a job is given up."""


@dataclass(frozen=True, slots=True)
class ParsedJob:
    """The job's own object, decoded. One that cannot be decoded has `error`, and settings of its name alone."""

    settings: SampleJobSettings
    status: SampleJobStatus
    decoded: SampleJob | None = None
    warnings: tuple[str, ...] = ()
    error: str = ""

    @classmethod
    def of(cls, job: Object) -> ParsedJob:
        try:
            decoded = decode(job)
        except DecodeError as error:
            bare = normalise(decode({"metadata": job["metadata"]})).settings
            return cls(bare, SampleJobStatus(), error=str(error))
        settings, warnings = normalise(decoded)
        return cls(settings, decoded.status or SampleJobStatus(), decoded, tuple(warnings))


@dataclass(frozen=True, slots=True)
class Observed:
    parsed: ParsedJob | None = None
    """The decoded job, and below the decoded set: observing them took decoding, and `decide` does not repeat it."""
    parsed_set: Parsed | None = None
    sample_set: Object | None = None
    servers: tuple[CacheServer, ...] = ()
    access: Access | None = None
    secret: SecretView | None = None
    """The Secret of the source (`work.secret_of`); None when it does not exist, is not granted, or none is named."""
    reports: Mapping[int, JobReport | None] = field(default_factory=dict)
    """Of the servers that answered: the job, or None where it is unknown."""
    silent: Mapping[int, str] = field(default_factory=dict)
    """Of those that did not: why."""
    silent_for: Mapping[int, float] = field(default_factory=dict)
    """And for how many seconds."""
    children: tuple[Object, ...] = ()
    """The SampleJobs a schedule has made."""
    refused: str = ""
    """Why a server would not take the work."""

    @property
    def lost(self) -> frozenset[int]:
        """Servers that have been silent or away for too long: their part of the job is given up."""
        return frozenset(ordinal for ordinal, seconds in self.silent_for.items() if seconds >= LOST_AFTER)


@dataclass(slots=True)
class SampleJobPlan(Plan):
    """With work to give to cache servers, by ordinal, and ids of work to cancel on all of them, "*" for all that other
    jobs asked for. Both are done before the rest is carried out."""

    submit: dict[int, Work] = field(default_factory=dict)
    cancel: tuple[str, ...] = ()


@dataclass(slots=True, kw_only=True)
class SampleJobDraft(Draft):
    job: Object
    settings: SampleJobSettings
    old: SampleJobStatus
    status: SampleJobStatus
    observed: Observed
    options: SampleSetOptions
    plan: SampleJobPlan = field(default_factory=SampleJobPlan)

    @classmethod
    def of(
        cls,
        job: Object,
        settings: SampleJobSettings,
        old: SampleJobStatus,
        observed: Observed,
        now: float,
        options: SampleSetOptions,
    ) -> SampleJobDraft:
        return cls(job=job, settings=settings, old=old, status=old, observed=observed, now=now, options=options)

    @property
    def uid(self) -> str:
        return str(self.job["metadata"]["uid"])

    @property
    def again(self) -> str:
        """A new value of this annotation asks for a failed job to be run again."""
        return str((self.job["metadata"].get("annotations") or {}).get(RETRY_AT) or "")

    def wait(self, message: str, *, event: str = "", after: float = 5.0) -> None:
        """The work cannot begin yet: say why, as an event the first time, and look again."""
        if event and self.old.message != message:
            self.add_event(event, message, warning=True)
        self.set(phase="Pending", message=message)
        self.requeue_after(after)

    def end(self, phase: str, reason: str, message: str = "") -> None:
        self.condition("Running", False, reason)
        self.condition("Succeeded" if phase == "Succeeded" else "Failed", True, reason, message)
        self.set(phase=phase, message=message or None, completion_time=rfc3339(self.now))
