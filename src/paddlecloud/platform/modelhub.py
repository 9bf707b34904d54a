"""The model hub's server on the embedded platform: on the folder of models in the data directory, as a port of the
daemon and a Service for pods (http://modelhub.kube-system:8890).

It asks the platform's API server with the credentials of the caller, as on a cluster. The key of read grants is a
Secret of kube-system, where users have no rights; the controllers, in the same process, sign with it.
"""

from __future__ import annotations

from paddlecloud.kube import shared_key
from paddlecloud.kube.config import Config
from paddlecloud.kube.resource import Object
from paddlecloud.local.apiserver.auth.authentication import service_account
from paddlecloud.local.control_plane import ControlPlane
from paddlecloud.modelhub import names, read_grant
from paddlecloud.modelhub.names import STORE_FOLDER
from paddlecloud.modelhub.server.server import HubServer
from paddlecloud.platform import chart, endpoint
from paddlecloud.platform.published import PublishedServer, PublishedService, account_objects
from paddlecloud.storage.stores import open_store

URL = f"http://{names.SERVICE}.{chart.NAMESPACE}:{names.PORT}"
"""For pods."""
SERVICE = PublishedService(names.SERVICE, chart.NAMESPACE, names.PORT, "the model hub")


def objects() -> list[Object]:
    key: Object = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "create"]}
    return account_objects(SERVICE, chart.NAMESPACE, key)


def model_hub(control_plane: ControlPlane) -> PublishedServer:
    """Made once the control plane listens."""
    client = control_plane.client(service_account(chart.NAMESPACE, names.SERVICE), user_agent="modelhub")
    known: list[bytes] = []

    async def key() -> bytes:
        if not known:
            known.append(await shared_key.ensure_key(client, read_grant.KEY_NAME, chart.NAMESPACE))
        return known[0]

    store = open_store(f"file://{control_plane.data.resolve() / STORE_FOLDER}", environment={})
    server = HubServer(store, Config(control_plane.url, ca=control_plane.certs.ca_cert.read_bytes()), key)
    return PublishedServer(server, client, SERVICE, data=control_plane.data, kept=endpoint.HUB_PORT)
