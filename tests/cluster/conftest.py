"""Tests on a real cluster: `server`, and with it `kubectl` and `namespace`, is that cluster here.

Tests of the harness's own logic need none and run always.
"""

from __future__ import annotations

import pytest

from harness import Target


@pytest.fixture(scope="session")
def server(cluster: Target) -> Target:
    return cluster
