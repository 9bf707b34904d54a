"""Whether the chosen context is the embedded platform of this machine, and which data directory it runs on.

Pods of the embedded platform are processes of this machine: they see its directories and use its images. What builds on
that (`run`, `image`) asks here first.
"""

from __future__ import annotations

from pathlib import Path

from paddlecloud.cli.session import Session
from paddlecloud.platform import machine
from paddlecloud.sdk import place


def is_embedded(session: Session) -> bool:
    return place.is_embedded(session.api.config.server, session.api.json("/version"))


def data_of(session: Session) -> Path:
    """The directory given with --data; else that of the platform behind the context; else the default one."""
    if getattr(session.args, "data", None) is not None:  # not every command has the flag
        return Path(session.args.data).expanduser().resolve()
    default = machine.default_data().expanduser().resolve()
    port = _context_port(session)
    for data in (default, *_running()):
        found = machine.find(data)
        if found is not None and found.alive and found.port == port:
            return data
    return default


def _context_port(session: Session) -> int | None:
    """Images can be built without any server: no kubeconfig, no port."""
    from paddlecloud.kube.config import load
    from paddlecloud.kube.errors import ConfigError

    try:
        return place.local_port(load(session.args.kubeconfig, session.args.context).server)
    except ConfigError:
        return None


def _running() -> list[Path]:
    """Data directories of this machine's platforms, as their processes name them."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes().split(b"\0")
        except OSError:
            continue  # ended meanwhile, or somebody else's
        if b"paddlecloud.platform.daemon" in words and b"--data" in words[:-1]:
            found.append(Path(words[words.index(b"--data") + 1].decode(errors="surrogateescape")))
    return found
