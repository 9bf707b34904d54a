"""`python -m e2e`: build, bring a platform up, run, report."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from . import images, programs, specs

CONFORMANCE = r"\[Conformance\]"
MINUTES = 45
SUITE_OPTIONS = (
    "--provider=skeleton", "--allowed-not-ready-nodes=-1", "--minStartupPods=0", "--num-nodes=2",
    "--system-daemonsets-startup-timeout=1s", "--disable-log-dump=true",
)  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m e2e", description=__doc__)
    parser.add_argument("--on", metavar="KUBECONFIG", help="a cluster, instead of an embedded platform of its own")
    parser.add_argument("--focus", default=CONFORMANCE, help="regular expression of the specs")
    parser.add_argument("--skip", default="", help="regular expression of specs that are left out")
    parser.add_argument("--procs", type=int, default=4)
    parser.add_argument("--report", type=Path, default=Path("conformance.json"))
    args = parser.parse_args()
    built = programs.find_or_build(print)
    if args.on:
        return run(built, args.on, args)
    with embedded(built) as kubeconfig:
        return run(built, kubeconfig, args)


def run(built: programs.Programs, kubeconfig: str, args: argparse.Namespace) -> int:
    report = args.report.resolve()
    report.parent.mkdir(parents=True, exist_ok=True)
    command = [
        str(built.ginkgo), f"--procs={args.procs}", f"--timeout={MINUTES}m",
        "--keep-going", "--silence-skips", "--succinct", "--no-color",
        f"--focus={args.focus}", *([f"--skip={args.skip}"] if args.skip else ()),
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
    return done.returncode


@contextmanager
def embedded(built: programs.Programs) -> Iterator[str]:
    """A platform of two nodes with the suite's images, and the path of its kubeconfig."""
    pdc = [sys.executable, "-m", "paddlecloud.cli.main"]
    with tempfile.TemporaryDirectory(prefix="pdc-e2e-") as folder:
        data, kubeconfig = Path(folder) / "data", Path(folder) / "kubeconfig"
        images.write(data / "images", built.agnhost)
        flags = ["--data", str(data)]
        subprocess.run([*pdc, "up", *flags, "--nodes", "2", "--port", "0", "--kubeconfig", str(kubeconfig)], check=True)
        try:
            yield str(kubeconfig)
        finally:
            subprocess.run([*pdc, "down", *flags, "-y"], check=False)


if __name__ == "__main__":
    sys.exit(main())
