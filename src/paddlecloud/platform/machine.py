"""Where a platform lives and how to find the one that runs there: data directory, endpoint file, process.

    <data>/endpoint.json   written by the daemon when it is ready, removed when it stops by itself
    <data>/port            the API's port, kept from start to start: kubeconfigs that were copied name it
    <data>/kubeconfig      a complete kubeconfig for this platform alone (0600)
    <data>/platform.log    what the daemon says

Standard library only: `pdc status` must stay cheap.
"""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any, NamedTuple

CONTEXT = "paddlecloud-local"
MODEL_ENDPOINT = "PADDLECLOUD_MODEL_ENDPOINT"


class Endpoint(NamedTuple):
    """A platform that runs, or one whose process has gone without saying goodbye (`alive` is then False)."""

    pid: int
    port: int
    started: float
    nodes: int
    alive: bool
    model_store: bool = False
    """Whether it was started with the URL of a model store, so that `pdc serve NAME` can mean a model in it."""

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"


def default_data() -> Path:
    return Path(os.environ.get("PADDLECLOUD_HOME") or Path.home() / ".paddlecloud")


def find(data: Path) -> Endpoint | None:
    """The platform last started on `data`; None when it was stopped properly or never ran."""
    try:
        found = json.loads((data / "endpoint.json").read_text())
        pid, port, started = int(found["pid"]), int(found["port"]), float(found["started"])
        nodes = int(found.get("nodes") or 1)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return Endpoint(pid, port, started, nodes, _is_daemon(pid, data), found.get("modelStore") is True)


def unannounced(data: Path) -> Endpoint | None:
    """A platform on `data` that has not said where it is: it is still starting, or its file was deleted."""
    for entry in Path("/proc").glob("[0-9]*"):
        if _is_daemon(int(entry.name), data):
            return Endpoint(int(entry.name), port=0, started=0.0, nodes=0, alive=True)
    return None


def _is_daemon(pid: int, data: Path) -> bool:
    """Pids are used again: only a process that names this directory is our daemon."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return b"paddlecloud.platform.daemon" in words and str(data).encode() in words


def announce(data: Path, *, port: int, nodes: int) -> None:
    store = bool(os.environ.get(MODEL_ENDPOINT))
    body = {"pid": os.getpid(), "port": port, "started": time.time(), "nodes": nodes, "modelStore": store}
    write_private(data / "endpoint.json", json.dumps(body))


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
    write_private(data / "port", f"{port}\n")


def free_port() -> int:
    """A port for a first start; 0, which lets the kernel choose, where all that were tried are taken."""
    from paddlecloud.local import lasting_ports

    return next(lasting_ports.free(), 0)


def stop(endpoint: Endpoint, data: Path, *, timeout: float) -> bool:
    """Ask the daemon to stop and wait for it, also one that was suspended. True when it has gone."""
    return _signal(endpoint, data, (signal.SIGTERM, signal.SIGCONT), timeout)


def kill(endpoint: Endpoint, data: Path, *, timeout: float) -> bool:
    """End a daemon that does not answer; its pods run on under their shims. True when it has gone."""
    return _signal(endpoint, data, (signal.SIGKILL,), timeout)


def _signal(endpoint: Endpoint, data: Path, numbers: tuple[signal.Signals, ...], timeout: float) -> bool:
    try:
        for number in numbers:
            os.kill(endpoint.pid, number)
    except ProcessLookupError:
        return True
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        if not _is_daemon(endpoint.pid, data):
            return True
        time.sleep(0.02)
    return False


def write_private(path: Path, text: str) -> None:
    """Whole or not at all, and for its owner's eyes only. A link to a file elsewhere stays one."""
    path = path.resolve()
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w") as file:
        file.write(text)
    os.replace(temporary, path)


def kubeconfig(*, url: str, ca: str, token: str, context: str = CONTEXT) -> dict[str, Any]:
    """`ca` is base64 of the PEM, as kubeconfig wants it."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": context, "cluster": {"server": url, "certificate-authority-data": ca}}],
        "users": [{"name": context, "user": {"token": token}}],
        "contexts": [{"name": context, "context": {"cluster": context, "user": context, "namespace": "default"}}],
        "current-context": context,
        "preferences": {},
    }


def merge_into(path: Path, ours: dict[str, Any]) -> None:
    """Put our entries into a kubeconfig that may hold others, and make our context the current one."""
    import yaml

    theirs: dict[str, Any] = {}
    if path.exists() and path.stat().st_size:
        loaded = yaml.safe_load(path.read_text())
        if not isinstance(loaded, dict):
            raise ValueError(f"{path} is not a kubeconfig: its top level is not a mapping")
        theirs = loaded
    merged = {**ours, **theirs, "current-context": ours["current-context"]}
    for section in ("clusters", "users", "contexts"):
        names = {entry["name"] for entry in ours[section]}
        kept = [entry for entry in theirs.get(section) or [] if entry.get("name") not in names]
        merged[section] = kept + ours[section]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_private(path, yaml.safe_dump(merged, sort_keys=False))
