"""Programs of others call a served model at the URL that `pdc serve` prints: no Host header, no resolver.

Names below localhost are found by browsers and curl, and by nobody else where nss-myhostname is not installed.
"""

from __future__ import annotations

import ipaddress
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest

from harness import REQUIRED, Target, namespace_on, need, pdc
from paddlecloud.local.knative.h2c.envoy import find_envoy
from tools import browser, go
from unit.serving import models

pytestmark = pytest.mark.timeout(600)
BODY = json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 3], "data": [1, 2, 3]}]})
EXPECTED = [2.0, 4.0, 6.0]


class Place(NamedTuple):
    url: str
    name_url: str
    said: str
    grpc: str
    """URL of the same model with `protocol: grpc`; empty without Envoy."""
    env: dict[str, str]


@pytest.fixture(scope="module")
def place(server: Target, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """The model `m`, which doubles what it is given, twice: over HTTP and over gRPC."""
    server.offer("paddlecloud/serving:latest")
    folder = models.linear(tmp_path_factory.mktemp("models") / "m")
    calls = {
        "apiVersion": "serving.paddlepaddle.org/v1",
        "kind": "PaddleService",
        "metadata": {"name": "calls"},
        "spec": {"model": folder.as_uri(), "protocol": "grpc"},
    }
    with namespace_on(server) as namespace:

        def run(*args: str, **more: str) -> str:
            return pdc("-n", namespace, *args, env=server.env, timeout=200, **more).stdout

        def status(name: str) -> dict[str, str]:
            found: dict[str, str] = json.loads(run("get", f"pds/{name}", "-o", "json"))["status"]
            return found

        if find_envoy():
            run("apply", "-f", "-", input=json.dumps(calls))
        said = run("serve", str(folder))
        grpc = ""
        if find_envoy():
            run("wait", "pds/calls", "--for=condition=Ready", "--timeout=150s")
            grpc = status("calls")["url"]
        shown = status("m")
        env = {**server.env, "NAMESPACE": namespace}
        yield Place(shown["url"], shown["nameUrl"], said, grpc, env)
        run("delete", "pds", "--all", "-y")


def ran(command: list[str], place: Place, *, timeout: float = 120) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=place.env, cwd="/")
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def doubled(answer: str) -> bool:
    (output,) = json.loads(answer)["outputs"]
    return bool(output["data"] == EXPECTED)


def test_what_is_printed_needs_no_resolver_and_the_name_stands_beside_it(place: Place) -> None:
    for url in filter(None, (place.url, place.grpc)):
        parts = urlsplit(url)
        assert ipaddress.ip_address(parts.hostname or "").is_loopback
        assert parts.path == ""
    assert f"m is served at {place.url}\n" in place.said
    assert f"by name, for browsers and curl: {place.name_url}\n" in place.said
    assert urlsplit(place.name_url).hostname == f"m.{place.env['NAMESPACE']}.localhost"


LOOK_UP = """
import socket, sys
try:
    print(*{entry[4][0] for entry in socket.getaddrinfo(sys.argv[1], None)})
except socket.gaierror as error:
    print(error.errno == socket.EAI_NONAME)
"""


def test_the_name_may_be_unknown_to_this_machines_resolver(place: Place) -> None:
    """Which shows what the other tests of this file prove: without nss-myhostname, that programs need no such name."""
    host = str(urlsplit(place.name_url).hostname)
    found = ran([sys.executable, "-c", LOOK_UP, host], place).split()
    if found == ["True"]:
        print(f"{host} is unknown to getaddrinfo here: programs reach the model without it")
    else:
        print(
            f"{host} is known to getaddrinfo here (nss-myhostname): another machine has to show that it is not needed"
        )
        assert found
        assert all(ipaddress.ip_address(address).is_loopback for address in found)


def test_curl(place: Place) -> None:
    need("curl", have=shutil.which("curl") is not None, hint="apt-get install curl")
    for url in (place.url, place.name_url):
        assert doubled(ran(["curl", "-sf", "-d", BODY, f"{url}/v2/models/m/infer"], place))


def test_requests(place: Place) -> None:
    program = "import requests, sys; print(requests.post(sys.argv[1], data=sys.argv[2], timeout=60).text)"
    assert doubled(ran([sys.executable, "-c", program, f"{place.url}/v2/models/m/infer", BODY], place))


TRITON = """
import sys
import numpy
import tritonclient.{protocol} as triton
client = triton.InferenceServerClient(sys.argv[1])
assert client.is_model_ready(sys.argv[2])
given = triton.InferInput("x", [1, 3], "FP32")
given.set_data_from_numpy(numpy.array([[1, 2, 3]], "float32"))
print(client.infer(sys.argv[2], [given]).as_numpy("y").tolist())
"""


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_tritons_own_client(place: Place, protocol: str) -> None:
    url, model = (place.url, "m") if protocol == "http" else (place.grpc, "calls")
    need("envoy", have=bool(url), hint="pip install 'paddlecloud[h2c]'")
    program = TRITON.format(protocol=protocol)
    assert ran([sys.executable, "-c", program, urlsplit(url).netloc, model], place) == f"[{EXPECTED}]\n"


SDK = """
import os, sys
import paddlecloud
with paddlecloud.connect(namespace=os.environ["NAMESPACE"]) as client:
    for name in sys.argv[1:]:
        service = client.get("pds", name)
        service.wait_for("Ready", timeout=60)
        print(name, service.triton().is_server_ready(), service.address)
"""


def test_the_sdk_hands_out_a_client_that_is_ready_to_use(place: Place) -> None:
    urls = {"m": place.url, **({"calls": place.grpc} if place.grpc else {})}
    said = ran([sys.executable, "-c", SDK, *urls], place)
    assert said.splitlines() == [f"{name} True {urlsplit(url).netloc}" for name, url in urls.items()]


GO_CLIENT = str(Path(__file__).with_name("infer_client.go"))
NODE = """
const http = require("node:http");
const request = http.request(process.argv[1], {method: "POST"}, (answer) => answer.pipe(process.stdout));
request.end(process.argv[2]);
"""


def test_node(place: Place) -> None:
    need("node", have=shutil.which("node") is not None, hint="apt-get install nodejs")
    assert doubled(ran(["node", "-e", NODE, f"{place.url}/v2/models/m/infer", BODY], place))


def test_go(place: Place, tmp_path: Path) -> None:
    need("go", have="go" in REQUIRED or go.find() is not None, hint="put Go on PATH")
    program = tmp_path / "client"
    command = [go.find_or_fetch(), "build", *go.LINKED, "-o", str(program), GO_CLIENT]
    subprocess.run(command, check=True, env={**os.environ, "CGO_ENABLED": "0"}, cwd="/", timeout=400)
    assert doubled(ran([str(program), f"{place.url}/v2/models/m/infer", BODY], place))


def test_a_browser(place: Place, tmp_path: Path) -> None:
    need("browser", have=browser.find() is not None, hint=browser.HINT)
    for number, url in enumerate((place.url, place.name_url)):
        page = browser.page(f"{url}/v2/models/m", tmp_path / str(number))
        assert '"onnx' in page.replace("&quot;", '"'), page
