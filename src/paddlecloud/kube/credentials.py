"""Who a request comes from: where tokens and client certificates are found, and when they must be fetched again.

A source is asked before every request, so `peek` is cheap and never blocks; `fetch` may read a file or run a program.
Secrets stay in memory: they are never logged, put on a command line or written to disk.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

from paddlecloud.kube.errors import ConfigError

TOKEN_FILE_TTL = 60.0  # kubelet rotates projected tokens well before they expire; client-go rereads as often
EXPIRY_MARGIN = 10.0  # a token about to expire is not worth sending
EXEC_TIMEOUT = 60.0
MOST_BYTES = 16 * 1024 * 1024
"""Of a file that a kubeconfig names, and of a kubeconfig: it may be somebody else's, and name a device without end."""


class Credential(NamedTuple):
    authorization: str | None = None  # value of the Authorization header
    certificate: bytes | None = None  # PEM
    key: bytes | None = None  # PEM

    @property
    def token(self) -> str:
        """That of a Bearer header; empty where requests prove otherwise who they come from."""
        scheme, _, value = (self.authorization or "").partition(" ")
        return value if scheme.lower() == "bearer" else ""

    def __repr__(self) -> str:
        return "Credential(...)"  # keeps secrets out of tracebacks and logs


ANONYMOUS = Credential()


def contents(path: str, what: str = "") -> bytes:
    """Of a kubeconfig, or of a file that it names; `what` it is, for errors."""
    called = f"{what} {path}".lstrip()
    try:
        with open(path, "rb") as file:
            read = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise ConfigError(
            f"cannot read {called}: {error.strerror}; check the path and its permissions", reason="MissingFile"
        ) from error
    if len(read) > MOST_BYTES:
        raise ConfigError(
            f"{called} has more than {MOST_BYTES >> 20} MiB; no kubeconfig, certificate or token has that much",
            reason="Malformed",
        )
    return read


def bearer(token: str) -> str:
    """The header for a token, which must not end the header that it stands in."""
    if not (token.isascii() and token.isprintable()):
        raise ConfigError("the token has a line break or another character that no token has", reason="Malformed")
    return f"Bearer {token}"


class CredentialSource(Protocol):
    def peek(self) -> Credential | None:
        """The credential in hand, or None when `fetch` must be called."""

    def fetch(self) -> Credential:
        """Get a credential anew; may block."""

    def reject(self) -> bool:
        """The server answered 401. True when fetching again could help."""


class Static:
    """A credential that was given once: token, basic auth or certificate in the kubeconfig."""

    def __init__(self, credential: Credential = ANONYMOUS) -> None:
        self._credential = credential

    def peek(self) -> Credential:
        return self._credential

    def fetch(self) -> Credential:
        return self._credential

    def reject(self) -> bool:
        return False


class TokenFile:
    """A bearer token in a file that somebody else renews, such as a service account's."""

    def __init__(self, path: str, *, base: Credential = ANONYMOUS, now: Callable[[], float] = time.time) -> None:
        self._path = path
        self._base = base
        self._now = now
        self._credential: Credential | None = None
        self._read_at = 0.0

    def peek(self) -> Credential | None:
        if self._credential is None or self._now() - self._read_at >= TOKEN_FILE_TTL:
            return None
        return self._credential

    def fetch(self) -> Credential:
        try:
            token = contents(self._path, "the token file").decode(errors="replace").strip()
        except ConfigError:
            if self._credential is not None:
                return self._credential  # rotation replaces the file; the last token is better than none
            raise
        self._read_at = self._now()
        self._credential = self._base._replace(authorization=bearer(token))
        return self._credential

    def reject(self) -> bool:
        before, self._credential = self._credential, None
        return self.fetch() != before


def _at_a_terminal() -> bool:
    import sys

    return bool(sys.stdin and sys.stdin.isatty() and sys.stderr and sys.stderr.isatty())


class ExecPlugin:
    """Credentials printed by a program (client.authentication.k8s.io ExecCredential), kept until they expire.

    At a terminal the program has it too, and all the time it needs: it may ask for a password, or show the address of a
    page to log in on. Elsewhere it must do without, and quickly.
    """

    def __init__(
        self,
        spec: Mapping[str, Any],
        *,
        cluster: Mapping[str, Any] | None = None,
        environ: Mapping[str, str],
        directory: str | None = None,
        now: Callable[[], float] = time.time,
        at_a_terminal: Callable[[], bool] = _at_a_terminal,
    ) -> None:
        self._spec = spec
        self._cluster = cluster
        self._environ = environ
        self._directory = directory
        self._now = now
        self._at_a_terminal = at_a_terminal
        self._credential: Credential | None = None
        self._expires: float | None = None

    def peek(self) -> Credential | None:
        if self._expires is not None and self._now() >= self._expires - EXPIRY_MARGIN:
            return None
        return self._credential

    def reject(self) -> bool:
        self._credential = None
        return True

    def fetch(self) -> Credential:
        status = self._run()
        token, certificate, key = (status.get(name) for name in ("token", "clientCertificateData", "clientKeyData"))
        if not token and not (certificate and key):
            raise self._failed("it returned neither a token nor a certificate with its key")
        self._expires = _timestamp(status.get("expirationTimestamp"))
        self._credential = Credential(
            authorization=bearer(token) if token else None,
            certificate=certificate.encode() if certificate else None,
            key=key.encode() if key else None,
        )
        return self._credential

    def _run(self) -> Mapping[str, Any]:
        import json
        import os
        import subprocess

        command = str(self._spec.get("command", ""))
        if self._directory and os.sep in command:
            command = os.path.join(self._directory, command)  # relative to the kubeconfig, as kubectl does
        version = str(self._spec.get("apiVersion", "client.authentication.k8s.io/v1"))
        asks = self._may_ask()
        info: dict[str, Any] = {"apiVersion": version, "kind": "ExecCredential", "spec": {"interactive": asks}}
        if self._spec.get("provideClusterInfo") and self._cluster is not None:
            info["spec"]["cluster"] = dict(self._cluster)
        extra = {str(e["name"]): str(e.get("value", "")) for e in self._spec.get("env") or ()}
        try:
            done = subprocess.run(
                [command, *(str(a) for a in self._spec.get("args") or ())],
                env={**self._environ, **extra, "KUBERNETES_EXEC_INFO": json.dumps(info)},
                stdin=None if asks else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=None if asks else subprocess.PIPE,
                timeout=None if asks else EXEC_TIMEOUT,
                check=False,
            )
        except FileNotFoundError as error:
            hint = str(self._spec.get("installHint") or "install it or correct users[].user.exec.command")
            raise self._failed(f"the program was not found; {hint}") from error
        except (OSError, subprocess.TimeoutExpired) as error:
            raise self._failed(str(error)) from error
        if done.returncode != 0:
            said = "see above" if asks else done.stderr.decode(errors="replace").strip()[-500:]
            raise self._failed(f"it exited with {done.returncode}: {said}")
        try:
            answer = json.loads(done.stdout)
            status = answer["status"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise self._failed("it did not print an ExecCredential with a status") from error
        if answer.get("apiVersion") != version:
            raise self._failed(f"it answers with {answer.get('apiVersion')}, the kubeconfig asks for {version}")
        return dict(status)

    def _may_ask(self) -> bool:
        mode = self._spec.get("interactiveMode") or "IfAvailable"
        terminal = mode != "Never" and self._at_a_terminal()
        if mode == "Always" and not terminal:
            raise self._failed("it asks questions (interactiveMode: Always), and there is no terminal to ask on")
        return terminal

    def _failed(self, why: str) -> ConfigError:
        command = self._spec.get("command", "")
        return ConfigError(
            f"the credential plugin {command!r} failed: {why}; run it by hand to see more", reason="ExecFailed"
        )


def _timestamp(text: str | None) -> float | None:
    if not text:
        return None
    import datetime
    import re

    text = re.sub(r"\.[0-9]+", "", text)  # nanoseconds, which Python 3.10 cannot read and nobody needs
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
