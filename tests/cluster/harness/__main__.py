"""`python -m cluster.harness COMMAND`: see `--help`. Results go to stdout, progress to stderr."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

from paddlecloud.local.images import dockerfile

from . import preflight, python_image
from .cluster import ADDONS, Cluster, Options
from .engines import BASE, ENGINE_TABLE
from .errors import HarnessError
from .layout import Layout
from .machine import Machine, running_machines
from .oci import BlobStore


def main() -> int:
    arguments = _parser().parse_args()
    began = time.monotonic()

    def say(line: str) -> None:
        print(f"cluster {time.monotonic() - began:6.1f} s  {line}", file=sys.stderr, flush=True)

    layout = Layout.default()
    cluster = Cluster(layout, say=say)
    try:
        if arguments.command == "build":
            preflight.install_packages(say)
            cluster.build(arguments.engines or BASE)
        elif arguments.command == "up":
            cluster.up(Options(nodes=arguments.nodes, durable=arguments.durable))
            cluster.install(arguments.addons)
            print(layout.kubeconfig)
        elif arguments.command == "down":
            cluster.down()
        elif arguments.command == "install":
            cluster.install(arguments.addons)
        elif arguments.command == "node":
            (cluster.node_on if arguments.state == "on" else cluster.node_off)(arguments.number)
        elif arguments.command == "image":
            if arguments.dockerfile:
                store, recipe = python_image.find(layout, arguments.name)
                print(dockerfile.write(store.plan(recipe), arguments.dockerfile))
            else:
                _image(layout, arguments.name, arguments.archive, say)
        elif arguments.command == "kubeconfig":
            print(layout.kubeconfig)
        else:
            return _status(layout)
    except HarnessError as error:
        print(f"cluster: {error}", file=sys.stderr)
        return 1
    return 0


def _image(layout: Layout, name: str, archive: Path | None, say: Callable[[str], None]) -> None:
    made = python_image.offer(layout, name, say=say)
    if archive is not None:
        BlobStore(layout.images).export(made, name, archive)
    say(f"{name} is {made.digest}")


def _status(layout: Layout) -> int:
    """What runs on each machine; exit 3 where nothing does."""
    for name in sorted(running_machines(layout)):
        programs = sorted({command[0].rpartition("/")[2] for command in Machine(layout, name).processes().values()})
        print(f"{name}: {' '.join(programs)}")
    return 0 if running_machines(layout) else 3


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="cluster.harness", description="A real Kubernetes on this machine.")
    commands = parser.add_subparsers(dest="command", required=True)
    build = commands.add_parser("build", help="install and build the programs that are missing")
    build.add_argument("engines", nargs="*", help=f"of {', '.join(ENGINE_TABLE)}; default: those of the base cluster")
    up = commands.add_parser("up", help="start a new cluster and print the path of its kubeconfig")
    up.add_argument("--nodes", type=int, default=1)
    up.add_argument("--with", dest="addons", action="append", default=[], metavar="ADDON", help=", ".join(ADDONS))
    up.add_argument("--durable", action="store_true", help="etcd waits for the disk")
    commands.add_parser("down", help="remove the cluster and everything it made outside the cache")
    install = commands.add_parser("install", help="put add-ons on the running cluster")
    install.add_argument("addons", nargs="+", help=", ".join(ADDONS))
    node = commands.add_parser("node", help="switch a node off, as a power cut would, or on again")
    node.add_argument("state", choices=["on", "off"])
    node.add_argument("number", type=int)
    image = commands.add_parser("image", help="make an image from its image.yaml and offer it to the cluster")
    image.add_argument("name")
    image.add_argument("--archive", type=Path, help="also write it here, as an OCI archive")
    image.add_argument("--dockerfile", type=Path, metavar="DIR", help="only write what `docker build DIR` needs")
    commands.add_parser("kubeconfig", help="print where the kubeconfig of a running cluster lies")
    commands.add_parser("status", help="show the machines and their programs")
    return parser


if __name__ == "__main__":
    sys.exit(main())
