"""`pdc pipeline`: run pipelines of kfp and Argo, and look at their runs.

  pdc pipeline run FILE [-p NAME=VALUE]…   FILE.py with one function @dsl.pipeline, or a compiled .yaml
  pdc pipeline ls                          runs of the namespace, newest first
  pdc pipeline show RUN [-w]               its steps, each after those it follows; -w: live, until it ends
  pdc pipeline logs RUN [STEP] [-f]        what its steps printed
  pdc pipeline artifacts RUN [STEP]        the artifacts of its steps; --to FOLDER: copy them
  pdc pipeline retry RUN                   begin again at the steps that failed
  pdc pipeline resubmit RUN [-p …]         a new run of the same pipeline, with other values
  pdc pipeline stop RUN                    end what runs; exit handlers run
  pdc pipeline resume RUN                  go on after a suspended step
  pdc pipeline diff RUN RUN                what differs: parameters, outputs, images
  pdc pipeline cache RUN                   which steps were answered from the cache; why the others were not
  pdc pipeline schedule [FILE --cron …]    run it again and again; without FILE, list what is scheduled
  pdc pipeline login, logout               give kfp's own client a token, or take it away

Without RUN, show, logs, artifacts and cache take the newest one. A run is an Argo Workflow. `run` ends when it does,
with 0 or 100, and so do `resubmit` and `retry`; Ctrl-C leaves it alone. FILE.py is compiled by the kfp of the active
environment.
"""

from __future__ import annotations

import argparse
import importlib

from paddlecloud.cli.failures import UsageError
from paddlecloud.cli.parsing import Parsers, add_all_namespaces, duration, number
from paddlecloud.cli.session import Session

_RUNS, _START, _LOGIN = "pipeline_runs", "pipeline_start", "pipeline_login"
_ARTIFACTS = "pipeline_artifacts"
ACTIONS: dict[str, tuple[str, str, tuple[int, int], tuple[str, ...]]] = {
    # action: module, words that it takes, how many of them, flags besides the global ones
    "run": (
        _START, "FILE", (1, 1),
        ("parameter", "name", "function", "python", "service_account", "no_cache", "no_wait", "timeout"),
    ),
    "ls": (_RUNS, "", (0, 0), ("all_namespaces",)),
    "show": (_RUNS, "[RUN]", (0, 1), ("watch",)),
    "logs": (_RUNS, "[RUN [STEP]]", (0, 2), ("follow", "tail", "timestamps")),
    "artifacts": (_ARTIFACTS, "[RUN [STEP [NAME]]]", (0, 3), ("to",)),
    "retry": (_START, "RUN", (1, 1), ("no_wait", "timeout")),
    "resubmit": (_START, "RUN", (1, 1), ("parameter", "name", "no_cache", "no_wait", "timeout")),
    "stop": (_RUNS, "RUN", (1, 1), ()),
    "resume": (_RUNS, "RUN", (1, 1), ()),
    "diff": (_RUNS, "RUN RUN", (2, 2), ()),
    "cache": (_RUNS, "[RUN]", (0, 1), ()),
    "schedule": (
        _START, "[FILE]", (0, 1),
        ("parameter", "name", "function", "python", "service_account", "no_cache", "cron", "every", "all_namespaces"),
    ),
    "login": (_LOGIN, "", (0, 0), ()),
    "logout": (_LOGIN, "", (0, 0), ()),
}  # fmt: skip


def add_commands(parsers: Parsers) -> None:
    usage = f"pdc pipeline {'|'.join(ACTIONS)} [FILE|RUN] [flags]"
    parser = parsers.add_parser("pipeline", description=__doc__, usage=usage)
    parser.add_argument("action", choices=tuple(ACTIONS))
    parser.add_argument("words", nargs="*", metavar="FILE|RUN", help="a file, or the name of a run (a Workflow)")
    parser.add_argument(
        "-p",
        "--parameter",
        action="append",
        default=None,
        metavar="NAME=VALUE",
        help="run, resubmit, schedule: of the pipeline",
    )
    parser.add_argument(
        "--name", help="run, resubmit: what it is called (default: as the pipeline); schedule: name of the CronWorkflow"
    )
    parser.add_argument("--function", metavar="NAME", help="run, schedule: which pipeline function of FILE.py")
    parser.add_argument("--python", metavar="PATH", help="run, schedule: interpreter that has kfp, for FILE.py")
    parser.add_argument("--service-account", metavar="NAME", help="run, schedule: account of its steps")
    parser.add_argument(
        "--no-cache",
        action="store_true",
        default=None,
        help="run, resubmit, schedule: take no step from an earlier run",
    )
    parser.add_argument(
        "-d", "--detach", "--no-wait", dest="no_wait", action="store_true", default=None,
        help="run, resubmit, retry: return at once",
    )  # fmt: skip
    parser.add_argument(
        "--timeout", type=duration, metavar="TIME", help="run, resubmit, retry: how long to wait (default: for ever)"
    )
    parser.add_argument("--cron", metavar="CRON", help='schedule: when, as "0 9 * * *" (UTC)')
    parser.add_argument("--every", type=duration, metavar="TIME", help="schedule: how long between two runs, as 30m")
    parser.add_argument("-w", "--watch", action="store_true", default=None, help="show: go on until it ends")
    parser.add_argument("-f", "--follow", action="store_true", default=None, help="logs: go on until it ends")
    parser.add_argument("--to", metavar="FOLDER", help="artifacts: copy them there, as FOLDER/STEP/NAME")
    parser.add_argument("--tail", type=number(0), metavar="N", help="logs: only the last N lines of each step")
    parser.add_argument("--timestamps", action="store_true", default=None, help="logs: begin each line with its time")
    add_all_namespaces(parser)
    parser.set_defaults(run=run)


def run(session: Session, args: argparse.Namespace) -> int:
    module, takes, (least, most), flags = ACTIONS[args.action]
    if not least <= len(args.words) <= most:
        raise UsageError(
            f"pipeline {args.action} takes {takes or 'no names'}, not {len(args.words)} words",
            next=f"pdc pipeline {args.action} {takes}".rstrip(),
        )
    known = {flag for _, _, _, each in ACTIONS.values() for flag in each}
    for flag in sorted(known - set(flags)):
        if getattr(args, flag) not in (None, False):
            raise UsageError(f"pipeline {args.action} takes no --{flag.replace('_', '-')}", next="pdc pipeline --help")
    found = importlib.import_module(f"paddlecloud.cli.commands.{module}")
    code: int = found.RUN[args.action](session, args)
    return code
