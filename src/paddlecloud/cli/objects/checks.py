"""A check of `pdc doctor` and what it found; and the check of the API server, which machine and cluster share."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from paddlecloud.cli.session import Session


class Finding(NamedTuple):
    status: str  # ok, warn, fail
    detail: str
    meaning: str = ""
    fix: str = ""


class Check(NamedTuple):
    name: str
    run: Callable[[Session], Finding]


def api(session: Session) -> Finding:
    from paddlecloud.kube.errors import ApiError, ConfigError

    try:
        version = session.api.json("/version")
    except ConfigError as error:
        return Finding("warn", error.message, "commands that need an API server fail", "pdc up")
    except ApiError as error:
        return Finding("fail", error.message, "commands that need an API server fail", "pdc up")
    return Finding("ok", f"{session.api.config.context}: {version.get('gitVersion')} at {session.api.config.server}")
