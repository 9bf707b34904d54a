"""`pdc model`: versions of models, which never change, and aliases that point to them.

  pdc model push NAME[:VERSION] PATH       a folder or a file as a new version; without VERSION the next number
  pdc model pull NAME[:VERSION|@ALIAS] [DIR]   its files, verified; an interrupted pull is continued
  pdc model ls [NAME]                      models, or the versions of one
  pdc model show NAME[:VERSION|@ALIAS]     its digest and origin, and who moved its aliases when and why
  pdc model diff NAME:VERSION NAME:VERSION   files, metrics and origin that differ
  pdc model convert NAME[:VERSION|@ALIAS] --to onnx   made by a pod, checked, and stored as VERSION-onnx
  pdc model tag NAME:VERSION ALIAS --reason TEXT   point an alias, such as staging, to a version
  pdc model untag NAME@ALIAS --reason TEXT remove an alias
  pdc model promote NAME[:VERSION|@ALIAS] [--to ALIAS]   point production, or another alias, to it
  pdc model rollback NAME@ALIAS            back to the version before, by the history; again: further back
  pdc model retain NAME --count N --age 30d   keep the newest N and those of 30 days; remove the others
  pdc model rm NAME[:VERSION]              a version, or a model with all of them; not while something uses it
  pdc model verify [NAME[:VERSION|@ALIAS]] read every byte in the store and compare it
  pdc model gc                             remove files that no version names, after a grace time

NAME alone means NAME@latest where one version is meant. Files are in the store of the embedded platform, or in the one
that --store or PADDLECLOUD_MODEL_STORE names: file:///FOLDER or s3://BUCKET/PREFIX, with keys in the environment.
"""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path

from paddlecloud.cli.failures import UsageError
from paddlecloud.cli.parsing import Parsers, add_all_namespaces, duration
from paddlecloud.cli.session import Session


def add_commands(parsers: Parsers) -> None:
    formatter = argparse.RawDescriptionHelpFormatter
    usage = f"pdc model {'|'.join(ACTIONS)} [NAME[:VERSION|@ALIAS]] [flags]"
    parser = parsers.add_parser("model", description=__doc__, formatter_class=formatter, usage=usage)
    parser.add_argument("action", choices=tuple(ACTIONS))
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--store", metavar="URI", help="where the files are (default: the embedded platform's folder)")
    parser.add_argument("--metric", action="append", default=[], metavar="NAME=VALUE", help="push: what was measured")
    parser.add_argument("--origin", action="append", default=[], metavar="NAME=TEXT", help="push: job, data, commit …")
    parser.add_argument("--from-job", default="", metavar="JOB", help="push: record this job, its data and its metrics")
    parser.add_argument("--description", default="", metavar="TEXT", help="push: what is special about the version")
    parser.add_argument("--framework", default="", metavar="NAME", help="push: default: by the names of the files")
    parser.add_argument(
        "--signature", type=Path, metavar="FILE", help="push: JSON with the inputs and outputs that the files must have"
    )
    parser.add_argument("--alias", default="", metavar="ALIAS", help="push: point this alias to the new version")
    parser.add_argument("--reason", default="", metavar="TEXT", help="why an alias moves")
    parser.add_argument(
        "--to", default="", metavar="ALIAS|FORM",
        help="promote: which alias (default: production); convert: onnx, serving, or paddle (from serving)",
    )  # fmt: skip
    parser.add_argument("--image", default="", metavar="IMAGE", help="convert: what the pod runs in")
    parser.add_argument("--count", type=int, metavar="N", help="retain: keep the newest N")
    parser.add_argument("--age", default="", metavar="AGE", help="retain: keep those of this time, such as 30d")
    parser.add_argument("--everything", action="store_true", help="retain: keep all of them")
    parser.add_argument("--force", action="store_true", help="rm NAME: although aliases point to its versions")
    parser.add_argument(
        "--grace", type=duration, default=24 * 3600.0, metavar="DURATION",
        help="gc: how long files that no version names are kept (default: 24h)",
    )  # fmt: skip
    parser.add_argument("--nobody-pushes", action="store_true", help="gc: remove at once; only while nobody pushes")
    parser.add_argument("--dry-run", action="store_true", help="gc: only print what would be done")
    parser.add_argument("--data", type=Path, metavar="DIR", help="data directory (default: the context's platform's)")
    add_all_namespaces(parser)
    parser.set_defaults(run=run)


def run(session: Session, args: argparse.Namespace) -> int:
    least, most, words = ACTIONS[args.action]
    if not least <= len(args.names) <= most:
        raise UsageError(f"model {args.action} takes {words or 'no name'}", next="pdc model --help")
    for flag, actions in FLAGS.items():
        if getattr(args, flag) and args.action not in actions:
            why = f"it is for model {' and '.join(actions)}"
            raise UsageError(
                f"model {args.action} takes no --{flag.replace('_', '-')}", why=why, next="pdc model --help"
            )
    module = importlib.import_module(f"paddlecloud.cli.commands.{MODULES[args.action]}")
    return getattr(module, args.action)(session, args)  # type: ignore[no-any-return]


ACTIONS = {
    "push": (2, 2, "NAME[:VERSION] and a folder or a file"),
    "pull": (1, 2, "NAME[:VERSION|@ALIAS] and perhaps a folder"),
    "ls": (0, 1, "at most the name of a model"),
    "show": (1, 1, "NAME[:VERSION|@ALIAS]"),
    "diff": (2, 2, "two versions, the earlier one first"),
    "convert": (1, 1, "NAME[:VERSION|@ALIAS]"),
    "tag": (2, 2, "NAME:VERSION and an alias"),
    "untag": (1, 1, "NAME@ALIAS"),
    "promote": (1, 1, "NAME[:VERSION|@ALIAS]"),
    "rollback": (1, 1, "NAME@ALIAS"),
    "retain": (1, 1, "the name of a model"),
    "rm": (1, 1, "NAME[:VERSION]"),
    "verify": (0, 1, "at most one NAME[:VERSION|@ALIAS]"),
    "gc": (0, 0, ""),
}
"""How many names each takes, and which."""
FLAGS = {
    "metric": ("push",),
    "origin": ("push",),
    "from_job": ("push",),
    "description": ("push",),
    "framework": ("push",),
    "signature": ("push",),
    "alias": ("push",),
    "reason": ("tag", "untag", "promote", "rollback", "push"),
    "to": ("promote", "convert"),
    "image": ("convert",),
    "count": ("retain",),
    "age": ("retain",),
    "everything": ("retain",),
    "force": ("rm",),
    "nobody_pushes": ("gc",),
    "dry_run": ("gc",),
    "all_namespaces": ("ls",),
}
MODULES = {
    **dict.fromkeys(("push", "pull", "diff", "verify", "gc"), "model_files"),
    "ls": "model_list",
    "show": "model_show",
    **dict.fromkeys(("tag", "untag", "promote", "rollback"), "model_aliases"),
    **dict.fromkeys(("rm", "retain"), "model_removal"),
    "convert": "model_convert",
}
"""Each is imported when it is needed."""
