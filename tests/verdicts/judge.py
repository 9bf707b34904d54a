"""One server that judges: sends requests as administrator, as an impersonated user or with the token of an account."""

from __future__ import annotations

import asyncio
import copy
import json
import re
import ssl
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import aiohttp
from yarl import URL

from paddlecloud.kube import config
from paddlecloud.kube.credentials import Credential

from .kinds import KINDS, REVIEWS
from .model import Case, Verdict, named

_ATTEMPTS = 20  # at requests that the server puts off (429)
_QUIET = 1.0  # seconds; watches are asked to end then
_OURS = re.compile(r"@\w+|one|two|made|absent|robot|[gb]\d+")
"""Names of objects that worlds and requests make: controllers make others, sooner or later."""


@dataclass(frozen=True)
class Answer:
    status: int
    body: bytes
    watching: bool = False

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Judge:
    """`tokens` are those of accounts, by user name."""

    url: str
    admin: aiohttp.ClientSession
    bare: aiohttp.ClientSession
    tokens: dict[str, str] = field(default_factory=dict)

    async def send(
        self,
        method: str,
        target: str,
        body: Any = None,
        *,
        headers: Iterable[tuple[str, str]] = (),
        token: str | None = None,
        content_type: str = "application/json",
    ) -> Answer:
        """As the administrator, or with `token`, an empty one for none. The target goes out as it is, however odd."""
        session, sent = (self.admin if token is None else self.bare), [*headers]
        if token:
            sent.append(("Authorization", f"Bearer {token}"))
        data = None if body is None else json.dumps(body).encode()
        if data is not None:
            sent.append(("Content-Type", content_type))
        for attempt in range(_ATTEMPTS):
            async with session.request(method, URL(self.url + target, encoded=True), data=data, headers=sent) as reply:
                if reply.status == 429 and "Retry-After" in reply.headers:
                    await asyncio.sleep(0.05 * (attempt + 1))
                    continue
                if reply.status == 200 and "watch" in target:
                    return await _first_of(reply)
                return Answer(reply.status, await reply.read())
        raise AssertionError(f"{method} {target} is still put off after {_ATTEMPTS} attempts")

    async def ask(self, case: Case, prefix: str) -> Verdict:
        """What the server makes of a request in the world with this prefix."""
        target = named(case.target, prefix).replace("%40", f"{prefix}-")
        body = named(case.body, prefix)
        if case.live:
            body = await self._live(target.partition("?")[0], body)
        sent = [(name, named(value, prefix)) for name, value in case.headers]
        user = named(case.actor.user, prefix)
        token = self.tokens.get(user) if user else ""
        if token is None:
            sent += [("Impersonate-User", user)]
            sent += [("Impersonate-Group", named(group, prefix)) for group in case.actor.groups]
        options: dict[str, Any] = {"headers": sent, "token": token, "content_type": case.content_type}
        if case.pages:
            return await self._pages(case, target, options, prefix)
        answer = await self.send(case.method, target, body, **options)
        return Verdict(answer.status, _detail(case, answer, prefix))

    async def _live(self, path: str, changes: Any) -> Any:
        """The object as it is, with changes; the changes alone where there is none."""
        answer = await self.send("GET", path)
        if answer.status != 200:
            return changes
        return _merged(answer.json, changes)

    async def _pages(self, case: Case, target: str, options: Mapping[str, Any], prefix: str) -> Verdict:
        names: list[str] = []
        token, answer = "", None
        for _ in range(200):
            query = {"limit": "1", **({"continue": token} if token else {})}
            answer = await self.send(case.method, f"{target}?{urlencode(query)}", **options)
            if answer.status != 200:
                return Verdict(answer.status)
            names += _listed(answer.json, prefix)
            token = answer.json["metadata"].get("continue", "")
            if not token:
                return Verdict(200, ",".join(sorted(names)))
        return Verdict(200, "endless")


async def _first_of(reply: aiohttp.ClientResponse) -> Answer:
    """A watch is left after its first event, or after a second without any; all else is read to its end."""
    try:
        first = await asyncio.wait_for(reply.content.readany(), _QUIET)
    except asyncio.TimeoutError:
        first = b""
    if not first or first.startswith(b'{"type"'):
        reply.close()
        return Answer(200, b"", watching=True)
    return Answer(200, first + await reply.read())


def _merged(obj: Any, changes: Any) -> Any:
    merged = copy.deepcopy(obj)
    for key, value in changes.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = _merged(merged[key], value) if both and key == "metadata" else value
    return merged


# --- what must be equal besides the status code ---


def _detail(case: Case, answer: Answer, prefix: str) -> str:
    if answer.watching:
        return "watch"
    if answer.status >= 300 or case.method == "HEAD" or not answer.body.startswith(b"{"):
        return ""
    body = answer.json
    kind = body.get("kind", "")
    if kind == "SelfSubjectReview":
        return json.dumps(_user(_anywhere(body["status"]["userInfo"], prefix)), sort_keys=True)
    if kind == REVIEWS["selfsubjectrulesreviews"]:
        return json.dumps(_rules(_anywhere(body["status"], prefix)))
    if kind in REVIEWS.values():
        return "allowed" if body["status"]["allowed"] else "denied"
    if isinstance(body.get("items"), list) and kind.endswith("List") and "resources" not in body:
        return ",".join(sorted(_listed(body, prefix)))
    return ""


def _user(info: Any) -> Any:
    """Without what differs from run to run: the uid of an account and the id of its token."""
    kept = {key: value for key, value in info.items() if key != "extra" and not (key == "uid" and len(value) > 2)}
    extra = {key: value for key, value in info.get("extra", {}).items() if "kubernetes.io" not in key}
    return {**kept, "extra": extra}


def _listed(body: Any, prefix: str) -> list[str]:
    """Names of the world's own objects."""
    found = []
    for item in body.get("items") or ():
        meta = item.get("metadata", {})
        name, namespace = meta.get("name", ""), meta.get("namespace", "")
        shown = name.replace(f"{prefix}-", "@")
        if (namespace or name).startswith(f"{prefix}-") and _OURS.fullmatch(shown):
            found.append(f"{namespace}/{shown}".replace(f"{prefix}-", "@"))
    return found


def _rules(status: Any) -> list[str]:
    """Everything the rules grant on kinds that requests are about, piece by piece."""
    compared = {
        (kind.group, resource)
        for kind in KINDS
        for resource in ("*", kind.plural, *(f"{kind.plural}/{sub}" for sub in kind.subresources))
    }
    found = set()
    for rule in status["resourceRules"]:
        for group in rule.get("apiGroups", ()):
            for resource in rule.get("resources", ()):
                if group != "*" and (group, resource if "*" not in resource else "*") not in compared:
                    continue
                names = rule.get("resourceNames") or ("",)
                found |= {f"{verb} {resource}.{group} {name}" for verb in rule["verbs"] for name in names}
    for rule in status["nonResourceRules"]:
        found |= {f"{verb} {url}" for verb in rule["verbs"] for url in rule["nonResourceURLs"]}
    return sorted(found)


def _anywhere(value: Any, prefix: str) -> Any:
    """With the names that are the same in every world."""
    return json.loads(json.dumps(value).replace(f"{prefix}-", "@"))


# --- connecting ---


@asynccontextmanager
async def judge(kubeconfig: Path) -> AsyncIterator[Judge]:
    where = config.load(str(kubeconfig))
    credential = where.source.peek() or where.source.fetch()
    authorization = {"Authorization": credential.authorization} if credential.authorization else {}
    async with (
        _session(where.tls(credential), authorization) as admin,
        _session(where.tls(Credential()), {}) as bare,
    ):
        yield Judge(where.server, admin, bare)


def _session(tls: ssl.SSLContext | None, headers: Mapping[str, str]) -> aiohttp.ClientSession:
    assert tls is not None, "judged over TLS"
    connector = aiohttp.TCPConnector(ssl=tls, limit=0)
    headers = {**headers, "User-Agent": "verdicts/1", "Accept": "application/json, */*;q=0.1"}
    timeout = aiohttp.ClientTimeout(total=60)
    return aiohttp.ClientSession(
        connector=connector, headers=headers, timeout=timeout, skip_auto_headers=["Content-Type"]
    )
