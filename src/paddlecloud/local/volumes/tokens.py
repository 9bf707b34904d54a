"""Service-account tokens in volumes: asked for when first needed, renewed in time, forgotten with their pod."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from paddlecloud.kube.clock import Clock
from paddlecloud.kube.resource import Object
from paddlecloud.local.volumes.errors import VolumeError

TokenSource = Callable[[Object, str, int], Awaitable[str]]
"""(pod, audience, seconds) → a token of the pod's service account."""

DEFAULT_SECONDS = 3607
LIFE = 0.8
"""The part of a token's life after which it is renewed (requiresRefresh of pkg/kubelet/token/token_manager.go)."""


class _Token(NamedTuple):
    text: str
    renew_at: float


class Tokens:
    """A `source` is the `serviceAccountToken` of a projected volume."""

    def __init__(self, issue: TokenSource | None, clock: Clock) -> None:
        self._issue = issue
        self._clock = clock
        self._held: dict[tuple[str, str, str], _Token] = {}  # by pod uid, volume, path

    @property
    def are_issued(self) -> bool:
        return self._issue is not None

    async def renew(self, pod: Object, volume: str, source: Object) -> None:
        """Have a token that is good for a while. Raises `VolumeError` on a platform that issues none."""
        if self._issue is None:
            raise VolumeError("this platform issues no service-account tokens")
        key, now = _key(pod, volume, source), self._clock.now()
        if key not in self._held or self._held[key].renew_at <= now:
            seconds = int(source.get("expirationSeconds") or DEFAULT_SECONDS)
            text = await self._issue(pod, source.get("audience", ""), seconds)
            self._held[key] = _Token(text, now + LIFE * seconds)

    def text(self, pod: Object, volume: str, source: Object) -> str:
        return self._held[_key(pod, volume, source)].text

    def forget(self, uid: str) -> None:
        self._held = {key: token for key, token in self._held.items() if key[0] != uid}


def _key(pod: Object, volume: str, source: Object) -> tuple[str, str, str]:
    return pod["metadata"]["uid"], volume, source["path"]
