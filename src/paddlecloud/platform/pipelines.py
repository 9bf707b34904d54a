"""The API of Kubeflow Pipelines on the embedded platform: a port of the daemon, and the Service by which pods find it.

It runs in the daemon's process and asks the platform's own API server over HTTPS, with the credentials of the caller:
the same code as on a cluster, and no way around RBAC.
"""

from __future__ import annotations

from paddlecloud.kube.config import Config
from paddlecloud.kube.resource import Object
from paddlecloud.local.apiserver.auth.authentication import service_account
from paddlecloud.local.control_plane import ControlPlane
from paddlecloud.pipelines import names
from paddlecloud.pipelines.api.server import PipelinesServer
from paddlecloud.platform import endpoint
from paddlecloud.platform.published import PublishedServer, PublishedService, account_objects

SERVICE = PublishedService(names.SERVICE, names.SYSTEM_NAMESPACE, names.SERVICE_PORT, "the pipelines' API")
_OWN = "kube-system"
_RBAC = "rbac.authorization.k8s.io"


def objects() -> list[Object]:
    """The account that keeps the Service. And the account of people who gave kfp a token with `pdc pipeline login`: it
    may work in the namespace of pipelines alone."""
    meta = {"namespace": names.SYSTEM_NAMESPACE, "name": names.USER}
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": dict(meta)},
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": dict(meta),
            "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": "edit"},
            "subjects": [{"kind": "ServiceAccount", "namespace": names.SYSTEM_NAMESPACE, "name": names.USER}],
        },
        *account_objects(SERVICE, _OWN),
    ]


def pipelines_api(control_plane: ControlPlane) -> PublishedServer:
    """Made once the control plane listens."""
    client = control_plane.client(service_account(_OWN, names.SERVICE), user_agent="ml-pipeline")
    server = PipelinesServer(Config(control_plane.url, ca=control_plane.certs.ca_cert.read_bytes()))
    return PublishedServer(server, client, SERVICE, data=control_plane.data, kept=endpoint.PIPELINES_PORT)
