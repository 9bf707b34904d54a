"""`pdc notebooks`: JupyterHub for the tenants of this machine, with notebooks as pods of theirs.

  pdc notebooks up [-f VALUES]   start hub and proxy, and wait until they answer
  pdc notebooks status           where it is, who may sign in, whose notebook runs
  pdc notebooks user NAME        a one-time token, with which NAME chooses a password
  pdc notebooks user NAME --rm   NAME signs in no more
  pdc notebooks down             end hub, proxy and notebooks; files of notebooks stay

Hub and proxy are objects in namespace jhub and outlive `pdc down`. Nobody can sign in until `user` names them, and
nobody starts a notebook who is in no tenant: pdc tenant add. VALUES are in the keys of Zero to JupyterHub
(docs/notebooks.md). On a cluster the chart has notebooks.enabled.
"""

from __future__ import annotations

import argparse
import secrets
import time
from collections.abc import Callable
from typing import Any

from paddlecloud.cli.commands.deployments import wait_answering
from paddlecloud.cli.failures import CONFLICT, INVALID, NOT_FOUND, OK, CliError, InputError, UsageError, attempting
from paddlecloud.cli.objects.embedded import is_embedded
from paddlecloud.cli.objects.placing import of_object
from paddlecloud.cli.parsing import Parsers, duration
from paddlecloud.cli.render import output
from paddlecloud.cli.render.table import render
from paddlecloud.cli.session import Session
from paddlecloud.kube.clock import rfc3339
from paddlecloud.kube.errors import AlreadyExists, Conflict
from paddlecloud.kube.resource import DEPLOYMENTS, NAMESPACES, PODS, SECRETS, SERVICES, Object, resource_of
from paddlecloud.notebooks import names, objects, settings, users
from paddlecloud.notebooks.passwords import make_token
from paddlecloud.sdk import ownership

HERE = "127.0.0.1"
_TRIES = 5
"""How often others may change the users between reading and writing them."""
_SERVERS = "component=singleuser-server"
"""KubeSpawner's label of the pods of notebooks."""


def add_commands(parsers: Parsers) -> None:
    parser = parsers.add_parser(
        "notebooks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage=f"pdc notebooks {'|'.join(ACTIONS)} [NAME] [flags]",
    )
    parser.add_argument("action", choices=tuple(ACTIONS))
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("-f", "--values", metavar="FILE", help="up: settings, in the keys of Zero to JupyterHub")
    parser.add_argument("--timeout", type=duration, metavar="TIME", help="up: 30s, 5m (default 15m)")
    parser.add_argument("--ends-in", type=duration, metavar="TIME", help="user: the token ends then (default 24h)")
    parser.add_argument("--rm", action="store_true", help="user: remove them")
    parser.set_defaults(run=run)


def run(session: Session, args: argparse.Namespace) -> int:
    action, wanted, words = ACTIONS[args.action]
    if len(args.names) != wanted:
        raise UsageError(f"notebooks {args.action} takes {words}", next="pdc notebooks --help")
    for flag, only in FLAGS.items():
        if getattr(args, flag) and args.action != only:
            name = flag.replace("_", "-")
            raise UsageError(f"notebooks {args.action} takes no --{name}", why=f"it is for notebooks {only}")
    if not is_embedded(session):
        raise CliError(
            "pdc notebooks is for the embedded platform",
            why="on a cluster JupyterHub comes with the chart, and people sign in with OIDC",
            next="helm upgrade … --set notebooks.enabled=true    (docs/notebooks.md)",
        )
    return action(session, args)


def _up(session: Session, args: argparse.Namespace) -> int:
    values = _values(session, args.values) if args.values else None
    with attempting("start JupyterHub"):
        if values is None:
            values = _kept_values(session)
        made = objects.objects(values)
        for body in made:
            _apply(session, body)
            if body["kind"] == NAMESPACES.kind:
                _keep_secret(session)
        for body in made:
            if body["kind"] == DEPLOYMENTS.kind:
                wait_answering(session, of_object(DEPLOYMENTS, body), args.timeout or 900.0)
    session.print(f"JupyterHub is at {_url(session)}")
    if not _users(session)[0]:
        session.note("next:  pdc notebooks user NAME    (nobody can sign in yet)")
    return OK


def _values(session: Session, file: str) -> dict[str, Any]:
    import yaml

    from paddlecloud.kube.wording import cause_of

    try:
        with open(file, encoding="utf-8") as text:
            values = yaml.safe_load(text) or {}
        if not isinstance(values, dict):
            raise settings.SettingsError("it holds no mapping")
        settings.parse(values)
    except (OSError, UnicodeDecodeError, yaml.YAMLError, settings.SettingsError) as error:
        raise InputError(f"cannot use {file}", why=cause_of(error), next="docs/notebooks.md lists the keys") from error
    for key in settings.unknown(values):
        session.warn(f"{file}: {key} means nothing here and is left out")
    return values


def _kept_values(session: Session) -> dict[str, Any]:
    """Those of the last `up`: without -f nothing changes."""
    from paddlecloud.kube.resource import CONFIGMAPS

    found = session.api.do(session.api.client.find(CONFIGMAPS, names.HUB, names.NAMESPACE))
    if found is None:
        return {}
    import msgspec

    return dict(msgspec.json.decode((found.get("data") or {}).get("settings.json", "{}")))


def _keep_secret(session: Session) -> None:
    """Made once: another token or cookie secret would sign everybody out."""
    client = session.api.client
    if session.api.do(client.find(SECRETS, names.HUB, names.NAMESPACE)) is None:
        body = objects.secret(secrets.token_hex(32), secrets.token_hex(32))
        session.api.do(client.create(SECRETS, body))


def _apply(session: Session, body: Object) -> None:
    place = of_object(resource_of(body), body)
    session.api.do(ownership.apply(session.api.client, place, body, field_manager=ownership.FIELD_MANAGER))


def _url(session: Session) -> str:
    service = session.api.do(session.api.client.get(SERVICES, names.PROXY_PUBLIC, names.NAMESPACE))
    return f"http://{HERE}:{service['spec']['ports'][0]['nodePort']}"


def _down(session: Session, args: argparse.Namespace) -> int:
    with attempting("end JupyterHub"):
        found = session.api.do(session.api.client.find(NAMESPACES, names.NAMESPACE))
        if found is None:
            session.print("JupyterHub does not run")
            return OK
        servers = _servers(session)
        session.confirm(f"End JupyterHub and {len(servers)} notebooks? Files stay, users are forgotten.")
        for pod in servers:
            meta = pod["metadata"]
            session.api.do(session.api.client.delete(PODS, meta["name"], namespace=meta["namespace"], uid=meta["uid"]))
        for body in objects.rights():
            place = of_object(resource_of(body), body)
            if place.namespace is None and session.api.do(session.api.client.find(place.resource, place.name)):
                session.api.do(session.api.client.delete(place.resource, place.name))
        session.api.do(session.api.client.delete(NAMESPACES, names.NAMESPACE, uid=found["metadata"]["uid"]))
    session.print("JupyterHub ends; files of notebooks stay on claims notebook-NAME of their tenants")
    return OK


def _servers(session: Session) -> list[Object]:
    """Pods of notebooks, of all tenants."""
    return session.api.do(session.api.client.list(PODS, None, label_selector=_SERVERS, limit=500)).items


def _status(session: Session, args: argparse.Namespace) -> int:
    fmt = output.parse_format(args.output, ("", *output.STRUCTURED))
    with attempting("look at JupyterHub"):
        client = session.api.client
        hub = session.api.do(client.find(DEPLOYMENTS, names.HUB, names.NAMESPACE))
        proxy = session.api.do(client.find(DEPLOYMENTS, names.PROXY, names.NAMESPACE))
        if hub is None or proxy is None:
            raise CliError("JupyterHub does not run", next="pdc notebooks up", exit_code=NOT_FOUND)
        known, _ = _users(session)
        servers = _servers(session)
        url = _url(session)
    running = {_annotation(pod, "hub.jupyter.org/username"): pod for pod in servers}
    rows = [
        {
            "name": name,
            "password": "chosen" if user.password else "not chosen yet",
            "tokenEnds": rfc3339(user.token_ends) if user.token else "",
            "tenant": running[name]["metadata"]["namespace"] if name in running else "",
            "notebook": running[name]["status"].get("phase", "") if name in running else "",
        }
        for name, user in sorted(known.items())
    ]
    ready = {each["metadata"]["name"]: bool((each.get("status") or {}).get("readyReplicas")) for each in (hub, proxy)}
    if fmt.name:
        output.print_report(session, "Notebooks", {"url": url, "ready": all(ready.values()), "users": rows})
        return OK
    for name, is_ready in ready.items():
        session.print(f"{name}: {'ready' if is_ready else 'not ready: pdc describe deployment/' + name + ' -n jhub'}")
    session.print(f"JupyterHub is at {url}")
    if not rows:
        session.note("next:  pdc notebooks user NAME    (nobody can sign in yet)")
        return OK
    shown = [(row["name"], row["password"], row["tokenEnds"], row["tenant"], row["notebook"]) for row in rows]
    session.print(render(("name", "password", "token-ends", "tenant", "notebook"), shown))
    return OK


def _annotation(pod: Object, name: str) -> str:
    return str((pod["metadata"].get("annotations") or {}).get(name, ""))


def _user(session: Session, args: argparse.Namespace) -> int:
    fmt = output.parse_format(args.output, ("", *output.STRUCTURED))
    name = args.names[0]
    if problem := users.name_problem(name):
        raise UsageError(problem)
    token, now = make_token(), time.time()
    lasts = args.ends_in or users.LASTS
    with attempting(f"{'remove' if args.rm else 'let'} {name} {'' if args.rm else 'sign in'}".strip()):
        url = _known_url(session)
        if args.rm:
            _change(session, lambda known: users.without(known, name))
        else:
            _change(session, lambda known: users.invited(known, name, token, now, lasts=lasts))
    if args.rm:
        session.print(f"{name} signs in no more; files stay on claim {names.CLAIM_PREFIX}{name} of each tenant")
        return OK
    if fmt.name:
        body = {"name": name, "token": token, "ends": rfc3339(now + lasts), "url": url}
        output.print_report(session, "NotebookUser", body)
        return OK
    session.print(f"one-time token for {name}, shown only now, until {rfc3339(now + lasts)}:")
    session.print(f"  {token}")
    session.print(f"with it {name} chooses a password: {url}/hub/login?username={name}")
    return OK


def _known_url(session: Session) -> str:
    if session.api.do(session.api.client.find(SERVICES, names.PROXY_PUBLIC, names.NAMESPACE)) is None:
        raise CliError("JupyterHub does not run", next="pdc notebooks up", exit_code=NOT_FOUND)
    return _url(session)


def _users(session: Session) -> tuple[users.Users, Object | None]:
    found = session.api.do(session.api.client.find(SECRETS, names.USERS, names.NAMESPACE))
    try:
        return users.read(found), found
    except users.UsersError as error:
        raise CliError(
            str(error), next=f"pdc delete secret {names.USERS} -n {names.NAMESPACE}", exit_code=INVALID
        ) from error


def _change(session: Session, change: Callable[[users.Users], users.Users]) -> None:
    client = session.api.client
    for _ in range(_TRIES):
        known, found = _users(session)
        try:
            body = users.written(change(known), found)
        except users.UsersError as error:
            raise CliError(str(error), next="pdc notebooks status", exit_code=NOT_FOUND) from error
        try:
            if found is None:
                session.api.do(client.create(SECRETS, body))
            else:
                session.api.do(client.update(SECRETS, body))
            return
        except (Conflict, AlreadyExists):
            continue
    raise CliError("others change the users all the time", next="the same command again", exit_code=CONFLICT)


ACTIONS = {
    "up": (_up, 0, "no name"),
    "status": (_status, 0, "no name"),
    "user": (_user, 1, "the name of a user"),
    "down": (_down, 0, "no name"),
}
FLAGS = {"values": "up", "timeout": "up", "ends_in": "user", "rm": "user"}
