"""The store against a plain dict: any sequence of writes, crashes, compactions and watches tells one story."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from paddlecloud.kube import errors
from paddlecloud.local.store.log import Op
from paddlecloud.local.store.record import ObjectAddress
from paddlecloud.local.store.store import Store

NAMES = st.sampled_from(["a", "b", "c"])
SPACES = st.sampled_from(["x", "y"])
KIND = "/things"


class StoreMachine(RuleBasedStateMachine):
    """`model` is what was acknowledged; `seen` replays a watch from revision zero of the watched history."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.directory = tempfile.TemporaryDirectory()
        self.model: dict[tuple[str, str], tuple[int, int]] = {}  # (space, name) → (revision, value)
        self.history: list[tuple[int, Op, str, str]] = []
        self.counter = 0

    @initialize()
    def open(self) -> None:
        self.store = self.call(self._open())
        self.start_watch(0)

    async def _open(self) -> Store:
        return Store(Path(self.directory.name) / "state.db", retain=10_000)

    def start_watch(self, since: int) -> None:
        self.watch = self.store.watch(KIND, None, since=since)
        self.watched_since = since
        self.seen: list[tuple[int, Op, str, str]] = []

    def call(self, awaitable):  # type: ignore[no-untyped-def]
        return self.loop.run_until_complete(awaitable)

    async def _put(self, space: str, name: str, value: int, expect: int) -> int:
        obj = {"metadata": {"name": name, "namespace": space, "uid": "u"}, "value": value}
        return (await self.store.put(ObjectAddress(KIND, space, name), obj, expect=expect)).rev

    @rule(space=SPACES, name=NAMES)
    def write(self, space: str, name: str) -> None:
        self.counter += 1
        expect = self.model.get((space, name), (0, 0))[0]
        rev = self.call(self._put(space, name, self.counter, expect))
        self.model[(space, name)] = (rev, self.counter)
        self.history.append((rev, Op.UPDATE if expect else Op.CREATE, space, name))

    @rule(space=SPACES, name=NAMES, wrong=st.integers(1, 50))
    def a_stale_write_is_refused_and_changes_nothing(self, space: str, name: str, wrong: int) -> None:
        if self.model.get((space, name), (0, 0))[0] == wrong:
            return
        with pytest.raises(errors.Conflict):
            self.call(self._put(space, name, -1, wrong))

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        space, name = data.draw(st.sampled_from(sorted(self.model)))
        expect, _ = self.model.pop((space, name))

        async def delete() -> int:
            obj = {"metadata": {"name": name, "namespace": space, "uid": "u"}}
            return (await self.store.delete(ObjectAddress(KIND, space, name), obj, expect=expect)).rev

        self.history.append((self.call(delete()), Op.DELETE, space, name))

    @rule(many=st.integers(2, 8))
    def concurrent_writers_of_one_name_make_one_chain(self, many: int) -> None:
        """All start from the newest state in flight, so all succeed, in order."""

        async def burst() -> list[int]:
            address = ObjectAddress(KIND, "x", "a")
            futures = []
            for _ in range(many):
                current = self.store.latest(address)
                self.counter += 1
                obj = {"metadata": {"name": "a", "namespace": "x", "uid": "u"}, "value": self.counter}
                futures.append(self.store.put(address, obj, expect=current.rev if current else 0))
            return [(await future).rev for future in futures]

        existed = ("x", "a") in self.model
        revs = self.call(burst())
        assert revs == sorted(revs)
        for number, rev in enumerate(revs):
            self.history.append((rev, Op.UPDATE if existed or number else Op.CREATE, "x", "a"))
        self.model[("x", "a")] = (revs[-1], self.counter)

    @rule(part=st.floats(0, 1))
    def compact(self, part: float) -> None:
        upto = int(self.store.revision * part)
        self.call(self.store.compact(upto))

    @rule()
    def restart(self) -> None:
        """Whatever was acknowledged is on disk: closing adds nothing to it."""
        self.drain()
        self.call(self.store.close())
        self.store = self.call(self._open())
        self.start_watch(self.store.revision)

    @rule(back=st.integers(0, 30))
    def resume_watch(self, back: int) -> None:
        since = max(0, self.store.revision - back)
        if since < self.store.compacted:
            with pytest.raises(errors.Expired):
                self.store.watch(KIND, None, since=since)
            return
        self.store.unwatch(self.watch)
        self.start_watch(since)

    def drain(self) -> None:
        async def take() -> None:
            while batch := await self.watch.next_batch(0.0):
                for change in batch:
                    address = change.record.address
                    self.seen.append((change.rev, change.op, address.namespace, address.name))
                    assert (change.previous is None) == (change.op is Op.CREATE)

        self.call(take())

    @invariant()
    def state_equals_model(self) -> None:
        listed = {(r.address.namespace, r.address.name): (r.rev, r.object["value"]) for r in self.store.list(KIND)}
        assert listed == self.model
        assert [r.address for r in self.store.list(KIND)] == sorted(r.address for r in self.store.list(KIND))

    @invariant()
    def watch_has_no_gap_and_no_duplicate(self) -> None:
        self.drain()
        assert self.seen == [entry for entry in self.history if entry[0] > self.watched_since]

    def teardown(self) -> None:
        self.call(self.store.close())
        self.loop.close()
        self.directory.cleanup()


TestStoreAgainstModel = StoreMachine.TestCase
TestStoreAgainstModel.settings = settings(
    max_examples=30, stateful_step_count=30, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
