"""What strangers send to the cache server and to controllers, and archives."""

from __future__ import annotations

import contextlib
import io
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import msgspec

from paddlecloud.cache import legacy
from paddlecloud.cache import options as orders
from paddlecloud.cache.confine import relative
from paddlecloud.controllers.paddlejob.reports import token
from paddlecloud.controllers.paddlejob.reports.report import Message
from paddlecloud.controllers.paddleservice import measures
from paddlecloud.local.kubelet.pod.lifecycle import Plan
from paddlecloud.local.kubelet.pod.pod_state import Observed
from paddlecloud.local.kubelet.pod.status import build_status
from paddlecloud.local.proxy.routes import routes_of
from paddlecloud.local.workflow.artifacts import repositories
from paddlecloud.local.workflow.decision.metrics import metric_problems
from paddlecloud.local.workflow.pods import spec_patch
from paddlecloud.local.workflow.templates import TemplateError
from paddlecloud.sdk import metrics
from paddlecloud.storage import archive, uri
from paddlecloud.visualdl import records
from unit.budgets.inputs import JSON, Row, field, nested, times


def order(size: int) -> Any:
    return {"paths": [f"/data/{number}" for number in range(size // 12)]}


def tar_of(size: int, *, content: int = 0) -> Path:
    path = Path(tempfile.mkdtemp()) / "a.tar"
    with tarfile.open(path, "w") as packed:
        for number in range(max(1, size // 512)):
            info = tarfile.TarInfo(f"{number % 10}")
            info.size = content
            packed.addfile(info, io.BytesIO(b"a" * content))
    return path


def zip_of(size: int) -> Path:
    path = Path(tempfile.mkdtemp()) / "a.zip"
    with zipfile.ZipFile(path, "w") as packed:
        for number in range(max(1, size // 100)):
            packed.writestr(zipfile.ZipInfo(f"d{number}/"), b"")
    return path


def unpack(path: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        archive.unpack(path, Path(folder), name=path.name)


def service_of(size: int) -> Any:
    ports = [{"name": f"p{number}", "port": number + 1} for number in range(size // 32)]
    endpoints = [{"addresses": ["127.0.0.1"]}]
    return {"metadata": {}, "spec": {"clusterIP": "127.0.0.2", "ports": ports}}, [
        {"ports": ports, "endpoints": endpoints}
    ]


def pod_of(size: int) -> Any:
    named = [{"name": f"c{number}", "image": "i"} for number in range(size // 32)]
    meta = {"name": "p", "namespace": "n", "uid": "u"}
    return {"metadata": meta, "spec": {"containers": named, "initContainers": named}, "status": {
        "containerStatuses": named, "initContainerStatuses": named}}  # fmt: skip


def status_of(pod: Any) -> None:
    build_status(pod, Observed(), Plan(), 0.0)


def patch_of_pod(text: str) -> None:
    spec_patch.as_json.cache_clear()
    with contextlib.suppress(TemplateError):
        spec_patch.parsed(text)


def repository_of(text: str) -> None:
    found = {"data": {"a": text}}
    spec_patch.as_json.cache_clear()
    with contextlib.suppress(TemplateError):
        repositories.resolved({"artifactRepositoryRef": {"key": "a"}}, {}, "n", lambda name: found)


def metrics_of(size: int) -> Any:
    labels = [{"key": f"l{number}", "value": "{{status}}"} for number in range(20)]
    metric = {"name": "a", "help": "h", "labels": labels, "counter": {"value": "1"}}
    return {"metrics": {"prometheus": [metric] * (size // 512)}}


def record(message: bytes) -> bytes:
    return len(message).to_bytes(8, "little") + message


SCALAR = field(1, field(2, b"loss") + b"\x25\0\0\x80\x3f")
GROUP = field(14, field(1, b"x") + b"\x15\0\0\x80\x3f")
RECORDS = {
    "scalars": times(record(SCALAR)),
    "scalars in one record": lambda size: record(times(SCALAR)(size)),
    "values of one scalar": lambda size: record(field(1, field(2, b"loss") + times(b"\x25\0\0\x80\x3f")(size))),
    "values of one group": lambda size: record(field(1, field(2, b"t" * (size // 2)) + times(GROUP)(size // 2))),
    "empty records": times(record(b"")),
    "messages in messages": lambda size: record(nested(1, size)),
    "numbers that do not end": lambda size: record(times(b"\xff")(size)),
}
"""Of VisualDL's LogWriter, in files that a training program wrote."""


def others() -> Iterator[Row]:
    for name, make in RECORDS.items():
        yield Row("metrics: record files", name, make, lambda data: records.read_file(io.BytesIO(data)), 1 << 20)
    printed = '{"run":"r","tag":"t","steps":[0],"times":[0],"values":[0]}\n'
    for name, texts in {
        "curves": times(printed),
        "points": lambda size: printed.replace("[0]", str([0] * (size // 9))),
    }.items():
        yield Row("metrics: what a pod prints", name, texts, metrics.parse)
    yield Row("node: routes of a Service", "ports", service_of, lambda given: routes_of(*given), 1 << 18)
    yield Row(
        "node: status of a pod", "containers", pod_of, lambda pod: build_status(pod, Observed(), Plan(), 0.0), 1 << 18
    )
    for name, texts in {
        "lists in lists": times("["),
        "objects in objects": times("{a: "),
        "keys": times("a: 1\n"),
    }.items():
        yield Row("workflows: podSpecPatch", name, texts, patch_of_pod, spec_patch.LONGEST)
        yield Row("workflows: artifact repositories", name, texts, repository_of, spec_patch.LONGEST)
    yield Row("workflows: metrics", "labels", metrics_of, lambda given: list(metric_problems(given, "spec")), 1 << 18)
    sample = f"{measures.REQUESTS}{{"
    for name, texts in {"words": times("a"), "braces": times(sample), "labels": times('code="5",', sample, "} 1"),
                        "quotes": times('"', sample, "} 1"), "samples": times(f'{sample}code="200"}} 1\n'),
                        "digits": times("1", f'{sample}code="200"}} ')}.items():  # fmt: skip
        yield Row("paddleservice: metrics of pods", name, texts, measures.read)
    report = msgspec.json.Decoder(Message)
    for name, make in JSON.items():
        yield Row("paddlejob: POST /report", name, make, report.decode)
    yield Row("paddlejob: POST /report", "a proof", times(b"a"), lambda body: token.proves("Signed x", "t", "/p", body))
    yield Row(
        "paddlejob: POST /report", "a long proof", times("a", "Signed "), lambda t: token.proves(t, "t", "/p", b"")
    )
    yield Row("cache: PUT /v2/jobs/{id}", "paths", order, partial(orders.parse, "rmr"))
    yield Row("cache: PUT /v2/jobs/{id}", "unknown options", lambda size: {str(n): 1 for n in range(size // 8)},
              partial(orders.parse, "sync"))  # fmt: skip
    for name, texts in {"colons": times(":", "s3://"), "at signs": times("a@", "s3://"), "slashes": times("/", "s3://a"),
                        "dots": times("../", "/data/")}.items():  # fmt: skip
        yield Row("cache: POST /upload", f"a source of {name}", texts, legacy.without_keys)
        yield Row("cache: PUT /v2/jobs/{id}", f"an address of {name}", texts, uri.parse)
        yield Row("cache: PUT /v2/jobs/{id}", f"a path of {name}", texts, lambda text: relative(text, ("/data",)))
    yield Row("archives", "members of a tar", cache(tar_of), unpack, 1 << 18)
    yield Row("archives", "files of a tar", cache(partial(tar_of, content=600)), unpack, 1 << 18)
    yield Row("archives", "members of a zip", cache(zip_of), unpack, 1 << 16)
