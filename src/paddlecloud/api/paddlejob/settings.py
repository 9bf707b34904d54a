"""What a PaddleJob means: every default filled in, every spelling understood.

`normalise` never fails and never judges; it reads a job as charitably as upstream's operators did and says in
`warnings` where it had to guess. Controllers decide on `JobSettings`, never on the raw spec.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, TypeVar, cast

import msgspec

from paddlecloud.api.fields import text
from paddlecloud.api.paddlejob.spec import (
    PaddleJob,
    PaddleJobSpec,
    RoleSpec,
    RunPolicy,
    SampleSetRef,
    SchedulingPolicy,
)

CleanPodPolicy = Literal["Always", "Never", "OnFailure", "OnCompletion", "Running"]
Intranet = Literal["PodIP", "Service", "Host"]
Mode = Literal["PS", "Collective", "Single", "Heter"]
RestartPolicy = Literal["Never", "OnFailure", "Always", "ExitCode"]

RESTART_POLICIES = ("Never", "OnFailure", "Always", "ExitCode")
DEFAULT_BACKOFF_LIMIT = 3

CLEAN_POD_POLICIES: dict[str, CleanPodPolicy] = {
    "": "OnCompletion",  # upstream's default deletes pods of completed jobs and keeps those of failed ones
    "always": "Always",
    "all": "Always",
    "never": "Never",
    "nerver": "Never",
    "none": "Never",
    "onfailure": "OnFailure",
    "onfailed": "OnFailure",
    "onfail": "OnFailure",
    "oncompletion": "OnCompletion",
    "oncompleted": "OnCompletion",
    "onsuccess": "OnCompletion",
    "onsucceeded": "OnCompletion",
    "running": "Running",
}
"""By lower-case spelling; the misspelt ones occur in YAML that upstream ships."""

INTRANETS: dict[str, Intranet] = {
    "": "PodIP",
    "podip": "PodIP",
    "service": "Service",
    "host": "Host",
    "hostnetwork": "Host",
}


class RoleSettings(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    replicas: int
    minimum: int
    maximum: int
    restart_policy: RestartPolicy
    template: dict[str, Any]


class SchedulingSettings(msgspec.Struct, frozen=True, kw_only=True):
    """`requested` says whether the job asked for gang scheduling at all."""

    requested: bool
    min_available: int
    queue: str
    priority_class: str
    min_resources: dict[str, str] | None
    timeout_seconds: int | None


class SampleSetSettings(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    mount_path: str
    policy: Literal["Required", "Preferred"]
    wait_for: Literal["Ready", "Warm", "None"]
    read_only: bool


class FailureRuleSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Exit codes are inclusive ranges; None means that the criterion was not given."""

    action: Literal["Restart", "Fail", "Ignore"]
    exit_codes: tuple[tuple[int, int], ...] | None
    reasons: frozenset[str] | None
    message_pattern: str | None
    roles: frozenset[str] | None


class JobSettings(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    namespace: str
    roles: tuple[RoleSettings, ...]
    mode: Mode
    clean_pod_policy: CleanPodPolicy
    intranet: Intranet
    with_gloo: int
    elastic: int | None
    scheduling: SchedulingSettings
    sample_set: SampleSetSettings | None
    backoff_limit: int
    active_deadline_seconds: int | None
    ttl_seconds_after_finished: int | None
    suspend: bool
    managed_by: str
    success_policy: Literal["Workers", "AllRoles"]
    restart_scope: Literal["Job", "Pod"]
    failure_rules: tuple[FailureRuleSettings, ...]
    heartbeat_seconds: int | None
    log_silence_seconds: int | None
    heter_role: Literal["HETER_TRAINER", "HETER"]

    def role(self, name: str) -> RoleSettings | None:
        return next((role for role in self.roles if role.name == name), None)

    @property
    def total(self) -> int:
        """Pods of all roles together."""
        return sum(role.replicas for role in self.roles)


class Normalised(NamedTuple):
    settings: JobSettings
    warnings: list[str]


def normalise(job: PaddleJob) -> Normalised:
    """The meaning of a job, and sentences for people about everything that was not taken literally."""
    spec = job.spec or PaddleJobSpec()
    run = spec.run_policy or RunPolicy()
    warnings: list[str] = []
    roles = tuple(_role(name, block) for name, block in spec.roles())
    settings = JobSettings(
        name=job.name,
        namespace=job.namespace,
        roles=roles,
        mode=mode_of(spec),
        clean_pod_policy=_clean_pod_policy(spec, run, warnings),
        intranet=_intranet(spec, warnings),
        with_gloo=_with_gloo(spec, warnings),
        elastic=spec.elastic,
        scheduling=_scheduling(spec, run, sum(role.replicas for role in roles)),
        sample_set=_sample_set(spec.sample_set_ref) if spec.sample_set_ref else None,
        backoff_limit=_backoff_limit(_first(spec.backoff_limit, run.backoff_limit), roles),
        active_deadline_seconds=_first(spec.active_deadline_seconds, run.active_deadline_seconds),
        ttl_seconds_after_finished=_first(spec.ttl_seconds_after_finished, run.ttl_seconds_after_finished),
        suspend=bool(_first(spec.suspend, run.suspend)),
        managed_by=_first(spec.managed_by, run.managed_by) or "",
        success_policy="AllRoles" if spec.success_policy == "AllRoles" else "Workers",
        restart_scope="Pod" if spec.restart_scope == "Pod" else "Job",
        failure_rules=_failure_rules(spec),
        heartbeat_seconds=spec.hang_detection.heartbeat_seconds if spec.hang_detection else None,
        log_silence_seconds=spec.hang_detection.log_silence_seconds if spec.hang_detection else None,
        heter_role="HETER" if spec.compat == "HETER" else "HETER_TRAINER",
    )
    if spec.ps and not spec.worker:
        warnings.append("spec.ps without spec.worker: the job completes when its servers exit by themselves")
    return Normalised(settings, warnings)


def mode_of(spec: PaddleJobSpec) -> Mode:
    """The MODE column. A block for parameter servers makes it PS, whatever else is there."""
    if spec.ps:
        return "PS"
    if spec.heter:
        return "Heter"
    return "Collective" if spec.worker and _replicas(spec.worker) > 1 else "Single"


def exit_code_range(value: int | str) -> tuple[int, int]:
    """`137` or `"128-159"` as an inclusive range; ValueError for anything else."""
    low, _, high = str(value).partition("-")
    return int(low), int(high or low)


T = TypeVar("T")


def _first(*values: T | None) -> T | None:
    return next((value for value in values if value is not None), None)


def _replicas(role: RoleSpec) -> int:
    return 1 if role.replicas is None else max(0, role.replicas)


class UnknownValue(NamedTuple):
    field: str
    written: str
    read_as: str
    known: tuple[str, ...]


def unknown_values(job: PaddleJob) -> list[UnknownValue]:
    """Free strings of the spec that are not known, and the value that the controller uses instead."""
    spec = job.spec or PaddleJobSpec()
    tables: tuple[tuple[str, str, str, Mapping[str, str]], ...] = (
        ("cleanPodPolicy", _written_policy(spec, spec.run_policy or RunPolicy()), "Never", CLEAN_POD_POLICIES),
        ("intranet", spec.intranet or "", "PodIP", INTRANETS),
    )
    return [
        UnknownValue(field, written, read_as, tuple(dict.fromkeys(table.values())))
        for field, written, read_as, table in tables
        if written.strip().lower() not in table
    ]


def _written_policy(spec: PaddleJobSpec, run: RunPolicy) -> str:
    return _first(spec.clean_pod_policy, spec.clean_policy, run.clean_pod_policy) or ""


def _clean_pod_policy(spec: PaddleJobSpec, run: RunPolicy, warnings: list[str]) -> CleanPodPolicy:
    if spec.clean_policy is not None:
        if spec.clean_pod_policy is None:
            warnings.append("spec.cleanPolicy is read as spec.cleanPodPolicy: please write the latter")
        else:
            warnings.append("spec.cleanPolicy is ignored because spec.cleanPodPolicy is set")
    written = _written_policy(spec, run)
    known = CLEAN_POD_POLICIES.get(written.strip().lower())
    if known is None:
        choices = "Always, Never, OnFailure, OnCompletion or Running"
        warnings.append(f'cleanPodPolicy "{written}" is unknown and read as Never: write {choices}')
        return "Never"
    if written and written != known:
        warnings.append(f'cleanPodPolicy "{written}" is read as {known}')
    return known


def _intranet(spec: PaddleJobSpec, warnings: list[str]) -> Intranet:
    written = spec.intranet or ""
    known = INTRANETS.get(written.strip().lower())
    if known is None:
        warnings.append(f'intranet "{written}" is unknown and read as PodIP: write PodIP, Service or Host')
        return "PodIP"
    if written and written != known:
        warnings.append(f'intranet "{written}" is read as {known}')
    return known


def _with_gloo(spec: PaddleJobSpec, warnings: list[str]) -> int:
    if not spec.with_gloo:
        return 0
    if not spec.ps or not _replicas(spec.ps):
        warnings.append("spec.withGloo is ignored: it only matters with parameter servers")
        return 0
    return spec.with_gloo


def _role(name: str, block: RoleSpec) -> RoleSettings:
    replicas = _replicas(block)
    template = block.template or {}
    pod = template.get("spec")
    in_template = pod.get("restartPolicy") if isinstance(pod, dict) else None
    policy = block.restart_policy or in_template
    return RoleSettings(
        name=name,
        replicas=replicas,
        minimum=replicas if block.requests is None else block.requests,
        maximum=replicas if block.limits is None else block.limits,
        restart_policy=cast(RestartPolicy, policy) if policy in RESTART_POLICIES else "OnFailure",
        template=template,
    )


def _backoff_limit(written: int | None, roles: tuple[RoleSettings, ...]) -> int:
    if written is not None:
        return written
    return 0 if all(role.restart_policy == "Never" for role in roles) else DEFAULT_BACKOFF_LIMIT


def _scheduling(spec: PaddleJobSpec, run: RunPolicy, total: int) -> SchedulingSettings:
    policy = spec.scheduling_policy or run.scheduling_policy
    given = policy or SchedulingPolicy()
    resources = given.min_resources
    return SchedulingSettings(
        requested=policy is not None,
        min_available=total if given.min_available is None else given.min_available,
        queue=given.queue or "",
        priority_class=given.priority_class or "",
        min_resources=None if resources is None else {k: str(v) for k, v in resources.items()},
        timeout_seconds=_first(given.schedule_timeout_seconds, spec.schedule_timeout_seconds),
    )


def _sample_set(ref: SampleSetRef) -> SampleSetSettings:
    return SampleSetSettings(
        name=ref.name or "",
        mount_path=ref.mount_path or "",
        policy="Preferred" if ref.policy == "Preferred" else "Required",
        wait_for=cast(Literal["Ready", "Warm", "None"], ref.wait_for or "Ready"),
        read_only=bool(ref.read_only),
    )


def _failure_rules(spec: PaddleJobSpec) -> tuple[FailureRuleSettings, ...]:
    policy = spec.failure_policy
    return tuple(
        FailureRuleSettings(
            action=cast(Literal["Restart", "Fail", "Ignore"], rule.action or "Restart"),
            exit_codes=None if rule.exit_codes is None else tuple(_ranges(rule.exit_codes)),
            reasons=None if rule.reasons is None else frozenset(rule.reasons),
            message_pattern=text(rule.message_pattern),
            roles=None if rule.roles is None else frozenset(rule.roles),
        )
        for rule in (policy.rules if policy and policy.rules else ())
    )


def _ranges(values: list[int | str]) -> list[tuple[int, int]]:
    """The ranges that can be read; `validate` names the others."""
    ranges = []
    for value in values:
        try:
            ranges.append(exit_code_range(value))
        except ValueError:
            continue
    return ranges
