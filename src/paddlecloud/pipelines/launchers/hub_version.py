"""The model that `modelhub` stores, as a version of the ModelHub too: with its origin, for `pdc model` and `pdc trace`.

The training step knows the job, its data and its metrics, and deletes the job when it is done. It leaves what is to be
recorded beside the packed model (`RECORD`), on the volume that the steps share. A ModelHub that is not there, or that
the account of the steps may not use, is a warning: the model is in the original's store either way.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from paddlecloud.api.model.reference import LATEST
from paddlecloud.kube.errors import ApiError, ConfigError
from paddlecloud.modelhub import discovery, names
from paddlecloud.modelhub.errors import HubError, UnknownVersion
from paddlecloud.modelhub.push import read_local
from paddlecloud.storage import archive
from paddlecloud.storage.errors import StorageError

RECORD = ".origin.json"
"""Behind the model's name: its file beside the packed model."""
LARGEST_RECORD = 1 << 20


class ModelRecord(NamedTuple):
    origin: Mapping[str, str]
    metrics: Mapping[str, float]

    def encoded(self) -> str:
        return json.dumps({"origin": dict(self.origin), "metrics": dict(self.metrics)}, sort_keys=True)


def record_of(file: Path, step: Mapping[str, str]) -> ModelRecord:
    """What the training step left beside a packed model; what another program wrote there is left out. `step` is the
    run and the step that stores the model."""
    beside = file.with_name(file.name.removesuffix(".tar.gz") + RECORD)
    try:
        with beside.open("rb") as content:
            found = json.loads(content.read(LARGEST_RECORD))
        origin = {str(key): str(value) for key, value in found["origin"].items()}
        metrics = {str(key): float(value) for key, value in found["metrics"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return ModelRecord(step, {})
    return ModelRecord({**step, **origin}, metrics)


def store(file: Path, model: str, version: str, record: ModelRecord) -> str:
    """`NAMESPACE/MODEL:VERSION`; empty, with a line in the log, where it is not stored."""
    hub = discovery.address(os.environ)
    if not hub:
        print("there is no ModelHub to store it in as well", flush=True)
        return ""
    os.environ[names.VARIABLE] = hub
    try:
        return _store(file, model, version, record)
    except (HubError, StorageError, ApiError, ConfigError, ValueError, OSError) as error:
        print(f"warning: it is not in the ModelHub: {error}", flush=True)
        return ""


def _store(file: Path, model: str, version: str, record: ModelRecord) -> str:
    import paddlecloud

    with tempfile.TemporaryDirectory() as folder, paddlecloud.connect() as client:
        root = _unpacked(file, Path(folder), model)
        made = _latest_of_same_files(client, model, root) if version == LATEST else None
        if made is None:
            name = model if version == LATEST else f"{model}:{version}"
            made = client.models.push(name, root, origin=record.origin, metrics=record.metrics)
        found = f"{model}:{made.body['spec']['version']}"
        print(f"stored in the ModelHub as {found}", flush=True)
        return f"{made.body['metadata']['namespace']}/{found}"


def _latest_of_same_files(client: Any, model: str, root: Path) -> Any:
    """A step that is tried again, and a training that gave the same, make no second version."""
    try:
        found = client.models.get(model)
    except UnknownVersion:
        return None
    return found if found.body["spec"]["digest"] == read_local(root).digest else None


def _unpacked(file: Path, folder: Path, model: str) -> Path:
    """The files as the hub serves them: the archive of the original has them below the model's name."""
    archive.unpack(file, folder, name=file.name)
    inside = list(folder.iterdir())
    return inside[0] if len(inside) == 1 and inside[0].name == model and inside[0].is_dir() else folder
