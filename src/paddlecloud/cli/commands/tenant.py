"""`pdc tenant`: people with a namespace, a quota and a queue of their own.

  pdc tenant create NAME --owner WHO [--quota cpu=8,memory=32Gi,requests.nvidia.com/gpu=2] [--weight N]
  pdc tenant add NAME WHO [--role view]    somebody else works there, too
  pdc tenant drop NAME WHO                 and no longer
  pdc tenant ls                            tenants, whose they are, and namespaces that were kept
  pdc tenant usage [NAME] [--since 30d]    hours of GPUs and CPUs, storage, and how long jobs waited
  pdc tenant rm NAME                       nobody of it has rights any more; its data stays
  pdc tenant rm NAME --data                and its data goes

WHO is a user, group:NAME or account:NAMESPACE/NAME. Only administrators make tenants.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

from paddlecloud.api.names import KEPT_ANNOTATION, OWNER_ANNOTATION
from paddlecloud.cli.failures import CONFLICT, NOT_FOUND, OK, CliError, InputError, UsageError, attempting
from paddlecloud.cli.parsing import Parsers, duration, number
from paddlecloud.cli.render import output
from paddlecloud.cli.render.table import render
from paddlecloud.cli.session import Session
from paddlecloud.kube.quantity import QuantityError, parse
from paddlecloud.kube.quota_names import quota_name_problem
from paddlecloud.kube.resource import NAMESPACES, PERSISTENTVOLUMECLAIMS, PODS, PROFILES, Object

FORMATS = ("", *output.STRUCTURED)
_RBAC = "rbac.authorization.k8s.io"
_STARTS = 30.0
"""Seconds until a tenant should be ready: its objects are made in one pass."""
_TRANSIENT = ("Creating", "Refused", "NamespaceTerminating")


def add_commands(parsers: Parsers) -> None:
    parser = parsers.add_parser(
        "tenant",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage=f"pdc tenant {'|'.join(ACTIONS)} [NAME] [WHO] [flags]",
    )
    parser.add_argument("action", choices=tuple(ACTIONS))
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--owner", metavar="WHO", help="create: who gets the role edit")
    parser.add_argument("--quota", metavar="NAME=AMOUNT,…", help="create: what the namespace may use at most")
    parser.add_argument("--weight", type=number(1), metavar="N", help="create: share in Volcano (default: 1)")
    parser.add_argument("--role", choices=("edit", "view"), help="add: what they may do (default: edit)")
    parser.add_argument("--since", type=duration, metavar="DURATION", help="usage: of this time (default: all)")
    parser.add_argument("--data", action="store_true", help="rm: delete the namespace with everything in it")
    parser.set_defaults(run=run)


def run(session: Session, args: argparse.Namespace) -> int:
    action, least, most, words = ACTIONS[args.action]
    if not least <= len(args.names) <= most:
        raise UsageError(f"tenant {args.action} takes {words}", next="pdc tenant --help")
    for flag, only in FLAGS.items():
        if getattr(args, flag) and args.action != only:
            raise UsageError(f"tenant {args.action} takes no --{flag}", why=f"it is for tenant {only}")
    return action(session, args)


def _create(session: Session, args: argparse.Namespace) -> int:
    if not args.owner:
        raise UsageError("say whose the tenant is", next=f"pdc tenant create {args.names[0]} --owner USER")
    name = args.names[0]
    spec: Object = {"owner": subject(args.owner)}
    if args.quota:
        spec["resourceQuotaSpec"] = {"hard": amounts(args.quota)}
    if args.weight:
        spec["queue"] = {"weight": args.weight}
    body = {"apiVersion": PROFILES.api_version, "kind": PROFILES.kind, "metadata": {"name": name}, "spec": spec}
    with attempting(f"create tenant {name}"):
        session.api.do(session.api.client.create(PROFILES, body))
        ready = _settled(session, name)
    if condition(ready).get("status") != "True":
        why = str(condition(ready).get("message") or "its controller has not looked at it")
        raise CliError(f"tenant {name} is not ready", why=why, next=f"pdc get profile {name}", exit_code=CONFLICT)
    session.print(f"tenant {name} is ready for {args.owner}")
    if message := (ready.get("status") or {}).get("message"):
        session.warn(message)
    return OK


def _settled(session: Session, name: str) -> Object:
    """Its Profile once the controller has done what it can."""
    deadline = time.monotonic() + _STARTS
    while True:
        found: Object = session.api.do(session.api.client.get(PROFILES, name))
        said = condition(found)
        if (said and said.get("reason") not in _TRANSIENT) or time.monotonic() > deadline:
            return found
        time.sleep(0.1)


def _add(session: Session, args: argparse.Namespace) -> int:
    name, who = args.names
    added = {**subject(who), **({"role": args.role} if args.role else {})}

    def change(people: list[Any]) -> list[Any]:
        return [*_without(people, added), added]

    _change_people(session, name, change)
    session.print(f"{who} may {args.role or 'edit'} in {name}")
    return OK


def _drop(session: Session, args: argparse.Namespace) -> int:
    name, who = args.names

    def change(people: list[Any]) -> list[Any]:
        left = _without(people, subject(who))
        if len(left) == len(people):
            why = "the owner is changed in spec.owner; contributors are in spec.contributors"
            raise CliError(f"{who} is no contributor of {name}", why=why, exit_code=NOT_FOUND)
        return left

    _change_people(session, name, change)
    session.print(f"{who} has no rights in {name} any more")
    return OK


def _change_people(session: Session, name: str, change: Callable[[list[Any]], list[Any]]) -> None:
    with attempting(f"change the people of tenant {name}"):
        found = session.api.do(session.api.client.get(PROFILES, name))
        people = change(list(found["spec"].get("contributors") or ()))
        version = found["metadata"]["resourceVersion"]
        body = {"metadata": {"resourceVersion": version}, "spec": {"contributors": people}}
        session.api.do(session.api.client.patch(PROFILES, name, body))


def _ls(session: Session, args: argparse.Namespace) -> int:
    fmt = output.parse_format(args.output, FORMATS)
    with attempting("list tenants"):
        profiles = session.api.do(session.api.client.list(PROFILES, limit=500)).items
        namespaces = session.api.do(session.api.client.list(NAMESPACES, limit=500)).items
    rows = [
        {
            "name": each["metadata"]["name"],
            "owner": who(each["spec"].get("owner") or {}),
            "contributors": [who(person) for person in each["spec"].get("contributors") or ()],
            "state": "Ready" if condition(each).get("status") == "True" else condition(each).get("reason", "Unknown"),
            "message": (each.get("status") or {}).get("message", ""),
        }
        for each in profiles
    ]
    for each in namespaces:
        marks = each["metadata"].get("annotations") or {}
        if since := marks.get(KEPT_ANNOTATION):
            owner, text = marks.get(OWNER_ANNOTATION, ""), f"its data is kept since {since}"
            name = each["metadata"]["name"]
            rows.append({"name": name, "owner": owner, "contributors": [], "state": "Kept", "message": text})
    rows.sort(key=lambda row: str(row["name"]))
    if fmt.name:
        output.print_report(session, "TenantList", {"items": rows})
    elif not rows:
        session.note("No tenants found")
    else:
        shown = [(row["name"], row["owner"], len(row["contributors"]), row["state"], row["message"]) for row in rows]
        session.print(render(("name", "owner", "others", "state", "message"), shown))
    return OK


def _usage(session: Session, args: argparse.Namespace) -> int:
    from paddlecloud.cli.objects.tenant_usage import Window, usage
    from paddlecloud.kube.resource import PADDLEJOBS
    from paddlecloud.kube.sizes import size

    fmt = output.parse_format(args.output, FORMATS)
    window = Window(time.time() - args.since if args.since else 0.0, time.time())
    with attempting("count what tenants use"):
        client = session.api.client
        names = args.names or [each["metadata"]["name"] for each in session.api.do(client.list(PROFILES)).items]
        found = {}
        for name in sorted(names):
            session.api.do(client.get(NAMESPACES, name))
            kinds = (PADDLEJOBS, PODS, PERSISTENTVOLUMECLAIMS)
            jobs, pods, claims = (session.api.do(client.list(kind, name, limit=500)).items for kind in kinds)
            found[name] = usage(jobs, pods, claims, window)
    if fmt.name:
        items = [
            {
                "name": name, "jobs": used.jobs, "gpuHours": round(used.gpu_hours, 3), "storageBytes": used.storage,
                "cpuHours": round(used.cpu_hours, 3), "queueHours": round(used.queue_hours, 3),
            }
            for name, used in found.items()
        ]  # fmt: skip
        output.print_report(session, "TenantUsage", {"items": items})
        return OK
    rows = [
        (
            name,
            used.jobs,
            f"{used.gpu_hours:.1f}",
            f"{used.cpu_hours:.1f}",
            size(used.storage),
            f"{used.queue_hours:.1f}",
        )
        for name, used in found.items()
    ]
    session.print(render(("name", "jobs", "gpu-hours", "cpu-hours", "storage", "queue-hours"), rows))
    session.note("of jobs, pods and claims that are still there")
    return OK


def _rm(session: Session, args: argparse.Namespace) -> int:
    name, client = args.names[0], session.api.client
    session.confirm(f"Delete namespace {name} with everything in it?" if args.data else f"Remove tenant {name}?")
    with attempting(f"remove tenant {name}"):
        profile = session.api.do(client.find(PROFILES, name))
        if profile is None:
            return _rm_kept(session, name, data=args.data)
        if args.data:
            session.api.do(client.patch(PROFILES, name, {"spec": {"deletionPolicy": "Delete"}}))
        kept = not args.data and (profile["spec"].get("deletionPolicy") or "Keep") == "Keep"
        session.api.do(client.delete(PROFILES, name, uid=profile["metadata"]["uid"]))
    if kept:
        session.print(f"tenant {name} is removed; its data stays in namespace {name}")
        session.note(f"next:  pdc tenant rm {name} --data deletes it; a tenant of this name and owner has it again")
    else:
        _print_deleted(session, name)
    return OK


def _rm_kept(session: Session, name: str, *, data: bool) -> int:
    """There is no Profile: perhaps a namespace that one left. Others are not ours to delete."""
    found = session.api.do(session.api.client.find(NAMESPACES, name))
    if found is None or KEPT_ANNOTATION not in (found["metadata"].get("annotations") or {}):
        missing = (name, (PROFILES.plural,))
        raise CliError(f"there is no tenant {name}", next="pdc tenant ls", exit_code=NOT_FOUND, missing=missing)
    if not data:
        raise UsageError(
            f"tenant {name} is removed already", why="its data is kept", next=f"pdc tenant rm {name} --data"
        )
    session.api.do(session.api.client.delete(NAMESPACES, name, uid=found["metadata"]["uid"]))
    _print_deleted(session, name)
    return OK


def _print_deleted(session: Session, name: str) -> None:
    session.print(f"tenant {name} is being deleted with everything in its namespace")
    session.note(f"next:  pdc sampleset retained -n {name} lists what caches of sample sets keep outside of it")


ACTIONS = {
    "create": (_create, 1, 1, "a name"),
    "add": (_add, 2, 2, "the name of a tenant, and who works there"),
    "drop": (_drop, 2, 2, "the name of a tenant, and who no longer works there"),
    "ls": (_ls, 0, 0, "no name"),
    "usage": (_usage, 0, 1, "at most the name of a tenant"),
    "rm": (_rm, 1, 1, "the name of a tenant"),
}
FLAGS = {"owner": "create", "quota": "create", "weight": "create", "role": "add", "since": "usage", "data": "rm"}


def subject(text: str) -> dict[str, str]:
    """A user, `group:reviewers` or `account:ci/robot`, as a Profile has it."""
    kind, colon, name = text.partition(":")
    if colon and kind == "group" and name:
        return {"kind": "Group", "apiGroup": _RBAC, "name": name}
    if colon and kind == "account":
        namespace, _, account = name.partition("/")
        if not namespace or not account:
            raise InputError(f"{text!r} names no account", next="account:NAMESPACE/NAME")
        return {"kind": "ServiceAccount", "namespace": namespace, "name": account}
    return {"kind": "User", "apiGroup": _RBAC, "name": text}


def who(given: dict[str, Any]) -> str:
    """What `subject` was made of."""
    name = str(given.get("name", ""))
    if given.get("kind") == "ServiceAccount":
        return f"account:{given.get('namespace')}/{name}"
    return f"group:{name}" if given.get("kind") == "Group" else name


def amounts(text: str) -> dict[str, str]:
    """`cpu=8,memory=32Gi`."""
    pairs = [part.partition("=") for part in text.split(",")]
    for name, _, amount in pairs:
        if not name or not amount:
            raise InputError(f"{text!r} is no list of amounts", next="--quota cpu=8,memory=32Gi")
        if problem := quota_name_problem(name):
            raise InputError(f"--quota {name}={amount} cannot be", why=problem, next="--quota cpu=8,memory=32Gi")
        try:
            parse(amount)
        except QuantityError as error:
            raise InputError(f"--quota {name}={amount} cannot be", why=str(error), next="--quota cpu=8") from error
    return {name: amount for name, _, amount in pairs}


def condition(profile: Object) -> dict[str, Any]:
    from paddlecloud.api.conditions import condition_of

    return condition_of(profile, "Ready") or {}


def _without(people: list[Any], person: dict[str, str]) -> list[Any]:
    return [each for each in people if who(each) != who(person)]
