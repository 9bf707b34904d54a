"""The controller: which changes lead to which runs, and what a run's end leads to."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

import pytest
from kube_mini import MiniServer

from paddlecloud.kube.client import Client
from paddlecloud.kube.clock import FakeClock
from paddlecloud.kube.controller import SYNC_TIMEOUT, Controller, TerminalError
from paddlecloud.kube.errors import Forbidden, TooManyRequests, conflict
from paddlecloud.kube.informer import Informer
from paddlecloud.kube.logs import JsonFormatter, TextFormatter
from paddlecloud.kube.plan import PlanFailed, PlanResult
from paddlecloud.kube.resource import PADDLEJOBS, PODS, Key

JOBS = "/apis/batch.paddlepaddle.org/v1/namespaces/ns/paddlejobs"
PODS_PATH = "/api/v1/namespaces/ns/pods"
A = Key("ns", "a")


def owned_by(kind: str, name: str, api_version: str = "batch.paddlepaddle.org/v1") -> dict[str, object]:
    ref = {"apiVersion": api_version, "kind": kind, "name": name, "uid": f"uid-{name}", "controller": True}
    return {"ownerReferences": [ref]}


class Story:
    """A server, a clock and a controller whose every run is written down."""

    def __init__(self, reconcile: Callable[[Key], Awaitable[float | None]] | None = None, *, workers: int = 2) -> None:
        self.server, self.clock = MiniServer(), FakeClock()
        self.client = Client(self.server)
        self.runs: list[tuple[float, Key]] = []
        self.results: list[str] = []
        self.waits: list[list[str]] = []
        self._reconcile = reconcile
        self.controller = Controller("test", self.reconcile, clock=self.clock, workers=workers, hooks=self)
        self.jobs = Informer(self.client, PADDLEJOBS, clock=self.clock)
        self.pods = Informer(self.client, PODS, clock=self.clock)
        self.started = self.clock.now()

    async def reconcile(self, key: Key) -> float | None:
        self.runs.append((self.clock.now() - self.started, key))
        return await self._reconcile(key) if self._reconcile else None

    def reconciled(self, controller: str, result: str, seconds: float) -> None:
        self.results.append(result)

    def depth(self, controller: str, ready: int) -> None:
        """Not part of these stories."""

    def waiting(self, controller: str, collections: Sequence[str]) -> None:
        self.waits.append([*collections])

    @property
    def keys(self) -> list[Key]:
        return [key for _, key in self.runs]

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        tasks = [asyncio.ensure_future(part.run()) for part in (self.jobs, self.pods, self.controller)]
        try:
            await self.clock.settle()
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def test_at_the_start_what_was_not_reconciled_yet_comes_first() -> None:
    story = Story(workers=1)
    story.controller.watch(story.jobs)
    story.controller.watch_owned(story.pods, owner_kind="PaddleJob")
    for name in ("a", "b"):
        story.server.put(JOBS, name, metadata={"generation": 2}, status={"observedGeneration": 2})
        story.server.put(PODS_PATH, f"{name}-0", metadata=owned_by("PaddleJob", name))
    story.server.put(JOBS, "changed", metadata={"generation": 2}, status={"observedGeneration": 1})
    story.server.put(JOBS, "new", metadata={"generation": 1})
    async with story.running():
        assert [key.name for key in story.keys] == ["changed", "new", "a", "b"]


async def test_a_controller_that_always_has_work_lets_others_have_their_turn() -> None:
    runs, most = 0, 100_000

    async def again_at_once(key: Key) -> float | None:
        nonlocal runs
        runs += 1
        return 0.0 if runs < most else None

    controller = Controller("test", again_at_once, workers=2)
    running = asyncio.ensure_future(controller.run())
    controller.queue.add(A)
    while runs == 0:
        await asyncio.sleep(0)
    assert runs < most, "others had their turn only when the work was done"
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_existing_objects_and_changes_lead_to_runs_of_their_own_key() -> None:
    story = Story()
    story.controller.watch(story.jobs)
    story.server.put(JOBS, "a")
    async with story.running():
        assert story.keys == [A]
        story.server.put(JOBS, "a")
        story.server.put(JOBS, "b")
        await story.clock.settle()
        story.server.drop(JOBS, "a")
        await story.clock.settle()
    assert story.keys == [A, A, Key("ns", "b"), A]


async def test_nothing_runs_before_every_cache_is_filled() -> None:
    story = Story()
    story.controller.watch(story.jobs)
    story.controller.watch_owned(story.pods, owner_kind="PaddleJob")
    story.server.put(JOBS, "a")
    story.server.refuse = lambda method, path: TooManyRequests("later") if path.endswith("/pods") else None
    async with story.running():
        await story.clock.advance(1)
        assert story.jobs.synced
        assert story.keys == []
        story.server.refuse = lambda method, path: None
        await story.clock.advance(10)
        assert story.keys == [A]


@pytest.mark.parametrize(
    ("owner_kind", "wakes"),
    [
        ("PaddleJob", [Key("ns", "other"), A]),
        (PADDLEJOBS, [A]),
        ("Deployment", []),
    ],
)
async def test_a_change_of_an_owned_object_wakes_its_owner(owner_kind: str, wakes: list[Key]) -> None:
    story = Story()
    story.controller.watch_owned(story.pods, owner_kind=owner_kind)
    async with story.running():
        story.server.put(PODS_PATH, "p0", metadata=owned_by("PaddleJob", "other", "kubeflow.org/v1"))
        story.server.put(PODS_PATH, "p1", metadata=owned_by("PaddleJob", "a"))
        story.server.put(PODS_PATH, "p2")
        await story.clock.settle()
    assert story.keys == wakes


async def test_an_object_that_changes_hands_wakes_both() -> None:
    story = Story()
    story.controller.watch_owned(story.pods, owner_kind="PaddleJob")
    story.server.put(PODS_PATH, "p", metadata=owned_by("PaddleJob", "a"))
    async with story.running():
        story.runs.clear()
        story.server.put(PODS_PATH, "p", metadata=owned_by("PaddleJob", "b"))
        await story.clock.settle()
    assert story.keys == [A, Key("ns", "b")]


async def test_a_predicate_keeps_the_uninteresting_away_and_a_mapper_chooses_the_keys() -> None:
    story = Story()
    story.controller.watch(
        story.jobs,
        map=lambda obj: [Key("", "all")],
        when=lambda old, new: old is None,
    )
    async with story.running():
        story.server.put(JOBS, "a")
        await story.clock.settle()
        story.server.put(JOBS, "a")
        await story.clock.settle()
    assert story.keys == [Key("", "all")]


async def test_a_run_that_asks_for_another_look_gets_it_on_time() -> None:
    answers = iter([5.0, None])

    async def reconcile(key: Key) -> float | None:
        return next(answers)

    story = Story(reconcile)
    story.controller.queue.add(A)
    async with story.running():
        await story.clock.advance(4.9)
        assert len(story.runs) == 1
        await story.clock.advance(100)
    assert story.runs == [(0, A), (5, A)]
    assert story.results == ["after", "done"]


async def test_a_failing_run_is_repeated_later_each_time_and_success_starts_over() -> None:
    ends: list[Exception | None] = [RuntimeError("x")] * 4 + [None, RuntimeError("x"), None]

    async def reconcile(key: Key) -> float | None:
        end = ends.pop(0)
        if end:
            raise end
        return None

    story = Story(reconcile)
    story.controller.queue.add(A)
    async with story.running():
        await story.clock.advance(1)
        story.controller.queue.add(A)
        await story.clock.advance(1)
    assert [round(at, 3) for at, _ in story.runs] == [0, 0.005, 0.015, 0.035, 0.075, 1, 1.005]
    assert story.results == ["error"] * 4 + ["done", "error", "done"]


async def test_what_a_server_asked_for_is_waited_for() -> None:
    ends: list[Exception | None] = [TooManyRequests("slow down", retry_after=30), None]

    async def reconcile(key: Key) -> float | None:
        end = ends.pop(0)
        if end:
            raise end
        return None

    story = Story(reconcile)
    story.controller.queue.add(A)
    async with story.running():
        await story.clock.advance(100)
    assert [at for at, _ in story.runs] == [0, 30]


async def test_a_terminal_error_is_recorded_and_not_repeated_until_something_changes() -> None:
    ends: list[Exception | None] = [TerminalError("no such role"), None]

    async def reconcile(key: Key) -> float | None:
        end = ends.pop(0)
        if end:
            raise end
        return None

    story = Story(reconcile)
    story.controller.watch(story.jobs)
    story.server.put(JOBS, "a")
    async with story.running():
        await story.clock.advance(1000)
        assert story.keys == [A]
        assert story.controller.terminal == {A: "no such role"}
        story.server.put(JOBS, "a")
        await story.clock.settle()
        assert story.controller.terminal == {}
    assert story.results == ["terminal", "done"]


@pytest.mark.parametrize(
    "error", [conflict("pods", "p"), PlanFailed([("patch Pod p", conflict("pods", "p"))], PlanResult())]
)
async def test_a_conflict_is_an_ordinary_end(error: Exception) -> None:
    ends: list[Exception | None] = [error, None]

    async def reconcile(key: Key) -> float | None:
        end = ends.pop(0)
        if end:
            raise end
        return None

    story = Story(reconcile)
    story.controller.queue.add(A)
    async with story.running():
        await story.clock.advance(1)
    assert story.results == ["conflict", "done"]


async def test_one_key_never_runs_twice_at_once_and_others_do_not_wait_for_it() -> None:
    active: list[Key] = []
    most: dict[str, int] = {"all": 0}
    gate = asyncio.Event()

    async def reconcile(key: Key) -> float | None:
        assert key not in active
        active.append(key)
        most["all"] = max(most["all"], len(active))
        await gate.wait()
        active.remove(key)
        return None

    story = Story(reconcile, workers=3)
    async with story.running():
        for name in "aab":
            story.controller.queue.add(Key("ns", name))
        await story.clock.settle()
        story.controller.queue.add(A)
        story.controller.queue.add(A)
        await story.clock.settle()
        assert len(story.runs) == 2
        gate.set()
        await story.clock.settle()
    assert story.keys == [A, Key("ns", "b"), A]
    assert most["all"] == 2


async def test_stopping_lets_a_run_in_progress_end_and_leaves_the_rest() -> None:
    gate, ended = asyncio.Event(), []

    async def reconcile(key: Key) -> float | None:
        await gate.wait()
        ended.append(key)
        return None

    story = Story(reconcile, workers=1)
    task = asyncio.ensure_future(story.controller.run())
    story.controller.queue.add(A)
    story.controller.queue.add(Key("ns", "b"))
    await story.clock.settle()
    task.cancel()
    await story.clock.settle()
    assert not task.done()
    gate.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == [A]


async def test_what_cannot_be_listed_in_time_is_named_with_its_cause_and_awaited(
    caplog: pytest.LogCaptureFixture,
) -> None:
    story = Story()
    story.controller.watch(story.jobs)
    story.controller.watch(story.pods)
    story.server.put(PODS_PATH, "p")
    forbidden = Forbidden("User ctl cannot list resource pods")
    story.server.refuse = lambda method, path: forbidden if path.endswith("/pods") else None
    async with story.running():
        await story.clock.advance(SYNC_TIMEOUT - 1)
        assert story.waits == []
        await story.clock.advance(1)
        assert story.waits == [["pods to be listed (Forbidden)"]]
        [line] = [r.getMessage() for r in caplog.records if r.name == "paddlecloud.kube.controller"]
        assert "pods: User ctl cannot list resource pods" in line
        assert "paddlejobs" not in line
        story.server.refuse = lambda method, path: None
        await story.clock.advance(60)
        assert story.keys == [Key("ns", "p")]
        assert story.waits[-1] == []


async def test_what_is_logged_in_a_reconcile_names_it() -> None:
    lines: dict[str, list[str]] = {"text": [], "json": []}

    class Lines(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines["text"].append(TextFormatter().format(record))
            lines["json"].append(JsonFormatter().format(record))

    handler, log = Lines(), logging.getLogger("test.reconcile")
    log.addHandler(handler)

    async def beside() -> None:
        log.warning("a task of it")

    async def reconcile(key: Key) -> float | None:
        await asyncio.ensure_future(beside())
        log.warning("inside")
        return None

    story = Story(reconcile, workers=1)
    story.controller.watch(story.pods)
    for name in ("a", "b"):
        story.server.put(PODS_PATH, name)
    async with story.running():
        log.warning("outside")
    log.removeHandler(handler)
    entries = [json.loads(line) for line in lines["json"]]
    inside = [(e.get("controller"), e.get("namespace"), e.get("name")) for e in entries]
    assert inside == [("test", "ns", "a")] * 2 + [("test", "ns", "b")] * 2 + [(None, None, None)]
    ids = [e.get("reconcileID") for e in entries]
    assert ids[0] == ids[1] != ids[2] == ids[3]
    assert lines["text"][1].endswith(f"inside [test ns/a reconcile={ids[1]}]")
    assert lines["text"][-1].endswith("outside")
