"""A key that several programs share: made once, read by all, never one that anybody could guess."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from paddlecloud.kube import shared_key
from paddlecloud.kube.client import Client
from paddlecloud.kube.resource import SECRETS
from paddlecloud.kube.shared_key import SHORTEST, ensure_key, read_key
from paddlecloud.local.control_plane import ControlPlane


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    running = ControlPlane(tmp_path / "data", seed=1)
    await running.start()
    made = running.client()
    yield made
    await made.close()
    await running.stop()


async def test_the_first_makes_the_key_and_all_others_read_it(client: Client) -> None:
    assert await read_key(client, "shared", "kube-system") is None
    key = await ensure_key(client, "shared", "kube-system")
    assert len(key) == SHORTEST
    assert await ensure_key(client, "shared", "kube-system") == key
    assert await read_key(client, "shared", "kube-system") == key
    assert await ensure_key(client, "another", "kube-system") != key


async def test_of_two_that_make_it_at_the_same_time_both_have_the_same(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = await ensure_key(client, "shared", "kube-system")

    async def not_yet(*_: object) -> None:
        return None

    monkeypatch.setattr(shared_key, "read_key", not_yet)
    assert await ensure_key(client, "shared", "kube-system") == key


@pytest.mark.parametrize("data", [{}, {"key": ""}, {"key": base64.b64encode(b"short").decode()}])
async def test_a_key_that_could_be_guessed_is_refused(client: Client, data: dict[str, str]) -> None:
    meta = {"name": "shared", "namespace": "kube-system"}
    await client.create(SECRETS, {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": data})
    with pytest.raises(ValueError, match="kube-system/shared has no key of 32 bytes .* delete it"):
        await ensure_key(client, "shared", "kube-system")
