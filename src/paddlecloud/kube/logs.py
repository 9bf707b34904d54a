"""How programs of this project log: lines for people or one JSON object a line for machines, always to stderr.

Whatever is logged while a controller reconciles an object carries the controller, the object and the number of the
reconcile, as in controller-runtime: one grep finds everything that belongs together.
"""

from __future__ import annotations

import itertools
import logging
import sys
from contextvars import ContextVar, Token
from typing import Literal, NamedTuple

import msgspec

from paddlecloud.kube.clock import rfc3339_micro
from paddlecloud.kube.resource import Key

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class Reconcile(NamedTuple):
    controller: str
    key: Key
    id: int


_reconcile: ContextVar[Reconcile | None] = ContextVar("reconcile", default=None)
_ids = itertools.count(1)


def begin_reconcile(controller: str, key: Key) -> Token[Reconcile | None]:
    """For what is logged from here on, in this task and those it starts, until `end_reconcile`."""
    return _reconcile.set(Reconcile(controller, key, next(_ids)))


def end_reconcile(token: Token[Reconcile | None]) -> None:
    _reconcile.reset(token)


class TextFormatter(logging.Formatter):
    """One line, and the lines of a traceback below it."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:
        line = super().formatMessage(record)
        found = _reconcile.get()
        return line if found is None else f"{line} [{found.controller} {found.key} reconcile={found.id}]"


class JsonFormatter(logging.Formatter):
    """What was passed as `extra` becomes fields of its own."""

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, object] = {
            "time": rfc3339_micro(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if (found := _reconcile.get()) is not None:
            entry |= {
                "controller": found.controller,
                "namespace": found.key.namespace,
                "name": found.key.name,
                "reconcileID": found.id,
            }
        entry.update((name, value) for name, value in vars(record).items() if name not in _STANDARD)
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return msgspec.json.encode(entry, enc_hook=str).decode()


def configure(form: Literal["text", "json"] = "text", *, level: str = "INFO") -> None:
    """Set up the root logger, replacing what was there."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
