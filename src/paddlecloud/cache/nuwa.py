"""`nuwa`: the cache server of a SampleSet's partition, and its work by hand.

    nuwa server --driver=local --cacheDirs=/cache/a --dataDir=/mnt/imagenet
    nuwa sync --dataDir=/mnt/imagenet file:///data/imagenet file:///mnt/imagenet
    nuwa warmup|rmr|clear --dataDir=/mnt/imagenet --cacheDirs=/cache/a [PATH …]

Exit codes: 0 done, 1 not or not all of it, 2 the command line is wrong, 130 interrupted.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import os
import signal
import socket
import ssl
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from paddlecloud.api.folders import FolderRule
from paddlecloud.cache import options as options_
from paddlecloud.cache import warmup
from paddlecloud.cache.confine import OWN
from paddlecloud.cache.engines import make
from paddlecloud.cache.engines.base import Engine, EngineSettings
from paddlecloud.cache.errors import BadOptions, Cancelled, WorkFailed
from paddlecloud.cache.levels import parse_levels
from paddlecloud.cache.progress import Task
from paddlecloud.storage import credentials
from paddlecloud.storage.errors import StorageError

PORT = 7716
ADDRESS = "POD_IP"
OK, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130
GRACE = 20.0


def main(argv: Sequence[str] | None = None) -> int:
    args = _parser().parse_args(argv)
    try:
        return int(args.run(args))
    except (BadOptions, WorkFailed) as error:
        print(f"nuwa: {error}", file=sys.stderr)
        return USAGE if isinstance(error, BadOptions) else FAILED
    except StorageError as error:
        print(f"nuwa: {error.reason}: {error}", file=sys.stderr)
        return FAILED
    except (KeyboardInterrupt, Cancelled):
        return INTERRUPTED
    except OSError as error:
        print(f"nuwa: {error}", file=sys.stderr)
        return FAILED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="nuwa", description="The cache server of a SampleSet.")
    _add_shared(parser)
    parser.set_defaults(driver="juicefs", data="", cache=[], levels=[], state="", roots=None, closed=[], keys="")
    parser.set_defaults(shared="")
    parser.set_defaults(credentials=str(credentials.FOLDER), partition=None)
    shared = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    _add_shared(shared)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    server = commands.add_parser("server", parents=[shared], help="serve orders over HTTP")
    server.add_argument("--serverPort", dest="port", type=int, default=PORT)
    server.add_argument("--serverAddress", dest="address", default="", help=f"default: {ADDRESS}, else all, with keys")
    server.add_argument(
        "--keys", default="", help="folder with token, tls.crt and tls.key; without it the server is on loopback only"
    )
    server.add_argument("--interval", help="accepted for compatibility: figures are always fresh")
    server.add_argument("--timeout", help="accepted for compatibility")
    server.set_defaults(run=_serve)
    for kind, declared in options_.TYPES.items():
        command = commands.add_parser(kind, parents=[shared], help=f"do one {kind} now")
        _add_options(command, declared)
        command.set_defaults(run=_work, kind=kind)
    return parser


def _add_shared(parser: argparse.ArgumentParser) -> None:
    """Flags that may stand before or after the command, as they always might."""
    parser.add_argument("--driver", choices=("local", "juicefs"), help="engine of the set; juicefs when left out")
    parser.add_argument("--development", action="store_true", help="accepted for compatibility")
    parser.add_argument("--dataDir", dest="data", help="where the set is mounted")
    parser.add_argument("--cacheDirs", dest="cache", action="append", help="cache folder; repeat or commas")
    parser.add_argument("--cacheLevels", dest="levels", action="append", metavar="MEDIUM,MIB,PATH[:PATH]")
    parser.add_argument(
        "--sourceRoots", dest="roots", action="append", help="folder that file:// sources may be in; empty: none"
    )
    parser.add_argument("--sourceClosed", dest="closed", action="append", help="folder that they may not be in")
    parser.add_argument(
        "--setDir", dest="shared", help=f"folder that all servers of a local set share; default: {OWN} in the set"
    )
    parser.add_argument("--serverDir", dest="state", help="the server's own folder")
    parser.add_argument("--credentials", help="folder with access-key and secret-key")
    parser.add_argument("--partition", type=int, help="number of this partition; the pod's own when left out")


def _add_options(parser: argparse.ArgumentParser, declared: type) -> None:
    """Every option of the work as a flag, in its own spelling; what it is about as arguments."""
    for field in dataclasses.fields(declared):
        flag = f"--{field.name.replace('_', '-')}"
        camel = "--" + "".join(part.title() if index else part for index, part in enumerate(field.name.split("_")))
        names = [flag] if camel == flag else [flag, camel]
        if field.name in ("source", "destination"):
            parser.add_argument(field.name)
        elif field.name == "paths":
            parser.add_argument("paths", nargs="*", metavar="PATH")
        elif str(field.type) == "bool":
            parser.add_argument(*names, dest=f"option_{field.name}", action="store_true")
        elif str(field.type).startswith("tuple"):
            parser.add_argument(*names, dest=f"option_{field.name}", action="append")
        else:
            parser.add_argument(*names, dest=f"option_{field.name}")


def engine_of(args: argparse.Namespace, environment: Mapping[str, str]) -> tuple[Engine, Path]:
    """The engine, and the server's own folder: on the node's own disk where it has a cache there."""
    if not args.data.startswith("/"):
        raise BadOptions("--dataDir must name the folder of the set, an absolute path")
    folders = [folder for text in args.cache for folder in text.split(",") if folder]
    levels = parse_levels(args.levels, folders)
    first = levels[0].folders[0] if levels else args.data
    state = Path(args.state or f"{first}/{OWN}")
    partition = args.partition if args.partition is not None else warmup.ordinal(socket.gethostname())
    shared = Path(args.shared or f"{args.data}/{OWN}")
    settings = EngineSettings(args.data, levels, state, partition, environment, _source_rule(args, state), shared)
    return make(args.driver, settings), state


def _source_rule(args: argparse.Namespace, state: Path) -> FolderRule:
    """What `file://` sources may read: never the keys of this server, those of stores, or the processes' variables."""
    own = (str(state), args.credentials, *filter(None, (args.keys, args.shared)), "/proc")
    roots = None if args.roots is None else tuple(root for root in args.roots if root)
    return FolderRule(roots, (*args.closed, *own))


def _work(args: argparse.Namespace) -> int:
    raw: dict[str, Any] = {
        name.removeprefix("option_"): value for name, value in vars(args).items() if name.startswith("option_")
    }
    raw |= {name: getattr(args, name) for name in ("source", "destination", "paths") if hasattr(args, name)}
    parsed, notices = options_.parse(args.kind, raw)
    engine, _ = engine_of(args, os.environ)
    engine.check(args.kind, parsed)
    task = Task()
    signal.signal(signal.SIGTERM, lambda *_: task.cancel())
    for notice in notices:
        print(f"nuwa: {notice}", file=sys.stderr)
    try:
        if isinstance(parsed, options_.SyncOptions):
            engine.sync(parsed, credentials.from_folder(Path(args.credentials)), task)
        elif isinstance(parsed, options_.WarmupOptions):
            engine.warmup(parsed, task)
        else:
            (engine.rmr if args.kind == "rmr" else engine.clear)(parsed, task)
    finally:
        print(json.dumps({"progress": task.progress.shown(), "coverage": task.coverage}))
        engine.close()
    return OK


def _serve(args: argparse.Namespace) -> int:
    address = args.address or os.environ.get(ADDRESS) or "0.0.0.0"  # noqa: S104 - with keys only
    if not args.keys:
        asyncio.run(_serving(args, "", None, "127.0.0.1"))
        return OK
    folder = Path(args.keys)
    token = (folder / "token").read_text().strip()
    if not token:
        raise BadOptions(f"--keys: {folder / 'token'} is empty")
    asyncio.run(_serving(args, token, _tls(folder), address))
    return OK


def _tls(folder: Path) -> ssl.SSLContext:
    """What proves to clients that this is the set's server, before they send anything."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    except ssl.SSLError as error:
        raise BadOptions(f"--keys: {folder}/tls.crt and tls.key cannot be used: {error.reason}") from error
    return context


async def _serving(args: argparse.Namespace, token: str, tls: ssl.SSLContext | None, address: str) -> None:
    from aiohttp import web

    from paddlecloud.cache.jobs import Jobs
    from paddlecloud.cache.server import Server
    from paddlecloud.kube import descriptors
    from paddlecloud.kube.server.listening import KEEP_ALIVE, Site
    from paddlecloud.kube.server.tls import secured

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    engine, state = await asyncio.to_thread(engine_of, args, dict(os.environ))
    jobs = Jobs(state / "jobs", engine, fixed=lambda: credentials.from_folder(Path(args.credentials)))
    application = Server(jobs, engine, token=token).application()
    runner = web.AppRunner(application, access_log=None, auto_decompress=False, keepalive_timeout=KEEP_ALIVE)
    await runner.setup()
    waiting = descriptors.share(one_of=4)  # to agree on TLS, and once more to send a request
    over_tls = partial(secured, tls, most_waiting=waiting) if tls else None
    backlog = min(128, waiting)  # so many are accepted at once
    await Site(runner, address, args.port, secured=over_tls, backlog=backlog, most_waiting=waiting).start()
    jobs.start()
    port = runner.addresses[0][1]
    print(f"nuwa: serving {args.data} ({args.driver}) on {address}:{port}", flush=True)
    await stop.wait()
    await asyncio.to_thread(jobs.stop, GRACE)
    await runner.cleanup()
    engine.close()


if __name__ == "__main__":
    sys.exit(main())
