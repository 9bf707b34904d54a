"""Garbage collection removes what no version names, after the grace time, whatever else happens at the same time."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddlecloud.modelhub import catalogue, layout
from paddlecloud.modelhub.errors import Damaged, Refused
from paddlecloud.modelhub.garbage import GRACE, Collected, collect
from paddlecloud.storage.stores import FolderStore, Store
from unit.modelhub.hubs import V1, V2, Later, Wrapped, faults, folder_of, pushed

DAY = 86400.0


def counts(done: Collected) -> tuple[int, int, int, int]:
    return done.kept, done.young, done.marked, done.removed


def test_files_of_a_removed_version_are_marked_and_removed_a_grace_time_later(store: Store, tmp_path: Path) -> None:
    pushed(store, V1, folder_of(tmp_path / "one", {"shared": b"s", "old": b"o"}))
    pushed(store, V2, folder_of(tmp_path / "two", {"shared": b"s", "new": b"n"}))
    assert catalogue.remove(store, V1)
    assert counts(collect(store)) == (2, 1, 0, 0)
    assert counts(collect(Later(store, 2 * DAY), dry_run=True)) == (2, 0, 1, 0)
    assert not list(store.list(layout.CONDEMNED))
    assert counts(collect(Later(store, 2 * DAY))) == (2, 0, 1, 0)
    assert counts(collect(store)) == (2, 0, 1, 0)
    assert counts(collect(Later(store, 2 * DAY))) == (2, 0, 0, 1)
    assert counts(collect(store)) == (2, 0, 0, 0)
    assert not list(store.list(layout.CONDEMNED))
    assert not list(store.list(layout.CLOCK))
    assert not faults(store)


def test_with_nobody_pushing_all_goes_at_once(store: Store, tmp_path: Path) -> None:
    pushed(store, V1, folder_of(tmp_path / "one", {"old": b"o" * 10}))
    catalogue.remove(store, V1)
    done = collect(store, nobody_pushes=True)
    assert (done.removed, done.removed_bytes) == (1, 10)
    assert not list(store.list(layout.BLOBS))


def test_a_marked_copy_is_not_used_again_and_its_mark_stays(store: Store, tmp_path: Path) -> None:
    model = folder_of(tmp_path / "one", {"weights": b"w"})
    pushed(store, V1, model)
    catalogue.remove(store, V1)
    collect(Later(store, 2 * DAY))
    assert pushed(store, V2, model).uploaded == 1
    assert counts(collect(Later(store, 2 * DAY))) == (1, 0, 0, 1)
    assert not faults(store)


def test_a_mark_on_a_copy_that_a_version_names_is_taken_away(store: Store, tmp_path: Path) -> None:
    file = pushed(store, V1, folder_of(tmp_path / "one", {"weights": b"w"})).manifest.files[0]
    store.create(layout.mark(file.sha256, file.blob), b"")
    store.create(layout.mark("0" * 64, "gone"), b"")
    assert counts(collect(Later(store, 2 * DAY))) == (1, 0, 0, 0)
    assert not list(store.list(layout.CONDEMNED))
    assert not faults(store)


def test_nothing_is_removed_while_a_manifest_cannot_be_read(store: Store, tmp_path: Path) -> None:
    pushed(store, V1, folder_of(tmp_path / "one", {"weights": b"w"}))
    catalogue.remove(store, V1)
    store.create(V2.key, b"{")
    with pytest.raises(Damaged, match="is no manifest"):
        collect(store, nobody_pushes=True)
    assert len(list(store.list(layout.BLOBS))) == 1


def test_a_clock_that_goes_back_only_delays(store: Store, tmp_path: Path) -> None:
    pushed(store, V1, folder_of(tmp_path / "one", {"weights": b"w"}))
    catalogue.remove(store, V1)
    assert counts(collect(Later(store, -30 * DAY))) == (0, 1, 0, 0)


def test_a_grace_time_under_an_hour_is_refused(store: Store) -> None:
    with pytest.raises(Refused, match="an hour at least"):
        collect(store, grace=60)


def test_drafts_of_killed_writers_go_after_the_grace_time(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    folder_of(tmp_path, {"drafts/1": b"half"})
    collect(store)
    assert (tmp_path / "drafts" / "1").exists()
    collect(store, nobody_pushes=True)
    assert not (tmp_path / "drafts" / "1").exists()


class InTurn(Wrapped):
    """Each operation waits for its turn."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.go, self.waits = threading.Semaphore(0), threading.Semaphore(0)
        self.ended = False

    def before(self, operation: str, key: str) -> None:
        self.waits.release()
        self.go.acquire()

    def run(self, work: Callable[[], object]) -> threading.Thread:
        def whole() -> None:
            try:
                work()
            finally:
                self.ended = True
                self.waits.release()

        thread = threading.Thread(target=whole)
        thread.start()
        self.waits.acquire()
        return thread

    def step(self) -> None:
        if not self.ended:
            self.go.release()
            self.waits.acquire()


@settings(max_examples=60, deadline=None)
@given(
    before=st.sampled_from(["fresh", "old", "marked", "marked long ago"]),
    turns=st.lists(st.integers(0, 2), min_size=10, max_size=40),
    removes=st.booleans(),
)
def test_a_push_and_two_collections_in_any_order_leave_every_version_whole(
    before: str, turns: Sequence[int], removes: bool
) -> None:
    """A copy that no version names is pushed again while collections mark it, or remove it, or find it too young."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        store = FolderStore(root / "store")
        model = folder_of(root / "model", {"weights": b"w"})
        pushed(store, V1, model)
        if removes or before != "fresh":
            catalogue.remove(store, V1)
        if before.startswith("marked"):
            collect(Later(store, 2 * DAY))
        seconds = {"fresh": 0.0, "old": 2 * DAY, "marked": GRACE / 2, "marked long ago": 2 * DAY}[before]
        actors = [InTurn(store), InTurn(store), InTurn(store)]
        threads = [
            actors[0].run(lambda: pushed(actors[0], V2, model)),
            *(actor.run(lambda actor=actor: collect(Later(actor, seconds))) for actor in actors[1:]),  # type: ignore[misc]
        ]
        for turn in turns:
            actors[turn].step()
        while not all(actor.ended for actor in actors):
            for actor in actors:
                actor.step()
        for thread in threads:
            thread.join()
        assert V2 in list(catalogue.versions(store))
        assert not faults(store)
        collect(Later(store, seconds + 2 * GRACE))
        collect(Later(store, seconds + 4 * GRACE))
        assert not faults(store)
