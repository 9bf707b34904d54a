"""Every scenario is played on both platforms: `server`, and with it `kubectl` and `operators`, is each in turn.

`make test` plays them on the embedded platform, `make test-cluster` on a cluster. There a scenario runs in CI if it is
marked `core`.
"""

from __future__ import annotations

import pytest

from harness import Target


@pytest.fixture(scope="session", params=["embedded", "cluster"])
def server(request: pytest.FixtureRequest) -> Target:
    return request.getfixturevalue(request.param)  # type: ignore[no-any-return]
