"""`python -m cluster.harness COMMAND`: build, up, down, kubeconfig, status. Results on stdout, progress on stderr."""

from __future__ import annotations

import argparse
import sys
import time

from .cluster import Cluster, Options
from .errors import HarnessError
from .layout import Layout
from .machine import Machine, running_machines


def main() -> int:
    arguments = _parser().parse_args()
    began = time.monotonic()

    def say(line: str) -> None:
        print(f"cluster {time.monotonic() - began:6.1f} s  {line}", file=sys.stderr, flush=True)

    layout = Layout.default()
    cluster = Cluster(layout, say=say)
    try:
        if arguments.command == "build":
            cluster.build()
        elif arguments.command == "up":
            cluster.up(Options(nodes=arguments.nodes, durable=arguments.durable))
            print(layout.kubeconfig)
        elif arguments.command == "down":
            cluster.down()
        elif arguments.command == "kubeconfig":
            print(layout.kubeconfig)
        else:
            return _status(layout)
    except HarnessError as error:
        print(f"cluster: {error}", file=sys.stderr)
        return 1
    return 0


def _status(layout: Layout) -> int:
    """What runs on each machine; exit 3 where nothing does."""
    for name in sorted(running_machines(layout)):
        programs = sorted({command[0].rpartition("/")[2] for command in Machine(layout, name).processes().values()})
        print(f"{name}: {' '.join(programs)}")
    return 0 if running_machines(layout) else 3


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="cluster.harness", description="A real Kubernetes on this machine.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("build", help="build the programs that the cache lacks")
    up = commands.add_parser("up", help="start a new cluster and print the path of its kubeconfig")
    up.add_argument("--nodes", type=int, default=1)
    up.add_argument("--durable", action="store_true", help="etcd waits for the disk")
    commands.add_parser("down", help="remove the cluster and everything it made outside the cache")
    commands.add_parser("kubeconfig", help="print where the kubeconfig of a running cluster lies")
    commands.add_parser("status", help="show the machines and their programs")
    return parser


if __name__ == "__main__":
    sys.exit(main())
