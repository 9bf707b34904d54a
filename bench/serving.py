"""Serving on the embedded platform: from zero with and without the fork server, many at once, a roll-out under load.

Times are of the wall clock and depend on what else the machine does; the load is given with each. Counts do not.
"""

from __future__ import annotations

import http.client
import itertools
import json
import shutil
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from .claim import Claim, busy, pdc

MODEL = Path(__file__).parent.parent / "suites/src/paddlecloud_suites/recipes/serving-lac/model"
SERVICES = 25
ROUNDS = 5
RATE, SECONDS, CLIENTS = 1000, 12, 16
SERVER = """
import asyncio, os, sys
ANSWER = b"HTTP/1.1 200 OK\\r\\nContent-Length: 3\\r\\n\\r\\n" + sys.argv[1].encode()
class Server(asyncio.Protocol):
    def connection_made(self, transport): self.transport = transport
    def data_received(self, data): self.transport.write(ANSWER * data.count(b"\\r\\n\\r\\n"))
async def main():
    await (await asyncio.get_running_loop().create_server(Server, "0.0.0.0", int(os.environ["PORT"]))).serve_forever()
asyncio.run(main())
"""


def run() -> Iterator[Claim]:
    with tempfile.TemporaryDirectory() as folder:
        platform = _Platform(Path(folder))
        pdc("up", "--data", folder, "--port", "0")
        try:
            platform.apply(*_quick_sleep())
            yield from _cold_starts(platform)
            yield from _many(platform)
            yield from _roll_out(platform)
        finally:
            pdc("down", "--data", folder)


class _Platform:
    def __init__(self, data: Path) -> None:
        self._data = data
        self._kubectl = [shutil.which("kubectl") or "kubectl", "--kubeconfig", str(data / "kubeconfig")]

    def kubectl(self, *arguments: str, input: str | None = None) -> str:
        command = [*self._kubectl, *arguments]
        return subprocess.run(command, input=input, check=True, capture_output=True, text=True, timeout=180).stdout

    def apply(self, *objects: dict[str, Any]) -> None:
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
        self.kubectl("apply", "-f", "-", input=text)

    def ready(self, *names: str) -> None:
        self.kubectl("wait", "--for=condition=Ready", *names, "--timeout=150s")

    def asleep(self, *names: str) -> None:
        _until(
            lambda: all(self.kubectl("get", name, "-o", "jsonpath={.status.actualReplicas}") == "0" for name in names)
        )

    @property
    def port(self) -> int:
        return int((self._data / "gateway" / "port").read_text())

    def ask(self, name: str, path: str = "/") -> float:
        """Seconds until the first byte of the answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        began = time.monotonic()
        connection.request("GET", path, headers={"Host": f"{name}.default.example.com"})
        answer = connection.getresponse()
        took = time.monotonic() - began
        assert answer.status == 200, answer.read()
        connection.close()
        return took


def _until(check: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not check():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def _quick_sleep() -> list[dict[str, Any]]:
    meta = {"name": "config-autoscaler", "namespace": "knative-serving"}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "knative-serving"}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"scale-to-zero-grace-period": "1s"}},
    ]


def _cold_starts(platform: _Platform) -> Iterator[Claim]:
    """The inference server with a small Paddle model on local disk: forked from a warm parent, and as a new process."""
    warm = {"model": f"file://{MODEL}"}
    line = "exec python -m paddlecloud.serving --model /model --name cold --port 8080"
    cold = {
        "default": {"containerImage": "paddlecloud/serving", "tag": "latest", "port": 8080, "arg": line},
        "volumes": [{"name": "model", "hostPath": {"path": str(MODEL)}}],
        "volumeMounts": [{"name": "model", "mountPath": "/model"}],
        "resources": {"limits": {"memory": "2Gi"}},
    }
    for name, spec, goal in (("warm", warm, 0.2), ("cold", cold, 2.5)):
        platform.apply(
            {
                "apiVersion": "serving.paddlepaddle.org/v1",
                "kind": "PaddleService",
                "metadata": {"name": name},
                "spec": {**spec, "service": {"window": "6s"}},
            }
        )
        platform.ready(f"pds/{name}")
        revision = platform.kubectl("get", f"pds/{name}", "-o", "jsonpath={.status.default.name}")
        times = []
        for _ in range(ROUNDS):
            platform.asleep(f"rev/{revision}")
            times.append(platform.ask(name, "/v2/health/ready"))
        stages = platform.kubectl("get", f"pds/{name}", "-o", "jsonpath={.status.coldStart}")
        how = "fork server" if name == "warm" else "new process"
        note = f"median {statistics.median(times):.2f} s, last stages {stages} ms, {busy()}"
        yield Claim(f"from zero to the first byte, {how}, best of {ROUNDS}", min(times), "s", goal=goal, note=note)
        platform.kubectl("delete", f"pds/{name}")


def _service(name: str, word: str) -> dict[str, Any]:
    container = {"image": "python", "command": ["python3", "-c", SERVER, word]}
    marks = {"autoscaling.knative.dev/window": "6s"}
    template = {"metadata": {"annotations": marks}, "spec": {"containers": [container]}}
    return {
        "apiVersion": "serving.knative.dev/v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"template": template},
    }


def _many(platform: _Platform) -> Iterator[Claim]:
    names = [f"s{number}" for number in range(SERVICES)]
    platform.apply(*(_service(name, "one") for name in names))
    platform.ready(*(f"ksvc/{name}" for name in names))
    platform.asleep(*(f"rev/{name}-00001" for name in names))
    took: list[float] = []
    threads = [threading.Thread(target=lambda name=name: took.append(platform.ask(name))) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    note = f"median {statistics.median(took):.2f} s, a small Python server each, {busy()}"
    yield Claim(f"{SERVICES} services from zero at once, the last", max(took), "s", note=note)
    yield Claim(f"{SERVICES} services from zero at once, failed", SERVICES - len(took), "", goal=0)
    platform.kubectl("delete", "ksvc", "--all")


def _roll_out(platform: _Platform) -> Iterator[Claim]:
    platform.apply(_service("roll", "one"))
    platform.ready("ksvc/roll")
    times: list[tuple[float, float]] = []
    errors: list[tuple[float, str]] = []
    stop = threading.Event()
    began = time.monotonic()

    def client(number: int) -> None:
        """At planned moments, counted from them: one that is late asks at once, and all of its lateness counts."""
        connection = http.client.HTTPConnection("127.0.0.1", platform.port, timeout=30)
        for turn in itertools.count():
            planned = began + (number + turn * CLIENTS) / RATE
            if stop.wait(max(0.0, planned - time.monotonic())):
                return
            try:
                connection.request("GET", "/", headers={"Host": "roll.default.example.com"})
                answer = connection.getresponse()
                answer.read()
                if answer.status != 200:
                    errors.append((planned, str(answer.status)))
            except OSError as error:
                errors.append((planned, repr(error)))
                connection.close()
            times.append((planned, time.monotonic() - planned))

    threads = [threading.Thread(target=client, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    time.sleep(SECONDS / 3)
    changed = time.monotonic()
    platform.apply(_service("roll", "two"))
    time.sleep(SECONDS * 2 / 3)
    stop.set()
    for thread in threads:
        thread.join()
    rate = len(times) / (time.monotonic() - began)
    before, after = ([took for at, took in times if (at < changed) is early] for early in (True, False))
    note = f"{rate:.0f} requests/s of {RATE} planned, counted from the planned moment, {busy()}"
    lost = [sum((at < changed) is early for at, _ in errors) for early in (True, False)]
    yield Claim("requests lost after a service says Ready", lost[0], "", goal=0, note=note)
    yield Claim("roll-out under load: requests lost", lost[1], "", goal=0, note=note)
    yield Claim("roll-out under load: p95 grows by", (_p95(after) - _p95(before)) * 1e3, "ms", goal=10, note=note)


def _p95(times: list[float]) -> float:
    return sorted(times)[len(times) * 95 // 100]
