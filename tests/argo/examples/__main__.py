"""`python -m argo.examples`: run cases, keep their verdicts, write the page."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from tools import argo

from . import catalogue, page, platforms, record, runner
from .catalogue import Case
from .comparison import Result
from .verdict import Verdict, judge, refusal

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "argo-examples.md"
REASONS = Path(__file__).with_name("reasons.yaml")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m argo.examples", description=__doc__)
    parser.add_argument("--on", metavar="KUBECONFIG", type=Path, help="a fixture with argo, not an embedded platform")
    parser.add_argument("--raw", metavar="FILE", type=Path, help="keeps each workflow; what it has is not run again")
    parser.add_argument("--at-once", type=int, default=0)
    parser.add_argument("names", nargs="*", help="parts of names of cases; all without them")
    args = parser.parse_args()
    path = record.CLUSTER if args.on else record.EMBEDDED
    verdicts = kept(args.raw)
    chosen = choose(catalogue.cases(argo.files()), args.names, verdicts)
    options = {"at_once": args.at_once} if args.at_once else {}
    if args.on:
        verdicts |= carry_out(platforms.fixture(args.on, **options), chosen, args.raw)
    else:
        with platforms.embedded(**options) as platform:
            verdicts |= carry_out(platform, chosen, args.raw)
    everything = not args.names
    record.save(path, verdicts if everything else {**record.load(path), **verdicts})
    PAGE.write_text(text(), encoding="utf-8")
    return unexplained(verdicts)


def text() -> str:
    """The page that the records give."""
    return page.render(record.load(record.CLUSTER), record.load(record.EMBEDDED), reasons())


def reasons() -> dict[str, str]:
    listed: dict[str, str] = yaml.safe_load(REASONS.read_text(encoding="utf-8")) or {}
    return {name: " ".join(reason.split()) for name, reason in listed.items()}


def choose(cases: Iterable[Case], names: list[str], known: Mapping[str, Verdict]) -> list[Case]:
    wanted = [case for case in cases if not names or any(name in case.name for name in names)]
    return [case for case in wanted if case.name not in known]


def carry_out(platform: runner.Platform, cases: list[Case], raw: Path | None) -> dict[str, Verdict]:
    verdicts = {}
    for case, verdict, seen in runner.run(platform, cases):
        verdicts[case.name] = verdict
        shown = f"{len(verdicts):4} {verdict.phase:10} {verdict.seconds:6.1f} s  {case.name}  {verdict.message[:120]}"
        print(shown, flush=True)
        if raw is not None:
            line = {"name": case.name, "seconds": verdict.seconds, "message": verdict.message, "workflow": seen}
            with raw.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
    return verdicts


def kept(raw: Path | None) -> dict[str, Verdict]:
    """What an earlier run wrote there, judged anew."""
    lines: list[dict[str, Any]] = []
    if raw is not None and raw.exists():
        lines = [json.loads(line) for line in raw.read_text(encoding="utf-8").splitlines()]
    return {
        line["name"]: judge(line["workflow"], line["seconds"])
        if line["workflow"]
        else refusal(line["message"], line["seconds"])
        for line in lines
    }


def unexplained(verdicts: Mapping[str, Verdict]) -> int:
    """The exit code: 1 where a case differs without a reason in reasons.yaml."""
    rows = page.rows(record.load(record.CLUSTER), record.load(record.EMBEDDED))
    listed = reasons()
    lacking = [row for row in rows if row.compared.result is Result.DIFFERS and row.name not in listed]
    for row in lacking:
        if row.name in verdicts:
            print(f"not explained in {REASONS.name}: {row.name}: {row.compared.difference}", file=sys.stderr)
    same, judged = page.share(rows)
    print(f"{same} of {judged} cases that real Argo completes or refuses end the same way")
    return 1 if any(row.name in verdicts for row in lacking) else 0


if __name__ == "__main__":
    sys.exit(main())
