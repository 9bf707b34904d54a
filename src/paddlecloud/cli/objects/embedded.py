"""Whether the chosen context is the embedded platform of this machine, and which data directory it runs on.

Pods of the embedded platform are processes of this machine: they see its directories and use its images. Commands that
build on that (`run`, `image`) ask here first.
"""

from __future__ import annotations

from pathlib import Path

from paddlecloud.cli.session import Session
from paddlecloud.platform import endpoint
from paddlecloud.sdk import embedded_server


def is_embedded(session: Session) -> bool:
    return embedded_server.is_embedded(session.api.config.server, session.api.json("/version"))


def data_of(session: Session) -> Path:
    """The directory given with --data; else that of the platform behind the context; else the default one."""
    if getattr(session.args, "data", None) is not None:  # not every command has the flag
        return Path(session.args.data).expanduser().resolve()
    return endpoint.find_at_port(_context_port(session)) or endpoint.default_data()


def _context_port(session: Session) -> int | None:
    """Images can be built without any server: no kubeconfig, no port."""
    from paddlecloud.kube.config import load
    from paddlecloud.kube.errors import ConfigError

    try:
        return embedded_server.local_port(load(session.args.kubeconfig, session.args.context).server)
    except ConfigError:
        return None
