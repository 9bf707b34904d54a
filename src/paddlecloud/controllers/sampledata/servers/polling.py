"""Asks the cache servers of a set for their figures and jobs, at most once a second however often it is reconciled."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace

from paddlecloud.controllers.sampledata.sampleset import server_pods
from paddlecloud.controllers.sampledata.sampleset.case import CacheServer, Observed, SampleSetCase
from paddlecloud.controllers.sampledata.servers.access import Access
from paddlecloud.controllers.sampledata.servers.requests import ServerAddress, ServerRefused, Servers, ServerSilent
from paddlecloud.controllers.sampledata.servers.responses import Figures, JobReport
from paddlecloud.kube.clock import Clock
from paddlecloud.kube.resource import Key

ANSWERS_LAST = 1.0
"""Seconds during which a server is not asked the same again."""

CLEARING_PATIENCE = 60.0
"""Seconds that servers which are to go are given to empty their caches."""


@dataclass(slots=True)
class _Memory:
    """The last answers of a set's servers."""

    uid: str
    asked: float = -1e9
    ready: frozenset[str] = frozenset()
    """Runs of servers whose pods were ready when they were asked."""
    figures: dict[str, Figures] = field(default_factory=dict)
    silent: dict[str, str] = field(default_factory=dict)
    sync_id: str | None = None
    sync: JobReport | None = None
    sync_asked: bool = False
    proven: set[str] = field(default_factory=set)
    """Runs of servers that have answered under the set's certificate. Each holds its address until it ends."""


class ServerPoller:
    def __init__(self, servers: Servers, clock: Clock) -> None:
        self._servers = servers
        self._clock = clock
        self._memory: dict[Key, _Memory] = {}
        self._since: dict[Key, float] = {}  # since when servers of a set are leaving

    def forget(self, key: Key) -> None:
        self._memory.pop(key, None)
        self._since.pop(key, None)

    async def ask(self, case: SampleSetCase, key: Key) -> Observed:
        """Figures of all servers and the state of the import, asked for at most once a second."""
        memory = self._memory.get(key)
        if memory is None or memory.uid != case.uid:
            memory = self._memory[key] = _Memory(case.uid)
        running = [server for server in case.observed.cache_servers if server.running and server.ip]
        now = self._clock.monotonic()
        access = case.access
        id = case.old.jobs_name.sync_job_name if case.phase == "Syncing" and case.old.jobs_name else None
        same = ({s.name for s in running}, id) == ({*memory.figures, *memory.silent}, memory.sync_id)
        # What a server did not answer while it was starting says nothing about one that is ready.
        ready = frozenset(server.instance for server in running if server.ready)
        same = same and ready <= memory.ready
        if access and case.phase and not (same and now - memory.asked < ANSWERS_LAST):
            memory.asked, memory.ready, memory.sync_id = now, ready, id
            await asyncio.gather(
                self._ask_figures(memory, [ServerAddress(s.name, s.ip, access) for s in running]),
                self._ask_import(memory, case, access),
            )
        memory.proven &= {server.instance for server in running}
        memory.proven |= {server.instance for server in running if server.name in memory.figures}
        return replace(
            case.observed,
            cache_servers=tuple(_if_proven(server, memory) for server in case.observed.cache_servers),
            figures=dict(memory.figures),
            silent=dict(memory.silent),
            sync=memory.sync,
            sync_asked=memory.sync_asked,
        )

    async def _ask_figures(self, memory: _Memory, servers: list[ServerAddress]) -> None:
        answers = await asyncio.gather(*(self._servers.figures(server) for server in servers), return_exceptions=True)
        memory.figures, memory.silent = {}, {}
        for server, answer in zip(servers, answers, strict=True):
            if isinstance(answer, Figures):
                memory.figures[server.pod] = answer
            elif isinstance(answer, (ServerSilent, ServerRefused)):
                memory.silent[server.pod] = str(answer)
            else:
                raise answer

    async def _ask_import(self, memory: _Memory, case: SampleSetCase, access: Access) -> None:
        memory.sync, memory.sync_asked = None, False
        if not memory.sync_id or case.first is None or not case.first.ip:
            return
        server = ServerAddress(case.first.name, case.first.ip, access)
        try:
            memory.sync = await self._servers.job(server, memory.sync_id)
            memory.sync_asked = True
        except (ServerSilent, ServerRefused):
            pass  # its figures were asked for too, and say why

    async def is_cleared(self, case: SampleSetCase, key: Key) -> bool:
        """Whether the caches of servers that are to go are empty. One that cannot be asked must not hold them up."""
        going = server_pods.leaving(case)
        access = case.access
        if access is None or not going:
            self._since.pop(key, None)
            return True
        if self._clock.monotonic() - self._since.setdefault(key, self._clock.monotonic()) > CLEARING_PATIENCE:
            return True
        id = server_pods.clear_work(case).id
        for server in going:
            try:
                report = await self._servers.job(ServerAddress(server.name, server.ip, access), id)
            except (ServerSilent, ServerRefused):
                continue
            if report is None or not report.ended:
                return False
        return True


def _if_proven(server: CacheServer, memory: _Memory) -> CacheServer:
    """A server is ready when it also has proven to be the set's: probes cannot distinguish one program from another."""
    if not server.ready or server.instance in memory.proven:
        return server
    return replace(server, ready=False, trouble=memory.silent.get(server.name, "has not answered yet"))
