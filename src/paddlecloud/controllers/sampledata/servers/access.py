"""What opens the cache servers of a set, and how they prove that they are the set's: a token and a certificate.

Both lie in one Secret that is mounted into the servers' pods. The controller connects with TLS and compares the
certificate before it sends anything, so that a program which merely holds a pod's address gets neither the token nor
the keys of an object store. The certificate names nobody and is compared byte by byte: no authority, no end date.
"""

from __future__ import annotations

import base64
import datetime
import hashlib
import secrets
import ssl
from collections.abc import Mapping
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from paddlecloud.controllers.sampledata.servers import transfer
from paddlecloud.kube.resource import Object

TOKEN, CERTIFICATE, KEY = "token", "tls.crt", "tls.key"
"""Keys of the Secret, and names of the files in the pods."""


class Access(NamedTuple):
    token: str
    fingerprint: bytes
    """SHA-256 of the certificate."""


def read(secret: Object | None) -> Access | None:
    """None while there is no Secret, or none that can be used."""
    values = transfer.secret_values(secret) if secret else {}
    if not values.get(TOKEN) or not values.get(CERTIFICATE):
        return None
    try:
        certificate = ssl.PEM_cert_to_DER_cert(values[CERTIFICATE])
    except ValueError:
        return None
    return Access(values[TOKEN], hashlib.sha256(certificate).digest())


def fresh() -> Mapping[str, str]:
    """The data of a new Secret."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "cache-server")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime.datetime(2000, 1, 1))
        .not_valid_after(datetime.datetime(9999, 12, 31))  # RFC 5280, 4.1.2.5: no end
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return {
        TOKEN: _encoded(secrets.token_urlsafe(32).encode()),
        CERTIFICATE: _encoded(certificate.public_bytes(pem)),
        KEY: _encoded(private),
    }


def _encoded(value: bytes) -> str:
    return base64.b64encode(value).decode()
