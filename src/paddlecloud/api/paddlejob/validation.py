"""What makes a PaddleJob impossible to run.

There is no webhook: the API server refuses what the schema and its rules can express, numbers of pods among it, and the
controller puts these problems into the condition `Valid` before it creates anything. Spellings that can be understood
are not problems (`settings` warns).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from paddlecloud.api.name_rules import MAX_LABEL
from paddlecloud.api.names import ROLES
from paddlecloud.api.paddlejob.rules import MAX_PODS, longest_name
from paddlecloud.api.paddlejob.settings import INTRANETS, exit_code_range
from paddlecloud.api.paddlejob.spec import (
    FailureRule,
    PaddleJob,
    PaddleJobSpec,
    RoleSpec,
    SampleSetRef,
)
from paddlecloud.api.pattern import PatternError, compile_pattern
from paddlecloud.api.problems import (
    TOO_LONG,
    Problem,
    declared_problems,
    invalid,
    not_supported,
    required,
)

MAX_FAILURE_RULES = 32
"""Each of them may be searched for in the message of a failure, while other jobs wait."""


def validate(job: PaddleJob) -> list[Problem]:
    """Everything wrong with the job, in the order of its fields; empty when it can run."""
    if job.spec is None:
        return [required("spec", "say what to run")]
    problems = declared_problems(job.spec, "spec")
    problems += _name(job.name, job.spec)
    problems += _roles(job.spec)
    problems += _intranet(job.spec)
    problems += _elastic(job.spec)
    if job.spec.sample_set_ref:
        problems += _sample_set(job.spec.sample_set_ref, job.namespace)
    problems += _scheduling(job.spec)
    if job.spec.failure_policy:
        rules = len(job.spec.failure_policy.rules or ())
        if rules > MAX_FAILURE_RULES:
            problems.append(invalid("spec.failurePolicy.rules", rules, f"at most {MAX_FAILURE_RULES} rules"))
        for index, rule in enumerate(job.spec.failure_policy.rules or ()):
            problems += _failure_rule(rule, f"spec.failurePolicy.rules[{index}]")
    return problems


def _name(name: str, spec: PaddleJobSpec) -> Iterator[Problem]:
    if not name:
        return  # generateName: the server will fill it in
    if "." in name:
        yield invalid("metadata.name", name, "must not contain dots: pods take their host names from it")
    elif INTRANETS.get((spec.intranet or "").strip().lower()) == "Service" and not name[0].isalpha():
        yield invalid("metadata.name", name, "must begin with a letter when intranet is Service")
    for role, block in spec.roles():
        pods = max(0, block.replicas or 0, block.limits or 0)
        pod = f"{name}-{role}-{max(0, pods - 1)}"
        longest = longest_name(role, pods)
        if len(name) > longest:
            yield Problem(
                "metadata.name",
                TOO_LONG,
                f'Too long: pod name "{pod}" has {len(pod)} characters and may have {MAX_LABEL}: '
                f"use a job name of at most {longest}",
            )


def _roles(spec: PaddleJobSpec) -> Iterator[Problem]:
    roles = spec.roles()
    if not roles:
        yield required("spec", f"at least one role of {', '.join(ROLES)}")
    elif all(block.replicas == 0 for _, block in roles):
        yield invalid("spec", 0, "every role has 0 replicas: nothing would run")
    total = sum(1 if block.replicas is None else block.replicas for _, block in roles)
    if total > MAX_PODS:
        yield invalid("spec", total, f"a job has at most {MAX_PODS} pods: each gets the endpoints of all of them")
    for role, block in roles:
        yield from _template(block, f"spec.{role}.template")


_LISTS_OF_POD = ("initContainers", "volumes", "tolerations", "imagePullSecrets")
_LISTS_OF_CONTAINER = ("env", "envFrom", "ports", "volumeMounts")


def _template(block: RoleSpec, path: str) -> Iterator[Problem]:
    """What the API server keeps whole and the controller reads: shapes that it cannot read are the job's problem."""
    template = block.template or {}
    pod = template.get("spec")
    if not isinstance(pod, dict):
        yield required(f"{path}.spec", "the pod to run")
        return
    yield from _metadata(template.get("metadata"), f"{path}.metadata")
    yield from _lists(pod, _LISTS_OF_POD, f"{path}.spec")
    containers = pod.get("containers")
    if not isinstance(containers, list) or not containers:
        yield required(f"{path}.spec.containers", "at least one container")
        return
    for index, container in enumerate(containers):
        yield from _container(container, f"{path}.spec.containers[{index}]")


def _metadata(metadata: Any, path: str) -> Iterator[Problem]:
    if metadata is None:
        return
    if not isinstance(metadata, dict):
        yield invalid(path, metadata, "must be an object")
        return
    for field in ("labels", "annotations"):
        if not isinstance(metadata.get(field) or {}, dict):
            yield invalid(f"{path}.{field}", metadata[field], "must be an object")


def _lists(body: dict[str, Any], fields: tuple[str, ...], path: str) -> Iterator[Problem]:
    for field in fields:
        value = body.get(field)
        if value is not None and not (isinstance(value, list) and all(isinstance(item, dict) for item in value)):
            yield invalid(f"{path}.{field}", value, "must be a list of objects")


def _container(container: Any, path: str) -> Iterator[Problem]:
    if not isinstance(container, dict):
        yield invalid(path, container, "must be an object")
        return
    for field in ("name", "image"):
        if not container.get(field):
            yield required(f"{path}.{field}", "must be set")
    yield from _lists(container, _LISTS_OF_CONTAINER, path)


def _intranet(spec: PaddleJobSpec) -> Iterator[Problem]:
    if (spec.intranet or "").strip().lower() not in INTRANETS:
        yield not_supported("spec.intranet", spec.intranet, ("PodIP", "Service", "Host"))


def _elastic(spec: PaddleJobSpec) -> Iterator[Problem]:
    if spec.elastic is None:
        return
    if spec.worker is None:
        yield required("spec.worker", "an elastic job needs workers")
        return
    replicas = 1 if spec.worker.replicas is None else spec.worker.replicas
    low = replicas if spec.worker.requests is None else spec.worker.requests
    high = replicas if spec.worker.limits is None else spec.worker.limits
    if low > high:
        yield invalid("spec.worker.requests", low, f"must not exceed spec.worker.limits ({high})")
    elif not low <= replicas <= high:
        yield invalid("spec.worker.replicas", replicas, f"must lie between requests ({low}) and limits ({high})")


def _sample_set(ref: SampleSetRef, namespace: str) -> Iterator[Problem]:
    if ref.namespace and ref.namespace != namespace:
        text = f"must be {namespace}, the job's own: pods mount no claim of another namespace; make a SampleSet there"
        yield invalid("spec.sampleSetRef.namespace", ref.namespace, f"{text} (noSync: true where the data is shared)")
    if ref.mount_path and not ref.mount_path.startswith("/"):
        yield invalid("spec.sampleSetRef.mountPath", ref.mount_path, "must be an absolute path")


def _scheduling(spec: PaddleJobSpec) -> Iterator[Problem]:
    total = sum(1 if block.replicas is None else block.replicas for _, block in spec.roles())
    in_run_policy = spec.run_policy.scheduling_policy if spec.run_policy else None
    for path, policy in (("spec", spec.scheduling_policy), ("spec.runPolicy", in_run_policy)):
        wanted = policy.min_available if policy else None
        if wanted is not None and wanted > total:
            yield invalid(f"{path}.schedulingPolicy.minAvailable", wanted, f"the job has only {total} pods")


def _failure_rule(rule: FailureRule, path: str) -> Iterator[Problem]:
    if rule.exit_codes is None and rule.reasons is None and rule.message_pattern is None:
        yield required(path, "one of exitCodes, reasons and messagePattern")
    for index, value in enumerate(rule.exit_codes or ()):
        try:
            low, high = exit_code_range(value)
        except ValueError:
            low, high = 1, 0
        if not 0 <= low <= high <= 255:
            yield invalid(f"{path}.exitCodes[{index}]", value, 'must be an exit code or a range such as "128-159"')
    if rule.message_pattern is not None:
        try:
            compile_pattern(rule.message_pattern)
        except PatternError as error:
            yield invalid(f"{path}.messagePattern", rule.message_pattern, f"not a regular expression: {error}")
    for index, role in enumerate(rule.roles or ()):
        if role not in ROLES:
            yield not_supported(f"{path}.roles[{index}]", role, ROLES)
