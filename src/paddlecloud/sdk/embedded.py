"""A platform of one's own, for tests and notebooks: `with paddlecloud.embedded() as client: …`.

It is the platform of `pdc up`, in a process of its own: what works here works there, and a notebook that is restarted
does not take its pods' control plane along. It is stopped with the client or, at the latest, with this process; one
killed outright leaves it, and `pdc down --data DIR` stops it.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path

from paddlecloud.kube.config import load
from paddlecloud.platform import lifecycle
from paddlecloud.platform.lifecycle import PlatformFailed as PlatformFailed
from paddlecloud.sdk.checking import checked_call
from paddlecloud.sdk.sync import Client


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
            lifecycle.stop(self.data)
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
        started = lifecycle.start(folder, lifecycle.StartOptions(nodes=nodes))
    except BaseException:
        if data is None:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    return EmbeddedClient(folder, namespace=namespace, owned=started.new, temporary=data is None)
