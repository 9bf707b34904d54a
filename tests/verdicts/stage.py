"""Puts the objects of worlds on a server, waits until its authoriser knows them, and takes them away again."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Awaitable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from .judge import Judge
from .kinds import BY_PLURAL, KINDS, definitions
from .model import ACTORS, CUSTOM, RBAC, AccessScenario, Grant, Verdict, named

PATIENCE = 60.0  # seconds
AT_ONCE = 8  # worlds
_LABEL = f"{CUSTOM}/part-of"
_SENTINEL = [{"apiGroups": [CUSTOM], "resources": ["sentinels"], "verbs": ["get"]}]
_Objects = list[tuple[str, dict[str, Any]]]
"""Paths of collections and what is created there."""


@asynccontextmanager
async def custom_kinds(*judges: Judge) -> AsyncIterator[None]:
    """The custom kinds, which all worlds share."""
    path, made = BY_PLURAL["customresourcedefinitions"].path(""), definitions()
    try:
        for judge, definition in itertools.product(judges, made):
            answer = await judge.send("POST", path, definition)
            assert answer.status in (201, 409), answer.body  # left by a run that was killed
            plural = definition["spec"]["names"]["plural"]
            await _until(judge, "GET", f"/apis/{CUSTOM}/v1/{plural}", None, lambda answer: answer.status == 200)
        yield
    finally:
        for judge, definition in itertools.product(judges, made):
            await judge.send("DELETE", f"{path}/{definition['metadata']['name']}")


async def verdicts(judge: Judge, worlds: Sequence[AccessScenario], prefix: str) -> list[list[Verdict]]:
    """The verdicts on every case of every world. Requests of one world are sent one after the other."""
    prefixes = [f"{prefix}x{number}" for number in range(len(worlds))]
    async with _staged(judge, worlds, prefixes):

        async def one(world: AccessScenario, own: str) -> list[Verdict]:
            return [await judge.ask(case, own) for case in world.cases]

        return await _bounded(one(world, own) for world, own in zip(worlds, prefixes, strict=True))


@asynccontextmanager
async def _staged(judge: Judge, worlds: Sequence[AccessScenario], prefixes: Sequence[str]) -> AsyncIterator[None]:
    try:
        await _bounded(_build(judge, world, own) for world, own in zip(worlds, prefixes, strict=True))
        await _aggregated(judge, worlds, prefixes)
        await _known(judge, prefixes[0])
        yield
    finally:
        await _bounded(_remove(judge, world, own) for world, own in zip(worlds, prefixes, strict=True))


async def _bounded(work: Iterable[Awaitable[Any]]) -> list[Any]:
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(awaitable: Awaitable[Any]) -> Any:
        async with gate:
            return await awaitable

    return list(await asyncio.gather(*map(one, work)))


async def _build(judge: Judge, world: AccessScenario, prefix: str) -> None:
    for path, body in objects(world):
        answer = await judge.send("POST", named(path, prefix), named(body, prefix))
        assert answer.status == 201, f"{path} {body}: {answer.body.decode()}"
    for actor in ACTORS:
        if actor.namespace:
            path = named(f"/api/v1/namespaces/{actor.namespace}/serviceaccounts/{actor.name}/token", prefix)
            made = (await judge.send("POST", path, {"spec": {}})).json
            judge.tokens[named(actor.user, prefix)] = made["status"]["token"]


async def _remove(judge: Judge, world: AccessScenario, prefix: str) -> None:
    for path, body in objects(world):
        if "/namespaces/" not in path:
            await judge.send("DELETE", named(f"{path}/{body['metadata']['name']}", prefix))
    for plural in ("clusterroles", "clusterrolebindings"):
        await judge.send("DELETE", BY_PLURAL[plural].path("", f"{prefix}-sentinel"))


def objects(world: AccessScenario) -> _Objects:
    """Everything of a world that its requests may meet, in the order it is made in."""
    paths = "\n".join(case.path for case in world.cases)
    stored = [kind for kind in KINDS if kind.stored and (f"/{kind.plural}" in paths or kind.group == RBAC)]
    namespaces = BY_PLURAL["namespaces"]
    made: _Objects = [(namespaces.path(""), namespaces.object(name)) for name in ("@a", "@b")]
    made += [(BY_PLURAL["serviceaccounts"].path(name), BY_PLURAL["serviceaccounts"].object("robot"))
             for name in ("@a", "@b")]  # fmt: skip
    made += [(kind.path(where), kind.object("one")) for kind in stored if kind.namespaced for where in ("@a", "@b")]
    made += [(kind.path(""), kind.object("@one")) for kind in stored if not kind.namespaced]
    made.append((BY_PLURAL["configmaps"].path("@a"), BY_PLURAL["configmaps"].object("two")))
    for number, grant in enumerate(world.grants):
        made += _grant_objects(number, grant)
    return made


def _grant_objects(number: int, grant: Grant) -> _Objects:
    rules = [rule.body() for rule in grant.rules]
    roles, cluster_roles = BY_PLURAL["roles"], BY_PLURAL["clusterroles"]
    name = f"@g{number}" if grant.cluster_role else f"g{number}"
    made: _Objects = []
    if grant.role:
        name = grant.role
    elif grant.aggregated:
        part = cluster_roles.object(f"{name}-part", labels={_LABEL: name})
        made.append((cluster_roles.path(""), {**part, "rules": rules}))
        selectors = {"clusterRoleSelectors": [{"matchLabels": {_LABEL: name}}]}
        made.append((cluster_roles.path(""), {**cluster_roles.object(name), "rules": [], "aggregationRule": selectors}))
    elif grant.cluster_role:
        made.append((cluster_roles.path(""), {**cluster_roles.object(name), "rules": rules}))
    else:
        made.append((roles.path(grant.where), {**roles.object(name), "rules": rules}))
    binding = BY_PLURAL["rolebindings" if grant.where else "clusterrolebindings"]
    kind = "ClusterRole" if grant.role or grant.cluster_role else "Role"
    body = {
        **binding.object(f"b{number}" if grant.where else f"@b{number}"),
        "roleRef": {"apiGroup": RBAC, "kind": kind, "name": name},
        "subjects": [_subject(*subject) for subject in grant.subjects],
    }
    return [*made, (binding.path(grant.where), body)]


def _subject(kind: str, namespace: str, name: str) -> dict[str, str]:
    place = {"namespace": namespace} if namespace else {"apiGroup": RBAC}
    return {"kind": kind, "name": name, **place}


# --- waiting ---


async def _aggregated(judge: Judge, worlds: Sequence[AccessScenario], prefixes: Sequence[str]) -> None:
    """Until a controller has filled in the rules of aggregated roles."""
    for world, prefix in zip(worlds, prefixes, strict=True):
        for number, grant in enumerate(world.grants):
            if grant.aggregated and not grant.role:
                path = BY_PLURAL["clusterroles"].path("", f"{prefix}-g{number}")
                await _until(judge, "GET", path, None, lambda answer: bool(answer.json.get("rules")))


async def _known(judge: Judge, prefix: str) -> None:
    """Until the authoriser grants what was granted last: it observes objects of a kind in the order they were made."""
    user, where, name = f"{prefix}-sentinel", f"{prefix}-a", f"{prefix}-sentinel"
    for role, binding, namespace in (("roles", "rolebindings", where), ("clusterroles", "clusterrolebindings", "")):
        kind = BY_PLURAL[role]
        await judge.send("POST", kind.path(namespace), {**kind.object(name), "rules": _SENTINEL})
        body = BY_PLURAL[binding].object(name)
        body["roleRef"] = {"apiGroup": RBAC, "kind": kind.kind, "name": name}
        body["subjects"] = [{"kind": "User", "apiGroup": RBAC, "name": f"{user}-{role}"}]
        await judge.send("POST", BY_PLURAL[binding].path(namespace), body)
        attributes = {"verb": "get", "group": CUSTOM, "resource": "sentinels", "namespace": namespace}
        review = {"spec": {"user": f"{user}-{role}", "resourceAttributes": attributes}}
        path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        await _until(judge, "POST", path, review, lambda answer: bool(answer.json["status"]["allowed"]))


async def _until(judge: Judge, method: str, path: str, body: Any, check: Any) -> None:
    deadline = time.monotonic() + PATIENCE
    while not check(answer := await judge.send(method, path, body)):
        assert time.monotonic() < deadline, f"{method} {path} is still answered with {answer.body.decode()}"
        await asyncio.sleep(0.02)
