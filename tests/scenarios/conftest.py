"""Every scenario is played on both platforms: `server`, and with it `kubectl` and `operators`, is each in turn.

`make test` plays them on the embedded platform, `make test-cluster` on a cluster. There a scenario runs in CI if it is
marked `core`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import Target

from .embedded_hands import EmbeddedHands
from .hands import Hands, Story, watched


@pytest.fixture(scope="session", params=["embedded", "cluster"])
def server(request: pytest.FixtureRequest) -> Target:
    return request.getfixturevalue(request.param)  # type: ignore[no-any-return]


@pytest.fixture
def hands(server: Target, operators: None, kubectl_binary: str) -> Iterator[Hands]:
    """What hurts the platform; nodes that were added for it go again."""
    if not server.embedded:
        from .cluster_hands import ClusterHands

        yield ClusterHands(server, kubectl_binary)
        return
    made = EmbeddedHands(server)
    yield made
    made.remove_nodes()


@pytest.fixture
def story(kubectl_binary: str, server: Target, namespace: str, tmp_path: Path) -> Iterator[Story]:
    with watched(kubectl_binary, server, namespace, tmp_path / "story") as reported:
        yield reported
