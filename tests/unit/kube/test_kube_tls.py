"""TLS with a real server: the CA is checked, the name too, and a client certificate proves who we are."""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import ssl
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from paddlecloud.kube.config import Config
from paddlecloud.kube.credentials import Credential, Static
from paddlecloud.kube.errors import ConfigError, Unreachable
from paddlecloud.kube.http import HttpTransport
from paddlecloud.kube.stdlib import StdlibTransport, drive


class Pair(NamedTuple):
    certificate: bytes
    key: bytes


class Authority:
    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test authority")])
        self._cert = self._sign(self._name, self._key.public_key(), ca=True)
        self.pem = self._cert.public_bytes(serialization.Encoding.PEM)

    def issue(self, name: str, alternatives: list[x509.GeneralName] | None = None) -> Pair:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        cert = self._sign(subject, key.public_key(), alternatives=alternatives)
        return Pair(
            cert.public_bytes(serialization.Encoding.PEM),
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            ),
        )

    def _sign(
        self,
        subject: x509.Name,
        key: ec.EllipticCurvePublicKey,
        *,
        ca: bool = False,
        alternatives: list[x509.GeneralName] | None = None,
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.timezone.utc)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(minutes=5))
            .not_valid_after(now + datetime.timedelta(hours=1))
            .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        )
        if alternatives:
            builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        return builder.sign(self._key, hashes.SHA256())


class Served(NamedTuple):
    url: str
    authority: Authority


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Served]:
    authority = Authority()
    names: list[x509.GeneralName] = [x509.IPAddress(ipaddress.ip_address("127.0.0.1")), x509.DNSName("kubernetes")]
    pair = authority.issue("server", names)
    pem = tmp_path / "server.pem"
    pem.write_bytes(pair.certificate + pair.key)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=authority.pem.decode())
    context.load_cert_chain(pem)
    context.verify_mode = ssl.CERT_OPTIONAL

    async def who(request: web.Request) -> web.Response:
        assert request.transport is not None
        peer = request.transport.get_extra_info("peercert")
        return web.Response(text=peer["subject"][0][0][1] if peer else "nobody")

    app = web.Application()
    app.router.add_get("/who", who)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    yield Served(f"https://127.0.0.1:{runner.addresses[0][1]}", authority)
    await runner.cleanup()


async def ask(kind: type[HttpTransport] | type[StdlibTransport], config: Config) -> str:
    if kind is StdlibTransport:  # blocks, and the server lives in this loop
        transport = StdlibTransport(config)
        answer = await asyncio.to_thread(lambda: drive(transport.request("GET", "/who")))
        drive(transport.close())
    else:
        http = HttpTransport(config)
        try:
            answer = await http.request("GET", "/who")
        finally:
            await http.close()
    return answer.body.decode()


both = pytest.mark.parametrize("kind", [HttpTransport, StdlibTransport])


@both
async def test_the_server_is_believed_only_with_the_right_authority(server: Served, kind: type[HttpTransport]) -> None:
    trusted = Config(server.url, ca=server.authority.pem)
    assert await ask(kind, trusted) == "nobody"
    for wrong in (replace(trusted, ca=Authority().pem), replace(trusted, ca=None)):
        with pytest.raises(Unreachable, match=r"(?i)certificate"):
            await ask(kind, wrong)
    assert await ask(kind, replace(trusted, ca=None, insecure=True)) == "nobody"


@both
async def test_the_name_in_the_certificate_is_checked_and_may_be_given(
    server: Served, kind: type[HttpTransport]
) -> None:
    config = Config(server.url, ca=server.authority.pem, server_name="kubernetes")
    assert await ask(kind, config) == "nobody"
    with pytest.raises(Unreachable, match=r"(?i)certificate"):
        await ask(kind, replace(config, server_name="somebody.else"))


@both
async def test_a_client_certificate_says_who_we_are_and_leaves_no_file(
    server: Served, kind: type[HttpTransport], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    credential = Credential(None, *server.authority.issue("jane"))
    config = Config(server.url, ca=server.authority.pem, source=Static(credential))
    assert await ask(kind, config) == "jane"
    assert list((tmp_path / "tmp").iterdir()) == []


@both
async def test_broken_certificates_are_named(server: Served, kind: type[HttpTransport]) -> None:
    with pytest.raises(ConfigError, match="authority"):
        await ask(kind, Config(server.url, ca=b"not a certificate"))
    with pytest.raises(ConfigError, match="client certificate"):
        await ask(kind, Config(server.url, source=Static(Credential(None, b"x", b"y"))))
