"""Who may do what: the Kubernetes API decides for tokens, a signature for read grants.

The server has no rights of its own. It asks with the caller's token, which also finds out whether the token is valid.
Who reads a version must be able to get its ModelVersion, and reads what that names by its digest: a manifest alone
opens nothing, for namespaces go and others get their names, while the store keeps what a killed push left. For all
else there is a SelfSubjectAccessReview: list, create or delete of ModelVersions. The answers are kept for seconds: a
right that was taken away ends that much later. A read grant opens the files of the version that it names, and nothing
else.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from paddlecloud.api.model import reference
from paddlecloud.kube import access
from paddlecloud.kube.client import Client
from paddlecloud.kube.clock import Clock
from paddlecloud.kube.credentials import Credential, Static
from paddlecloud.kube.http import HttpTransport
from paddlecloud.kube.resource import MODELVERSIONS
from paddlecloud.kube.server.request_limits import tenant_of
from paddlecloud.modelhub import read_grant
from paddlecloud.modelhub.read_grant import ReadGrant
from paddlecloud.modelhub.server.replies import NO_CREDENTIALS, Answered

SECONDS = 5.0
MOST_ANSWERS = 4096
Ask = Callable[["HubCaller", str, str, str], Awaitable[str]]
GrantKey = Callable[[], Awaitable[bytes | None]]


class HubCaller(NamedTuple):
    """Whose request it is: of a token, or of a read grant whose signature is right."""

    token: str = ""
    grant: ReadGrant | None = None

    @property
    def tenant(self) -> str:
        """Only for a caller whose token was accepted: what it says of itself is not verified here."""
        return f"namespace {self.grant.namespace}" if self.grant else tenant_of(self.token)


def credential_of(header: str) -> str:
    """The token of a Bearer header, or the password of a Basic one, which URLs such as http://x:TOKEN@host become."""
    scheme, _, value = header.partition(" ")
    value = value.strip()
    if scheme.lower() == "basic":
        try:
            value = base64.b64decode(value, validate=True).decode().partition(":")[2]
        except (binascii.Error, ValueError):
            value = ""
    elif scheme.lower() != "bearer":
        value = ""
    if not value or not value.isprintable():
        raise Answered(401, "Unauthorized", NO_CREDENTIALS)
    return value


class Authoriser:
    """`transport` leads to the Kubernetes API; its own credentials are not used. `key` gives that of read grants."""

    def __init__(self, transport: HttpTransport, key: GrantKey, clock: Clock) -> None:
        self._transport, self._key, self._clock = transport, key, clock
        self._answers: OrderedDict[tuple[bytes, str, str, str], tuple[float, str]] = OrderedDict()

    def client(self, caller: HubCaller) -> Client:
        """The Kubernetes API with the rights of the caller."""
        source = Static(Credential(authorization=f"Bearer {caller.token}"))
        return Client(self._transport.acting_as(source), field_manager="modelhub")

    async def caller(self, header: str) -> HubCaller:
        given = credential_of(header)
        if not read_grant.is_grant(given):
            return HubCaller(token=given)
        key = await self._key()
        grant = read_grant.verify(key, given) if key else None
        if grant is None:
            raise Answered(401, "Unauthorized", "this read grant was not made by this platform; deploy the pod again")
        return HubCaller(grant=grant)

    async def check(self, caller: HubCaller, verb: str, namespace: str, name: str = "") -> None:
        """Raises `Answered` with 403, or what the Kubernetes API answers to a token that is not valid."""
        if caller.grant is not None:
            raise Answered(403, "Forbidden", "a read grant opens the files of one version and nothing else")
        allowed = await self._kept(caller, verb, namespace, name, self._review)
        if not allowed:
            what = f"{verb} {MODELVERSIONS.full_name}" + (f" {name}" if name else "")
            raise Answered(403, "Forbidden", f"the token may not {what} in namespace {namespace}")

    async def readable(self, caller: HubCaller, namespace: str, model: str, version: str) -> str:
        """The digest of the content that the caller may read under this name. Raises what the Kubernetes API answers:
        403 without the right, 404 where there is no such ModelVersion."""
        if caller.grant is None:
            return await self._kept(caller, "get", namespace, reference.object_name(model, version), self._digest)
        if caller.grant[:3] != (namespace, model, version):
            opened = caller.grant
            raise Answered(
                403, "Forbidden", f"this read grant opens {opened.model}:{opened.version} of {opened.namespace} only"
            )
        return caller.grant.digest

    async def _kept(self, caller: HubCaller, verb: str, namespace: str, name: str, ask: Ask) -> str:
        which = hashlib.sha256(caller.token.encode()).digest(), verb, namespace, name
        known = self._answers.get(which)
        if known is not None and known[0] > self._clock.monotonic():
            return known[1]
        answer = await ask(caller, verb, namespace, name)
        self._answers[which] = self._clock.monotonic() + SECONDS, answer
        self._answers.move_to_end(which)
        while len(self._answers) > MOST_ANSWERS:
            self._answers.popitem(last=False)
        return answer

    async def _digest(self, caller: HubCaller, verb: str, namespace: str, name: str) -> str:
        found = await self.client(caller).get(MODELVERSIONS, name, namespace)
        return str(found["spec"]["digest"])

    async def _review(self, caller: HubCaller, verb: str, namespace: str, name: str) -> str:
        """Empty if the caller may not."""
        return "allowed" if await access.may(self.client(caller), verb, MODELVERSIONS, namespace, name) else ""
