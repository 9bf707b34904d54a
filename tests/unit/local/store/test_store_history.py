"""Lists of an earlier moment: any history undone step by step shows every state it went through."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddlecloud.kube import errors
from paddlecloud.local.store.record import ObjectAddress
from paddlecloud.local.store.store import Store

STEPS = st.lists(st.tuples(st.sampled_from(["ns1/a", "ns1/b", "ns2/a"]), st.booleans()), max_size=12)


def address(key: str) -> ObjectAddress:
    namespace, _, name = key.partition("/")
    return ObjectAddress("/things", namespace, name)


async def step(store: Store, key: str, *, remove: bool) -> None:
    """Create, change or delete one object."""
    current = store.latest(address(key))
    obj = {"metadata": {"name": key, "uid": key}}
    if current is None:
        await store.put(address(key), obj, expect=0)
    elif remove:
        await store.delete(address(key), obj, expect=current.rev)
    else:
        await store.put(address(key), obj, expect=current.rev)


@settings(max_examples=40, deadline=None)
@given(history=STEPS)
async def test_every_moment_can_be_shown_again(history: list[tuple[str, bool]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "state.db")
        seen = {store.revision: store.list("/things")}
        for key, remove in history:
            await step(store, key, remove=remove)
            seen[store.revision] = store.list("/things")
        for revision, state in seen.items():
            assert [r.rev for r in store.list_at("/things", None, revision)] == [r.rev for r in state]
            inside = [r.rev for r in state if r.address.namespace == "ns1"]
            assert [r.rev for r in store.list_at("/things", "ns1", revision)] == inside
        await store.close()


async def test_what_was_compacted_or_has_not_happened_is_refused(tmp_path: Path) -> None:
    store = Store(tmp_path / "state.db")
    for _ in range(3):
        await step(store, "ns1/a", remove=False)
    await store.compact(2)
    assert [r.rev for r in store.list_at("/things", None, 2)] == [2]
    with pytest.raises(errors.Expired):
        store.list_at("/things", None, 1)
    with pytest.raises(errors.Timeout, match="Too large resource version"):
        store.list_at("/things", None, 4)
    await store.close()
