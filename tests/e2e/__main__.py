"""`python -m e2e`: build, bring a platform up, run, report."""

from __future__ import annotations

import argparse
import datetime
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from cluster.harness.layout import Layout
from tools import commit

from . import areas, cluster_images, images, page, programs, record, specs, stages
from .stages import Run

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "conformance.md"
CONFORMANCE = r"\[Conformance\]"
MINUTES = 45  # of all specs together on the embedded platform
MINUTES_ON_A_CLUSTER = 100  # it starts real containers, on the same two cores
SUITE_OPTIONS = (
    "--provider=skeleton", "--allowed-not-ready-nodes=-1", "--minStartupPods=0", "--num-nodes=2",
    "--system-daemonsets-startup-timeout=1s", "--disable-log-dump=true",
)  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m e2e", description=__doc__)
    parser.add_argument("--on", metavar="KUBECONFIG", help="a cluster, instead of an embedded platform of its own")
    parser.add_argument("--focus", help="regular expression of the specs; all are run without it, and the page written")
    parser.add_argument("--core", action="store_true", help="those of core.yaml alone")
    parser.add_argument("--skip", default="", help="regular expression of specs that are left out, with --focus")
    parser.add_argument("--keep", action="store_true", help="with --focus: have the record of all say how these ended")
    parser.add_argument("--procs", type=int, default=4, help="processes that run specs")
    parser.add_argument("--waiting", type=int, default=8, help="more of them, for specs that wait for a minute or more")
    parser.add_argument("--report", type=Path, default=Path(".cache/conformance.json"))
    args = parser.parse_args()
    if args.core:
        args.focus = areas.core()
    built = programs.find_or_build(print)
    skipped = args.skip if args.focus else "" if args.on else areas.pattern(areas.refused())
    if args.on:
        if Path(args.on).resolve() == Layout.default().kubeconfig.resolve():
            cluster_images.offer(built.images)
        return run(built, args.on, args, skipped)
    with embedded(built) as kubeconfig:
        return run(built, kubeconfig, args, skipped)


def run(built: programs.Programs, kubeconfig: str, args: argparse.Namespace, skipped: str) -> int:
    report, began = args.report.resolve(), time.monotonic()
    report.parent.mkdir(parents=True, exist_ok=True)
    place = record.CLUSTER if args.on else record.EMBEDDED
    if args.focus or args.on:
        planned = [[Run("all", args.focus or CONFORMANCE, skipped, args.procs)]]
    else:
        took = record.load(place).seconds
        planned = stages.of_all(CONFORMANCE, skipped, took, procs=args.procs, waiting=args.waiting)
    minutes = MINUTES_ON_A_CLUSTER if args.on else MINUTES
    reports: list[Path] = []
    failed = False
    for stage in planned:
        placed = {report.with_stem(f"{report.stem}-{each.name}"): each for each in stage}
        failed |= any(play(built, kubeconfig, placed, minutes=minutes))
        reports += placed
    found = specs.read(*reports)
    for spec in found:
        if not spec.passed:
            print(f"{spec.state}: {spec.name} ({spec.seconds:.0f} s)\n    {spec.message.strip()[:300]}")
    passed = sum(spec.passed for spec in found)
    print(f"{passed} of {len(found)} specs passed in {sum(spec.seconds for spec in found):.0f} s of specs")
    today = datetime.date.today().isoformat()
    if args.focus:
        if args.keep:
            keep(place, record.with_more(record.load(place), found, commit=commit.name(), date=today))
        return int(failed or passed < len(found))
    minutes_taken = (time.monotonic() - began) / 60
    all_of_them = record.of(found, specs.left_out(*reports))
    keep(place, record.Record(programs.version(), commit.name(), today, minutes_taken, *all_of_them))
    return 0 if args.on else unexplained(found)


def play(built: programs.Programs, kubeconfig: str, stage: dict[Path, Run], *, minutes: int) -> list[int]:
    """Run a stage, whose runs write these reports; the exit code of each."""
    with ExitStack() as stack:
        running = []
        for report, run in stage.items():
            command = [
                str(built.ginkgo), f"--procs={run.procs}", f"--timeout={minutes}m",
                "--keep-going", "--silence-skips", "--succinct", "--no-color",
                f"--focus={run.focus}", *([f"--skip={run.skip}"] if run.skip else ()),
                f"--json-report={report.name}",
                str(built.suite), "--", f"--kubeconfig={kubeconfig}", *SUITE_OPTIONS,
            ]  # fmt: skip
            report.unlink(missing_ok=True)
            env = {**os.environ, "KUBECONFIG": kubeconfig}
            running.append(stack.enter_context(subprocess.Popen(command, cwd=report.parent, env=env)))
        return [each.wait() for each in running]


def keep(place: Path, made: record.Record) -> None:
    """The record of a platform, and the page made of both records."""
    record.save(place, made)
    PAGE.write_text(text(), encoding="utf-8")


def text() -> str:
    """The page that the records give."""
    both = record.load(record.EMBEDDED), record.load(record.CLUSTER)
    return page.render(*both, areas.refused(), areas.failures(), areas.cluster_failures())


def unexplained(found: list[specs.Spec]) -> int:
    """The exit code: 1 where a spec fails without a reason in failures.yaml."""
    known = areas.failures()
    names = [spec.name for spec in found if not spec.passed and areas.find(known, spec.name) is None]
    for name in names:
        print(f"not explained in {areas.FAILURES.name}: {name}", file=sys.stderr)
    return 1 if names else 0


@contextmanager
def embedded(built: programs.Programs) -> Iterator[str]:
    """A platform of two nodes with the suite's images, and the path of its kubeconfig."""
    pdc = [sys.executable, "-m", "paddlecloud.cli.main"]
    with tempfile.TemporaryDirectory(prefix="pdc-e2e-", dir="/var/tmp") as folder:
        Path(folder).chmod(0o755)  # containers of other users run what lies in it
        data, kubeconfig = Path(folder) / "data", Path(folder) / "kubeconfig"
        images.write(
            data / "images",
            Path(
                shutil.copytree(
                    built.images, Path(folder) / "images", ignore=shutil.ignore_patterns("e2e.test", "ginkgo")
                )
            ),
        )
        flags = ["--data", str(data)]
        subprocess.run([*pdc, "up", *flags, "--nodes", "2", "--port", "0", "--kubeconfig", str(kubeconfig)], check=True)
        try:
            yield str(kubeconfig)
        finally:
            subprocess.run([*pdc, "down", *flags, "-y"], check=False)


if __name__ == "__main__":
    sys.exit(main())
