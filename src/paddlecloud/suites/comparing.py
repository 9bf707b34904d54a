"""`python -m paddlecloud.suites.comparing`: trials and the metric that each reached, the best one first.

It runs in a pod, as the last step of a sweep. The last line of the output is `best: TRIAL`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="paddlecloud.suites.comparing", description=__doc__)
    parser.add_argument("--metric", required=True, help="its name, for the table")
    parser.add_argument("--less", action="store_true", help="less of it is better")
    parser.add_argument("trials", nargs="+", type=trial, metavar="TRIAL=VALUE")
    args = parser.parse_args(arguments)
    ordered = sorted(args.trials, key=lambda one: one[1], reverse=not args.less)
    width = max(len(name) for name in ("trial", *(name for name, _ in ordered)))
    print(f"{'trial':{width}}  {args.metric}")
    for name, value in ordered:
        print(f"{name:{width}}  {value:g}")
    print(f"best: {ordered[0][0]}", flush=True)
    return 0


def trial(text: str) -> tuple[str, float]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise argparse.ArgumentTypeError(f"{text!r} is not TRIAL=VALUE")
    return name, float(value)


if __name__ == "__main__":
    sys.exit(main())
