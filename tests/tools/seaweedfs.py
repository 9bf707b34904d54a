"""SeaweedFS as a small S3 server: for test runs (`tools.s3`) and on the control machine of the fixture."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def identities(keys: Mapping[str, str], open_buckets: Sequence[str] = ()) -> str:
    """Its configuration: who holds a key (secrets by access key) may do everything, others read the open buckets."""
    credentials = [{"accessKey": key, "secretKey": secret} for key, secret in keys.items()]
    owner = {"name": "tests", "credentials": credentials, "actions": ["Admin", "Read", "Write", "List", "Tagging"]}
    reading = [f"{verb}:{bucket}" for verb in ("Read", "List") for bucket in open_buckets]
    return json.dumps({"identities": [owner, {"name": "anonymous", "actions": reading}]})


def server(program: str, folder: Path, host: str, ports: Sequence[int]) -> list[str]:
    """The command; its configuration is `s3.json` in the folder, the first of eight ports that of S3."""
    s3, master, volume, filer, *grpc = ports
    return [
        program, "server", "-s3", f"-dir={folder}", f"-ip={host}", f"-ip.bind={host}",
        f"-s3.config={folder / 's3.json'}", f"-s3.port={s3}", f"-master.port={master}", f"-volume.port={volume}",
        f"-filer.port={filer}", f"-s3.port.grpc={grpc[0]}", f"-master.port.grpc={grpc[1]}",
        f"-volume.port.grpc={grpc[2]}", f"-filer.port.grpc={grpc[3]}", "-s3.port.iceberg=0", "-s3.port.lance=0",
        "-volume.max=400", "-master.volumeSizeLimitMB=256", "-master.telemetry=false",
    ]  # fmt: skip


def store(endpoint: str, bucket: str, keys: tuple[str, str]) -> Any:
    """A client of one bucket; the bucket is made with its first object."""
    from obstore.store import S3Store

    return S3Store(
        bucket,
        endpoint=endpoint,
        region="us-east-1",
        access_key_id=keys[0],
        secret_access_key=keys[1],
        client_options={"allow_http": True},
        retry_config={"max_retries": 0},
    )
