"""A platform of one's own, for tests and notebooks: `with paddlecloud.embedded() as client: …`.

It is the platform of `pdc up`, in a process of its own: what works here works there, and a notebook that is restarted
does not take its pods' control plane along. It is stopped with the client or, at the latest, with this process; one
killed outright leaves it, and `pdc down --data DIR` stops it.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from paddlecloud.kube.config import load
from paddlecloud.sdk.checking import checked_call
from paddlecloud.sdk.sync import Client

START_SECONDS = 60.0
STOP_SECONDS = 60.0


class PlatformFailed(Exception):
    """The platform did not start or stop; the text says why and where its log is."""


class EmbeddedClient(Client):
    """A client that owns the platform behind it. `kubeconfig` is a file for kubectl, pdc and other clients."""

    def __init__(self, data: Path, *, namespace: str | None, owned: bool, temporary: bool) -> None:
        self.data = data
        self.kubeconfig = data / "kubeconfig"
        self._owned = owned
        self._temporary = temporary
        super().__init__(load(str(self.kubeconfig)), namespace=namespace)
        atexit.register(self.close)

    def __enter__(self) -> EmbeddedClient:
        return self

    def close(self) -> None:
        """A platform that was running before goes on; one started here is stopped, with all its pods."""
        atexit.unregister(self.close)
        super().close()
        if self._owned:
            self._owned = False
            _pdc("down", "--data", str(self.data), timeout=STOP_SECONDS)
        if self._temporary:
            self._temporary = False
            shutil.rmtree(self.data, ignore_errors=True)


@checked_call
def embedded(
    data: str | os.PathLike[str] | None = None, *, nodes: int | None = None, namespace: str | None = None
) -> EmbeddedClient:
    """Start a platform on a directory, or on a temporary one that goes with it. One that runs there already is used.

    `nodes` divides the machine among so many; without it, it is as it was when the directory was last used, else one.
    """
    folder = Path(tempfile.mkdtemp(prefix="paddlecloud-") if data is None else data).expanduser().resolve()
    try:
        command = ["up", "--data", str(folder), "--kubeconfig", str(folder / "kubeconfig")]
        command += ["--nodes", str(nodes)] if nodes is not None else []
        answer = json.loads(_pdc(*command, "-o", "json", timeout=START_SECONDS))
    except BaseException:
        if data is None:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    return EmbeddedClient(folder, namespace=namespace, owned=bool(answer["started"]), temporary=data is None)


def _pdc(*arguments: str, timeout: float) -> str:
    """Run by its name, not imported: the command line stands above this package."""
    done = subprocess.run(
        [sys.executable, "-m", "paddlecloud.cli.main", *arguments],
        capture_output=True,
        text=True,
        timeout=timeout,
        stdin=subprocess.DEVNULL,
    )
    if done.returncode != 0:
        raise PlatformFailed(f"pdc {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout
