"""The certificates of one platform: its own authority, the server's certificate, certificates of clients.

Everything lies in one directory of mode 0700 and is made when missing. The authority lives long, because every
kubeconfig handed out trusts it; the server's certificate is made anew when it nears its end, when the names it must
answer to change, or when anything about it cannot be read. Only the authority is never replaced on its own account:
that would lock out every client, so damage to it is an error that says what to do.
"""

from __future__ import annotations

import datetime
import ipaddress
import ssl
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from paddlecloud.local.privatefiles import private_directory, read_private, write_private

_DAY = 86400.0
_AUTHORITY_LIFE, _SERVER_LIFE, _CLIENT_LIFE = 3650 * _DAY, 730 * _DAY, 365 * _DAY
_RENEW_BEFORE = 30 * _DAY
_BACKDATED = _DAY  # so that a client whose clock is behind accepts a new certificate

DEFAULT_SANS = (
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
    "127.0.0.1",
    "::1",
)

_Key = ec.EllipticCurvePrivateKey


class CertificateError(Exception):
    """Certificates that cannot be used and must not be replaced silently."""


@dataclass(frozen=True, slots=True)
class CertPaths:
    ca_cert: Path
    ca_key: Path
    server_cert: Path
    server_key: Path

    @staticmethod
    def under(directory: Path) -> CertPaths:
        names = ("ca.crt", "ca.key", "server.crt", "server.key")
        return CertPaths(*(directory / name for name in names))


@dataclass(frozen=True, slots=True, repr=False)
class KeyPair:
    """A certificate and its key in PEM. Has no repr that could end in a log."""

    cert: bytes
    key: bytes


def ensure(directory: Path, extra_sans: Collection[str] = (), *, now: float | None = None) -> CertPaths:
    """Make what is missing or outdated. Idempotent: with nothing to do no file changes."""
    now = time.time() if now is None else now
    private_directory(directory)
    paths = CertPaths.under(directory)
    authority = _load_authority(paths, now) or _make_authority(paths, now)
    sans = _general_names({*DEFAULT_SANS, *extra_sans})
    if not _server_is_good(paths, authority[0], sans, now):
        pair = _issue(
            authority,
            _name("kube-apiserver"),
            now=now,
            life=_SERVER_LIFE,
            usage=ExtendedKeyUsageOID.SERVER_AUTH,
            sans=sans,
        )
        write_private(paths.server_key, pair.key)
        write_private(paths.server_cert, pair.cert)
    return paths


def issue_client(
    paths: CertPaths, name: str, groups: Sequence[str] = (), *, life: float = _CLIENT_LIFE, now: float | None = None
) -> KeyPair:
    """A certificate that makes its holder the user `name` (CN) in `groups` (O)."""
    now = time.time() if now is None else now
    authority = _load_authority(paths, now)
    if authority is None:
        raise CertificateError(f"no certificate authority in {paths.ca_cert.parent}: start the platform once")
    return _issue(authority, _name(name, groups), now=now, life=life, usage=ExtendedKeyUsageOID.CLIENT_AUTH)


def server_context(paths: CertPaths) -> ssl.SSLContext:
    """TLS for the server. A client certificate is optional, but one that is shown must be of this authority."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(paths.ca_cert))
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.verify_mode = ssl.CERT_OPTIONAL
    context.load_cert_chain(paths.server_cert, paths.server_key)
    return context


def client_context(paths: CertPaths) -> ssl.SSLContext:
    """TLS for clients in this process or its children: trusts this authority and no other."""
    return ssl.create_default_context(ssl.Purpose.SERVER_AUTH, cafile=str(paths.ca_cert))


# --- the authority ---


def _load_authority(paths: CertPaths, now: float) -> tuple[x509.Certificate, _Key] | None:
    cert_pem, key_pem = read_private(paths.ca_cert), read_private(paths.ca_key)
    if cert_pem is None or key_pem is None:
        # The key is written first: without a certificate no client ever trusted it, so starting over harms nobody.
        if cert_pem is not None:
            raise _damaged(paths, "its key is missing")
        return None
    try:
        cert = x509.load_pem_x509_certificate(cert_pem)
        key = _load_key(key_pem)
    except (ValueError, TypeError) as error:
        raise _damaged(paths, str(error)) from error
    if cert.public_key() != key.public_key():
        raise _damaged(paths, "key and certificate do not belong together")
    if cert.not_valid_after_utc.timestamp() <= now:
        raise _damaged(paths, f"it expired on {cert.not_valid_after_utc:%Y-%m-%d}")
    return cert, key


def _damaged(paths: CertPaths, what: str) -> CertificateError:
    return CertificateError(
        f"the certificate authority {paths.ca_cert} cannot be used: {what}. "
        f"Restore it from a backup, or delete {paths.ca_cert} and {paths.ca_key} to get a new one; "
        "every kubeconfig must then be written again (pdc kubeconfig)"
    )


def _make_authority(paths: CertPaths, now: float) -> tuple[x509.Certificate, _Key]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name(f"paddlecloud-ca-{x509.random_serial_number():x}"[:40])  # two platforms are two issuers
    public = key.public_key()
    cert = (
        _builder(name, name, public, now=now, until=now + _AUTHORITY_LIFE)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(sign_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .sign(key, hashes.SHA256())
    )
    write_private(paths.ca_key, _key_pem(key))
    write_private(paths.ca_cert, cert.public_bytes(serialization.Encoding.PEM))
    return cert, key


# --- what it signs ---


def _server_is_good(
    paths: CertPaths, authority: x509.Certificate, sans: Collection[x509.GeneralName], now: float
) -> bool:
    cert_pem, key_pem = read_private(paths.server_cert), read_private(paths.server_key)
    if cert_pem is None or key_pem is None:
        return False
    try:
        cert = x509.load_pem_x509_certificate(cert_pem)
        key = _load_key(key_pem)
        cert.verify_directly_issued_by(authority)
        names = cert.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except Exception:  # whatever is wrong with it, the remedy is a new one
        return False
    if cert.public_key() != key.public_key() or set(names) != set(sans):
        return False
    return cert.not_valid_before_utc.timestamp() <= now < cert.not_valid_after_utc.timestamp() - _RENEW_BEFORE


def _issue(
    authority: tuple[x509.Certificate, _Key],
    subject: x509.Name,
    *,
    now: float,
    life: float,
    usage: x509.ObjectIdentifier,
    sans: Collection[x509.GeneralName] = (),
) -> KeyPair:
    ca, ca_key = authority
    key = ec.generate_private_key(ec.SECP256R1())
    public = key.public_key()
    until = min(now + life, ca.not_valid_after_utc.timestamp())
    builder = (
        _builder(subject, ca.subject, public, now=now, until=until)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(sign_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False)
    )
    if sans:
        builder = builder.add_extension(x509.SubjectAlternativeName(sans), critical=False)
    cert = builder.sign(ca_key, hashes.SHA256())
    return KeyPair(cert.public_bytes(serialization.Encoding.PEM), _key_pem(key))


def _builder(
    subject: x509.Name, issuer: x509.Name, public: ec.EllipticCurvePublicKey, *, now: float, until: float
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(_moment(now - _BACKDATED))
        .not_valid_after(_moment(until))
    )


def _moment(seconds: float) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(int(seconds), datetime.timezone.utc)


def _key_usage(*, sign_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=sign_certificates,
        crl_sign=sign_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _name(common_name: str, organizations: Sequence[str] = ()) -> x509.Name:
    try:
        return x509.Name(
            [
                *(x509.NameAttribute(NameOID.ORGANIZATION_NAME, name) for name in organizations),
                x509.NameAttribute(NameOID.COMMON_NAME, common_name),
            ]
        )
    except ValueError as error:
        raise CertificateError(f"user {common_name!r} does not fit into a certificate: {error}") from error


def _general_names(sans: Collection[str]) -> list[x509.GeneralName]:
    names: list[x509.GeneralName] = []
    for san in sorted(sans):
        try:
            names.append(x509.IPAddress(ipaddress.ip_address(san)))
        except ValueError:
            try:
                names.append(x509.DNSName(san))
            except ValueError as error:
                raise CertificateError(f"{san!r} is neither an address nor a host name") from error
    return names


def _load_key(pem: bytes) -> _Key:
    key = serialization.load_pem_private_key(pem, password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ValueError("its key is not an elliptic-curve key")
    return key


def _key_pem(key: _Key) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
