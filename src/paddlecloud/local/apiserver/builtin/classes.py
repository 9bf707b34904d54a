"""The class that objects get which name none: of claims and of Ingresses."""

from __future__ import annotations

from paddlecloud.local.store.store import Store


def default_of(store: Store, collection: str, mark: str) -> str:
    """The name of the newest class with the annotation `mark`, of several as new the first by name; empty for none."""
    marked = [
        record.object["metadata"]
        for record in store.list(collection)
        if (record.object["metadata"].get("annotations") or {}).get(mark) == "true"
    ]
    newest = max((meta["creationTimestamp"] for meta in marked), default="")
    return min((meta["name"] for meta in marked if meta["creationTimestamp"] == newest), default="")
