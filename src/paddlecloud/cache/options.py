"""The options of the four kinds of work, checked once when an order arrives. Pure.

Names are those of the SampleJob (`force-update`, `strategyName`); both spellings, with dashes or with capitals, are
understood, and numbers and switches may be texts. Paths are absolute.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from paddlecloud.cache.errors import BadOptions
from paddlecloud.storage import uri
from paddlecloud.storage.errors import BadUri


@dataclass(frozen=True, kw_only=True)
class SyncOptions:
    source: str
    destination: str
    start: str = ""
    end: str = ""
    threads: int = 10
    update: bool = False
    force_update: bool = False
    perms: bool = False
    dirs: bool = False
    dry: bool = False
    delete_src: bool = False
    delete_dst: bool = False
    exclude: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    manager: str = ""
    worker: str = ""
    bwlimit: int = 0
    no_https: bool = False


@dataclass(frozen=True, kw_only=True)
class WarmupOptions:
    paths: tuple[str, ...] = ()
    partitions: int = 1
    strategy_name: str = "sequence"
    file: str = ""
    threads: int = 50
    batch_size: int = 1
    shuffle: bool = False
    epochs: int = 1
    ranks_per_node: int = 1
    seed: int | None = None
    drop_last: bool = False


@dataclass(frozen=True, kw_only=True)
class PathOptions:
    """Of clear and rmr."""

    paths: tuple[str, ...] = ()


Options = SyncOptions | WarmupOptions | PathOptions
TYPES: dict[str, type[SyncOptions] | type[WarmupOptions] | type[PathOptions]] = {
    "sync": SyncOptions,
    "warmup": WarmupOptions,
    "rmr": PathOptions,
    "clear": PathOptions,
}
STRATEGIES = ("sequence", "random", "sampler")
_MOST = {"partitions": 10_000, "epochs": 10_000, "ranks_per_node": 1_024, "threads": 1_000}
"""A plan holds every sample of every epoch and rank: larger numbers would fill the server's memory."""
DROPPED = {"http_port": "http-port is ignored: current JuiceFS has no such option"}
"""Options of old orders that mean nothing any more, with the notice that says so."""

T = TypeVar("T")


def parse(kind: str, raw: Any) -> tuple[Options, list[str]]:
    """The options of an order and notices about what was not taken literally. Raises `BadOptions`."""
    if kind not in TYPES:
        raise BadOptions(f"type {kind!r} is unknown: use one of {', '.join(TYPES)}")
    if not isinstance(raw, Mapping):
        raise BadOptions("options must be an object")
    given, notices = _given(raw)
    declared = {field.name: field for field in fields(TYPES[kind])}
    unknown = sorted(set(given) - set(declared))
    if unknown:
        known = ", ".join(name.replace("_", "-") for name in declared)
        raise BadOptions(f"{kind} has no option {unknown[0].replace('_', '-')!r}; it has: {known}")
    values = {name: _READERS[str(declared[name].type)](name, value) for name, value in given.items()}
    return _CHECKS[kind](values), notices


def _given(raw: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """What was set, under our names: zero values always meant "not set"."""
    given, notices = {}, []
    for key, value in raw.items():
        name = re.sub(r"([A-Z])", r"_\1", str(key)).lower().replace("-", "_")
        if value is None or value == "" or value is False or value == []:
            continue
        if name in DROPPED:
            notices.append(DROPPED[name])
        else:
            given[name] = value
    return given, notices


def _sync(values: dict[str, Any]) -> Options:
    if not values.get("source"):
        raise BadOptions("source is empty: say where the data comes from")
    if not values.get("destination"):
        raise BadOptions("destination is empty: say where the data goes to")
    try:
        uri.parse(values["source"])
        destination = uri.parse(values["destination"])
    except BadUri as error:
        raise BadOptions(str(error)) from error
    if destination.scheme != "file":
        raise BadOptions(f"destination {destination} must be a folder of this server: file:///…")
    values["source"], values["destination"] = uri.paired(values["source"].strip(), values["destination"].strip())
    _check_most(values)
    return SyncOptions(**values)


def _check_most(values: dict[str, Any]) -> None:
    for name, most in _MOST.items():
        if values.get(name, 1) > most:
            raise BadOptions(f"{name.replace('_', '-')} must be at most {most}")


def _warmup(values: dict[str, Any]) -> Options:
    strategy = values.get("strategy_name", STRATEGIES[0])
    if strategy not in STRATEGIES:
        raise BadOptions(f"strategyName {strategy!r} is unknown: use one of {', '.join(STRATEGIES)}")
    for name in ("partitions", "batch_size", "epochs", "ranks_per_node"):
        if values.get(name, 1) < 1:
            raise BadOptions(f"{name.replace('_', '-')} must be at least 1")
    _check_most(values)
    return WarmupOptions(**values)


def _rmr(values: dict[str, Any]) -> Options:
    if not values.get("paths"):
        raise BadOptions("paths is empty: say which data to remove")
    return PathOptions(**values)


def _clear(values: dict[str, Any]) -> Options:
    return PathOptions(**values)


_CHECKS: dict[str, Callable[[dict[str, Any]], Options]] = {
    "sync": _sync,
    "warmup": _warmup,
    "rmr": _rmr,
    "clear": _clear,
}


def _text(name: str, value: Any) -> str:
    if isinstance(value, (list, dict)):
        raise BadOptions(f"{name.replace('_', '-')} must be a text")
    return str(value)


def _texts(name: str, value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
        raise BadOptions(f"{name.replace('_', '-')} must be a list of texts")
    return tuple(value)


def _whole(name: str, value: Any) -> int:
    try:
        number = int(value)
    except (TypeError, ValueError):
        number = -1
    if number < 0 or isinstance(value, float):
        raise BadOptions(f"{name.replace('_', '-')} must be a whole number that is not negative, not {value!r}")
    return number


def _switch(name: str, value: Any) -> bool:
    text = str(value).lower()
    if text not in ("true", "false", "1", "0"):
        raise BadOptions(f"{name.replace('_', '-')} must be true or false, not {value!r}")
    return text in ("true", "1")


_READERS: dict[str, Callable[[str, Any], Any]] = {
    "str": _text,
    "tuple[str, ...]": _texts,
    "int": _whole,
    "int | None": _whole,
    "bool": _switch,
}
