"""`pdc dashboard`: jobs, queues, nodes and services as pages in a browser, with the rights of the chosen context.

It prints an address that signs a browser in, once; the browser stays signed in until it has not been used for twelve
hours. On the embedded platform of this machine the dashboard runs anyway. For any other context it runs here, until
Ctrl-C, with the rights that the context has; it listens on this machine's own address alone.

Its name ends in `.localhost`, which browsers take for this machine. From another machine: `ssh -L PORT:127.0.0.1:PORT`
with the port of the address, then open the same address there.
"""

from __future__ import annotations

import argparse
import sys

from paddlecloud.cli.failures import CONFLICT, OK, CliError, attempting
from paddlecloud.cli.parsing import Parsers, number
from paddlecloud.cli.render import output
from paddlecloud.cli.session import Session


def add_commands(parsers: Parsers) -> None:
    parser = parsers.add_parser("dashboard", description=__doc__)
    parser.add_argument(
        "--port",
        type=number(0, 65535),
        default=0,
        metavar="N",
        help="to listen on, where it is run here (default: any)",
    )
    parser.set_defaults(run=run)


def run(session: Session, args: argparse.Namespace) -> int:
    fmt = output.parse_format(args.output, ("", "json"))
    with attempting("open the dashboard"):
        session.api.json("/version")  # who cannot be reached or refuses us is named here, not on a page
        address = _of_platform(session)
        if address:
            _announce(session, address, as_json=bool(fmt.name))
            return OK
        return _here(session, args.port, as_json=bool(fmt.name))


def _announce(session: Session, address: str, *, as_json: bool) -> None:
    if as_json:
        session.print_data(output.to_json_line(session.report("Dashboard", {"url": address})))
    else:
        session.print(address)
    sys.stdout.flush()


def _of_platform(session: Session) -> str:
    """The address with a code, of the embedded platform behind the context; empty for any other server."""
    from paddlecloud.cli.objects.embedded import is_embedded
    from paddlecloud.platform import endpoint
    from paddlecloud.sdk.embedded_server import local_port

    data = endpoint.find_at_port(local_port(session.api.config.server))
    found = endpoint.find(data) if data is not None else None
    if found is None or not found.dashboard_url or not is_embedded(session):
        return ""
    credential = session.api.config.source.peek() or session.api.config.source.fetch()
    if not credential.token or session.api.config.headers:
        return ""  # a certificate or an impersonation cannot be handed to another process
    return f"{found.dashboard_url}/?code={_code(found.dashboard_url, str(credential.authorization))}"


def _code(url: str, authorization: str) -> str:
    """Asked of this machine's own address: not every resolver knows names below localhost."""
    import http.client
    import json
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    connection = http.client.HTTPConnection("127.0.0.1", parts.port or 80, timeout=60)
    try:
        headers = {"Host": parts.netloc, "Authorization": authorization}
        connection.request("POST", "/-/codes", headers=headers)
        answer = connection.getresponse()
        body = answer.read()
    except OSError as error:
        raise CliError(f"the dashboard at {url} does not answer", why=str(error), next="pdc doctor") from error
    finally:
        connection.close()
    if answer.status != 200:
        raise CliError(f"the dashboard at {url} refuses the token of this context", why=f"status {answer.status}")
    return str(json.loads(body)["code"])


def _flags(session: Session) -> tuple[str, ...]:
    """By which commands that the dashboard runs find the same credentials; a pod's own have none."""
    if session.api.config.context == "in-cluster":
        return ()
    file = ("--kubeconfig", str(session.args.kubeconfig)) if session.args.kubeconfig else ()
    return (*file, "--context", session.api.config.context)


def _here(session: Session, port: int, *, as_json: bool) -> int:
    import asyncio
    import signal

    from paddlecloud.ui.running import Dashboard, listen, new_label, serve

    try:
        listening = listen(port)
    except OSError as error:
        raise CliError(
            f"port {port} is taken", why=str(error), next="pdc dashboard --port 0", exit_code=CONFLICT
        ) from error

    async def until_ended() -> None:
        ended = asyncio.Event()
        for which in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(which, ended.set)
        dashboard = Dashboard(session.api.config, label=new_label(), flags=_flags(session))
        await serve(dashboard, listening, ended, announce=lambda address: _announce(session, address, as_json=as_json))

    session.note("the dashboard runs until Ctrl-C")
    asyncio.run(until_ended())
    return OK
