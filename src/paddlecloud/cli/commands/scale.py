"""`pdc scale`, `suspend`, `resume`: one small patch each.

All take the name of a PaddleJob, or KIND/NAME for other kinds that can be scaled or suspended; `scale` also kubectl's
KIND NAME…. What has ended is not changed: nothing would happen.
"""

from __future__ import annotations

import argparse
from typing import Any

from paddlecloud.cli.failures import CONFLICT, CliError, UsageError, attempting, from_api
from paddlecloud.cli.objects import outcome, targets
from paddlecloud.cli.objects.placing import ObjectRef
from paddlecloud.cli.objects.resizing import restart_note, scale_note
from paddlecloud.cli.parsing import Parsers, number
from paddlecloud.cli.render import output
from paddlecloud.cli.session import Session
from paddlecloud.kube.discovery import UnknownKind
from paddlecloud.kube.errors import Invalid, MethodNotAllowed, NotFound
from paddlecloud.kube.resource import KUBEFLOW_PADDLEJOBS, PADDLEJOBS, PADDLESERVICES, Object

SUSPENDABLE: dict[tuple[str, str], tuple[str, ...]] = {
    (PADDLEJOBS.group, PADDLEJOBS.kind): ("spec", "suspend"),
    (KUBEFLOW_PADDLEJOBS.group, KUBEFLOW_PADDLEJOBS.kind): ("spec", "runPolicy", "suspend"),
    ("batch", "Job"): ("spec", "suspend"),
    ("batch", "CronJob"): ("spec", "suspend"),
    ("argoproj.io", "Workflow"): ("spec", "suspend"),
    ("argoproj.io", "CronWorkflow"): ("spec", "suspend"),
}


SCALE = """Set the number of workers of a PaddleJob, or of replicas of any kind that has a scale subresource.

Another number of workers restarts all pods of a job, since every rank knows the number of the others. For a job that
runs and is not elastic, the pods and the checkpoint they begin from are shown first; on a terminal you are asked,
unless -y is given. What has ended is refused.

A PaddleService is pinned to the number and no longer scales by its requests; 0 leaves it to the autoscaler again."""


def add_commands(parsers: Parsers) -> None:
    scale = parsers.add_parser("scale", description=SCALE)
    scale.add_argument("words", nargs="+", metavar="JOB", help="name of a PaddleJob, KIND/NAME, or KIND NAME…")
    scale.add_argument("--replicas", type=number(0), required=True, metavar="N", help="how many there should be")
    scale.set_defaults(run=run_scale)
    for name, function in (("suspend", run_suspend), ("resume", run_resume)):
        parser = parsers.add_parser(name)
        parser.add_argument("words", nargs="+", metavar="JOB", help="name of a PaddleJob, or KIND/NAME")
        parser.set_defaults(run=function)


def run_scale(session: Session, args: argparse.Namespace) -> int:
    fmt = output.parse_format(args.output, ("", *output.OBJECTS))
    with attempting(f"scale {' '.join(args.words)}"):
        places = _scaled(session, args.words)
        jobs = [(where, _refuse_ended(session, where, "scaled")) for where in places]
        for where, job in jobs:
            if job is not None:
                _warn_of_restart(session, where, job, args.replicas)
        answers = [(where, _scale(session, where, args.replicas), "scaled") for where in places]
    _print(session, answers, fmt)
    for where in places:
        if where.resource.kind == PADDLESERVICES.kind:
            session.note(f"{where.display}: {scale_note(where.name, args.replicas)}")
    return 0


def _scaled(session: Session, words: list[str]) -> list[ObjectRef]:
    """`slow`, `pdj/slow deploy/web`, `deploy web`; words of which the first is no kind are names of jobs."""
    if len(words) > 1 and not any("/" in word for word in words):
        try:
            entry = session.api.entry(words[0])
        except UnknownKind:
            pass  # names of jobs
        else:
            namespace = session.namespace if entry.resource.namespaced else None
            return [ObjectRef(entry.resource, name, namespace) for name in words[1:]]
    return [_job(session, word) for word in words]


def _warn_of_restart(session: Session, where: ObjectRef, job: Object, replicas: int) -> None:
    """Say what a change of the number costs; on a terminal, ask whether it is meant."""
    spec = job.get("spec") or {}
    workers = spec.get("worker") or (spec.get("paddleReplicaSpecs") or {}).get("Worker") or {}
    if where.resource.kind != "PaddleJob" or workers.get("replicas") == replicas or not (note := restart_note(job)):
        return
    session.note(f"{where.display}: {note}")
    if session.can_ask:
        session.confirm(f"Scale {where.display} to {replicas}?")


def _refuse_ended(session: Session, where: ObjectRef, done: str) -> Object | None:
    """The job that is to be changed; None for other kinds, which do not end."""
    if where.resource.kind not in outcome.FINISHING:
        return None  # elsewhere a phase such as Failed is no end, and another number may be what mends it
    found = session.api.do(session.api.client.get(where.resource, where.name, where.namespace))
    ended = outcome.finished(found)
    if ended is not None:
        job = where.resource.kind == "PaddleJob"
        raise CliError(
            f"{where.display} has ended and cannot be {done}",
            why=f"it is {(found.get('status') or {}).get('phase') or ended.state}",
            next=f"pdc retry {where.name}    (runs it again)" if job else f"pdc delete {where.display}",
            exit_code=CONFLICT,
            reason="Ended",
        )
    return found


def _scale(session: Session, where: ObjectRef, replicas: int) -> Object:
    patch = {"spec": {"replicas": replicas}}
    call = session.api.client.patch(where.resource, where.name, patch, namespace=where.namespace, subresource="scale")
    try:
        return session.api.do(call)
    except Invalid as error:
        raise _refused(session, where, replicas, error) from error
    except MethodNotAllowed:
        raise _not_scalable(where) from None
    except NotFound as error:
        if (error.details or {}).get("name"):
            raise
        raise _not_scalable(where) from None


def _refused(session: Session, where: ObjectRef, replicas: int, error: Invalid) -> CliError:
    """The refusal with the numbers that stand against it: rules of a CRD can name only the fields."""
    failure = from_api(error, doing=f"cannot scale {where.display} to {replicas}")
    if (where.resource.group, where.resource.kind) != (PADDLEJOBS.group, PADDLEJOBS.kind):
        return failure
    from paddlecloud.api import paddlejob

    found = session.api.do(session.api.client.get(where.resource, where.name, where.namespace))
    spec = found.get("spec") or {}
    asked = {**found, "spec": {**spec, "worker": {**(spec.get("worker") or {}), "replicas": replicas}}}
    failure.why = "; ".join(map(str, paddlejob.validate(paddlejob.decode(asked)))) or failure.why
    return failure


def _not_scalable(where: ObjectRef) -> UsageError:
    why, following = "its kind has no scale subresource", f"pdc explain {where.display}"
    return UsageError(f"{where.display} cannot be scaled", why=why, next=following)


def run_suspend(session: Session, args: argparse.Namespace) -> int:
    return _set_suspend(session, args, suspend=True)


def run_resume(session: Session, args: argparse.Namespace) -> int:
    return _set_suspend(session, args, suspend=False)


def _set_suspend(session: Session, args: argparse.Namespace, *, suspend: bool) -> int:
    fmt = output.parse_format(args.output, ("", *output.OBJECTS))
    done = "suspended" if suspend else "resumed"
    with attempting(f"{args.command} {' '.join(args.words)}"):
        places = [_job(session, word) for word in args.words]
        paths = [_suspend_path(where) for where in places]
        for where in places:
            _refuse_ended(session, where, done)
        answers = []
        for where, path in zip(places, paths, strict=True):
            found = session.api.do(session.api.client.get(where.resource, where.name, where.namespace))
            if _is_suspended(found, path) is suspend:
                answers.append((where, found, "unchanged"))
                continue
            patch: Any = suspend
            for field in reversed(path):
                patch = {field: patch}
            call = session.api.client.patch(where.resource, where.name, patch, namespace=where.namespace)
            answers.append((where, session.api.do(call), done))
    return _print(session, answers, fmt)


def _suspend_path(where: ObjectRef) -> tuple[str, ...]:
    path = SUSPENDABLE.get((where.resource.group, where.resource.kind))
    if path is None:
        kinds = ", ".join(sorted({kind for _, kind in SUSPENDABLE}))
        raise UsageError(f"{where.display} cannot be suspended", why=f"only {kinds} can", next="pdc ps")
    return path


def _is_suspended(obj: Object, path: tuple[str, ...]) -> bool:
    """What the field says; where it says nothing, another one may (`runPolicy.suspend`), and the status shows it."""
    value: Any = obj
    for field in path:
        value = value.get(field) if isinstance(value, dict) else None
    return (obj.get("status") or {}).get("phase") == "Suspended" if value is None else bool(value)


def _job(session: Session, word: str) -> ObjectRef:
    entry, name = targets.one(session.api, [word if "/" in word else f"pdj/{word}"], usage="JOB or KIND/NAME")
    return ObjectRef(entry.resource, name, session.namespace if entry.resource.namespaced else None)


def _print(session: Session, answers: list[tuple[ObjectRef, Object, str]], fmt: output.Format) -> int:
    if fmt.name:
        objects = [output.without_managed_fields(obj) for _, obj, _ in answers]
        output.print_objects(session, objects, fmt, single=len(objects) == 1)
        return 0
    for where, _, done in answers:
        session.print(f"{where.display} {done}")
    return 0
