"""The dashboard of the embedded platform: a port that listens from the start, and a process from the first connection.

Nobody pays for a page that nobody opens: the platform starts no slower and has no more memory. The process watches
under an account of its own, which may read what pages show and nothing else; who sees what of it is decided by the
rights of the viewer (`ui.rights`). When it has ended, the next connection starts it again.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import socket
import sys
from pathlib import Path

from paddlecloud.kube.resource import Object
from paddlecloud.local import lasting_ports
from paddlecloud.local.apiserver.auth.authentication import service_account
from paddlecloud.local.privatefiles import write_private
from paddlecloud.platform import chart, endpoint, kubeconfig

log = logging.getLogger(__name__)

MODULE = "paddlecloud.ui"
NAME = "dashboard"
STOP_SECONDS = 3.0
RESTART_SECONDS = 1.0
_HOST = "127.0.0.1"
_RBAC = "rbac.authorization.k8s.io"


def objects() -> list[Object]:
    """The account of the watches, and its rights."""
    name = f"paddlecloud:{NAME}"
    rules = chart.dashboard_rules()
    account = {"namespace": chart.NAMESPACE, "name": NAME}
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": dict(account)},
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": name, "labels": dict(chart.LABELS)},  # by which it follows the release
            "rules": rules,
        },
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "ServiceAccount", **account}],
        },
    ]


class DashboardProcess:
    def __init__(self, data: Path) -> None:
        self.port = 0
        self.code = secrets.token_urlsafe(24)
        """Opens a session of the owner, once: `pdc up` prints it."""
        self._data = data
        self._listening: socket.socket | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._keeper: asyncio.Task[None] | None = None

    def start(self) -> None:
        kept = endpoint.kept_number(self._data, endpoint.DASHBOARD_PORT)
        wanted = kept or next(lasting_ports.free(), 0)
        try:
            self._listening = socket.create_server((_HOST, wanted), backlog=128)
        except OSError:
            self._listening = socket.create_server((_HOST, 0), backlog=128)
            log.warning("port %d of the dashboard is taken; from now on it is another", wanted)
        self._listening.setblocking(False)
        self.port = int(self._listening.getsockname()[1])
        if self.port != kept:
            write_private(self._data / endpoint.DASHBOARD_PORT, f"{self.port}\n".encode())
        if not endpoint.dashboard_label(self._data):
            write_private(self._data / endpoint.DASHBOARD_LABEL, f"pdc-{secrets.token_hex(8)}\n".encode())
        self._await_connection()

    async def stop(self) -> None:
        if self._listening is not None:
            asyncio.get_running_loop().remove_reader(self._listening)
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.gather(self._keeper, return_exceptions=True)
        if self._process is not None and self._process.returncode is None:
            self._process.terminate()
            try:
                await asyncio.wait_for(self._process.wait(), STOP_SECONDS)
            except asyncio.TimeoutError:
                self._process.kill()
                await self._process.wait()
        if self._listening is not None:
            self._listening.close()

    def _await_connection(self) -> None:
        assert self._listening is not None, "start was called"
        asyncio.get_running_loop().add_reader(self._listening, self._connected)

    def _connected(self) -> None:
        """Somebody is there: the connection waits in the socket until the process takes it."""
        assert self._listening is not None, "a reader was added for it"
        asyncio.get_running_loop().remove_reader(self._listening)
        self._keeper = asyncio.get_running_loop().create_task(self._keep(), name=NAME)

    async def _keep(self) -> None:
        assert self._listening is not None, "it is what was connected to"
        command = [sys.executable, "-m", MODULE, "--fd", str(self._listening.fileno())]
        command += [
            "--kubeconfig",
            str(kubeconfig.own_file(self._data)),
            "--label",
            endpoint.dashboard_label(self._data),
        ]
        command += ["--feed-as", service_account(chart.NAMESPACE, NAME).name]
        self._process = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.PIPE, pass_fds=(self._listening.fileno(),), cwd="/"
        )
        assert self._process.stdin is not None, "it is a pipe"
        self._process.stdin.write(f"{self.code}\n".encode())
        code = await self._process.wait()
        self.code = secrets.token_urlsafe(24)  # the one before may have been used
        log.warning("the dashboard ended with exit code %d; the next connection starts it again", code)
        await asyncio.sleep(RESTART_SECONDS)
        self._await_connection()
