"""Where a platform lives and how to find the ones that run: data directory, endpoint file, process.

    <data>/endpoint.json   written by the daemon when it is ready, removed when it stops by itself
    <data>/port            the API's port, kept from start to start: kubeconfigs that were copied name it

Standard library only: `pdc status` must stay cheap.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from paddlecloud.local.privatefiles import write_private

DAEMON = "paddlecloud.platform.daemon"
"""The module that `python -m` runs: by it the process of a platform is known."""
NO_CONTROLLERS = "--no-controllers"
MODEL_ENDPOINT = "PADDLECLOUD_MODEL_ENDPOINT"


class Endpoint(NamedTuple):
    """A platform that runs, or one whose process ended without removing its file (`alive` is then False)."""

    pid: int
    port: int
    started: float
    nodes: int
    alive: bool
    model_store: bool = False
    """Whether it was started with the URL of a model store, so that `pdc serve NAME` can mean a model in it."""

    pipelines: int = 0
    """The port of the API of Kubeflow Pipelines; 0 where there is none."""
    hub: int = 0
    """The port of the model hub; 0 where there is none."""
    dashboard: int = 0
    """The port of the dashboard; 0 where there is none."""
    label: str = ""
    """The first part of the name under which the dashboard answers."""

    @property
    def url(self) -> str:
        return url_of(self.port)

    @property
    def pipelines_url(self) -> str:
        return f"http://127.0.0.1:{self.pipelines}" if self.pipelines else ""

    @property
    def hub_url(self) -> str:
        return f"http://127.0.0.1:{self.hub}" if self.hub else ""

    @property
    def dashboard_url(self) -> str:
        return f"http://{self.label}.localhost:{self.dashboard}" if self.dashboard and self.label else ""


class Daemon(NamedTuple):
    """A process that runs a platform, ready or not, by its command line."""

    pid: int
    data: Path
    controllers: bool
    """Whether this project's controllers run in it."""


def url_of(port: int) -> str:
    return f"https://127.0.0.1:{port}"


def default_data() -> Path:
    return Path(os.environ.get("PADDLECLOUD_HOME") or Path.home() / ".paddlecloud").expanduser().resolve()


def find(data: Path) -> Endpoint | None:
    """The platform last started on `data`; None when it was stopped properly or never ran."""
    try:
        found = json.loads((data / "endpoint.json").read_text())
        pid, port, started = int(found["pid"]), int(found["port"]), float(found["started"])
        nodes = int(found.get("nodes") or 1)
        pipelines, hub = int(found.get("pipelines") or 0), int(found.get("modelHub") or 0)
        dashboard = int(found.get("dashboard") or 0)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    store, label = found.get("modelStore") is True, dashboard_label(data)
    return Endpoint(pid, port, started, nodes, is_daemon(pid, data), store, pipelines, hub, dashboard, label)


def find_at_port(port: int | None) -> Path | None:
    """The data directory of the platform of this machine that listens on `port`."""
    for data in (default_data(), *(daemon.data for daemon in daemons())):
        found = find(data)
        if found is not None and found.alive and found.port == port:
            return data
    return None


def find_unannounced(data: Path) -> Endpoint | None:
    """A platform on `data` without an endpoint file: it is still starting, or the file was deleted."""
    for daemon in daemons():
        if daemon.data == data:
            return Endpoint(daemon.pid, port=0, started=0.0, nodes=0, alive=True)
    return None


def daemons() -> Iterator[Daemon]:
    """The user's own platforms. Everybody can start a process with such a command line, and write what a command that
    took its directory for the user's would use: recipes of images, for example."""
    for entry in Path("/proc").glob("[0-9]*"):
        pid = int(entry.name)
        if _user_of(pid) == os.geteuid() and (daemon := daemon_of(pid)) is not None:
            yield daemon


def daemon_of(pid: int) -> Daemon | None:
    """None for a process that has ended, belongs to somebody else or is another program.

    Root may look after the platforms of others: there the process and the directory must have one owner.
    """
    try:
        words = [os.fsdecode(word) for word in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")]
        if DAEMON not in words or "--data" not in words[:-1]:
            return None
        data = Path(words[words.index("--data") + 1])
        user = _user_of(pid)
        if user != os.geteuid() and not (os.geteuid() == 0 and data.stat().st_uid == user):
            return None
    except OSError:
        return None
    return Daemon(pid, data, NO_CONTROLLERS not in words)


def _user_of(pid: int) -> int | None:
    try:
        return os.stat(f"/proc/{pid}").st_uid
    except OSError:
        return None


def is_daemon(pid: int, data: Path) -> bool:
    """Pids are used again: only a process that names this directory is the platform's."""
    daemon = daemon_of(pid)
    return daemon is not None and daemon.data == data


PIPELINES_PORT = "pipelines.port"
HUB_PORT = "modelhub.port"
DASHBOARD_PORT = "dashboard.port"
DASHBOARD_LABEL = "dashboard.label"
"""The first part of the dashboard's name: deep links stay the same from start to start."""


def kept_number(data: Path, name: str) -> int:
    """A port that scripts name; 0 before the first start."""
    try:
        return int((data / name).read_text())
    except (OSError, ValueError):
        return 0


def dashboard_label(data: Path) -> str:
    """Empty before the first start."""
    try:
        return (data / DASHBOARD_LABEL).read_text().strip()
    except OSError:
        return ""


def announce(data: Path, *, port: int, nodes: int, pipelines: int = 0, hub: int = 0, dashboard: int = 0) -> None:
    store = bool(os.environ.get(MODEL_ENDPOINT))
    body = {"pid": os.getpid(), "port": port, "started": time.time(), "nodes": nodes, "modelStore": store}
    body |= {"pipelines": pipelines, "modelHub": hub, "dashboard": dashboard}
    write_private(data / "endpoint.json", json.dumps(body).encode())


def withdraw(data: Path) -> None:
    (data / "endpoint.json").unlink(missing_ok=True)


def kept_port(data: Path) -> int:
    """The port that the platform on `data` has at every start; 0 before the first."""
    try:
        return int((data / "port").read_text())
    except (OSError, ValueError):
        found = find(data)  # of a release that kept no port, after a crash
        return found.port if found else 0


def keep_port(data: Path, port: int) -> None:
    write_private(data / "port", f"{port}\n".encode())


def free_port() -> int:
    """A port for a first start; 0, which lets the kernel choose, where all that were tried are taken."""
    from paddlecloud.local import lasting_ports

    return next(lasting_ports.free(), 0)
