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
from contextlib import contextmanager
from pathlib import Path

from cluster.harness.layout import Layout
from tools import commit

from . import areas, cluster_images, images, page, programs, record, specs

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
    parser.add_argument("--procs", type=int, default=4)
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
    command = [
        str(built.ginkgo), f"--procs={args.procs}", f"--timeout={MINUTES_ON_A_CLUSTER if args.on else MINUTES}m",
        "--keep-going", "--silence-skips", "--succinct", "--no-color",
        f"--focus={args.focus or CONFORMANCE}", *([f"--skip={skipped}"] if skipped else ()),
        f"--json-report={report.name}",
        str(built.suite), "--", f"--kubeconfig={kubeconfig}", *SUITE_OPTIONS,
    ]  # fmt: skip
    done = subprocess.run(command, cwd=report.parent, env={**os.environ, "KUBECONFIG": kubeconfig})
    found = specs.read(report)
    for spec in found:
        if not spec.passed:
            print(f"{spec.state}: {spec.name} ({spec.seconds:.0f} s)\n    {spec.message.strip()[:300]}")
    passed = sum(spec.passed for spec in found)
    print(f"{passed} of {len(found)} specs passed in {sum(spec.seconds for spec in found):.0f} s of specs")
    if args.focus:
        return done.returncode or int(passed < len(found))
    states = record.states(found, specs.left_out(report))
    keep(states, record.CLUSTER if args.on else record.EMBEDDED, seconds=time.monotonic() - began)
    return 0 if args.on else unexplained(found)


def keep(states: dict[str, str], path: Path, *, seconds: float) -> None:
    """The record of a whole run, and the page made of both records."""
    today = datetime.date.today().isoformat()
    record.save(path, record.Record(programs.version(), commit.name(), today, seconds / 60, states))
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
