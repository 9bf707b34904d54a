from __future__ import annotations

import os
import secrets
from pathlib import Path

import pytest

from paddlecloud.storage.credentials import Credentials
from paddlecloud.storage.stores import Store, open_store
from tools.s3 import ACCESS_KEY, SECRET_KEY, S3Server


@pytest.fixture(autouse=True)
def disk_that_need_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes are killed here, not machines: what they wrote is in the page cache."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture(params=["folder", "bucket"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "folder":
        return open_store(f"file://{tmp_path}/store", Credentials(), environment={})
    server: S3Server = request.getfixturevalue("s3_server")
    bucket = f"hub-{secrets.token_hex(4)}"
    server.store(bucket).put("other/object", b"of somebody else")
    environment = {"PADDLECLOUD_ENDPOINTS": f"s3://{bucket}={server.endpoint}/{bucket}"}
    return open_store(f"s3://{bucket}/models", Credentials(ACCESS_KEY, SECRET_KEY), environment=environment)
