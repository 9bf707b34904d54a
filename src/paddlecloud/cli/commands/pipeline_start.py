"""`pdc pipeline run, resubmit, retry` and `schedule`: a file or an earlier run is run, again, or again and again."""

from __future__ import annotations

import argparse
import sys
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from paddlecloud.cli import times
from paddlecloud.cli.commands.pipeline_runs import change, find_run
from paddlecloud.cli.failures import INTERRUPTED, JOB_FAILED, TIMEOUT, CliError, InputError, UsageError, attempting
from paddlecloud.cli.objects import outcome
from paddlecloud.cli.objects.placing import ObjectRef
from paddlecloud.cli.objects.waiting import DeadlineError, until
from paddlecloud.cli.render import output, pipeline_graph, table
from paddlecloud.cli.session import Session
from paddlecloud.kube.generated_names import suffix
from paddlecloud.kube.name_rules import subdomain_problems
from paddlecloud.kube.resource import Object
from paddlecloud.kube.wording import cause_of
from paddlecloud.pipelines import names
from paddlecloud.pipelines.runs import actions, cache_misses, record, schedule, starting, states
from paddlecloud.pipelines.runs.package import Package, PackageError
from paddlecloud.pipelines.runs.submission import RunRequest
from paddlecloud.sdk import pipelines as sdk
from paddlecloud.sdk.compiling import CompileError, NoKfp, OtherGeneration
from paddlecloud.sdk.failed_steps import failure_of

LONGEST_SCHEDULE_NAME = 52
"""As Argo allows for CronWorkflows."""


def run_file(session: Session, args: argparse.Namespace) -> int:
    fmt = output.parse_format(args.output, ("", *output.OBJECTS))
    file = args.words[0]
    found = _read(args, file)
    request = _request(session, args, found)._replace(run_id=str(uuid.uuid4()))
    with _creating(f"run {file}"), _readable(file):
        made = session.api.do(starting.start(session.api.client, found, request, suffix=suffix()))
    return _started(session, args, made, fmt)


def run_resubmit(session: Session, args: argparse.Namespace) -> int:
    fmt = output.parse_format(args.output, ("", *output.OBJECTS))
    word, parameters = args.words[0], _parameters(args.parameter or ())
    with _creating(f"resubmit {word}"):
        earlier = find_run(session, word)
        call = starting.resubmit(
            session.api.client, earlier, parameters,
            run_id=str(uuid.uuid4()), suffix=suffix(), name=args.name or "", cache=not args.no_cache,
        )  # fmt: skip
        try:
            made = session.api.do(call)
        except PackageError as error:
            raise InputError(f"workflow/{earlier['metadata']['name']} cannot be resubmitted", why=str(error)) from error
    return _started(session, args, made, fmt)


def run_retry(session: Session, args: argparse.Namespace) -> int:
    fmt = output.parse_format(args.output, ("", *output.STRUCTURED))
    workflow = change(session, args, "retried", actions.retry)
    name = workflow["metadata"]["name"]
    ended = None
    if args.no_wait and not fmt.name:
        session.print(f"workflow/{name} retried")
        session.note(f"to follow it: pdc pipeline show {name} -w{session.namespace_flag}")
    elif not args.no_wait:
        if not fmt.name:
            session.note(f"workflow/{name} retried")
        ended = _awaited(session, args, workflow, fmt)
        if ended is None:
            return INTERRUPTED
    if fmt.name:
        body = {"run": name, "result": "retried", **({"phase": states.phase_of(ended)} if ended else {})}
        output.print_report(session, "PipelineAction", body)
    return conclude(session, ended) if ended else 0


def _started(session: Session, args: argparse.Namespace, made: Object, fmt: output.Format) -> int:
    """Wait for the run unless that is not wanted, and report how it ended."""
    name = made["metadata"]["name"]
    if not fmt.name:
        session.note(f"workflow/{name} created in namespace {session.namespace}")
    ended = made if args.no_wait else _awaited(session, args, made, fmt)
    if ended is None:
        return INTERRUPTED
    if fmt.name:
        output.print_objects(session, [output.without_managed_fields(ended)], fmt, single=True)
    elif args.no_wait:
        session.print(f"workflow/{name}")
    return conclude(session, ended) if not args.no_wait else 0


def _awaited(session: Session, args: argparse.Namespace, made: Object, fmt: output.Format) -> Object | None:
    """The run when it has ended; None after Ctrl-C, which leaves it alone."""
    name, where = made["metadata"]["name"], session.namespace_flag
    try:
        return follow(session, made, timeout=args.timeout, quiet=bool(fmt.name))
    except KeyboardInterrupt:
        session.note(
            f"no longer waiting; it goes on: pdc pipeline show {name} -w{where}. "
            f"To stop it: pdc pipeline stop {name}{where}"
        )
        return None


def follow(session: Session, workflow: Object, *, timeout: float | None, quiet: bool = False) -> Object:
    """Show the steps as they go until the run has ended; its last state."""
    meta = workflow["metadata"]
    place = ObjectRef(names.WORKFLOWS, meta["name"], meta["namespace"])
    view = pipeline_graph.Live(session, quiet=quiet)

    def look(now: Object | None) -> Object | None:
        if now is None:
            raise CliError(f"{place.display} was deleted before it had ended", exit_code=JOB_FAILED)
        view.show(now, record.steps(now))
        return now if states.is_over(now) else None

    try:
        return until(session.api, place, look, timeout=timeout)
    except DeadlineError as late:
        phase = states.phase_of(late.last) if late.last else "gone"
        raise CliError(
            f"{place.display} has not ended within {timeout:g} s",
            why=f"it is {phase or 'Pending'}",
            next=f"pdc pipeline show {place.name}{session.namespace_flag}",
            exit_code=TIMEOUT,
        ) from late
    finally:
        view.end()


def conclude(session: Session, workflow: Object) -> int:
    """What the step that failed printed last, the last line, and the exit code of how it ended."""
    name, where = workflow["metadata"]["name"], session.namespace_flag
    with attempting(f"read why workflow/{name} failed"):
        failure = session.api.do(failure_of(session.api.client, workflow))
    if failure.why:
        following = f"pdc pipeline logs {name} {failure.step}".rstrip() + where
        if cache_misses.lacks_cache_rights(failure.why):
            following = (
                f"pdc pipeline resubmit {name}{where} --no-cache; or give Argo the right (docs/pipelines.md#caching)"
            )
        elif account := states.account_without_right(failure.why):
            following = (
                f"give the account {account} that right, or run with --service-account of one that has it, "
                f"such as {names.RUNNER} in {names.SYSTEM_NAMESPACE} (docs/pipelines.md#what-a-step-does)"
            )
        if failure.output and not session.args.output:
            session.note(f"last lines of {failure.step}:")
            for line in failure.output:
                session.note(f"  {line}")
        raise CliError(f"workflow/{name} failed", why=failure.why, next=following, exit_code=JOB_FAILED)
    if not session.args.output:
        session.print(f"workflow/{name} {states.phase_of(workflow).lower()}")
    return 0


def run_schedule(session: Session, args: argparse.Namespace) -> int:
    if not args.words:
        return _list_schedules(session, args)
    fmt = output.parse_format(args.output, ("", *output.OBJECTS))
    file = args.words[0]
    if args.all_namespaces:
        raise UsageError("a schedule belongs to one namespace", next="leave -A out, or name one with -n")
    try:
        trigger = schedule.read(cron=args.cron or "", interval=f"{args.every:.0f}" if args.every else "")
    except schedule.ScheduleError as error:
        raise UsageError(str(error), next=f'pdc pipeline schedule {file} --cron "0 9 * * *"') from None
    _check_schedule_name(args.name or "")
    found = _read(args, file)
    request = _request(session, args, found)._replace(recurring_id=str(uuid.uuid4()))
    where = session.namespace_flag
    hints = {"AlreadyExists": f"another --name; to see what is scheduled: pdc pipeline schedule{where}"}
    with _creating(f"schedule {file}", hints=hints), _readable(file):
        call = starting.schedule(
            session.api.client, found, request, trigger, suffix=suffix(), name=args.name or ""
        )  # fmt: skip
        made = session.api.do(call)
    if fmt.name:
        output.print_objects(session, [output.without_managed_fields(made)], fmt, single=True)
    else:
        name = f"cronworkflow/{made['metadata']['name']}"
        session.print(f"{name} created: {trigger.schedule}")
        session.note(f"to end it and keep its runs: pdc delete {name}{where} --cascade=orphan")
        session.note("without --cascade=orphan its runs are deleted too, with their logs and artifacts")
    return 0


def _check_schedule_name(name: str) -> None:
    """The name of a schedule is that of its CronWorkflow: commands take it, and there are no two of it."""
    problems = subdomain_problems(name) if name else []
    if len(name) > LONGEST_SCHEDULE_NAME:
        problems = [f"must be no more than {LONGEST_SCHEDULE_NAME} characters: Argo adds a time to it"]
    if problems:
        raise InputError(f'"{name}" cannot be the name of a schedule', why=problems[0], next="--name nightly")


_OF_A_FILE = ("parameter", "name", "function", "python", "service_account", "no_cache", "cron", "every")


def _list_schedules(session: Session, args: argparse.Namespace) -> int:
    fmt = output.parse_format(args.output, ("", *output.OBJECTS))
    if any(getattr(args, flag) for flag in _OF_A_FILE):
        raise UsageError("there is no FILE to schedule", next='pdc pipeline schedule FILE --cron "0 9 * * *"')
    with attempting("list schedules"):
        found = session.api.do(session.api.client.list(names.CRON_WORKFLOWS, session.scope)).items
    if fmt.name:
        output.print_objects(session, found, fmt, single=False)
        return 0
    if not found:
        session.note(f"nothing is scheduled in {session.scope or 'any namespace'}")
        return 0
    now = time.time()
    everywhere = session.scope is None
    rows = [
        (
            *([each["metadata"]["namespace"]] if everywhere else []),
            each["metadata"]["name"],
            _pipeline_of(each),
            schedule.of_spec(each["spec"]).schedule,
            bool(each["spec"].get("suspend")),
            times.age(last, now) if (last := (each.get("status") or {}).get("lastScheduledTime")) else "never",
        )
        for each in found
    ]
    columns = (*(["namespace"] if everywhere else []), "name", "pipeline", "schedule", "suspended", "last run")
    sys.stdout.write(table.render(columns, rows))
    return 0


def _pipeline_of(cron: Object) -> str:
    """The name of the pipeline of kfp, where it has one; else what the schedule is called."""
    annotations = cron["metadata"].get("annotations") or {}
    return str(annotations.get(names.PIPELINE_NAME) or annotations.get(names.DISPLAY_NAME) or "")


def _read(args: argparse.Namespace, file: str) -> Package:
    path = Path(file)
    if not path.is_file():
        raise InputError(f"there is no file {file}", next="pdc pipeline run FILE.py, or a compiled FILE.yaml")
    with _readable(file):
        return sdk.read(path, function=args.function or "", python=args.python or "")


@contextmanager
def _creating(what: str, *, hints: Mapping[str, str] | None = None) -> Iterator[None]:
    """As `attempting`; the next step of a run with an image that the platform does not have is to build the image."""
    try:
        with attempting(what, hints=hints):
            yield
    except CliError as error:
        error.next = outcome.build_command(error.why) or error.next
        raise


@contextmanager
def _readable(file: str) -> Iterator[None]:
    try:
        yield
    except CompileError as error:
        following = ""
        if isinstance(error, NoKfp):
            following = "--python PATH of an environment with kfp, or pip install kfp"
        elif isinstance(error, OtherGeneration):
            following = f"--python PATH of an environment with kfp {error.wanted} (pip install 'kfp=={error.wanted}.*')"
        raise InputError(f"{file} cannot be compiled", why=str(error), next=following) from error
    except PackageError as error:
        raise InputError(f"{file} cannot be run", why=str(error)) from error
    except OSError as error:
        raise InputError(f"cannot read {file}", why=cause_of(error)) from error


def _request(session: Session, args: argparse.Namespace, found: Package) -> RunRequest:
    return RunRequest(
        name=args.name or found.name,
        namespace=session.namespace,
        parameters=_parameters(args.parameter or ()),
        service_account=args.service_account or "",
        cache=not args.no_cache,
    )


def _parameters(given: list[str] | tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals or not name:
            raise UsageError(f'"{each}" is not NAME=VALUE', next="-p epochs=3")
        if name in found:
            raise UsageError(f"parameter {name} is given twice", next=f"-p {name}=VALUE once")
        found[name] = value
    return found


RUN = {"run": run_file, "resubmit": run_resubmit, "retry": run_retry, "schedule": run_schedule}
