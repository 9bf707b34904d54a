"""How programs of this project log: lines for people or one JSON object a line for machines, always to stderr."""

from __future__ import annotations

import logging
import sys
from typing import Literal

import msgspec

from paddlecloud.kube.clock import rfc3339_micro

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JsonFormatter(logging.Formatter):
    """What was passed as `extra` becomes fields of its own."""

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, object] = {
            "time": rfc3339_micro(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        entry.update((name, value) for name, value in vars(record).items() if name not in _STANDARD)
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return msgspec.json.encode(entry, enc_hook=str).decode()


def configure(form: Literal["text", "json"] = "text", *, level: str = "INFO") -> None:
    """Set up the root logger, replacing what was there."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        JsonFormatter()
        if form == "json"
        else logging.Formatter("%(asctime)s %(levelname)-7s %(name)s: %(message)s", datefmt="%Y-%m-%dT%H:%M:%S")
    )
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
