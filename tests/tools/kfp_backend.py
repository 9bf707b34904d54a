"""The backend of Kubeflow Pipelines 2.14.3 as objects of Kubernetes and two programs: what a cluster and the embedded
platform run of it.

Upstream's manifests are applied with few changes: API server, persistence agent and controller of schedules are
Deployments. Database (MariaDB), metadata (the library of ML Metadata behind a small server) and object store (S3) are
programs beside the platform, found under the names of upstream's Services. Left out are the pages, the viewer, the
visualisation server and the cache server of v1: clients do not use them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from paddlecloud.pipelines import names
from tools import environments

Object = dict[str, Any]
NAMESPACE = "kfp"
"""Not upstream's `kubeflow`: there the embedded platform has its own API under the same name, `ml-pipeline`."""
BUCKET = "mlpipeline"
ACCOUNT = "pipeline-runner"
MODULE = "github.com/kubeflow/pipelines"
DEPLOYMENTS = ("ml-pipeline", "ml-pipeline-persistenceagent", "ml-pipeline-scheduledworkflow")
PORTS = {"mysql": 3306, "minio-service": 9000, "metadata-grpc-service": 8080}
"""Of the Services behind which the programs beside the platform are."""
_BASE = "manifests/kustomize/base"
_FILES = (
    "pipeline/cluster-scoped/scheduled-workflow-crd.yaml",
    "installs/generic/pipeline-install-config.yaml",
    "installs/generic/mysql-secret.yaml",
    "metadata/base/metadata-grpc-configmap.yaml",
    "pipeline/ml-pipeline-apiserver-service.yaml",
    *(f"pipeline/ml-pipeline-{name}-{kind}.yaml"
      for name in ("apiserver", "persistenceagent", "scheduledworkflow")
      for kind in ("sa", "role", "rolebinding", "deployment")),
    *(f"pipeline/pipeline-runner-{kind}.yaml" for kind in ("sa", "role", "rolebinding")),
)  # fmt: skip
MANIFESTS = tuple(f"{_BASE}/{name}" for name in _FILES)
CONFIG = "backend/src/apiserver/config/config.json"


class Program(NamedTuple):
    """How a container of the backend is started: an image, and what begins its command."""

    image: str
    command: str


BINARIES = ("apiserver", "persistence", "scheduledworkflow", "driver", "launcher-v2")
"""Of the engine, in the order of `Programs`."""


class Programs(NamedTuple):
    apiserver: Program
    persistence: Program
    scheduledworkflow: Program
    driver: Program
    launcher: Program


class Stores(NamedTuple):
    """Where the programs beside the platform answer: an address, and the port of each Service of `PORTS`."""

    address: str
    ports: Mapping[str, int]
    keys: tuple[str, str]
    """Of the object store."""


def objects(files: Path, programs: Programs, stores: Stores) -> list[Object]:
    """`files` is the folder of the module's files. The namespace comes first; the other order does not matter."""
    given = [each for name in MANIFESTS for each in _read(files / name)]
    for each in given:
        for subject in each.get("subjects", ()):
            subject["namespace"] = NAMESPACE
    deployments = {each["metadata"]["name"]: each for each in given if each["kind"] == "Deployment"}
    _adapt(
        deployments["ml-pipeline"], programs.apiserver, ["--config=/config", "-logtostderr=true"],
        V2_DRIVER_IMAGE=programs.driver.image, V2_DRIVER_COMMAND=programs.driver.command,
        V2_LAUNCHER_IMAGE=programs.launcher.image, V2_LAUNCHER_COMMAND=programs.launcher.command,
        OBJECTSTORECONFIG_HOST="minio-service", OBJECTSTORECONFIG_PORT=str(PORTS["minio-service"]),
        ML_PIPELINE_VISUALIZATIONSERVER_SERVICE_HOST="none", ML_PIPELINE_VISUALIZATIONSERVER_SERVICE_PORT="1",
        PUBLISH_LOGS="false",
    )  # fmt: skip
    _mount(deployments["ml-pipeline"], "config", "/config")
    shared = [f"--namespace={NAMESPACE}", "--logtostderr=true"]
    _adapt(deployments["ml-pipeline-persistenceagent"], programs.persistence, shared)
    _adapt(deployments["ml-pipeline-scheduledworkflow"], programs.scheduledworkflow, shared)
    # Steps may do what upstream's role allows, and what our launchers need; both roles have the name of the account.
    (rights,) = (each for each in given if (each["kind"], each["metadata"]["name"]) == ("Role", ACCOUNT))
    ours = _read(Path(names.__file__).with_name("runner.yaml"))
    rights["rules"] += next(each["rules"] for each in ours if each["kind"] == "Role")
    keys = dict(zip(("accesskey", "secretkey"), stores.keys, strict=True))
    made = [
        _object("ConfigMap", "config", data={"config.json": (files / CONFIG).read_text()}),
        _object("ConfigMap", "kfp-launcher", data={"defaultPipelineRoot": f"minio://{BUCKET}/v2/artifacts"}),
        _object("Secret", "mlpipeline-minio-artifact", stringData=keys),
        *(each for name, port in stores.ports.items() for each in _outside(name, stores.address, port)),
    ]
    for each in (*given, *made):
        if each["kind"] != "CustomResourceDefinition":
            each["metadata"]["namespace"] = NAMESPACE
    return [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}, *made, *given]


def database(folder: Path, host: str, port: int) -> list[str]:
    """MariaDB in an empty folder, without accounts: the API server makes its own database and tables."""
    return [
        "mariadbd", "--no-defaults", "--user=root", f"--datadir={folder}", f"--socket={folder}/socket",
        f"--pid-file={folder}/pid", f"--bind-address={host}", f"--port={port}", "--skip-grant-tables",
        "--innodb-flush-log-at-trx-commit=0",
    ]  # fmt: skip


def metadata(folder: Path, host: str, port: int) -> list[str]:
    server = Path(__file__).with_name("mlmd_server.py")
    return [str(metadata_python()), str(server), f"{host}:{port}", str(folder / "metadata.sqlite")]


def metadata_python() -> Path:
    """The interpreter of an environment with ML Metadata; its wheel is for Python 3.11."""
    return environments.python("mlmd", ["ml-metadata==1.17.1"], "3.11")


def _adapt(deployment: Object, program: Program, arguments: Sequence[str], **env: str) -> None:
    """Requests are made small: all of this shares a machine."""
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    container.update(image=program.image, command=[program.command, *arguments], resources={"requests": {"cpu": "10m"}})
    kept = [each for each in container["env"] if each["name"] not in env]
    container["env"] = [*kept, *({"name": name, "value": value} for name, value in env.items())]


def _mount(deployment: Object, config_map: str, path: str) -> None:
    pod = deployment["spec"]["template"]["spec"]
    pod.setdefault("volumes", []).append({"name": config_map, "configMap": {"name": config_map}})
    pod["containers"][0].setdefault("volumeMounts", []).append({"name": config_map, "mountPath": path})


def _outside(name: str, address: str, port: int) -> list[Object]:
    """A Service of a program that is no pod."""
    served = {"name": "main", "port": PORTS[name], "protocol": "TCP"}
    labels = {"kubernetes.io/service-name": name}
    slice_: Object = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": f"{name}-outside", "labels": labels},
        "addressType": "IPv4",
        "ports": [{**served, "port": port}],
        "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
    }
    return [_object("Service", name, spec={"ports": [served]}), slice_]


def _object(kind: str, name: str, **fields: Any) -> Object:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, **fields}


def _read(file: Path) -> list[Object]:
    return [each for each in yaml.safe_load_all(file.read_text()) if each]
