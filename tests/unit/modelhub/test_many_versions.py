"""A model with 10,000 versions: another push reads none of them, and what is decided on all costs in proportion."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

from paddlecloud.api.model.spec import ModelSpec, Retention
from paddlecloud.kube.times import rfc3339
from paddlecloud.modelhub.push import push_next, read_local
from paddlecloud.modelhub.retention import newest_first, verdicts
from paddlecloud.storage.stores import open_store

from .hubs import FACTS, V1, Wrapped, folder_of, pushed

MANY = 10_000
NOW = 1_790_000_000.0


class Counted(Wrapped):
    def __init__(self, folder: Path) -> None:
        super().__init__(open_store(f"file://{folder}"))
        self.operations: Counter[str] = Counter()

    def before(self, operation: str, key: str) -> None:
        self.operations[f"{operation} {key.split('/')[0]}"] += 1


def test_a_push_into_a_model_of_many_versions_reads_none_of_their_manifests(tmp_path: Path) -> None:
    store = Counted(tmp_path / "store")
    model = folder_of(tmp_path / "model", {"weights": b"the same in all"})
    content = store.store
    pushed(store, V1, model)
    (manifest,) = (tmp_path / "store" / "versions").rglob("1.json")
    for number in range(2, MANY + 1):
        manifest.with_name(f"{number}.json").hardlink_to(manifest)
    store.operations.clear()
    registered = {str(number) for number in range(1, MANY + 1)}
    done = push_next(store, "default", "ocr", read_local(model), FACTS, registered)
    assert (done.manifest.version, done.created, done.uploaded) == (str(MANY + 1), True, 0)
    assert store.operations["read versions"] <= 2, "whether it is there: before the files and after"
    assert sum(store.operations.values()) < 20
    assert sum(1 for _ in content.list("versions/")) == MANY + 1


def test_retention_of_many_versions_is_decided_in_a_moment() -> None:
    versions = []
    for number in range(1, MANY + 1):
        at = rfc3339(NOW - (MANY - number) * 60)
        spec = {"model": "ocr", "version": str(number), "createdAt": at}
        meta = {"name": f"ocr.{number}", "namespace": "default", "uid": str(number), "creationTimestamp": at}
        versions.append({"metadata": meta, "spec": spec})
    began = time.process_time()
    spec = ModelSpec(retention=Retention(count=100), aliases={"production": "7"})
    found = verdicts("ocr", spec, newest_first(versions), [])
    assert sum(1 for each in found if each.removed_at is None) == 101
    assert time.process_time() - began < 3
