"""`pdc sample-data`: a small generated data set in the format of a Paddle suite, for a first run.

  pdc sample-data imagefolder|coco|icdar|masks|text|wav DIR [--count N] [--seed S]

imagefolder is PaddleClas's format, coco PaddleDetection's, icdar PaddleOCR's, masks PaddleSeg's, text PaddleNLP's and
wav PaddleSpeech's. Nothing is downloaded. The same seed makes the same files.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from paddlecloud.cli.failures import OK
from paddlecloud.cli.objects.new_folder import create
from paddlecloud.cli.parsing import Parsers, number
from paddlecloud.cli.render import output
from paddlecloud.cli.session import Session
from paddlecloud.kube.wording import number_of
from paddlecloud.suites import samples


def add_commands(parsers: Parsers) -> None:
    parser = parsers.add_parser("sample-data", description=__doc__)
    parser.add_argument("format", choices=tuple(samples.FORMATS), help="of the files")
    parser.add_argument("folder", type=Path, metavar="DIR", help="a folder that does not exist, or is empty")
    parser.add_argument(
        "--count", type=number(1, samples.MOST), metavar="N", help="samples to train on, and a quarter to evaluate with"
    )
    parser.add_argument("--seed", type=number(0, 2**31), default=0, metavar="S", help="other samples (default: 0)")
    parser.set_defaults(run=run)


def run(session: Session, args: argparse.Namespace) -> int:
    fmt = output.parse_format(args.output, ("", *output.STRUCTURED))
    wanted = samples.FORMATS[args.format]
    with create(args.folder, f"pdc sample-data {args.format}"):
        train, evaluation = samples.generate(args.format, args.folder, count=args.count or 0, seed=args.seed)
    if fmt.name:
        body = {"format": args.format, "suite": wanted.suite, "folder": str(args.folder.absolute())}
        output.print_report(session, "SampleData", {**body, "train": train, "evaluation": evaluation})
        return OK
    session.print(
        f"{args.folder}: {number_of(train, 'sample')} to train on and {evaluation} to evaluate with, "
        f"in the format of {wanted.suite} ({wanted.samples})"
    )
    return OK
