"""SampleSets and SampleJobs on both platforms: the manual's YAML as it stands, and a set's life on several nodes.

The embedded platform keeps the data in folders, a cluster in JuiceFS by its CSI driver, with a Redis and an S3 server.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

from cluster.operators import NAMESPACE
from harness import Kubectl, Target, namespace_on, need, pdc, until
from paddlecloud.kube.resource import Object
from tools.s3 import S3Server
from unit.api.examples import documents

from . import sample_stores
from .hands import EXAMPLES, HOLD, Hands, apply, conditions, job, reached, read
from .sample_stores import BUCKET, Stores

pytestmark = [pytest.mark.full, pytest.mark.timeout(400)]

HEADER = ["NAME", "TOTAL SIZE", "CACHED SIZE", "AVAIL SPACE", "RUNTIME", "PHASE", "AGE"]
PADDLE = "paddlecloud/paddle:3.3"


@pytest.fixture(scope="session")
def stores_here(s3_server: S3Server) -> Stores:
    return Stores(s3_server)


@pytest.fixture(scope="session", params=["embedded", "cluster"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    with sample_stores.platform(request, tmp_path_factory) as target:
        yield target


@pytest.fixture(scope="module", autouse=True)
def stores(
    request: pytest.FixtureRequest,
    server: Target,
    operators: None,
    kubectl_binary: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Stores]:
    with sample_stores.stores_of(request, server, kubectl_binary, tmp_path_factory) as made:
        yield made


@pytest.fixture(autouse=True)
def _parts(server: Target, kubectl: Kubectl, hands: Hands) -> None:
    have = server.embedded or kubectl("get", "csidriver", "csi.juicefs.com", check=False).returncode == 0
    need("juicefs", have=have, hint="`make cluster WITH=juicefs`")
    hands.have_nodes(2)


def cells(line: str) -> list[str]:
    return re.split(r" {2,}", line.strip())


def row(kubectl: Kubectl, name: str, namespace: str) -> list[str]:
    header, line = kubectl("get", "sampleset", name, "-n", namespace).stdout.splitlines()
    assert cells(header) == HEADER
    return cells(line)


def is_as_the_manual_prints_it(line: list[str], name: str) -> bool:
    """Whether a ready set of one partition shows its name, three sizes, its servers and its phase."""
    sizes = all(re.fullmatch(r"[\d.]+ ([KMGT]i)?B", size) for size in line[1:4])
    return len(line) == 7 and sizes and (line[0], *line[4:6]) == (name, "1/1", "Ready")


def shows(kubectl: Kubectl, namespace: str, *sizes: str) -> None:
    """The set's total size, and what is cached where it is given, become right. How soon is shown with a fake clock."""

    def there() -> bool:
        line = row(kubectl, "imagenet", namespace)
        return is_as_the_manual_prints_it(line, "imagenet") and line[1 : 1 + len(sizes)] == list(sizes)

    until(there, every=0.3)


def status(kubectl: Kubectl, kind: str, name: str, *place: str) -> Object:
    found: Object = read(kubectl, kind, name, *place).get("status") or {}
    return found


def ready(kubectl: Kubectl, name: str, *place: str) -> Object:
    try:
        until(lambda: status(kubectl, "sampleset", name, *place).get("phase") == "Ready", timeout=200, every=0.3)
    except AssertionError:
        raise AssertionError(status(kubectl, "sampleset", name, *place)) from None
    return status(kubectl, "sampleset", name, *place)


def done(kubectl: Kubectl, name: str, *place: str) -> Object:
    """The status of a SampleJob that succeeded."""
    phases = ("Succeeded", "Failed")
    until(lambda: status(kubectl, "samplejob", name, *place).get("phase") in phases, timeout=120)
    found = status(kubectl, "samplejob", name, *place)
    assert found["phase"] == "Succeeded", found
    return found


def gone(kubectl: Kubectl, name: str, *place: str) -> None:
    until(lambda: "NotFound" in kubectl("get", "sampleset", name, *place, check=False).stderr, timeout=120)


def sample_set(name: str, **spec: object) -> str:
    kind = {"apiVersion": "batch.paddlepaddle.org/v1alpha1", "kind": "SampleSet", "metadata": {"name": name}}
    return json.dumps({**kind, "spec": spec})


def node_of(kubectl: Kubectl, pod: str, *place: str) -> str:
    return str(read(kubectl, "pod", pod, *place)["spec"].get("nodeName", ""))


def labelled(kubectl: Kubectl, name: str) -> dict[str, str]:
    """Nodes by the cache server whose label they carry."""
    labels = [(node["metadata"]["name"], node["metadata"]["labels"]) for node in read(kubectl, "nodes")["items"]]
    return {
        value: node
        for node, found in labels
        for key, value in found.items()
        if key in (f"paddlepaddle.org/local-{name}", f"paddlepaddle.org/juicefs-{name}")
    }


# The manual


@pytest.fixture(scope="module")
def manual(server: Target, stores: Stores) -> tuple[str, str]:
    """Where the manual works, as arguments for kubectl."""
    return ("-n", "paddle-system")


@pytest.fixture
def imagenet(kubectl: Kubectl, manual: tuple[str, str]) -> str:
    """The manual's set, ready."""
    if kubectl("get", "sampleset", "imagenet", *manual, check=False).returncode:
        made = kubectl("create", *manual, "-f", str(EXAMPLES / "manual" / "imagenet-secret.yaml")).stdout
        assert made == "secret/imagenet created\n"
        made = kubectl("create", *manual, "-f", str(EXAMPLES / "manual" / "imagenet.yaml")).stdout
        assert made == "sampleset.batch.paddlepaddle.org/imagenet created\n"
    ready(kubectl, "imagenet", *manual)
    return manual[1]


@pytest.mark.core
def test_the_manuals_session_is_replayed_word_for_word(server: Target, kubectl: Kubectl, imagenet: str) -> None:
    """Create, remove, import everything, clear, warm up."""

    def do(job: str) -> None:
        made = kubectl("create", "-n", imagenet, "-f", str(EXAMPLES / "manual" / f"imagenet-{job}.yaml")).stdout
        assert made == f"samplejob.batch.paddlepaddle.org/imagenet-{job} created\n"
        done(kubectl, f"imagenet-{job}", "-n", imagenet)
        table = kubectl("get", "samplejob", f"imagenet-{job}", "-n", imagenet).stdout.splitlines()
        assert [cells(line) for line in table] == [["NAME", "PHASE"], [f"imagenet-{job}", "Succeeded"]]

    line = row(kubectl, "imagenet", imagenet)
    assert is_as_the_manual_prints_it(line, "imagenet"), line
    assert line[1] == "59 KiB"
    pods = kubectl("get", "pods", "-n", imagenet, "--no-headers").stdout
    assert cells(pods.splitlines()[0])[:3] == ["imagenet-runtime-0", "1/1", "Running"]
    do("rmr")
    shows(kubectl, imagenet, "0 B", "0 B")
    do("sync")
    # Folders count what was imported as cached once it is warmed up; how much JuiceFS caches by then is its own affair.
    shows(kubectl, imagenet, "176 KiB", *(["0 B"] if server.embedded else []))
    do("clear")
    shows(kubectl, imagenet, "176 KiB", "0 B")
    do("warmup")
    shows(kubectl, imagenet, "176 KiB", "176 KiB")


@pytest.mark.parametrize(
    ("name", "where", "size"), [("coco", "kubeflow", "29 KiB"), ("hiertext", "paddlecloud", "23 KiB")]
)
def test_the_sets_of_the_tutorials_are_filled_with_the_secrets_that_are_there(
    kubectl: Kubectl, name: str, where: str, size: str
) -> None:
    file = ("-n", where, "-f", str(EXAMPLES / "manual" / f"{name}.yaml"))
    assert kubectl("apply", *file).stdout == f"sampleset.batch.paddlepaddle.org/{name} created\n"
    ready(kubectl, name, "-n", where)
    line = row(kubectl, name, where)
    assert is_as_the_manual_prints_it(line, name), line
    assert line[1] == size
    kubectl("delete", *file, "--timeout=100s", timeout=110)


def test_a_training_job_of_the_manual_sees_the_data_in_all_its_pods(kubectl: Kubectl, imagenet: str) -> None:
    """And the set that it reads cannot be deleted under it."""
    place = ("-n", imagenet)
    if row(kubectl, "imagenet", imagenet)[1] != "176 KiB":  # run alone: nobody has imported everything yet
        kubectl("create", *place, "-f", str(EXAMPLES / "manual" / "imagenet-sync.yaml"))
        done(kubectl, "imagenet-sync", *place)
    (demo,) = documents(EXAMPLES / "manual" / "ps-demo.yaml")
    demo["spec"]["withGloo"] = 1  # its servers never listen, which workers would wait for in vain for half a minute
    kubectl("create", *place, "-f", "-", input=json.dumps(demo))
    for pod in ("ps-demo-worker-0", "ps-demo-ps-0"):

        def lists(pod: str = pod) -> bool:
            found = kubectl("exec", pod, *place, "--", "ls", "/mnt/imagenet", check=False)
            return found.returncode == 0 and found.stdout.split() == ["demo", "train", "train_list.txt"]

        until(lists, timeout=90)
    until(lambda: status(kubectl, "pdj", "ps-demo", *place).get("phase") == "Running")
    header, line = kubectl("get", "paddlejob", *place).stdout.splitlines()
    assert cells(header) == ["NAME", "STATUS", "MODE", "PS", "WORKER", "AGE"]
    assert cells(line)[:5] == ["ps-demo", "Running", "PS", "1/1", "1/1"]
    assert node_of(kubectl, "ps-demo-worker-0", *place) == node_of(kubectl, "imagenet-runtime-0", *place)
    kubectl("delete", "sampleset", "imagenet", *place, "--wait=false")

    def deferred() -> bool:
        found = status(kubectl, "sampleset", "imagenet", *place)
        return conditions(found).get("InUse") == "True" and "ps-demo" in found.get("message", "")

    until(deferred)
    assert kubectl("exec", "ps-demo-worker-0", *place, "--", "ls", "/mnt/imagenet").stdout.split()
    kubectl("delete", "pdj", "ps-demo", *place, "--timeout=60s", timeout=70)
    gone(kubectl, "imagenet", *place)
    assert labelled(kubectl, "imagenet") == {}


# A schedule


@pytest.fixture(scope="module")
def minutely(server: Target, stores: Stores) -> Iterator[str]:
    """The namespace of a set and of a schedule that warms it up: its first minute passes beside other tests."""
    kind = {"apiVersion": "batch.paddlepaddle.org/v1alpha1", "kind": "SampleJob", "metadata": {"name": "minutely"}}
    warmup = {"type": "warmup", "sampleSetRef": {"name": "often"}, "schedule": "* * * * *"}
    with namespace_on(server) as name:
        spec = {"source": {"uri": f"{BUCKET}/coco"}, **stores.file_system(name)}
        for body in (sample_set("often", **spec), json.dumps({**kind, "spec": warmup})):
            pdc("-n", name, "apply", "-f", "-", input=body, env=server.env)
        yield name
        pdc("-n", name, "delete", "samplejob/minutely", "sampleset/often", "-y", env=server.env, timeout=150)


# A set on several nodes


@pytest.fixture
def photos(kubectl: Kubectl, namespace: str, stores: Stores) -> Iterator[str]:
    """A set of two partitions, ready."""
    spec = {"partitions": 2, "source": {"uri": f"{BUCKET}/imagenet"}, **stores.file_system(namespace)}
    apply(kubectl, sample_set("photos", **spec))
    ready(kubectl, "photos")
    yield "photos"
    kubectl("delete", "sampleset", "photos", "--ignore-not-found", "--timeout=100s", timeout=110)


@pytest.mark.usefixtures("minutely")
def test_a_warm_set_follows_its_partitions(
    server: Target, kubectl: Kubectl, namespace: str, hands: Hands, photos: str
) -> None:
    """Warmed up on every partition, then scaled up and down: warm again by itself, on the nodes that hold it."""
    hands.have_nodes(3)
    run = ("--namespace", namespace, "--kubeconfig", str(server.kubeconfig))
    pdc("samplejob", "warmup", photos, "--name", "warm", *run, timeout=150)
    assert status(kubectl, "samplejob", "warm")["partitions"] == 2

    def is_spread(partitions: int) -> bool:
        found = status(kubectl, "sampleset", photos)
        servers = [f"{photos}-runtime-{number}" for number in range(partitions)]
        nodes = labelled(kubectl, photos)
        return (
            (found["phase"], found["runtimeStatus"]["runtimeReady"]) == ("Ready", f"{partitions}/{partitions}")
            and sorted(nodes) == servers
            and all(node_of(kubectl, pod) == nodes[pod] for pod in servers)
            and conditions(found).get("Warm") == "True"
            and found["cacheStatus"]["cachedSize"] == found["cacheStatus"]["totalSize"] == "176 KiB"
        )

    for partitions in (2, 3, 1):
        change = json.dumps({"spec": {"partitions": partitions}})
        kubectl("patch", "sampleset", photos, "--type=merge", "-p", change)
        try:
            until(lambda partitions=partitions: is_spread(partitions), timeout=150, every=0.5)
        except AssertionError:
            raise AssertionError(f"{partitions} partitions: {status(kubectl, 'sampleset', photos)}") from None


def test_workers_run_where_their_partition_is_cached_and_those_beyond_the_partitions_anywhere(
    kubectl: Kubectl, hands: Hands, photos: str
) -> None:
    """Three workers on as many nodes, of a set on two: the third has to run where nothing is cached, and reads all."""
    hands.have_nodes(3)
    mine = {"matchLabels": {"paddlepaddle.org/job-name": "reads"}}
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": mine}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    ref = {"name": photos, "mountPath": "/data"}
    apply(kubectl, job("reads", HOLD, workers=3, pod={"affinity": apart}, sampleSetRef=ref))
    reached(kubectl, "reads", "Running", timeout=150)
    nodes = [node_of(kubectl, f"reads-worker-{index}") for index in range(3)]
    assert nodes[:2] == [node_of(kubectl, f"{photos}-runtime-{index}") for index in range(2)]
    assert nodes[2] not in nodes[:2]
    files = kubectl("exec", "reads-worker-2", "--", "find", "/data", "-name", "*.JPEG").stdout.split()
    assert len(files) == 12
    kubectl("delete", "pdj", "reads", "--timeout=60s", timeout=70)


def test_a_schedule_makes_a_job_when_it_is_due(kubectl: Kubectl, minutely: str) -> None:
    place = ("-n", minutely)

    def succeeded() -> bool:
        jobs = read(kubectl, "samplejobs", *place)["items"]
        made = [found for found in jobs if found["metadata"]["name"].startswith("minutely-")]
        return any((found.get("status") or {}).get("phase") == "Succeeded" for found in made)

    until(succeeded, timeout=200, every=0.5)
    assert status(kubectl, "samplejob", "minutely", *place)["lastScheduleTime"]


def test_a_set_reports_a_lost_node_and_is_whole_again_on_another(
    server: Target, kubectl: Kubectl, hands: Hands, photos: str
) -> None:
    hands.have_nodes(3)
    lost = node_of(kubectl, "photos-runtime-1")
    hands.lose_node(lost)
    try:
        if not server.embedded:  # controllers that ran there are put elsewhere at once, not after five minutes
            flags = ("--field-selector", f"spec.nodeName={lost}", "--force", "--grace-period=0")
            kubectl("delete", "pods", "-n", NAMESPACE, *flags)
        until(lambda: status(kubectl, "sampleset", photos).get("phase") == "PartialReady", timeout=120)
        # As Kubernetes has it, the identity of a StatefulSet's pod is given away only when somebody says so.
        kubectl("delete", "pod", "photos-runtime-1", "--force", "--grace-period=0", "--ignore-not-found")
        until(lambda: labelled(kubectl, photos).get("photos-runtime-1", lost) != lost, timeout=120, every=0.5)
        assert ready(kubectl, photos)["cacheStatus"]["totalSize"] == "176 KiB"
        assert lost not in labelled(kubectl, photos).values()
    finally:
        hands.restore_node(lost)


PROGRAM = """
import json, os, paddle
from paddlecloud.data import Files
rank = int(os.environ["PADDLE_TRAINER_ID"])
files = Files(sorted(name for name in os.listdir("/data") if name.endswith(".json")))

class Samples(paddle.io.Dataset):
    def __len__(self):
        return len(files)
    def __getitem__(self, index):
        sample = json.loads(files.read(index))
        return paddle.to_tensor(sample["x"]), paddle.to_tensor([sample["y"]])

data = Samples()
sampler = paddle.io.DistributedBatchSampler(data, batch_size=8, num_replicas=2, rank=rank, shuffle=True)
loader = paddle.io.DataLoader(data, batch_sampler=sampler)
model = paddle.nn.Linear(4, 1)
adam = paddle.optimizer.Adam(learning_rate=0.05, parameters=model.parameters())
losses = []
for epoch in range(8):
    for x, y in files.watch(loader):
        loss = paddle.nn.functional.mse_loss(model(x), y)
        loss.backward(); adam.step(); adam.clear_grad()
        losses.append(float(loss))
first, last = sum(losses[:4]), sum(losses[-4:])
assert last < first / 4, losses
print("trained on", len(data), "samples")
"""


@pytest.mark.paddle
@pytest.mark.timeout(600)
def test_paddle_trains_from_the_cache_on_the_nodes_that_have_it(
    server: Target, kubectl: Kubectl, namespace: str, stores: Stores
) -> None:
    """Two workers wait until the set is warm, run where their partitions are, and learn from what they read.

    Warmed up as the sampler will read, the first epoch finds every sample on its own node. Under JuiceFS the mount is
    the cache, and counts for itself.
    """
    server.offer(PADDLE)
    public = stores.s3.store("public")
    for number in range(64):
        x = [((number * k) % 7) / 7 for k in (1, 2, 3, 5)]
        public.put(f"lines/{number:03}.json", json.dumps({"x": x, "y": 2 * x[0] - x[3] + 0.5}).encode())
    spec = {"partitions": 2, "source": {"uri": f"{BUCKET}/lines"}, **stores.file_system(namespace)}
    apply(kubectl, sample_set("lines", **spec))
    learn = json.loads(job("learn", "", sampleSetRef={"name": "lines", "mountPath": "/data", "waitFor": "Warm"}))
    del learn["spec"]["withGloo"]
    (container,) = learn["spec"]["worker"]["template"]["spec"]["containers"]
    container |= {"image": PADDLE, "command": ["python", "-c", PROGRAM]}
    apply(kubectl, json.dumps(learn))
    ready(kubectl, "lines")
    until(lambda: "not warm" in status(kubectl, "pdj", "learn").get("message", ""))
    assert "learn-worker" not in kubectl("get", "pods").stdout
    sampler = ("--strategy", "sampler", "--batch-size", "8", "--shuffle")
    run = ("--namespace", namespace, "--kubeconfig", str(server.kubeconfig))
    pdc("samplejob", "warmup", "lines", *sampler, *run, timeout=150)
    reached(kubectl, "learn", "Completed", timeout=300)
    for index in range(2):
        assert "trained on 64 samples" in kubectl("logs", f"learn-worker-{index}").stdout
        assert node_of(kubectl, f"learn-worker-{index}") == node_of(kubectl, f"lines-runtime-{index}")

    def first_epoch() -> Object:
        reads = status(kubectl, "sampleset", "lines").get("reads") or ()
        return next((dict(found) for found in reads if (found["job"], found["epoch"]) == ("learn", 0)), {})

    if server.embedded:
        until(lambda: first_epoch().get("hits") == 64)
        assert not first_epoch().get("misses")
    kubectl("delete", "pdj", "learn", "--timeout=60s", timeout=70)
    kubectl("delete", "sampleset", "lines", "--timeout=100s", timeout=110)
