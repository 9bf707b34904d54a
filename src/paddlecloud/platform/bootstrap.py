"""What the manual takes for granted and every platform therefore has: its namespaces with two Secrets in each, and for
its pipelines an account and a storage class.

`none` is empty: the Secret of a source that anybody may read. `data-center` is a file system of this machine for sets
that ask for JuiceFS; on a cluster it is the installer's. Both are made when a platform starts without them, and a user
may change them. The namespace `default` has the Secrets too. `pipeline-runner` is the account of pipeline steps in
`kubeflow`, `task-center` the class of the volume that they share: on a cluster a file system for many nodes, here a
directory.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path

import paddlecloud
from paddlecloud.kube.resource import Object
from paddlecloud.local.volumes.binding import local_class

NAMESPACES = ("paddle-system", "kubeflow", "paddlecloud", "paddleservice-system")
PIPELINES = "kubeflow"
"""Where the manual's pipelines run."""


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
    return [*made, *_pipelines()]


def _pipelines() -> list[Object]:
    import yaml

    described = (Path(paddlecloud.__file__).parent / "pipelines" / "runner.yaml").read_text(encoding="utf-8")
    runner: list[Object] = list(yaml.safe_load_all(described))
    for obj in runner:
        obj["metadata"]["namespace"] = PIPELINES
        for subject in obj.get("subjects", ()):
            subject["namespace"] = PIPELINES
    task_center = {**local_class(), "metadata": {"name": "task-center"}}
    return [*runner, task_center]


def _secret(name: str, namespace: str, values: Mapping[str, str]) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace},
        "type": "Opaque",
        "data": {key: base64.b64encode(value.encode()).decode() for key, value in values.items()},
    }
