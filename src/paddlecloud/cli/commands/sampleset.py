"""`pdc sampleset`: how much cache a set needs (`advise`), and the data that deleted sets left on this machine.

  pdc sampleset advise SET --link 50Mbit --samples-per-second 380
  pdc sampleset advise SET --link 50Mbit --job train        the speed that a PaddleJob reports
  pdc sampleset advise --samples 1281167 --size 138Gi --nodes 4 --cache 20Gi --link 1Gbit --samples-per-second 1200
  pdc sampleset retained [-A]               data of deleted sets, with its source
  pdc sampleset rm-data NAME                remove it; a set of that name must not use it

What `advise` is not given comes from the set: its files and their size, its partitions, the quotas of its cache levels.
"""

from __future__ import annotations

import argparse
import re
from typing import Any

from paddlecloud.cli.failures import InputError, UsageError, attempting
from paddlecloud.cli.objects import targets
from paddlecloud.cli.parsing import Parsers, add_all_namespaces, number
from paddlecloud.cli.render import output
from paddlecloud.cli.session import Session
from paddlecloud.kube.resource import PADDLEJOBS, SAMPLESETS, Object
from paddlecloud.kube.sizes import BINARY_UNITS

_RATES = {"bit": 1 / 8, "kbit": 1e3 / 8, "mbit": 1e6 / 8, "gbit": 1e9 / 8, "b": 1.0, "kb": 1e3, "mb": 1e6, "gb": 1e9}
_UNITS = {unit: 1024**power for power, unit in enumerate(BINARY_UNITS)}


def rate(text: str) -> float:
    """An argparse type: `50Mbit`, `6MB`, `1Gbit`, per second; in bytes."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([A-Za-z]+)(?:/s)?", text)
    if match is None or match[2].lower() not in _RATES:
        raise argparse.ArgumentTypeError(f"{text!r} is not a rate such as 50Mbit or 6MB")
    return float(match[1]) * _RATES[match[2].lower()]


def amount(text: str) -> int:
    """An argparse type: `20Gi`, as Kubernetes writes it."""
    from paddlecloud.kube.quantity import whole

    try:
        return whole(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size such as 20Gi") from None


def positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return value


def add_commands(parsers: Parsers) -> None:
    parser = parsers.add_parser(
        "sampleset",
        description=__doc__,
        usage="pdc sampleset advise [SET] --link RATE [flags], retained, or rm-data NAME",
    )
    parser.add_argument("action", choices=("advise", "retained", "rm-data"))
    parser.add_argument("set", nargs="?", metavar="SET", help="name of the SampleSet")
    parser.add_argument("--link", type=rate, metavar="RATE", help="from the source, as 50Mbit or 6MB")
    parser.add_argument("--samples-per-second", type=positive, metavar="N", help="samples/s when not waiting for data")
    parser.add_argument("--job", metavar="NAME", help="a PaddleJob whose reported speed is taken for that")
    parser.add_argument("--samples", type=number(1), metavar="N", help="samples (default: the set's files)")
    parser.add_argument("--size", type=amount, metavar="SIZE", help="of all samples (default: the set's)")
    parser.add_argument("--cache", type=amount, metavar="SIZE", help="on each node (default: the set's quotas)")
    parser.add_argument("--nodes", type=number(1), metavar="N", help="default: the set's partitions")
    parser.add_argument("--epochs", type=number(1), default=10, metavar="N", help="of the whole run (default: 10)")
    parser.add_argument("--no-shuffle", action="store_true", help="every epoch reads in the same order")
    parser.add_argument("--handover", action="store_true", help="nodes pass samples on to their next reader")
    add_all_namespaces(parser)
    parser.set_defaults(run=run)


def run(session: Session, args: argparse.Namespace) -> int:
    from paddlecloud.cli.commands import sampleset_data

    if args.action == "advise":
        return _advise(session, args)
    if args.action == "retained":
        return sampleset_data.list_retained(session)
    if not args.set:
        raise UsageError("say whose data to remove", next="pdc sampleset retained")
    return sampleset_data.remove_data(session, args.set)


def _advise(session: Session, args: argparse.Namespace) -> int:
    from paddlecloud.cache.plan import Measured, advise

    if args.link is None:
        raise UsageError("say how fast the source is", next="--link RATE, as 50Mbit or 6MB")
    fmt = output.parse_format(args.output, ("", *output.STRUCTURED))
    known = _of_set(session, args.set) if args.set else {}
    wanted = {
        "samples": args.samples or known.get("samples"),
        "size": args.size or known.get("size"),
        "nodes": args.nodes or known.get("nodes"),
        "cache": known.get("cache", 0) if args.cache is None else args.cache,
    }
    lacking = [f"--{name}" for name, value in wanted.items() if value is None or (name != "cache" and not value)]
    if lacking:
        why = f"SampleSet {args.set} has no figures yet" if args.set else "no SampleSet was named"
        raise UsageError(f"{', '.join(lacking)} must be given", why=why, next="pdc sampleset --help")
    measured = Measured(
        samples=wanted["samples"],
        sample_bytes=wanted["size"] / wanted["samples"],
        samples_per_second=_speed(session, args),
        link_bytes_per_second=args.link,
        cache_bytes=wanted["cache"],
        nodes=wanted["nodes"],
        epochs=args.epochs,
        shuffle=not args.no_shuffle,
        handover=args.handover,
    )
    advice = advise(measured)
    if not fmt.name:
        session.print(str(advice))
        return 0
    values = {name: getattr(advice, name) for name in advice.__dataclass_fields__ if name != "measured"}
    output.print_report(session, "SampleSetAdvice", {_camel(name): value for name, value in values.items()})
    return 0


def _speed(session: Session, args: argparse.Namespace) -> float:
    if args.samples_per_second is not None:
        return float(args.samples_per_second)
    if not args.job:
        raise UsageError("say how fast training is", next="--samples-per-second N, or --job NAME")
    with attempting(f"read PaddleJob {args.job}"):
        job = session.api.do(session.api.client.get(PADDLEJOBS, args.job, session.namespace))
    speed = ((job.get("status") or {}).get("progress") or {}).get("samplesPerSecond")
    if not speed:
        raise InputError(
            f"PaddleJob {args.job} reports no speed", why="status.progress.samplesPerSecond is empty",
            next="--samples-per-second N",
        )  # fmt: skip
    return float(speed)


def _of_set(session: Session, name: str) -> dict[str, Any]:
    """What the set itself reports: its size, its partitions, the quotas of its levels."""
    with attempting(f"read SampleSet {name}"):
        name = targets.name_in(session.api, name, SAMPLESETS)
        found: Object = session.api.do(session.api.client.get(SAMPLESETS, name, session.namespace))
    spec, figures = found.get("spec") or {}, (found.get("status") or {}).get("cacheStatus") or {}
    levels = (spec.get("cache") or {}).get("levels") or ()
    return {
        "samples": int(str(figures.get("totalFiles") or "0").replace(",", "")),
        "size": read_size(str(figures.get("totalSize") or "")),
        "nodes": int(spec.get("partitions") or 1),
        "cache": sum(int(level.get("cacheSize") or 0) for level in levels) << 20,
    }


def read_size(text: str) -> int:
    """Bytes of a size as the status has it: `4.2 GiB`. Nothing for what is none."""
    value, _, unit = text.partition(" ")
    try:
        return int(float(value) * _UNITS[unit])
    except (KeyError, ValueError):
        return 0


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.title() for part in rest)
