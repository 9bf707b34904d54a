"""What the manual takes for granted and every platform therefore has: three namespaces, and two Secrets in each.

`none` is empty: the Secret of a source that anybody may read. `data-center` is a file system of this machine for sets
that ask for JuiceFS; on a cluster it is the installer's. Both are made when a platform starts without them, and a user
may change them. The namespace `default` has the Secrets too.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path

from paddlecloud.kube.resource import Object

NAMESPACES = ("paddle-system", "kubeflow", "paddlecloud")


def objects(data: Path) -> list[Object]:
    """`data` is the platform's directory, in which `data-center` keeps its content."""
    folder = data / "data-center"
    data_center = {
        "name": "data-center",
        "storage": "file",
        "bucket": f"{folder}/",
        "metaurl": f"sqlite3://{folder}.db",
    }
    made: list[Object] = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}} for namespace in NAMESPACES
    ]
    for namespace in (*NAMESPACES, "default"):
        made.append(_secret("none", namespace, {}))
        made.append(_secret("data-center", namespace, data_center))
    return made


def _secret(name: str, namespace: str, values: Mapping[str, str]) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace},
        "type": "Opaque",
        "data": {key: base64.b64encode(value.encode()).decode() for key, value in values.items()},
    }
