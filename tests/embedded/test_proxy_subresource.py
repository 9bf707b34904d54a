"""`pods/NAME/proxy/PATH` and `services/NAME/proxy/PATH`: a real API server and kubelet, a real server in a pod."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from yarl import URL

from embedded.raw import Raw, raw_client
from harness import eventually
from paddlecloud.kube.resource import ENDPOINTS, PODS, SERVICES
from unit.local.kubelet.machine import TestMachine

PODS_PATH = "/api/v1/namespaces/default/pods"
SERVICES_PATH = "/api/v1/namespaces/default/services"
SERVER = """
import http.server, json
class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def answer(self):
        path, length = self.path.partition("?")[0], int(self.headers.get("Content-Length", 0))
        sent = self.rfile.read(length).decode()
        seen = {"method": self.command, "path": self.path, "body": sent, "headers": dict(self.headers)}
        status, kind, body = 200, "application/json", json.dumps(seen).encode()
        if path == "/page":
            kind, body = "text/html; charset=utf-8", b'<a href="/next">\\xc3\\xa9</a><a href="//else/x">'
        elif path == "/book":
            kind, body = "text/html", b'<a href="/next">' * (1 << 15)
        elif path == "/missing":
            status, kind, body = 404, "text/plain", b"no such page"
        elif path == "/moved":
            status = 302
        elif path == "/silent":
            status, body = 204, b""
        elif path == "/large":
            body = b"x" * (1 << 20)
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Set-Cookie", "a=1")
        self.send_header("Set-Cookie", "b=2")
        self.send_header("Connection", "close, X-Hop")
        self.send_header("X-Hop", "of this connection")
        if status == 302:
            self.send_header("Location", "http://" + self.headers["Host"] + "/elsewhere?x=1")
        if path == "/endless":
            self.end_headers()
            self.wfile.write(b"first")
            self.wfile.flush()
            self.rfile.read(1)
            return
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
        self.close_connection = True
    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = answer
    def log_message(self, *_): pass
server = http.server.ThreadingHTTPServer(("0.0.0.0", 8080), Answer)
print("listening", flush=True)
server.serve_forever()
"""


class Answer:
    def __init__(self, status: int, headers: Any, body: bytes) -> None:
        self.status, self.headers, self.body = status, headers, body


class Proxied:
    def __init__(self, raw: Raw, machine: TestMachine) -> None:
        self.raw, self.machine = raw, machine

    async def __call__(self, method: str, path: str, **options: Any) -> Answer:
        headers = {"Authorization": f"Bearer {self.raw.admin}", **options.pop("headers", {})}
        url = URL(self.raw.url + path, encoded=True)
        async with self.raw.session.request(method, url, headers=headers, allow_redirects=False, **options) as found:
            return Answer(found.status, found.headers, await found.read())

    async def seen(self, method: str, path: str, **options: Any) -> Any:
        """What the program in the pod received."""
        answer = await self(method, path, **options)
        assert answer.status == 200, answer.body
        return json.loads(answer.body)


@pytest.fixture
async def proxied(machine: TestMachine) -> AsyncIterator[Proxied]:
    machine.platform.serve_streams(machine.streams)
    container = {"image": "python", "command": ["python3", "-c", SERVER], "ports": [{"containerPort": 8080}]}
    await machine.run("", name="web", container=container)
    await machine.printed("web", "listening")
    async with raw_client(machine.platform) as raw:
        yield Proxied(raw, machine)


async def test_every_method_reaches_the_pod_with_path_query_and_body_as_sent(proxied: Proxied) -> None:
    for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
        seen = await proxied.seen(method, f"{PODS_PATH}/web/proxy/a%2Fb//c/?x=1&x=%202", data=b"said")
        assert (seen["method"], seen["path"], seen["body"]) == (method, "/a%2Fb//c/?x=1&x=%202", "said")
    head = await proxied("HEAD", f"{PODS_PATH}/web:8080/proxy/x")
    assert (head.status, head.body) == (200, b"")


async def test_credentials_and_claims_of_proxies_stay_behind(proxied: Proxied) -> None:
    sent = {
        "Impersonate-User": "system:serviceaccount:default:default", "Impersonate-Group": "system:masters",
        "X-Forwarded-For": "8.8.8.8", "X-Forwarded-User": "root", "X-Remote-User": "root", "X-Mine": "kept",
        "Connection": "X-Hop", "X-Hop": "of this connection", "Cookie": "c=1",
    }  # fmt: skip
    headers = {
        name.lower(): value
        for name, value in (await proxied.seen("GET", f"{PODS_PATH}/web/proxy/", headers=sent))["headers"].items()
    }
    assert headers["x-mine"] == "kept"
    assert headers["cookie"] == "c=1"
    assert headers["x-forwarded-uri"] == f"{PODS_PATH}/web/proxy/"
    unwanted = {"authorization", "impersonate-user", "impersonate-group", "x-forwarded-for", "x-forwarded-user"}
    assert not headers.keys() & (unwanted | {"x-remote-user", "x-hop"})


async def test_answers_come_back_as_they_are_but_for_links_to_the_pod(proxied: Proxied) -> None:
    base = f"{PODS_PATH}/web/proxy"
    missing = await proxied("GET", f"{base}/missing")
    assert (missing.status, missing.body, missing.headers["Content-Type"]) == (404, b"no such page", "text/plain")
    assert missing.headers.getall("Set-Cookie") == ["a=1", "b=2"]
    assert "X-Hop" not in missing.headers
    page = await proxied("GET", f"{base}/page")
    assert page.body.decode() == f'<a href="{base}/next">é</a><a href="//else/x">'
    book = await proxied("GET", f"{base}/book")
    assert book.body == b'<a href="/next">' * (1 << 15), "too long to be rewritten, and complete"
    moved = await proxied("GET", f"{base}/moved")
    assert moved.status == 302
    assert moved.headers["Location"].endswith(f"{base}/elsewhere?x=1")
    assert (await proxied("GET", f"{base}/silent")).status == 204
    assert len((await proxied("GET", f"{base}/large")).body) == 1 << 20
    folder = await proxied("GET", f"{base}?a=b")
    assert (folder.status, folder.headers["Location"]) == (301, f"{base}/?a=b")


async def test_what_a_pod_says_comes_at_once_and_ends_with_the_client(proxied: Proxied) -> None:
    url = f"{proxied.raw.url}{PODS_PATH}/web/proxy/endless"
    headers = {"Authorization": f"Bearer {proxied.raw.admin}"}
    async with proxied.raw.session.get(url, headers=headers) as answer:
        assert await answer.content.readany() == b"first"


async def test_a_service_leads_to_a_ready_pod_of_its_namespace_and_nowhere_else(proxied: Proxied) -> None:
    client = proxied.machine.client
    ports = [{"name": "http", "port": 80, "targetPort": 8080}]
    await client.create(SERVICES, {"metadata": {"name": "web"}, "spec": {"ports": ports}}, namespace="default")
    refused = await proxied("GET", f"{SERVICES_PATH}/web:80/proxy/")
    assert (refused.status, json.loads(refused.body)["reason"]) == (503, "ServiceUnavailable")

    async def endpoints(*addresses: dict[str, Any]) -> None:
        subset = {"addresses": list(addresses), "ports": [{"name": "http", "port": 8080}]}
        body = {"metadata": {"name": "web"}, "subsets": [subset]}
        await client.patch(ENDPOINTS, "web", {"apiVersion": "v1", "kind": "Endpoints", **body}, namespace="default",
                           kind="apply", field_manager="test")  # fmt: skip

    foreign = {"kind": "Pod", "name": "web", "namespace": "kube-system"}
    await endpoints({"ip": "10.9.9.9"}, {"ip": "10.9.9.8", "targetRef": foreign})
    for name in ("web:80", "web:http", "http:web:http"):
        assert (await proxied("GET", f"{SERVICES_PATH}/{name}/proxy/")).status == 503
    await endpoints({"ip": "10.9.9.9", "targetRef": {"kind": "Pod", "name": "web", "namespace": "default"}})
    for name in ("web:80", "web:http", "http:web:http"):  # to the pod, whatever address somebody wrote for it
        seen = await proxied.seen("POST", f"{SERVICES_PATH}/{name}/proxy/y", data=b"z")
        assert (seen["path"], seen["body"]) == ("/y", "z")
    assert (await proxied("GET", f"{SERVICES_PATH}/web:81/proxy/")).status == 503
    assert (await proxied("GET", f"{SERVICES_PATH}/web/proxy/")).status == 503, "its one port has a name"


async def test_a_status_that_names_another_address_leads_nobody_there(proxied: Proxied) -> None:
    lie = {"status": {"podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}]}}
    await proxied.machine.client.patch(PODS, "web", lie, namespace="default", subresource="status")
    api = proxied.raw.url.rpartition(":")[2]
    assert (await proxied("GET", f"{PODS_PATH}/https:web:{api}/proxy/healthz")).status == 503
    assert (await proxied.seen("GET", f"{PODS_PATH}/web/proxy/"))["path"] == "/"


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("web:9/proxy/", 503),
        ("ftp:web:8080/proxy/", 400),
        ("web:http/proxy/", 400),
        ("web:99999/proxy/", 400),
        ("none/proxy/", 404),
        ("web/proxy/a/../b", 404),
        ("web/proxy/%2e%2e/b", 404),
        ("web%2Fproxy/b", 404),
        ("ended/proxy/", 503),
    ],
)
async def test_what_leads_to_no_pod_is_refused(proxied: Proxied, path: str, code: int) -> None:
    if path.startswith("ended"):
        await proxied.machine.run("true", name="ended")
        await proxied.machine.phase("ended", "Succeeded")
    answer = await proxied("GET", f"{PODS_PATH}/{path}")
    assert answer.status == code, answer.body
    assert json.loads(answer.body)["kind"] == "Status"


async def test_an_upgrade_is_refused_with_the_way_that_works(proxied: Proxied) -> None:
    url, headers = f"{proxied.raw.url}{PODS_PATH}/web/proxy/ws", {"Authorization": f"Bearer {proxied.raw.admin}"}
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        await proxied.raw.session.ws_connect(url, headers=headers)
    assert refused.value.status == 501
    answer = await proxied("GET", f"{PODS_PATH}/web/proxy/", headers={"Connection": "Upgrade", "Upgrade": "websocket"})
    assert "kubectl port-forward pod/web 8080" in json.loads(answer.body)["message"]


async def test_the_proxy_is_a_right_of_its_own_by_method(proxied: Proxied) -> None:
    rules = [{"apiGroups": [""], "resources": ["pods/proxy"], "verbs": ["get"]}]
    rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
    role = {"metadata": {"name": "look"}, "rules": rules}
    bound = {
        "metadata": {"name": "look"}, "subjects": [{"kind": "User", "name": "ada"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "look"},
    }  # fmt: skip
    assert (await proxied.raw("POST", f"{rbac}/roles", role)).status == 201
    assert (await proxied.raw("POST", f"{rbac}/rolebindings", bound)).status == 201

    async def status(method: str, path: str) -> int:
        return (await proxied(method, path, headers={"Impersonate-User": "ada"})).status

    await eventually(lambda: status("GET", f"{PODS_PATH}/web/proxy/"), 200)
    assert await status("HEAD", f"{PODS_PATH}/web/proxy/") == 200
    for method in ("POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
        assert await status(method, f"{PODS_PATH}/web/proxy/") == 403
    assert await status("GET", f"{PODS_PATH}/web") == 403
    assert await status("GET", f"{SERVICES_PATH}/web/proxy/") == 403
    assert await status("GET", "/api/v1/namespaces/kube-system/pods/web/proxy/") == 403


async def test_many_requests_at_once_are_answered(proxied: Proxied) -> None:
    answers = await asyncio.gather(*(proxied.seen("GET", f"{PODS_PATH}/web/proxy/{n}") for n in range(50)))
    assert [seen["path"] for seen in answers] == [f"/{n}" for n in range(50)]
