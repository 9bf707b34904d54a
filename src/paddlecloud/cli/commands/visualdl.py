"""`pdc visualdl`: VisualDL for a PaddleJob, in a browser, while the job trains and as long as it exists.

It makes a Deployment and a Service JOB-visualdl, which belong to the job and are deleted with it, waits until VisualDL
answers, and forwards its port to this machine until Ctrl-C. `kubectl port-forward svc/JOB-visualdl 8040:8040` does the
same forwarding. VisualDL reads the volumes of the job; unless --logdir names folders it looks for records in the
program's working directory, if that lies on a volume, else on every volume that the program can write to.

  pdc visualdl JOB OTHER…               to compare: the runs of each are below /jobs/NAME
  pdc visualdl JOB pvc/CLAIM            also those on a claim, when the job that wrote them is gone

The flags are VisualDL's; what is not given has VisualDL's default, but for --host: the address that VisualDL listens on
in its pod is 0.0.0.0, so that the Service answers. With --host 127.0.0.1 it answers port-forwards alone.

Exit codes: 130 after Ctrl-C; 0 with --detach or --delete; 100 VisualDL does not start; 4 JOB-visualdl is not of this
job; 5 the records cannot be read from another pod; 124 time ran out.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from typing import Any

from paddlecloud.cli.commands.deployments import wait_answering
from paddlecloud.cli.commands.port_forward import ForwardTarget, Pair, serve
from paddlecloud.cli.failures import CONFLICT, OK, CliError, InputError, UsageError, attempting
from paddlecloud.cli.objects.embedded import is_embedded
from paddlecloud.cli.objects.placing import of_object
from paddlecloud.cli.objects.pods import one_pod
from paddlecloud.cli.objects.records import records_of
from paddlecloud.cli.parsing import Parsers, duration, number
from paddlecloud.cli.render import output
from paddlecloud.cli.session import Session
from paddlecloud.kube.errors import NotFound
from paddlecloud.kube.resource import DEPLOYMENTS, SERVICES, Object, Resource
from paddlecloud.sdk import ownership
from paddlecloud.visualdl import board, folders
from paddlecloud.visualdl.flags import EVERYWHERE, LANGUAGES, PORT, FlagError, Flags

HERE = "127.0.0.1"
KINDS: tuple[Resource, ...] = (SERVICES, DEPLOYMENTS)


def add_commands(parsers: Parsers) -> None:
    parser = parsers.add_parser("visualdl", description=__doc__, usage="pdc visualdl JOB [JOB|pvc/CLAIM …] [flags]")
    parser.add_argument("job", metavar="JOB")
    parser.add_argument("others", nargs="*", metavar="JOB|pvc/CLAIM", help="beside it, to compare")
    parser.add_argument(
        "--logdir", action="extend", nargs="+", default=[], metavar="FOLDER", help="with records, as the program has it"
    )
    parser.add_argument("--model", default="", metavar="FILE", help="a model whose graph is shown")
    parser.add_argument("--host", default=EVERYWHERE, metavar="IP", help=f"in the pod (default {EVERYWHERE})")
    parser.add_argument(
        "--port", type=number(1, 65535), default=PORT, metavar="N", help=f"of the Service and here (default {PORT})"
    )
    parser.add_argument("--cache-timeout", type=float, metavar="SECONDS", help="answers are cached as long (20)")
    parser.add_argument("--language", default="", choices=LANGUAGES, help="of the page (default: the browser's)")
    parser.add_argument("--public-path", default="", metavar="PATH", help="where the page begins (default /app)")
    parser.add_argument("--api-only", action="store_true", help="serve the API without the page")
    parser.add_argument("--timeout", type=duration, default=600.0, metavar="TIME", help="30s, 5m (default 10m)")
    parser.add_argument("-d", "--detach", action="store_true", help="leave it running, and forward nothing")
    parser.add_argument("--rm", action="store_true", help="delete it when this command ends")
    parser.add_argument("--delete", action="store_true", help="delete the VisualDL of the job, and do nothing else")
    parser.set_defaults(run=run)


def run(session: Session, args: argparse.Namespace) -> int:
    fmt = output.parse_format(args.output, ("", "json"))
    if args.detach and args.rm:
        raise UsageError("--detach leaves it running, --rm deletes it", next="one of the two")
    with attempting(f"show the curves of {args.job}"):
        job, *others = records_of(session, [args.job, *args.others])
        if folders.is_claim(job):
            raise UsageError(
                "VisualDL belongs to a job, and is deleted with it: name the job first",
                next=f"pdc visualdl JOB {args.job}, or in a terminal: pdc metrics {args.job}",
            )
        if args.delete:
            return _delete(session, job)
        flags, wanted = _wanted([job, *others], args)
        deployment = _apply(session, job, wanted)
        try:
            wait_answering(session, of_object(DEPLOYMENTS, deployment), args.timeout)
            if args.detach:
                _announce(session, _address(session, wanted[0], flags), wanted[0], flags, as_json=bool(fmt.name))
                return OK
            return _forward(session, wanted[0], flags, as_json=bool(fmt.name))
        finally:
            if args.rm:
                _delete(session, job)


def _wanted(jobs: list[Object], args: argparse.Namespace) -> tuple[Flags, tuple[Object, Object]]:
    subject = str(jobs[0]["metadata"]["name"])
    try:
        model = folders.absolute(jobs[0], [args.model])[0] if args.model else ""
        shown = [board.Shown(job, folders.absolute(job, args.logdir) or folders.likely(job)) for job in jobs]
        flags = Flags(
            logdirs=(),
            model=model,
            host=args.host,
            port=args.port,
            cache_timeout=args.cache_timeout,
            language=args.language,
            public_path=args.public_path,
            api_only=args.api_only,
        )
        wanted = board.plan(shown, flags)
        return wanted.flags, (wanted.service, wanted.deployment)
    except FlagError as error:
        raise UsageError(str(error), next="pdc visualdl --help") from error
    except (folders.FolderError, board.BoardError) as error:
        raise InputError(
            f"no VisualDL for {subject}",
            why=str(error),
            next=f"while the job runs: pdc metrics {subject} --logdir FOLDER",
        ) from error


def _apply(session: Session, job: Object, wanted: tuple[Object, Object]) -> Object:
    """The Deployment as applied. What has the name and is not the job's stays as it is."""
    api = session.api
    for resource, body in zip(KINDS, wanted, strict=True):
        found = _found(session, resource, job)
        if found is not None and not board.belongs_to(found, job):
            name = body["metadata"]["name"]
            raise CliError(
                f"there is already a {resource.kind} {name}, and it does not belong to this job",
                next=f"pdc port-forward svc/{name} {PORT}{session.namespace_flag}    (to look at it)",
                exit_code=CONFLICT,
                reason="AlreadyExists",
            )
    for dry_run in (True, False):  # what is refused leaves nothing half behind
        for resource, body in zip(KINDS, wanted, strict=True):
            place, manager = of_object(resource, body), ownership.FIELD_MANAGER
            applied = api.do(ownership.apply(api.client, place, body, field_manager=manager, dry_run=dry_run))
    return applied


def _found(session: Session, resource: Resource, job: Object) -> Object | None:
    try:
        return session.api.do(session.api.client.get(resource, board.name_of(job), session.namespace))
    except NotFound:
        return None


def _forward(session: Session, service: Object, flags: Flags, *, as_json: bool) -> int:
    """On VisualDL's own port, or any free one where that is taken here."""
    subject = f"svc/{service['metadata']['name']}"

    def announce(port: int, _: Pair) -> None:
        _announce(session, f"http://{HERE}:{port}{flags.path}", service, flags, as_json=as_json)

    def forward(local: int) -> int:
        target = ForwardTarget(session, subject, one_pod(session, subject))
        return asyncio.run(serve(session, target, [Pair(local, flags.port)], address=HERE, announce=announce))

    try:
        return forward(flags.port)
    except CliError as error:
        if error.exit_code != CONFLICT:
            raise
        session.warn(f"{error.message} ({error.why}); another port is used")
        return forward(0)


def _address(session: Session, service: Object, flags: Flags) -> str:
    """Where a browser of this machine finds it without a port-forward; empty where it does not."""
    if not is_embedded(session):
        return ""
    name, namespace = service["metadata"]["name"], service["metadata"]["namespace"]
    made = session.api.do(session.api.client.get(SERVICES, name, namespace))
    return f"http://{made['spec']['clusterIP']}:{flags.port}{flags.path}"


def _announce(session: Session, url: str, service: Object, flags: Flags, *, as_json: bool) -> None:
    meta = service["metadata"]
    command = f"kubectl port-forward svc/{meta['name']} -n {meta['namespace']} {flags.port}:{flags.port}"
    if as_json:
        report: dict[str, Any] = {"url": url, "service": meta["name"], "namespace": meta["namespace"]}
        report |= {"port": flags.port, "path": flags.path, "logdirs": list(flags.logdirs)}
        session.print_data(output.to_json_line(session.report("VisualDL", report)))
    elif url:
        session.print(f"VisualDL is at {url}")
    else:
        session.print(f"VisualDL is ready; to open http://{HERE}:{flags.port}{flags.path}:")
        session.print(f"  {command}")
    sys.stdout.flush()


def _delete(session: Session, job: Object) -> int:
    """What belongs to the job; nothing to delete is what was wanted."""
    deleted = 0
    for resource in KINDS:
        found = _found(session, resource, job)
        if found is None or not board.belongs_to(found, job):
            continue
        place = of_object(resource, found)
        session.api.do(
            session.api.client.delete(resource, place.name, namespace=place.namespace, propagation="Background")
        )
        session.note(f"{place.display} deleted")
        deleted += 1
    if not deleted:
        session.note(f"{job['metadata']['name']} has no VisualDL")
    return OK
