"""Certificates: made once, renewed when needed, readable by nobody else, and good enough for a TLS handshake."""

from __future__ import annotations

import os
import ssl
import stat
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from paddlecloud.local.apiserver.http import certs
from paddlecloud.local.apiserver.http.certs import CertificateError, CertPaths
from paddlecloud.local.privatefiles import read_private, write_private

DAY = 86400


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def names_of(path: Path) -> set[str]:
    cert = x509.load_pem_x509_certificate(path.read_bytes())
    sans = cert.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return {str(name.value) for name in sans}


def handshake(server: ssl.SSLContext, client: ssl.SSLContext, *, host: str = "localhost") -> Any:
    """A TLS handshake in memory; what the server learned about the client."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    left = client.wrap_bio(to_client, to_server, server_hostname=host)
    right = server.wrap_bio(to_server, to_client, server_side=True)
    left_done = right_done = False
    for _ in range(10):
        try:
            left.do_handshake()
            left_done = True
        except ssl.SSLWantReadError:
            pass  # the other side has not sent anything yet
        try:
            right.do_handshake()
            right_done = True
        except ssl.SSLWantReadError:
            pass  # likewise
        if left_done and right_done:
            return right.getpeercert()
    raise AssertionError("no handshake within ten rounds")


def test_files_and_directory_are_private(tmp_path: Path) -> None:
    directory = tmp_path / "pki"
    old = os.umask(0)  # the mode must not depend on the umask
    try:
        certs.ensure(directory)
    finally:
        os.umask(old)
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in directory.iterdir()} == {0o600}
    assert set(contents(directory)) == {"ca.crt", "ca.key", "server.crt", "server.key"}


def test_ensuring_twice_changes_nothing(tmp_path: Path) -> None:
    certs.ensure(tmp_path)
    before = contents(tmp_path)
    certs.ensure(tmp_path)
    assert contents(tmp_path) == before


def test_the_server_answers_to_the_usual_names(tmp_path: Path) -> None:
    paths = certs.ensure(tmp_path, ["10.1.2.3", "my-host"])
    assert names_of(paths.server_cert) == {*certs.DEFAULT_SANS, "10.1.2.3", "my-host"}


@pytest.mark.parametrize(
    ("extra", "later", "renewed"),
    [((), 0, False), ((), 600 * DAY, False), ((), 701 * DAY, True), (("new-host",), 0, True)],
)
def test_the_server_certificate_is_renewed_when_needed(
    tmp_path: Path, extra: tuple[str, ...], later: float, renewed: bool
) -> None:
    start = 1_700_000_000.0
    before = contents(certs.ensure(tmp_path, now=start).ca_cert.parent)
    certs.ensure(tmp_path, extra, now=start + later)
    after = contents(tmp_path)
    assert (after["server.crt"] != before["server.crt"]) is renewed
    assert after["ca.crt"] == before["ca.crt"]


@pytest.mark.parametrize("broken", ["server.crt", "server.key"])
@pytest.mark.parametrize("content", [None, b"", b"garbage"])
def test_a_damaged_server_certificate_is_replaced(tmp_path: Path, broken: str, content: bytes | None) -> None:
    paths = certs.ensure(tmp_path)
    if content is None:
        (tmp_path / broken).unlink()
    else:
        (tmp_path / broken).write_bytes(content)
    certs.ensure(tmp_path)
    handshake(certs.server_context(paths), certs.client_context(paths))


@pytest.mark.parametrize(("name", "content"), [("ca.crt", b"garbage"), ("ca.key", b"garbage"), ("ca.key", None)])
def test_a_damaged_authority_is_never_replaced_silently(tmp_path: Path, name: str, content: bytes | None) -> None:
    certs.ensure(tmp_path)
    if content is None:
        (tmp_path / name).unlink()
    else:
        (tmp_path / name).write_bytes(content)
    before = contents(tmp_path)
    with pytest.raises(CertificateError, match="every kubeconfig must then be written again"):
        certs.ensure(tmp_path)
    assert contents(tmp_path) == before


def test_a_crash_between_key_and_certificate_of_the_authority_is_harmless(tmp_path: Path) -> None:
    certs.ensure(tmp_path)
    (tmp_path / "ca.crt").unlink()
    paths = certs.ensure(tmp_path)
    handshake(certs.server_context(paths), certs.client_context(paths))


def test_an_expired_authority_is_an_error_with_a_way_out(tmp_path: Path) -> None:
    certs.ensure(tmp_path, now=1_700_000_000.0)
    with pytest.raises(CertificateError, match="expired on"):
        certs.ensure(tmp_path, now=1_700_000_000.0 + 3651 * DAY)


def test_a_key_and_certificate_of_two_authorities_do_not_mix(tmp_path: Path) -> None:
    certs.ensure(tmp_path / "a")
    certs.ensure(tmp_path / "b")
    (tmp_path / "a" / "ca.key").write_bytes((tmp_path / "b" / "ca.key").read_bytes())
    with pytest.raises(CertificateError, match="do not belong together"):
        certs.ensure(tmp_path / "a")


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "::1", "kubernetes.default.svc"])
def test_clients_can_verify_the_server(tmp_path: Path, host: str) -> None:
    paths = certs.ensure(tmp_path)
    assert not handshake(certs.server_context(paths), certs.client_context(paths), host=host)


def test_another_host_name_is_refused(tmp_path: Path) -> None:
    paths = certs.ensure(tmp_path)
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(certs.server_context(paths), certs.client_context(paths), host="example.com")


def client_with(paths: CertPaths, pair: certs.KeyPair, directory: Path) -> ssl.SSLContext:
    write_private(directory / "c.crt", pair.cert)
    write_private(directory / "c.key", pair.key)
    context = certs.client_context(paths)
    context.load_cert_chain(directory / "c.crt", directory / "c.key")
    return context


def test_a_client_certificate_names_user_and_groups(tmp_path: Path) -> None:
    paths = certs.ensure(tmp_path / "pki")
    pair = certs.issue_client(paths, "alice", ["dev", "ops"])
    peer = handshake(certs.server_context(paths), client_with(paths, pair, tmp_path))
    fields = [item for part in peer["subject"] for item in part]
    assert fields == [("organizationName", "dev"), ("organizationName", "ops"), ("commonName", "alice")]


def test_a_client_certificate_of_another_authority_is_refused(tmp_path: Path) -> None:
    ours, theirs = certs.ensure(tmp_path / "ours"), certs.ensure(tmp_path / "theirs")
    pair = certs.issue_client(theirs, "mallory", ["system:masters"])
    with pytest.raises(ssl.SSLError):
        handshake(certs.server_context(ours), client_with(ours, pair, tmp_path))


def test_the_servers_own_certificate_is_no_client_certificate(tmp_path: Path) -> None:
    paths = certs.ensure(tmp_path)
    context = certs.client_context(paths)
    context.load_cert_chain(paths.server_cert, paths.server_key)
    with pytest.raises(ssl.SSLError):
        handshake(certs.server_context(paths), context)


@pytest.mark.parametrize("name", ["", "x" * 65])
def test_users_that_fit_no_certificate_are_refused(tmp_path: Path, name: str) -> None:
    paths = certs.ensure(tmp_path)
    with pytest.raises(CertificateError, match="does not fit"):
        certs.issue_client(paths, name)


def test_bad_names_for_the_server_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CertificateError, match="neither an address nor a host name"):
        certs.ensure(tmp_path, ["höst"])


def test_keys_have_no_readable_form(tmp_path: Path) -> None:
    pair = certs.issue_client(certs.ensure(tmp_path), "alice")
    assert "PRIVATE" not in repr(pair)


def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "token"
    write_private(target, b"old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_private(target, b"new")
    assert contents(tmp_path) == {"token": b"old"}


def test_a_file_that_others_could_read_is_narrowed(tmp_path: Path) -> None:
    target = tmp_path / "token"
    target.write_bytes(b"x")
    target.chmod(0o644)
    assert read_private(target) == b"x"
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
