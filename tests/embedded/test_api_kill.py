"""`kill -9` of the platform under load, again and again, with a checker of history.

Several writers change objects of their own, one watcher follows everything and resumes after every death. What must
hold, however the rounds fall:

- what was acknowledged is there (or a later write of the same writer that was on its way);
- the uid of an object never changes between its creation and its deletion;
- the watch, pieced together over all deaths, shows every step of every object once and in order;
- replaying the watch gives exactly what a list shows.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import signal
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from paddlecloud.platform import endpoint

WRITERS = 6
WRITES = 200  # a round may have so many before the kill: counted, so that a busy machine only makes it longer
ROUND = 240.0  # seconds after which a round is stuck, however busy the machine
PATH = "/api/v1/namespaces/default/configmaps"
LABEL = "round-trip"


@dataclass
class Known:
    """What a writer knows of one object: the last acknowledged state, and the write that got no answer, if any."""

    value: int | None = None  # None: it does not exist
    uid: str = ""
    trying: tuple[str, int] | None = None  # (verb, value)
    acknowledged: set[int] = field(default_factory=set)  # every value that was written for certain
    steps: int = 0  # values handed out so far: they only grow


class Tally:
    """Writes acknowledged in a round; `reached` is set with the one that the kill waits for."""

    def __init__(self, goal: int) -> None:
        self._missing = goal
        self.reached = asyncio.Event()

    def count(self) -> None:
        self._missing -= 1
        if self._missing == 0:
            self.reached.set()


@dataclass
class Seen:
    """The watch, pieced together."""

    revision: int = 0
    events: list[tuple[int, str, str, int, str]] = field(default_factory=list)  # revision, type, name, value, uid


class Server:
    def __init__(self, data: Path) -> None:
        self.data = data
        self.port = 0

    async def up(self) -> None:
        command = [sys.executable, "-m", "paddlecloud.cli.main", "up", "--data", str(self.data)]
        process = await asyncio.create_subprocess_exec(
            *command, "--port", str(self.port), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        out, _ = await asyncio.wait_for(process.communicate(), 90)
        assert process.returncode == 0, out.decode() + (self.data / "platform.log").read_text()[-4000:]
        found = endpoint.find(self.data)
        assert found is not None
        self.port = found.port

    async def kill(self) -> None:
        found = endpoint.find(self.data)
        assert found is not None
        os.kill(found.pid, signal.SIGKILL)
        for _ in range(500):
            if not Path(f"/proc/{found.pid}").exists():
                return
            await asyncio.sleep(0.01)

    @contextlib.asynccontextmanager
    async def session(self) -> AsyncIterator[aiohttp.ClientSession]:
        tls = ssl.create_default_context(cafile=str(self.data / "pki" / "ca.crt"))
        token = (self.data / "pki" / "admin.token").read_text().strip()
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        connector = aiohttp.TCPConnector(ssl=tls, limit=0)
        base = f"https://127.0.0.1:{self.port}"
        async with aiohttp.ClientSession(base, connector=connector, headers=headers) as session:
            yield session


LOST = (aiohttp.ClientError, ConnectionError, asyncio.TimeoutError)


async def write(
    session: aiohttp.ClientSession, rng: random.Random, known: dict[str, Known], number: int, tally: Tally
) -> None:
    """Change objects until the server dies. Raises nothing but assertion errors."""
    while True:
        name = f"w{number}-{rng.randrange(4)}"
        state = known.setdefault(name, Known())
        verb = "create" if state.value is None else "delete" if rng.random() < 0.1 else "update"
        state.steps += 1
        state.trying = (verb, state.steps)
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "labels": {LABEL: "yes"}},
            "data": {"value": str(state.steps), "filler": "x" * rng.randrange(3000)},
        }
        path = PATH if verb == "create" else f"{PATH}/{name}"
        method = {"create": "POST", "update": "PUT", "delete": "DELETE"}[verb]
        try:
            async with session.request(method, path, data=json.dumps(body) if verb != "delete" else None) as reply:
                answer = await reply.json()
                status = reply.status
        except LOST:
            return
        assert status in (200, 201), (verb, name, status, answer)
        if verb == "delete":
            state.value, state.uid = None, ""
        else:
            assert verb == "create" or answer["metadata"]["uid"] == state.uid, f"{name} changed its uid"
            state.value, state.uid = state.steps, answer["metadata"]["uid"]
            state.acknowledged.add(state.steps)
        state.trying = None
        tally.count()


async def follow(session: aiohttp.ClientSession, seen: Seen) -> None:
    """Watch from the last revision seen until the server dies."""
    query = {"watch": "1", "labelSelector": LABEL, "resourceVersion": str(seen.revision), "allowWatchBookmarks": "1"}
    timeout = aiohttp.ClientTimeout(total=None)
    try:
        async with session.get(PATH, params=query, timeout=timeout, read_bufsize=1 << 22) as reply:
            assert reply.status == 200, await reply.text()
            async for line in reply.content:
                event = json.loads(line)
                assert event["type"] != "ERROR", event
                meta = event["object"]["metadata"]
                revision = int(meta["resourceVersion"])
                if event["type"] == "BOOKMARK":
                    seen.revision = revision
                    continue
                assert revision > seen.revision, f"event {revision} came after {seen.revision}: a duplicate"
                value = int(event["object"]["data"]["value"])
                seen.events.append((revision, event["type"], meta["name"], value, meta["uid"]))
                seen.revision = revision
    except (*LOST, json.JSONDecodeError):
        return  # the server died, perhaps in the middle of a line


async def listed(session: aiohttp.ClientSession) -> tuple[int, dict[str, dict[str, Any]]]:
    async with session.get(PATH, params={"labelSelector": LABEL}) as reply:
        body = await reply.json()
    items = {item["metadata"]["name"]: item for item in body["items"]}
    return int(body["metadata"]["resourceVersion"]), items


def check_acknowledged(known: dict[str, Known], items: dict[str, dict[str, Any]]) -> None:
    """Every object is as its writer last knew it, or as the one unanswered write would have left it."""
    for name, state in known.items():
        found = items.get(name)
        value = int(found["data"]["value"]) if found else None
        possible = {state.value}
        if state.trying is not None:
            verb, tried = state.trying
            possible.add(None if verb == "delete" else tried)
        assert value in possible, f"{name} is {value}, but was acknowledged as {state.value} (tried {state.trying})"
        if found is not None and state.uid and state.value is not None:
            assert found["metadata"]["uid"] == state.uid, f"{name} came back with another uid"
        # from here on this is the truth
        state.value, state.trying = value, None
        state.uid = found["metadata"]["uid"] if found else ""


def check_history(seen: Seen, items: dict[str, dict[str, Any]]) -> None:
    """No gap, no duplicate, no change of uid; the end of it is what the list shows."""
    present: dict[str, tuple[int, str]] = {}
    last: dict[str, int] = {}
    for revision, kind, name, value, uid in seen.events:
        before = present.get(name)
        if kind == "ADDED":
            assert before is None, f"{name} was added twice ({revision})"
            # a create may follow a delete, which took its own value, or writes that never happened
            assert value > last.get(name, 0)
        elif kind == "MODIFIED":
            assert before is not None, f"{name} was changed before it was there ({revision})"
            assert before[1] == uid, f"{name} changed its uid ({revision})"
            assert value > before[0], f"{name} went back from {before[0]} to {value} ({revision})"
        else:
            assert before is not None, f"{name} was deleted twice ({revision})"
            assert before[1] == uid
        last[name] = max(value, last.get(name, 0))
        if kind == "DELETED":
            del present[name]
        else:
            present[name] = (value, uid)
    shown = {name: (int(item["data"]["value"]), item["metadata"]["uid"]) for name, item in items.items()}
    assert present == shown


def check_no_gap(seen: Seen, known: dict[str, Known]) -> None:
    """Every acknowledged value was watched."""
    watched: dict[str, set[int]] = {}
    for _, kind, name, value, _ in seen.events:
        if kind != "DELETED":
            watched.setdefault(name, set()).add(value)
    for name, state in known.items():
        missing = state.acknowledged - watched.get(name, set())
        assert not missing, f"the watch never showed {name} at {sorted(missing)[:5]}"


@pytest.mark.timeout(0)  # each round has its own limit
@pytest.mark.parametrize("rounds", [pytest.param(6, id="6 rounds"), pytest.param(200, marks=pytest.mark.soak)])
async def test_nothing_acknowledged_is_lost_when_the_platform_is_killed(tmp_path: Path, rounds: int) -> None:
    server, rng = Server(tmp_path / "data"), random.Random(20)
    known: dict[str, Known] = {}
    seen = Seen()
    await server.up()
    async with server.session() as session:
        seen.revision, _ = await listed(session)
    try:
        for number in range(rounds):
            await asyncio.wait_for(kill_under_load(server, rng, known, seen), ROUND)
            await asyncio.wait_for(come_back(server, known, seen, fence=f"fence-{number}"), ROUND)
    finally:
        subprocess.run(
            [sys.executable, "-m", "paddlecloud.cli.main", "down", "--data", str(server.data)],
            check=False, capture_output=True, timeout=90,
        )  # fmt: skip
    assert len(seen.events) > WRITES / 4 * rounds, "the load was no load"


async def kill_under_load(server: Server, rng: random.Random, known: dict[str, Known], seen: Seen) -> None:
    tally = Tally(rng.randint(1, WRITES))
    async with server.session() as session:
        watching = asyncio.ensure_future(follow(session, seen))
        writing = [asyncio.ensure_future(write(session, rng, known, who, tally)) for who in range(WRITERS)]
        at_work = asyncio.gather(*writing, watching)
        counted = asyncio.ensure_future(tally.reached.wait())
        await asyncio.wait({at_work, counted}, return_when=asyncio.FIRST_COMPLETED)
        counted.cancel()
        await asyncio.sleep(rng.uniform(0, 0.005))  # into the midst of the next writes
        await server.kill()
        await at_work


async def come_back(server: Server, known: dict[str, Known], seen: Seen, *, fence: str) -> None:
    """Start again, and hold what is there against what the writers and the watcher know."""
    await server.up()
    async with server.session() as session:
        _, items = await listed(session)
        check_acknowledged(known, items)
        await catch_up(session, seen, fence)
        _, items = await listed(session)
    check_history(seen, items)
    check_no_gap(seen, known)


async def catch_up(session: aiohttp.ClientSession, seen: Seen, fence: str) -> None:
    """Resume the watch until it has come to an object that was written after everything else."""
    meta = {"name": fence, "labels": {LABEL: "yes"}}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"value": "1"}}
    async with session.post(PATH, data=json.dumps(body)) as reply:
        assert reply.status == 201, await reply.text()
    following = asyncio.ensure_future(follow(session, seen))
    try:
        while not following.done() and all(event[2] != fence for event in seen.events[-WRITERS * 50 :]):
            await asyncio.sleep(0.02)
    finally:
        following.cancel()
        result = (await asyncio.gather(following, return_exceptions=True))[0]
    if isinstance(result, AssertionError):
        raise result
