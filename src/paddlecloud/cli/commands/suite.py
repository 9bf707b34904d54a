"""`pdc suite`: workflows of Paddle's model suites, from samples to a service that answers.

  pdc suite ls                        the tasks, with their suite and image
  pdc suite init TASK DIR             a folder with a pipeline, a configuration, samples and a README, to be edited
  pdc suite run DIR [-p NAME=VALUE]…  run the folder's pipeline; --sweep: its trials and their comparison

`run` creates the folder's volume unless it is there and runs pipeline.py, compiled by the kfp of the active
environment, in the namespace kubeflow unless -n names another. It ends with the run: 0, or 100 if a step failed.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from paddlecloud.api.model import reference
from paddlecloud.cli.failures import OK, InputError, UsageError, attempting
from paddlecloud.cli.objects.new_folder import create
from paddlecloud.cli.parsing import Parsers, duration, number
from paddlecloud.cli.render import output
from paddlecloud.cli.render.table import render
from paddlecloud.cli.session import Session
from paddlecloud.kube.nearest import question
from paddlecloud.kube.resource import PERSISTENTVOLUMECLAIMS
from paddlecloud.kube.wording import cause_of
from paddlecloud.pipelines import names
from paddlecloud.suites import samples
from paddlecloud.suites.tasks import TASKS

ACTIONS: dict[str, tuple[str, int, tuple[str, ...]]] = {
    "ls": ("", 0, ()),
    "init": ("TASK DIR", 2, ("name", "count")),
    "run": ("DIR", 1, ("parameter", "python", "sweep", "no_wait", "timeout")),
}
"""Words that each takes, how many, and its flags."""


def add_commands(parsers: Parsers) -> None:
    parser = parsers.add_parser(
        "suite", description=__doc__, usage=f"pdc suite {'|'.join(ACTIONS)} [TASK] [DIR] [flags]"
    )
    parser.add_argument("action", choices=tuple(ACTIONS))
    parser.add_argument("words", nargs="*", metavar="TASK|DIR", help="a task of `pdc suite ls`, a folder")
    parser.add_argument("--name", help="init: of the model, the service and the jobs (default: the task)")
    parser.add_argument("--count", type=number(4, samples.MOST), metavar="N", help="init: how many samples to generate")
    parser.add_argument(
        "-p", "--parameter", action="append", default=None, metavar="NAME=VALUE", help="run: of the pipeline"
    )
    parser.add_argument("--sweep", action="store_true", default=None, help="run: the trials of sweep.py")
    parser.add_argument("--python", metavar="PATH", help="run: interpreter that has kfp")
    parser.add_argument(
        "-d", "--detach", "--no-wait", dest="no_wait", action="store_true", default=None, help="run: return at once"
    )
    parser.add_argument("--timeout", type=duration, metavar="TIME", help="run: how long to wait (default: for ever)")
    parser.set_defaults(run=run)


def run(session: Session, args: argparse.Namespace) -> int:
    takes, count, flags = ACTIONS[args.action]
    if len(args.words) != count:
        raise UsageError(
            f"suite {args.action} takes {takes or 'no names'}, not {len(args.words)} words",
            next=f"pdc suite {args.action} {takes}".rstrip(),
        )
    for flag in sorted({flag for _, _, each in ACTIONS.values() for flag in each} - set(flags)):
        if getattr(args, flag) is not None:
            raise UsageError(f"suite {args.action} takes no --{flag.replace('_', '-')}", next="pdc suite --help")
    return {"ls": _list, "init": _init, "run": _run}[args.action](session, args)


def _list(session: Session, args: argparse.Namespace) -> int:
    fmt = output.parse_format(args.output, ("", *output.STRUCTURED))
    if fmt.name:
        items = [
            {"task": name, "suite": one.suite, "image": one.image, "title": one.title} for name, one in TASKS.items()
        ]
        output.print_report(session, "SuiteList", {"items": items})
    else:
        session.print(
            render(("task", "suite", "image", "what"), [(n, t.suite, t.image, t.title) for n, t in TASKS.items()])
        )
    return OK


def _init(session: Session, args: argparse.Namespace) -> int:
    from paddlecloud.suites import folder

    fmt = output.parse_format(args.output, ("", *output.STRUCTURED))
    task, target = args.words[0], Path(args.words[1])
    if task not in TASKS:
        why = question(task, TASKS) or f"there are {', '.join(TASKS)}"
        raise InputError(f"there is no task {task!r}", why=why, next="pdc suite ls")
    name = args.name or task
    _check_name(name, folder.LONGEST_NAME)
    with create(target, f"pdc suite init {task}"):
        train, evaluation = folder.write(task, name, target, count=args.count or 0)
    if fmt.name:
        body = {"task": task, "name": name, "folder": str(target.absolute()), "train": train, "evaluation": evaluation}
        output.print_report(session, "SuiteFolder", body)
        return OK
    session.print(
        f"{target}: {TASKS[task].suite} on {train + evaluation} generated samples; README.md says what is what"
    )
    session.note(f"to run it: pdc suite run {target}")
    return OK


def _check_name(name: str, longest: int) -> None:
    try:
        reference.model_name(name)
        why = f"it has more than {longest} characters, and jobs get longer names" if len(name) > longest else ""
    except reference.BadReference as error:
        why = str(error)
    if why:
        raise InputError(f"{name!r} cannot be the name of a model here", why=why, next="--name flowers")


def _run(session: Session, args: argparse.Namespace) -> int:
    from paddlecloud.cli.commands import pipeline_start
    from paddlecloud.suites import folder

    where = Path(args.words[0])
    file = where / (folder.SWEEP if args.sweep else folder.PIPELINE)
    if not file.is_file():
        raise InputError(f"there is no {file.name} in {where}", next=f"pdc suite init {next(iter(TASKS))} NEW-FOLDER")
    args.namespace = args.namespace or names.SYSTEM_NAMESPACE
    _ensure_volume(session, where / folder.VOLUME)
    args.words, args.function, args.name = [str(file)], "", ""
    args.service_account, args.no_cache = names.RUNNER, True
    return pipeline_start.run_file(session, args)


def _ensure_volume(session: Session, file: Path) -> None:
    """A claim that exists is left as it is: most of its spec cannot be changed."""
    import yaml

    try:
        claim = yaml.safe_load(file.read_text(encoding="utf-8"))
        name = str(claim["metadata"]["name"])
    except (OSError, UnicodeDecodeError, yaml.YAMLError, TypeError, KeyError) as error:
        raise InputError(f"{file} is no PersistentVolumeClaim", why=cause_of(error), next=f"look at {file}") from error
    client = session.api.client
    with attempting(f"create pvc/{name}"):
        if session.api.do(client.find(PERSISTENTVOLUMECLAIMS, name, session.namespace)) is None:
            session.api.do(client.create(PERSISTENTVOLUMECLAIMS, claim, namespace=session.namespace))
            session.note(f"pvc/{name} created in namespace {session.namespace}")
