"""`pdc node`: nodes of the embedded platform beyond the machine itself, and their loss.

  pdc node add NAME… [--simulated] [--capacity cpu=8,nvidia.com/gpu=4] [--labels a=b] [--taint k=v:NoSchedule]
  pdc node rm NAME…                        its pods leave first; those of DaemonSets go with it
  pdc node fail NAME…                      lose it: no heartbeat, its processes gone
  pdc node restore NAME…                   a lost node comes back

A virtual node shares the machine; it may declare what the machine does not have. Pods of a simulated node start no
process (annotation paddlecloud.org/simulate). Listing, cordon, drain and taint are kubectl's verbs.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence

from paddlecloud.cli.failures import CONFLICT, TIMEOUT, CliError, UsageError, attempting
from paddlecloud.cli.objects import targets
from paddlecloud.cli.objects.node_values import pairs, quantities, taint
from paddlecloud.cli.parsing import Parsers, duration
from paddlecloud.cli.render import output
from paddlecloud.cli.session import Session
from paddlecloud.kube.errors import NotFound
from paddlecloud.kube.pods import is_finished
from paddlecloud.kube.resource import DAEMONSETS, NODES, PODS, Object, controller_of
from paddlecloud.local.nodes.marks import FAILED, NODE_KIND, SIMULATED, VIRTUAL
from paddlecloud.sdk.outcome import is_true

POLL = 0.1
MOST_NAMES = 5
"""Pods that one message names."""


def add_commands(parsers: Parsers) -> None:
    usage = "pdc node add|rm|fail|restore NAME… [flags]"
    parser = parsers.add_parser("node", description=__doc__, usage=usage)
    parser.add_argument("action", choices=tuple(ACTIONS))
    parser.add_argument("names", nargs="+", metavar="NAME")
    parser.add_argument("--simulated", action="store_true", help="add: a node whose pods start no process")
    parser.add_argument("--capacity", type=quantities, default={}, metavar="cpu=…,…", help="add: what it has")
    parser.add_argument("--labels", type=pairs, default={}, metavar="a=b,…", help="add: labels of the node")
    parser.add_argument("--taint", type=taint, action="append", default=[], metavar="KEY[=VALUE]:EFFECT")
    parser.add_argument(
        "--timeout", type=duration, default=60.0, metavar="TIME", help="how long to wait (default: 60s)"
    )
    parser.set_defaults(run=run)


def run(session: Session, args: argparse.Namespace) -> int:
    fmt = output.parse_format(args.output, ("", *output.STRUCTURED))
    if args.action != "add" and (args.simulated or args.capacity or args.labels or args.taint):
        raise UsageError(f"node {args.action} takes none of the flags of node add", next="pdc node --help")
    with attempting(f"{args.action} node {', '.join(args.names)}"):
        _only_here(session)
        names = [targets.name_in(session.api, name, NODES) for name in args.names]
        done = [ACTIONS[args.action](session, args, name) for name in names]
    if fmt.name:
        output.print_report(session, "NodeAction", {"action": args.action, "nodes": done})
    else:
        for entry in done:
            session.print(f"node/{entry['name']} {entry['result']}")
    return 0


def _only_here(session: Session) -> None:
    from paddlecloud.cli.render.scheduling import is_ours

    if not is_ours(session):
        raise UsageError(
            "this is no embedded platform",
            why="nodes of a cluster come and go with its machines",
            next="pdc up, or --context paddlecloud-local",
        )


def run_add(session: Session, args: argparse.Namespace, name: str) -> Object:
    from paddlecloud.local.nodes.objects import new_node

    kind = SIMULATED if args.simulated else VIRTUAL
    node = new_node(name, kind, capacity=args.capacity, labels=args.labels, taints=args.taint, now=time.time())
    client = session.api.client
    session.api.do(client.create(NODES, node))
    if "status" in node:
        session.api.do(client.patch(NODES, name, {"status": node["status"]}, subresource="status"))
    _wait(session, args, name, lambda: _not_ready(session, name))
    return {"name": name, "kind": kind, "result": "added"}


def run_rm(session: Session, args: argparse.Namespace, name: str) -> Object:
    node = _get(session, name)
    if not (node["metadata"].get("labels") or {}).get(NODE_KIND):
        raise CliError(
            f"node/{name} is the machine's own",
            why="it is there for as long as the platform runs",
            next="pdc down, then pdc up --nodes N",
            exit_code=CONFLICT,
        )
    pods = _pods(session, name)
    if pods:
        session.confirm(f"Remove node {name} and the {len(pods)} pods on it?")
    client = session.api.client
    session.api.do(client.patch(NODES, name, {"spec": {"unschedulable": True}}))
    leaving = [pod for pod in pods if (controller_of(pod) or {}).get("kind") != DAEMONSETS.kind]
    for pod in leaving:
        _delete_pod(session, pod)
    if FAILED not in (node["metadata"].get("annotations") or {}):
        _wait(session, args, name, lambda: _not_ended(session, name, leaving))
    session.api.do(client.delete(NODES, name))
    return {"name": name, "result": "removed", "pods": len(pods)}


def run_fail(session: Session, args: argparse.Namespace, name: str) -> Object:
    _get(session, name)
    pods = _pods(session, name)
    if pods:
        session.confirm(f"Lose node {name} with the {len(pods)} pods on it?")
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    _mark(session, name, moment)
    _wait(session, args, name, lambda: f"node/{name} still counts as ready" if _is_ready(session, name) else "")
    return {"name": name, "result": "lost", "pods": len(pods)}


def run_restore(session: Session, args: argparse.Namespace, name: str) -> Object:
    _get(session, name)
    _mark(session, name, None)
    _wait(session, args, name, lambda: _not_ready(session, name))
    return {"name": name, "result": "restored"}


def _mark(session: Session, name: str, moment: str | None) -> None:
    change = {"metadata": {"annotations": {FAILED: moment}}}
    session.api.do(session.api.client.patch(NODES, name, change))


def _get(session: Session, name: str) -> Object:
    return session.api.do(session.api.client.get(NODES, name))


def _pods(session: Session, name: str) -> list[Object]:
    listing = session.api.client.list(PODS, field_selector=f"spec.nodeName={name}", limit=500)
    return [pod for pod in session.api.do(listing).items if not is_finished(pod)]


def _delete_pod(session: Session, pod: Object) -> None:
    meta = pod["metadata"]
    try:
        session.api.do(session.api.client.delete(PODS, meta["name"], namespace=meta["namespace"], uid=meta["uid"]))
    except NotFound:
        pass  # it ended by itself


def _is_ready(session: Session, name: str) -> bool:
    return is_true(_get(session, name), "Ready")


def _not_ready(session: Session, name: str) -> str:
    return "" if _is_ready(session, name) else f"node/{name} is not ready"


def _not_ended(session: Session, name: str, leaving: Sequence[Object]) -> str:
    """As `kubectl drain`, of the pods that were there: those of DaemonSets, and others that tolerate a cordoned node,
    come back until the node is gone."""
    uids = {pod["metadata"]["uid"] for pod in leaving}
    left = [pod["metadata"] for pod in _pods(session, name) if pod["metadata"]["uid"] in uids]
    listed = ", ".join(f"{meta['namespace']}/{meta['name']}" for meta in left[:MOST_NAMES])
    more = f" and {len(left) - MOST_NAMES} more" if len(left) > MOST_NAMES else ""
    return f"pods of node/{name} have not ended: {listed}{more}" if left else ""


def _wait(session: Session, args: argparse.Namespace, name: str, pending: Callable[[], str]) -> None:
    """Until nothing is pending; otherwise its sentence is the error."""
    deadline = time.monotonic() + args.timeout
    while what := pending():
        if time.monotonic() > deadline:
            raise CliError(f"after {args.timeout:g} s {what}", next=f"pdc describe node {name}", exit_code=TIMEOUT)
        time.sleep(POLL)


ACTIONS = {"add": run_add, "rm": run_rm, "fail": run_fail, "restore": run_restore}
