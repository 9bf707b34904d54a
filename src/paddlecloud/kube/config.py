"""Where the API server is and how to prove who we are: kubeconfig files and the in-cluster service account.

`load` answers the way kubectl does: an explicit file, else the files of $KUBECONFIG merged, else ~/.kube/config, else
the service account of the pod. YAML and TLS are imported only when needed: the CLI pays for what it uses.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paddlecloud.kube.credentials import Credential, CredentialSource, ExecPlugin, Static, TokenFile, bearer, contents
from paddlecloud.kube.errors import ConfigError, Unreachable
from paddlecloud.kube.nearest import question

if TYPE_CHECKING:
    import ssl

SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
PATH_SAFE = "/:@!$&'()*+,;=~-._"  # what RFC 3986 allows in a path without escaping
SECTIONS = ("clusters", "contexts", "users")


@dataclass(slots=True)
class Config:
    """Everything a transport needs. `server` has no trailing slash and may have a path (a proxied cluster)."""

    server: str
    namespace: str = "default"
    context: str = ""
    ca: bytes | None = None  # PEM; None trusts what the system trusts
    insecure: bool = False
    server_name: str | None = None  # checked in the certificate instead of the host of `server`
    proxy: str | None = None
    headers: Sequence[tuple[str, str]] = ()  # impersonation; a name may repeat
    source: CredentialSource = field(default_factory=Static)

    def url(self, path: str, query: Mapping[str, str] | None = None) -> str:
        """The address of an API path; names in it are escaped here and nowhere else."""
        from urllib.parse import quote, urlencode

        target = self.server + quote(path, safe=PATH_SAFE)
        return f"{target}?{urlencode(query)}" if query else target

    def unreachable(self, error: BaseException) -> Unreachable:
        cause = str(error) or type(error).__name__
        return Unreachable(
            f"no answer from {self.server}: {cause}; "
            f"check that it is running and that context {self.context!r} names the right address"
        )

    def tls(self, credential: Credential) -> ssl.SSLContext | None:
        """The TLS settings for this server and client certificate; None when the server is plain http."""
        if not self.server.startswith("https:"):
            return None
        import ssl

        if self.insecure:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        else:
            try:
                context = ssl.create_default_context(cadata=self.ca.decode() if self.ca else None)
            except (ssl.SSLError, ValueError) as error:
                raise ConfigError(f"the certificate authority of {self.server} is not valid PEM: {error}") from error
        if credential.certificate and credential.key:
            _load_certificate(context, credential.certificate, credential.key)
        return context


def load(
    kubeconfig: str | None = None, context: str | None = None, *, environ: Mapping[str, str] | None = None
) -> Config:
    """The configuration of `context`, or of the current one."""
    env = os.environ if environ is None else environ
    if kubeconfig:
        if not os.path.exists(kubeconfig):
            raise ConfigError(
                f"the kubeconfig {kubeconfig} does not exist; correct the path or start a platform with `pdc up`",
                reason="NoKubeconfig",
            )
        paths = [kubeconfig]
    else:
        home = env.get("HOME") or os.path.expanduser("~")
        listed = [p for p in env.get("KUBECONFIG", "").split(os.pathsep) if p]
        paths = listed or [os.path.join(home, ".kube", "config")]
    merged = merge([(path, read(path)) for path in paths if os.path.exists(path)])
    if not merged["contexts"] and context is None and not kubeconfig:
        if "KUBERNETES_SERVICE_HOST" in env:
            return in_cluster(environ=env)
        raise ConfigError(
            f"no cluster is configured (looked in {', '.join(paths)}); "
            "start a platform with `pdc up`, or set KUBECONFIG to a kubeconfig file",
            reason="NoKubeconfig",
        )
    return from_kubeconfig(merged, context, environ=env)


def in_cluster(*, environ: Mapping[str, str] | None = None, directory: str = SERVICE_ACCOUNT) -> Config:
    """The configuration Kubernetes gives every pod through its service account."""
    env = os.environ if environ is None else environ
    host, port = env.get("KUBERNETES_SERVICE_HOST"), env.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        raise ConfigError(
            "not inside a cluster: KUBERNETES_SERVICE_HOST is not set; use a kubeconfig", reason="NotInCluster"
        )
    host = f"[{host}]" if ":" in host else host
    namespace_file = os.path.join(directory, "namespace")
    namespace = contents(namespace_file).decode().strip() if os.path.exists(namespace_file) else "default"
    return Config(
        server=f"https://{host}:{port}",
        namespace=namespace or "default",
        context="in-cluster",
        ca=contents(os.path.join(directory, "ca.crt")),
        source=TokenFile(os.path.join(directory, "token")),
    )


def api_server_of_pod(environ: Mapping[str, str], ca: Path) -> Config:
    """Where it is, without credentials, for servers that use those of their callers."""
    host, port = environ.get("KUBERNETES_SERVICE_HOST"), environ.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        raise ConfigError("KUBERNETES_SERVICE_HOST is not set: this program runs in a pod", reason="NotInCluster")
    try:
        authority = ca.read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot read {ca}: {error.strerror}", reason="MissingFile") from error
    return Config(f"https://{f'[{host}]' if ':' in host else host}:{port}", context="in-cluster", ca=authority)


def read(path: str) -> dict[str, Any]:
    """One kubeconfig file with its relative paths made absolute (they are relative to the file, not to us)."""
    text = contents(path)
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        document = yaml.load(text, Loader=loader) or {}  # noqa: S506 - both loaders are the safe ones
    except yaml.YAMLError as error:
        raise ConfigError(f"the kubeconfig {path} is not valid YAML: {error}", reason="Malformed") from error
    if not isinstance(document, dict):
        raise ConfigError(f"the kubeconfig {path} is not a mapping", reason="Malformed")
    directory = os.path.dirname(os.path.abspath(path))
    for section in SECTIONS:
        entries = document.get(section) or []
        if not isinstance(entries, list) or not all(isinstance(e, dict) and "name" in e for e in entries):
            raise ConfigError(
                f"the kubeconfig {path} is malformed: {section} must be a list of named entries",
                reason="Malformed",
            )
        for entry in entries:
            body = entry.get(section[:-1]) or {}
            for name in ("certificate-authority", "client-certificate", "client-key", "tokenFile"):
                if body.get(name):
                    body[name] = os.path.join(directory, body[name])
            if isinstance(body.get("exec"), dict):
                body["exec"]["directory"] = directory
    return document


def merge(files: list[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    """kubectl's rule: the first file to say something wins, entries are merged by name, never within an entry."""
    merged: dict[str, Any] = {section: {} for section in SECTIONS}
    merged["current-context"] = ""
    for _, document in files:
        merged["current-context"] = merged["current-context"] or document.get("current-context") or ""
        for section in SECTIONS:
            for entry in document.get(section) or ():
                merged[section].setdefault(str(entry["name"]), entry.get(section[:-1]) or {})
    return merged


def from_kubeconfig(merged: Mapping[str, Any], context: str | None = None, *, environ: Mapping[str, str]) -> Config:
    name = context or merged["current-context"]
    known = ", ".join(sorted(merged["contexts"])) or "none"
    if not name:
        raise ConfigError(
            f"the kubeconfig has no current context; choose one with --context (known: {known})",
            reason="UnknownContext",
        )
    chosen = merged["contexts"].get(name)
    if chosen is None:
        meant = question(name, merged["contexts"])
        hint = f"; {meant}" if meant else ""
        raise ConfigError(f"no context {name!r} in the kubeconfig (known: {known}){hint}", reason="UnknownContext")
    cluster = merged["clusters"].get(chosen.get("cluster"))
    if not cluster or not cluster.get("server"):
        raise ConfigError(
            f"context {name!r} names cluster {chosen.get('cluster')!r}, which the kubeconfig does not define",
            reason="Malformed",
        )
    user = merged["users"].get(chosen.get("user"))
    if user is None and chosen.get("user"):
        raise ConfigError(
            f"context {name!r} names user {chosen.get('user')!r}, which the kubeconfig does not define",
            reason="Malformed",
        )
    server = str(cluster["server"]).rstrip("/")
    return Config(
        server=server,
        namespace=chosen.get("namespace") or "default",
        context=name,
        ca=_material(cluster, "certificate-authority"),
        insecure=bool(cluster.get("insecure-skip-tls-verify")),
        server_name=cluster.get("tls-server-name"),
        proxy=cluster.get("proxy-url") or proxy_for(server, environ),
        headers=_impersonation(user or {}),
        source=_source(user or {}, cluster, environ),
    )


def proxy_for(server: str, environ: Mapping[str, str]) -> str | None:
    """The proxy the environment asks for; never for loopback, nor for hosts under a suffix in NO_PROXY."""
    from urllib.parse import urlsplit

    parts = urlsplit(server)
    host = (parts.hostname or "").lower()
    if host in ("localhost", "::1") or host.startswith("127."):
        return None
    variable = "https_proxy" if parts.scheme == "https" else "http_proxy"
    proxy = environ.get(variable) or environ.get(variable.upper())
    skipped = (environ.get("no_proxy") or environ.get("NO_PROXY") or "").lower()
    for entry in (e.strip().lstrip(".") for e in skipped.split(",")):
        if entry and (entry == "*" or host == entry or host.endswith(f".{entry}")):
            return None
    return proxy or None


def _source(user: Mapping[str, Any], cluster: Mapping[str, Any], environ: Mapping[str, str]) -> CredentialSource:
    certificate, key = _material(user, "client-certificate"), _material(user, "client-key")
    if (certificate is None) != (key is None):
        raise ConfigError("the kubeconfig has a client certificate without its key, or the reverse")
    base = Credential(None, certificate, key)
    if user.get("tokenFile"):
        return TokenFile(user["tokenFile"], base=base)
    if user.get("token"):
        return Static(base._replace(authorization=bearer(str(user["token"]))))
    if user.get("username"):
        pair = f"{user['username']}:{user.get('password', '')}".encode()
        return Static(base._replace(authorization=f"Basic {base64.b64encode(pair).decode()}"))
    if user.get("exec"):
        spec = dict(user["exec"])
        directory = spec.pop("directory", None)
        info = {k: cluster[k] for k in ("server", "certificate-authority-data", "tls-server-name") if cluster.get(k)}
        return ExecPlugin(spec, cluster=info, environ=environ, directory=directory)
    if user.get("auth-provider") and certificate is None:
        raise ConfigError(
            "the kubeconfig uses an auth-provider, which Kubernetes removed in 1.26; "
            "let your cloud's tool write an exec plugin instead",
            reason="Unsupported",
        )
    return Static(base)


def _impersonation(user: Mapping[str, Any]) -> list[tuple[str, str]]:
    who = [("Impersonate-User", str(user["as"]))] if user.get("as") else []
    return who + [("Impersonate-Group", str(group)) for group in user.get("as-groups") or ()]


def _material(entry: Mapping[str, Any], name: str) -> bytes | None:
    """PEM given inline as base64 (`NAME-data`, which wins) or as a file."""
    if entry.get(f"{name}-data"):
        try:
            return base64.b64decode(entry[f"{name}-data"], validate=True)
        except (binascii.Error, ValueError) as error:
            raise ConfigError(f"{name}-data in the kubeconfig is not base64", reason="Malformed") from error
    return contents(entry[name]) if entry.get(name) else None


def _load_certificate(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """OpenSSL reads client certificates from files only: one of our own (0600) lives for the length of this call."""
    import ssl
    import tempfile

    with tempfile.NamedTemporaryFile(prefix="pdc-", suffix=".pem") as file:
        file.write(certificate.rstrip() + b"\n" + key)
        file.flush()
        try:
            context.load_cert_chain(file.name)
        except (ssl.SSLError, ValueError) as error:
            raise ConfigError(f"the client certificate and key do not load: {error}") from error
