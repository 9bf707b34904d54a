"""Continue tokens: good for the user who began a list, for that list, and until it ends."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from paddlecloud.kube import errors
from paddlecloud.kube.client import Client
from paddlecloud.kube.clock import FakeClock
from paddlecloud.kube.resource import CONFIGMAPS, SECRETS
from paddlecloud.local.apiserver.auth.authentication import User
from paddlecloud.local.apiserver.objects import listing
from paddlecloud.local.control_plane import ControlPlane

NS = "default"
PATH = SECRETS.path(NS)
VIEWER, READER = User("viewer"), User("reader")
GROUP = "rbac.authorization.k8s.io"


async def page(client: Client, token: str = "", *, path: str = PATH, limit: int = 1, **query: str) -> Any:
    """The names of one page, and the token of the next."""
    more = {"continue": token} if token else {}
    answer = await client.raw("GET", path, query={"limit": str(limit), **more, **query})
    found = json.loads(answer.body)
    return [item["metadata"]["name"] for item in found["items"]], found["metadata"].get("continue", "")


@pytest.fixture
async def secrets(client: Client) -> None:
    for name in ("a", "b", "c", "d"):
        obj = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "labels": {"l": "v"}}}
        await client.create(SECRETS, obj, namespace=NS)


async def bind(client: Client, user: User, role: str, namespace: str) -> None:
    binding = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": f"{user.name}-{role}"},
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": GROUP, "kind": "User", "name": user.name}],
    }
    await client.raw("POST", f"/apis/{GROUP}/v1/namespaces/{namespace}/rolebindings", body=binding)


async def test_given_a_token_of_somebody_else_then_nothing_is_shown(
    inner: ControlPlane, client: Client, secrets: None
) -> None:
    _, token = await page(client)
    for user, role, namespace in ((VIEWER, "view", "kube-public"), (READER, "edit", NS)):
        await bind(client, user, role, namespace)
        with pytest.raises(errors.Expired):
            await page(inner.client(user), token, path=CONFIGMAPS.path(namespace))
    with pytest.raises(errors.Expired):
        await page(inner.client(READER), token)  # who may list these Secrets, but did not begin this list
    assert await page(client, token, limit=9) == (["b", "c", "d"], "")


@pytest.mark.parametrize(
    ("path", "query"),
    [
        (SECRETS.path("kube-system"), {}),
        (SECRETS.path(None), {}),
        (CONFIGMAPS.path(NS), {}),
        (PATH, {"labelSelector": "l=v"}),
        (PATH, {"fieldSelector": "metadata.name!=x"}),
    ],
)
async def test_given_the_token_of_another_list_of_mine_then_it_does_not_fit(
    client: Client, secrets: None, path: str, query: dict[str, str]
) -> None:
    _, token = await page(client)
    with pytest.raises(errors.Expired):
        await page(client, token, path=path, **query)


async def test_tokens_cannot_be_guessed(client: Client, secrets: None) -> None:
    """Tokens of lists begun one after another have no more in common than chance gives them."""
    tokens = [(await page(client))[1] for _ in range(6)]
    ids = [token.partition(".")[0] for token in tokens]
    assert all(len(found) == 32 for found in ids)
    for one, other in itertools.combinations(ids, 2):
        assert sum(x == y for x, y in zip(one, other, strict=True)) < 8


@pytest.mark.parametrize("change", [lambda t: t[1:], lambda t: t + "0" * 12, lambda t: t.replace(".", ".0"), str.upper])
async def test_an_altered_token_is_refused(client: Client, secrets: None, change: Any) -> None:
    _, token = await page(client)
    with pytest.raises((errors.BadRequest, errors.Expired)):
        await page(client, change(token))


async def test_a_page_can_be_asked_for_again_until_the_list_is_finished(client: Client, secrets: None) -> None:
    _, second = await page(client)
    names, third = await page(client, second)
    assert names == ["b"]
    assert (await page(client, second)) == (["b"], third)
    assert await page(client, third, limit=2) == (["c", "d"], "")
    for token in (second, third):
        with pytest.raises(errors.Expired, match="start a new list without the continue parameter"):
            await page(client, token)


async def test_an_abandoned_list_is_forgotten_after_five_minutes(
    client: Client, clock: FakeClock, secrets: None
) -> None:
    _, token = await page(client)
    await clock.advance(listing.LIFETIME - 1)
    assert (await page(client, token))[0] == ["b"]
    await clock.advance(1)
    with pytest.raises(errors.Expired):
        await page(client, token)


async def test_the_rest_of_a_forgotten_list_is_shown_as_it_is_now(
    inner: ControlPlane, client: Client, clock: FakeClock, secrets: None
) -> None:
    _, token = await page(client)
    await clock.advance(listing.LIFETIME)
    with pytest.raises(errors.Expired, match="too old to display a consistent list result") as expired:
        await page(client, token)
    assert expired.value.resume
    await client.delete(SECRETS, "b", namespace=NS)
    names, rest = await page(client, expired.value.resume)
    assert names == ["c"]
    assert await page(client, rest) == (["d"], "")
    await bind(client, READER, "view", NS)  # a view of this namespace has no Secrets
    with pytest.raises(errors.Forbidden):
        await page(inner.client(READER), expired.value.resume)


@pytest.mark.parametrize("token", ["after.__", "after.", "after.%", "after." + "a" * 700])
async def test_a_made_up_start_is_refused(client: Client, secrets: None, token: str) -> None:
    with pytest.raises(errors.BadRequest):
        await page(client, token)


async def test_a_user_with_too_many_unfinished_lists_loses_the_oldest_of_them(
    inner: ControlPlane, client: Client, secrets: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "UNFINISHED", 3)
    await bind(client, READER, "edit", NS)
    reader = inner.client(READER)
    _, mine = await page(client)
    theirs = [(await page(reader))[1] for _ in range(5)]
    assert (await page(client, mine))[0] == ["b"]
    assert (await page(reader, theirs[-1]))[0] == ["b"]
    with pytest.raises(errors.Expired):
        await page(reader, theirs[0])
