"""Who gets in, what is kept from others' eyes: every path, every file, every log line."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import stat
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import pytest

from embedded.raw import Raw, raw_client
from harness import PATIENCE, pdc
from paddlecloud.kube.client import Client
from paddlecloud.local.apiserver.http import certs
from paddlecloud.local.control_plane import ControlPlane
from paddlecloud.platform import endpoint

OPEN = ("/healthz", "/readyz", "/livez", "/version")


@pytest.fixture
async def raw(inner: ControlPlane) -> AsyncIterator[Raw]:
    async with raw_client(inner) as found:
        yield found


async def every_path(raw: Raw) -> list[tuple[str, str]]:
    """(method, path) for everything discovery tells of, and for what it does not."""
    found = [("GET", path) for path in ("/", "/api", "/apis", "/api/v1", "/openapi/v3", "/openapi/v2", "/metrics")]
    found += [("GET", path) for path in ("/openid/v1/jwks", "/.well-known/openid-configuration", "/no/such/path")]
    found += [("GET", f"/openapi/v3/{path}") for path in (await raw("GET", "/openapi/v3")).json["paths"]]
    groups = [("/api/v1", (await raw("GET", "/api/v1")).json)]
    for group in (await raw("GET", "/apis")).json["groups"]:
        for version in group["versions"]:
            path = f"/apis/{version['groupVersion']}"
            found.append(("GET", path))
            groups.append((path, (await raw("GET", path)).json))
    for base, listing in groups:
        for resource in listing["resources"]:
            plural, _, sub = resource["name"].partition("/")
            scope = f"{base}/namespaces/default" if resource["namespaced"] else base
            if sub:
                methods, paths = ("GET", "PUT", "POST", "PATCH"), [f"{scope}/{plural}/x/{sub}"]
            else:
                methods, paths = ("GET", "PUT", "PATCH", "DELETE"), [f"{scope}/{plural}/x"]
                collections = {f"{scope}/{plural}", f"{base}/{plural}"}
                found += [(method, path) for path in collections for method in ("GET", "POST", "DELETE")]
                found += [("GET", f"{path}?watch=1") for path in collections]
            found += [(method, path) for path in paths for method in methods]
    return found


async def test_nothing_is_answered_without_credentials(raw: Raw) -> None:
    paths = await every_path(raw)
    assert len(paths) > 300
    for method, path in paths:
        reply = await raw(method, path, {} if method in ("POST", "PUT", "PATCH") else None, token=None)
        assert reply.status == 401, (method, path)
        assert reply.json["reason"] == "Unauthorized", (method, path)
    for path in OPEN:
        assert (await raw("GET", path, token=None)).status == 200


@pytest.mark.parametrize(
    "path",
    [
        "/healthz/../api/v1/secrets",
        "/healthz/%2e%2e/api/v1/secrets",
        "/healthz%2f..%2fapi/v1/secrets",
        "//api/v1/secrets",
        "/api/v1/namespaces/default/secrets/..%2f..%2f..%2fnodes",
        "/version/../api/v1/secrets",
        "/%61pi/v1/secrets",
        "/healthz\\..\\api",
    ],
)
async def test_tricks_with_paths_open_nothing(inner: ControlPlane, path: str) -> None:
    """Sent as they are: clients would tidy them up."""
    tls = ssl.create_default_context(cafile=str(inner.certs.ca_cert))
    reader, writer = await asyncio.open_connection("127.0.0.1", inner.port, ssl=tls)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    answer = await asyncio.wait_for(reader.read(), PATIENCE)
    writer.close()
    status = int(answer.split(b" ", 2)[1])
    assert status in (400, 401, 404), answer[:200]
    assert b'"items"' not in answer


@pytest.mark.parametrize(
    "authorization",
    ["Basic YWRtaW46YWRtaW4=", "Bearer", "Bearer ", "bearer null", "Token x", "Bearer " + "x" * 20_000, "Bearer a.b.c"],
)
async def test_credentials_that_are_none_are_refused(raw: Raw, authorization: str) -> None:
    reply = await raw("GET", "/healthz", token=None, headers=[("Authorization", authorization)])
    assert reply.status in (400, 401), "bad credentials are refused even where none are needed"


async def test_a_token_whose_header_was_changed_is_refused(raw: Raw, client: Client, inner: ControlPlane) -> None:
    token, _ = inner.tokens.issue(namespace="default", name="default", uid="someone-else")
    assert (await raw("GET", "/api/v1/pods", token=token)).status == 401
    head, body, signature = token.split(".")
    none = base64.urlsafe_b64encode(json.dumps({"alg": "none"}).encode()).decode().rstrip("=")
    for forged in (f"{none}.{body}.", f"{none}.{body}.{signature}", f"{head}.{body}.{signature[:-2]}AA"):
        assert (await raw("GET", "/api/v1/pods", token=forged)).status == 401


# --- a platform as users run it ---


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    data = tmp_path_factory.mktemp("security") / "data"
    pdc("up", "--data", str(data), "--port", "0")
    yield data
    pdc("down", "--data", str(data))


PUBLIC = {"ca.crt"}
"""Certificates are meant to be shown."""


def test_files_are_their_owners_alone(running: Path) -> None:
    assert stat.S_IMODE(running.stat().st_mode) == 0o700
    found = 0
    for path in running.rglob("*"):
        if path.is_symlink() or not path.exists():
            continue
        mode = stat.S_IMODE(path.stat().st_mode)
        if path.name not in PUBLIC:
            found += 1
            assert not mode & 0o077, f"{path} has mode {mode:o}"
    assert found > 8
    assert stat.S_IMODE((running / "pki" / "admin.token").stat().st_mode) == 0o600


def test_no_token_is_in_a_log_or_a_process_list(running: Path, kubectl_binary: str) -> None:
    admin = (running / "pki" / "admin.token").read_text().strip()

    def kubectl(*args: str, check: bool = True) -> str:
        done = subprocess.run(
            [kubectl_binary, "--kubeconfig", str(running / "kubeconfig"), *args],
            capture_output=True, text=True, timeout=60, check=check,
        )  # fmt: skip
        return done.stdout

    account = kubectl("create", "token", "default").strip()
    secret = "s3cr3t-value-of-a-user"
    kubectl("create", "secret", "generic", "mine", f"--from-literal=key={secret}")
    kubectl("get", "--raw", f"/api/v1/namespaces/default/pods?token={admin}&access_token={account}")
    kubectl("--token", account, "get", "secrets", check=False)
    pdc("get", "secrets", env={"KUBECONFIG": str(running / "kubeconfig"), "PATH": "/usr/bin:/bin"})
    hidden = [admin, account, secret, base64.b64encode(secret.encode()).decode()]
    allowed = {running / "pki" / "admin.token", running / "kubeconfig"}
    logs = [path for path in running.rglob("*") if path.is_file() and path.suffix in (".log", ".json", "")]
    assert running / "audit.log" in logs
    assert running / "platform.log" in logs
    pdc("status", "--data", str(running))
    for path in logs:
        text = path.read_bytes().decode(errors="replace")
        for value in hidden:
            assert value not in text or path in allowed, f"{path} holds a secret"
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and _belongs(entry, running):
            line = (entry / "cmdline").read_bytes().decode(errors="replace")
            assert not any(value in line for value in hidden), f"the command line of {entry.name} holds a secret"


def _belongs(entry: Path, data: Path) -> bool:
    try:
        return str(data).encode() in (entry / "cmdline").read_bytes()
    except OSError:
        return False


def test_refusals_do_not_repeat_credentials(running: Path) -> None:
    found = endpoint.find(running)
    assert found is not None
    tls = ssl.create_default_context(cafile=str(running / "pki" / "ca.crt"))
    token = "eyJhbGciOiJFUzI1NiJ9.looks-like-one.but-is-none"
    request = Request(f"{found.url}/api/v1/pods", headers={"Authorization": f"Bearer {token}"})
    with pytest.raises(HTTPError) as refused:
        urlopen(request, context=tls, timeout=10)
    assert refused.value.code == 401
    assert token.encode() not in refused.value.read()


def test_a_user_by_certificate_is_who_the_certificate_says(running: Path) -> None:
    """Only our own authority counts: a certificate of another is refused in the handshake or as nobody."""
    found = endpoint.find(running)
    assert found is not None
    foreign = running.parent / "foreign"
    other = certs.ensure(foreign)
    tls = ssl.create_default_context(cafile=str(running / "pki" / "ca.crt"))
    tls.load_cert_chain(str(other.server_cert), str(other.server_key))
    with pytest.raises((URLError, HTTPError, ssl.SSLError, ConnectionError)) as refused:
        urlopen(f"{found.url}/api/v1/pods", context=tls, timeout=10)
    assert not isinstance(refused.value, HTTPError) or refused.value.code == 401
