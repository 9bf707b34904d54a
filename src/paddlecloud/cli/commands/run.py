"""`pdc run`: train without writing YAML. Makes a PaddleJob of a command, follows its logs, ends as the job ends.

On the embedded platform the current directory is mounted at its own path and is where the program starts, so that
`python train.py` finds what it finds here; in a notebook it is on the notebook's claim, which is mounted instead.
Elsewhere the program must be in the image (--image).

Ctrl-C detaches and never ends the job. Exit codes: 0 completed, 100 failed, 103 deleted, 130 detached.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys

from paddlecloud.cli.failures import CONFLICT, NOT_FOUND, OK, CliError, UsageError, attempting
from paddlecloud.cli.objects.embedded import is_embedded
from paddlecloud.cli.objects.placing import of_object
from paddlecloud.cli.parsing import Parsers, add_dry_run, number
from paddlecloud.cli.render import output
from paddlecloud.cli.session import Session
from paddlecloud.kube.errors import AlreadyExists
from paddlecloud.kube.resource import PADDLEJOBS, Object
from paddlecloud.sdk import claims
from paddlecloud.sdk.training import (
    DEFAULT_IMAGE,
    SERVERS_IMAGE,
    Training,
    TrainingError,
    home_mount,
    job,
    next_name,
    prepare,
    stem,
)

USAGE = "pdc run [flags] -- python train.py"
IMAGE_HELP = f"what the pods run on (default {DEFAULT_IMAGE}; with --ps {SERVERS_IMAGE})"
TRIES = 20
"""How often a derived name may be taken by somebody else between looking and creating."""


def add_commands(parsers: Parsers) -> None:
    parser = parsers.add_parser("run", description=__doc__, usage=f"{USAGE}\n")
    parser.add_argument("words", nargs="*", help=argparse.SUPPRESS)
    parser.add_argument("--name", metavar="NAME", help="of the job (default: <script>-<n>)")
    parser.add_argument("--workers", type=number(1), metavar="N", help="how many workers (default 1)")
    parser.add_argument("--ps", type=number(0), default=0, metavar="N", help="how many parameter servers (default 0)")
    parser.add_argument("--elastic", type=_bounds, metavar="MIN:MAX", help="workers may change within these bounds")
    parser.add_argument("--image", metavar="IMAGE", help=IMAGE_HELP)
    parser.add_argument("--gpus", type=number(0), default=0, metavar="N", help="GPUs of each pod")
    parser.add_argument("--cpu", default="", metavar="AMOUNT", help="CPUs each pod asks for: 2, 500m")
    parser.add_argument("--memory", default="", metavar="AMOUNT", help="memory of each pod, also its limit: 4Gi")
    parser.add_argument("--env", action="append", default=[], metavar="K[=V]", help="K alone takes the value from here")
    parser.add_argument(
        "--volume", action="append", default=[], metavar="SRC:PATH[:ro]", help="a directory, a PVC or a SampleSet"
    )
    parser.add_argument("--retries", type=number(0), default=0, metavar="N", help="restart N times on failure")
    parser.add_argument("-d", "--detach", action="store_true", help="do not follow the logs")
    add_dry_run(parser, help="print what would be created; =server has the API server check it as well")
    parser.set_defaults(run=run, after_dashes=[], rank=None, all_ranks=True, timestamps=False, data=None)


def run(session: Session, args: argparse.Namespace) -> int:
    dry = args.dry_run != "none"
    follows = not (args.detach or dry)
    fmt = output.parse_format(args.output, ("", "json") if follows else ("", *output.OBJECTS))
    output.check(fmt)
    command = _command(args)
    with attempting("run the job"):
        training = _training(session, args, command)
        if args.dry_run == "client":
            return _show(session, _named(session, training), fmt)
        _check_volumes(session, training)
        _question_image(session, args.image)
        created = _create(session, training, dry_run=dry)
    if dry:
        return _show(session, created, fmt)
    if not follows:
        if fmt.name:
            return _show(session, created, fmt)
        session.print(f"{output.name_of(created)} created")
        return OK
    return _follow(session, created, fmt)


def _command(args: argparse.Namespace) -> list[str]:
    if args.words:
        program = [*args.words, *args.after_dashes]
        if program[0].endswith(".py"):  # a script is seldom executable, and never found on the PATH
            program = ["python", *program]
        advice = f"pdc run -- {shlex.join(program)}"
        raise UsageError(f"what to run comes after --, and {args.words[0]!r} stands before", next=advice)
    if not args.after_dashes:
        raise UsageError("there is no program to run", why=USAGE, next="pdc run --help")
    return list(args.after_dashes)


def _training(session: Session, args: argparse.Namespace, command: list[str]) -> Training:
    local = is_embedded(session)
    try:
        return prepare(
            command,
            image=args.image,
            local=local,
            directory=os.getcwd(),
            volumes=args.volume,
            home=home_mount(os.environ),
            workers=args.workers,
            servers=args.ps,
            elastic=args.elastic,
            gpus=args.gpus,
            cpu=args.cpu,
            memory=args.memory,
            env=dict(map(_variable, args.env)),
            retries=args.retries,
        )
    except TrainingError as error:
        lacks_image = not local and args.image is None
        fix = f"pdc run --image IMAGE-WITH-YOUR-CODE -- {' '.join(command)}    (or `pdc up` for a platform here)"
        raise UsageError("cannot run that", why=str(error), next=fix if lacks_image else "pdc run --help") from error


def _check_volumes(session: Session, training: Training) -> None:
    name = session.api.do(claims.missing(session.api.client, training.mounts, session.namespace))
    if name is not None:
        raise CliError(
            claims.refusal(name, session.namespace),
            next="pdc get pvc, or pdc get sampleset; a directory is written ./NAME:PATH",
            exit_code=NOT_FOUND,
            missing=(name, tuple(resource.full_name for resource in claims.KINDS)),
        )
    if leaving := session.api.do(claims.leaving(session.api.client, training.mounts, session.namespace)):
        raise CliError(leaving, next="pdc get sampleset shows when it is gone; make it again, or use another")


def _question_image(session: Session, image: str | None) -> None:
    """Warns of a name that no recipe of the embedded platform answers for.

    It refuses nothing: a recipe that is written while the pods wait is found.
    """
    if image is None or not is_embedded(session):
        return
    from paddlecloud.cli.commands.image import store_of
    from paddlecloud.cli.objects.embedded import data_of
    from paddlecloud.local.images.shipped import missing_package

    store = store_of(data_of(session))
    if store.find(image) is None and store.resolve(image) is None:
        if missing := missing_package(image):
            session.warn(missing)
            return
        advice = store.meant(image) or f"write one, then: pdc image build -f image.yaml -t {image}"
        session.warn(f'no recipe answers for image "{image}"; {advice}')


def _create(session: Session, training: Training, *, dry_run: bool) -> Object:
    """A derived name that somebody took meanwhile is counted on; a given one is the user's to change."""
    api = session.api
    for _ in range(TRIES):
        wanted = _named(session, training)
        try:
            return api.do(api.client.create(PADDLEJOBS, wanted, field_validation="Strict", dry_run=dry_run))
        except AlreadyExists:
            if session.args.name:
                raise CliError(
                    f"there is already a job {session.args.name}",
                    next=f"pdc delete pdj/{session.args.name}, or another --name",
                    exit_code=CONFLICT,
                    reason="AlreadyExists",
                ) from None
    raise CliError(f"no free name after {TRIES} tries", next="pdc run --name NAME", exit_code=CONFLICT)


def _named(session: Session, training: Training) -> Object:
    name = session.args.name
    if not name:
        jobs = session.api.do(session.api.client.list(PADDLEJOBS, session.namespace, limit=500)).items
        name = next_name(stem(training.command), (str(one["metadata"]["name"]) for one in jobs))
    try:
        return job(training, name=name, namespace=session.namespace)
    except TrainingError as error:
        raise UsageError(str(error), next="pdc run --help") from error


def _show(session: Session, obj: Object, fmt: output.Format) -> int:
    if not fmt.name:
        session.print(f"{output.name_of(obj)} would be created (dry run)")
    else:
        output.print_objects(session, [output.without_managed_fields(obj)], fmt, single=True)
    return OK


def _follow(session: Session, created: Object, fmt: output.Format) -> int:
    from paddlecloud.cli.render.follow import Printer
    from paddlecloud.cli.render.log_lines import Writer
    from paddlecloud.sdk.logs import LogOptions

    session.note(f"{output.name_of(created)} created")
    sys.stderr.flush()
    writer = Writer(session, as_json=fmt.name == "json")
    with attempting(f"follow {output.name_of(created)}"):
        return Printer(session, of_object(PADDLEJOBS, created), writer, LogOptions()).run(created)


# Values of flags


def _bounds(text: str) -> tuple[int, int]:
    low, colon, high = text.partition(":")
    if not (colon and low.isdigit() and high.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is not MIN:MAX")
    return int(low), int(high)


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if equals:
        return name, value
    if name not in os.environ:
        raise UsageError(f"--env {name} has no value", why="it is not set here either", next=f"--env {name}=VALUE")
    return name, os.environ[name]
